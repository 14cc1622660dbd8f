// SPDX-License-Identifier: MIT
/*
 * Write workers. Threads: transports submit, workers take. One lock (rank
 * FRONT) around a queue of whole requests; it is taken twice per request, not
 * per page, and no system call but the wake-up happens under it.
 */
#include "front/workers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/thread.h"
#include "base/units.h"

struct worker {
	struct workers *workers;
	struct thread thread;
};

struct workers {
	struct store *store;
	struct lock lock;
	struct condition work;	/* queue not empty, or stopping */
	struct condition ready; /* a worker has started */
	struct write_job *head; /* under the lock, as all below */
	struct write_job **tail;
	int sleeping;
	int started;
	int start_error;
	bool stopping;
	/* Jobs queued or running. Written by any thread, read as a hint: relaxed. */
	_Atomic int busy;
	int count;
	struct worker worker[];
};

static struct write_job *take(struct workers *workers)
{
	lock_take(&workers->lock);
	while (!workers->head && !workers->stopping) {
		workers->sleeping++;
		condition_wait(&workers->work, &workers->lock);
		workers->sleeping--;
	}
	struct write_job *job = workers->head;

	if (job) {
		workers->head = job->next;
		if (!workers->head)
			workers->tail = &workers->head;
	}
	lock_release(&workers->lock);
	return job;
}

static void worker_run(void *argument)
{
	struct worker *worker = argument;
	struct workers *workers = worker->workers;
	struct store_thread *thread = NULL;
	int err = store_thread_new(&thread, workers->store, true);

	lock_take(&workers->lock);
	workers->started++;
	if (err < 0)
		workers->start_error = err;
	condition_wake_all(&workers->ready);
	lock_release(&workers->lock);
	if (err < 0)
		return;
	for (struct write_job *job; (job = take(workers));) {
		store_submit(thread, &job->request);
		atomic_fetch_sub_explicit(&workers->busy, 1, memory_order_relaxed);
	}
	store_thread_free(thread);
}

int workers_new(struct workers **ret_workers, struct store *store, int count, int nice)
{
	struct workers *workers =
		calloc(1, sizeof(*workers) + (size_t)count * sizeof(workers->worker[0]));
	int err = 0;

	if (!workers)
		return -ENOMEM;
	workers->store = store;
	workers->tail = &workers->head;
	workers->count = count;
	lock_init(&workers->lock, LOCK_RANK_FRONT);
	condition_init(&workers->work);
	condition_init(&workers->ready);
	int running = 0;

	for (; running < count && err == 0; running++) {
		char name[32];

		snprintf(name, sizeof(name), "uzswap:c%d", running);
		workers->worker[running].workers = workers;
		err = thread_start(&workers->worker[running].thread, name, worker_run,
				   &workers->worker[running], -1, nice);
		if (err < 0)
			break;
	}
	lock_take(&workers->lock);
	while (workers->started < running)
		condition_wait(&workers->ready, &workers->lock);
	if (err == 0)
		err = workers->start_error;
	lock_release(&workers->lock);
	if (err < 0) {
		workers_free(workers);
		return err;
	}
	*ret_workers = workers;
	return 0;
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	lock_take(&workers->lock);
	workers->stopping = true;
	condition_wake_all(&workers->work);
	lock_release(&workers->lock);
	for (int i = 0; i < workers->count; i++)
		thread_join(&workers->worker[i].thread);
	condition_done(&workers->work);
	condition_done(&workers->ready);
	lock_done(&workers->lock);
	free(workers);
}

void workers_submit(struct workers *workers, struct write_job *job)
{
	job->next = NULL;
	atomic_fetch_add_explicit(&workers->busy, 1, memory_order_relaxed);
	lock_take(&workers->lock);
	*workers->tail = job;
	workers->tail = &job->next;
	bool wake = workers->sleeping > 0;

	lock_release(&workers->lock);
	if (wake)
		condition_wake_one(&workers->work);
}

bool workers_idle(const struct workers *workers)
{
	return atomic_load_explicit(&workers->busy, memory_order_relaxed) == 0;
}
