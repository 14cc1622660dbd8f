// SPDX-License-Identifier: MIT
/* Ranked mutexes. The check keeps a short per-thread stack of the ranks held. */
#include "config.h"
#include "base/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/units.h"

#ifdef UZ_DEBUG
#define MAX_HELD 8
static _Thread_local uint32_t held[MAX_HELD];
static _Thread_local unsigned held_count;

static void rank_push(const struct lock *lock, int check)
{
	if (check && held_count > 0 && held[held_count - 1] >= lock->rank) {
		fprintf(stderr, "lock order: rank %u taken while holding %u\n", lock->rank,
			held[held_count - 1]);
		abort();
	}
	assert(held_count < MAX_HELD);
	held[held_count++] = lock->rank;
}

static void rank_pop(const struct lock *lock)
{
	for (unsigned i = held_count; i > 0; i--) {
		if (held[i - 1] != lock->rank)
			continue;
		for (unsigned j = i; j < held_count; j++)
			held[j - 1] = held[j];
		held_count--;
		return;
	}
	fprintf(stderr, "lock order: rank %u released but not held\n", lock->rank);
	abort();
}
#else
static inline void rank_push(const struct lock *lock, int check)
{
	(void)lock;
	(void)check;
}
static inline void rank_pop(const struct lock *lock)
{
	(void)lock;
}
#endif

void lock_init(struct lock *lock, enum lock_rank rank)
{
	int err = pthread_mutex_init(&lock->mutex, NULL);

	assert(err == 0);
	(void)err;
	lock->rank = (uint32_t)rank;
}

void lock_done(struct lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

void lock_take(struct lock *lock)
{
	rank_push(lock, 1);
	int err = pthread_mutex_lock(&lock->mutex);

	assert(err == 0);
	(void)err;
}

int lock_try(struct lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex) != 0)
		return 0;
	rank_push(lock, 0);
	return 1;
}

void lock_release(struct lock *lock)
{
	rank_pop(lock);
	int err = pthread_mutex_unlock(&lock->mutex);

	assert(err == 0);
	(void)err;
}

void condition_init(struct condition *condition)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&condition->cond, &attr);
	pthread_condattr_destroy(&attr);
}

void condition_done(struct condition *condition)
{
	pthread_cond_destroy(&condition->cond);
}

void condition_wait(struct condition *condition, struct lock *lock)
{
	rank_pop(lock);
	pthread_cond_wait(&condition->cond, &lock->mutex);
	rank_push(lock, 0);
}

int condition_wait_until(struct condition *condition, struct lock *lock, uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / UZ_NSEC_PER_SEC),
		.tv_nsec = (long)(deadline_ns % UZ_NSEC_PER_SEC),
	};

	rank_pop(lock);
	int err = pthread_cond_timedwait(&condition->cond, &lock->mutex, &ts);
	rank_push(lock, 0);
	return err == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void condition_wake_one(struct condition *condition)
{
	pthread_cond_signal(&condition->cond);
}

void condition_wake_all(struct condition *condition)
{
	pthread_cond_broadcast(&condition->cond);
}
