/* SPDX-License-Identifier: MIT */
/*
 * Mutexes with a rank. A thread takes locks in rising rank only; --enable-debug
 * builds check that while running and abort at the first wrong order.
 * The whole order of the project is the enum below.
 */
#ifndef UZ_BASE_LOCK_H
#define UZ_BASE_LOCK_H

#include <pthread.h>
#include <stdint.h>

enum lock_rank {
	LOCK_RANK_DAEMON = 10,	    /* daemon: life cycle of devices, taken by ctl requests */
	LOCK_RANK_CTL = 20,	    /* ctl: hand-over to its worker */
	LOCK_RANK_FRONT = 30,	    /* front: receivers, queue of writes */
	LOCK_RANK_STORE = 40,	    /* store: thread list, reclaim and provision hand-shake */
	LOCK_RANK_SHARD = 50,	    /* arena: one class in one arena */
	LOCK_RANK_RUNS = 60,	    /* arena: page runs */
};

struct lock {
	pthread_mutex_t mutex;
	uint32_t rank;
};

/* Never fails on Linux for a default mutex; a failure is a programmer's error and
 * asserts. */
void lock_init(struct lock *lock, enum lock_rank rank);
void lock_done(struct lock *lock);
void lock_take(struct lock *lock);
/* Returns 1 when taken, 0 when another thread holds it. Exempt from the order. */
int lock_try(struct lock *lock);
void lock_release(struct lock *lock);

struct condition {
	pthread_cond_t cond; /* waits on CLOCK_MONOTONIC */
};

void condition_init(struct condition *condition);
void condition_done(struct condition *condition);
void condition_wait(struct condition *condition, struct lock *lock);
/* Waits until `deadline_ns` of CLOCK_MONOTONIC at the latest. Returns 0 or -ETIMEDOUT. */
int condition_wait_until(struct condition *condition, struct lock *lock, uint64_t deadline_ns);
void condition_wake_one(struct condition *condition);
void condition_wake_all(struct condition *condition);

#endif
