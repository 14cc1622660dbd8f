// SPDX-License-Identifier: MIT
/*
 * Keeping CPUs awake. Threads: the spinners, and whoever leads the receivers.
 *
 * Spinning begins with the second of two requests within the linger time, so
 * that a single page costs nothing, and ends by itself.
 */
#include "front/awake.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/units.h"

struct spinner {
	struct awake *awake;
	struct thread thread;
};

struct awake {
	uint64_t linger_ns;
	uint64_t last_ns; /* the requester's own: when the last request came */
	/* Spin until then. Written by the requester, read by the spinners; nothing hangs on it but
	 * how long they spin, hence relaxed. */
	_Atomic uint64_t until_ns;
	/* Spinners that wait for `work`. Written under the lock; the requester looks at it without,
	 * and at worst leaves the spinners asleep until the next request. */
	_Atomic int sleeping;
	struct lock lock;
	struct condition work;
	bool stopping; /* under the lock */
	int count;
	struct spinner spinner[AWAKE_MAX_CPUS];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static bool must_spin(struct awake *awake)
{
	return clock_now_ns() < atomic_load_explicit(&awake->until_ns, memory_order_relaxed);
}

static void spin(struct awake *awake)
{
	while (must_spin(awake))
		for (unsigned i = 0; i < 32; i++)
			relax();
}

static void spinner_run(void *argument)
{
	struct awake *awake = ((struct spinner *)argument)->awake;
	struct sched_param param = {0};

	/* Without the class it would take time from others: rather not at all. */
	if (sched_setscheduler(0, SCHED_IDLE, &param) < 0)
		return;
	lock_take(&awake->lock);
	while (!awake->stopping) {
		if (must_spin(awake)) {
			lock_release(&awake->lock);
			spin(awake);
			lock_take(&awake->lock);
			continue;
		}
		atomic_fetch_add_explicit(&awake->sleeping, 1, memory_order_relaxed);
		condition_wait(&awake->work, &awake->lock);
		atomic_fetch_sub_explicit(&awake->sleeping, 1, memory_order_relaxed);
	}
	lock_release(&awake->lock);
}

void awake_request(struct awake *awake, uint64_t now_ns)
{
	if (!awake)
		return;
	bool close = now_ns - awake->last_ns < awake->linger_ns;

	awake->last_ns = now_ns;
	if (!close)
		return;
	atomic_store_explicit(&awake->until_ns, now_ns + awake->linger_ns, memory_order_relaxed);
	/* No lock: a spinner that is just about to sleep misses this one, and is woken by the next.
	 */
	if (atomic_load_explicit(&awake->sleeping, memory_order_relaxed) > 0)
		condition_wake_all(&awake->work);
}

int awake_new(struct awake **ret_awake, uint64_t linger_ns)
{
	int cpus[AWAKE_MAX_CPUS + 1];
	int count = thread_allowed_cpus(cpus, AWAKE_MAX_CPUS + 1);

	*ret_awake = NULL;
	if (linger_ns == 0 || count > AWAKE_MAX_CPUS)
		return 0;
	struct awake *awake = calloc(1, sizeof(*awake));

	if (!awake)
		return -ENOMEM;
	awake->linger_ns = linger_ns;
	lock_init(&awake->lock, LOCK_RANK_FRONT);
	condition_init(&awake->work);
	for (; awake->count < count; awake->count++) {
		struct spinner *spinner = &awake->spinner[awake->count];
		char name[32];

		snprintf(name, sizeof(name), "uzswap:i%d", cpus[awake->count]);
		spinner->awake = awake;
		int err = thread_start(&spinner->thread, name, spinner_run, spinner,
				       cpus[awake->count], 0);

		if (err < 0) {
			awake_free(awake);
			return err;
		}
	}
	*ret_awake = awake;
	return 0;
}

void awake_free(struct awake *awake)
{
	if (!awake)
		return;
	lock_take(&awake->lock);
	awake->stopping = true;
	condition_wake_all(&awake->work);
	lock_release(&awake->lock);
	for (int i = 0; i < awake->count; i++)
		thread_join(&awake->spinner[i].thread);
	condition_done(&awake->work);
	lock_done(&awake->lock);
	free(awake);
}
