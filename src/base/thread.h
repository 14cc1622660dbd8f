/* SPDX-License-Identifier: MIT */
/*
 * Threads: named, with a small stack of fixed size that is touched before the
 * thread's function runs, so that the I/O path never faults on it.
 */
#ifndef UZ_BASE_THREAD_H
#define UZ_BASE_THREAD_H

#include <pthread.h>

#include "base/sanitize.h"

/* MCL_FUTURE populates whole stacks, so they are small: 256 KiB, measured use is below 40
 * KiB. */
#define UZ_THREAD_STACK_BYTES (UZ_TSAN || UZ_ASAN ? 4 * 1024 * 1024 : 256 * 1024)

struct thread {
	pthread_t handle;
	char name[16]; /* TASK_COMM_LEN: 15 characters */
	int started;
	void (*run)(void *argument);
	void *argument;
	int cpu;
	int nice;
};

/*
 * Starts `run(argument)`. `name`: cut to 15 characters. `cpu`: the CPU to pin
 * to, or -1. `nice`: -20..19, applied to this thread alone; where the limit
 * forbids it the thread runs at its creator's. The struct belongs to the
 * caller and must live until thread_join. Returns 0 or -errno.
 */
int thread_start(struct thread *thread, const char *name, void (*run)(void *), void *argument,
		 int cpu, int nice);

/* Waits for the thread's end. A thread that was never started is fine. */
void thread_join(struct thread *thread);

/* CPUs that this process may run on: their numbers to `ret_cpus`, at most `max`. Returns
 * the count. */
int thread_allowed_cpus(int *ret_cpus, int max);

#endif
