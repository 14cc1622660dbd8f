// SPDX-License-Identifier: MIT
/* Threads. thread_start and thread_join are called by the owner of the struct only. */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Grows and dirties the stack once, down to what the I/O path may use. */
static void __attribute__((noinline)) touch_stack(void)
{
	volatile char block[UZ_THREAD_STACK_BYTES / 2];

	for (size_t i = 0; i < sizeof(block); i += 4096)
		block[i] = 1;
}

static void *entry(void *pointer)
{
	struct thread *thread = pointer;

	pthread_setname_np(pthread_self(), thread->name);
	if (thread->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)thread->cpu, &set);
		/* A CPU that has gone away leaves the thread unpinned: slower, still
		 * right. */
		sched_setaffinity(0, sizeof(set), &set);
	}
	if (thread->nice != 0)
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), thread->nice);
	touch_stack();
	thread->run(thread->argument);
	return NULL;
}

int thread_start(struct thread *thread, const char *name, void (*run)(void *), void *argument,
		 int cpu, int nice)
{
	pthread_attr_t attr;
	sigset_t all, old;

	snprintf(thread->name, sizeof(thread->name), "%s", name);
	thread->run = run;
	thread->argument = argument;
	thread->cpu = cpu;
	thread->nice = nice;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, UZ_THREAD_STACK_BYTES);
	/* Signals belong to the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&thread->handle, &attr, entry, thread);

	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	thread->started = err == 0;
	return -err;
}

void thread_join(struct thread *thread)
{
	if (!thread->started)
		return;
	pthread_join(thread->handle, NULL);
	thread->started = 0;
}

int thread_allowed_cpus(int *ret_cpus, int max)
{
	cpu_set_t set;
	int count = 0;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		CPU_SET(0, &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < max; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			ret_cpus[count++] = cpu;
	return count;
}
