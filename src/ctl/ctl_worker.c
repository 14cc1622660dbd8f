// SPDX-License-Identifier: MIT
/*
 * The worker "uzswap:ctlwork". It is started with the server, not when a job
 * comes: starting a thread needs memory, and swapoff is wanted when there is
 * none.
 *
 * Progress is a single value that the next report overwrites: a job that
 * reports often costs a lock, a client that reads slowly costs nothing.
 */
#include "ctl/ctl_worker.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* The counter of an eventfd cannot overflow here, so the write cannot block or fail. */
static void notify(const struct ctl_worker *worker)
{
	uint64_t one = 1;
	ssize_t written = write(worker->event_fd, &one, sizeof(one));

	(void)written;
}

/* On whatever thread the daemon reports from. */
static void report(const struct ctl_progress *progress, uint64_t remaining_bytes)
{
	struct ctl_worker *worker =
		(struct ctl_worker *)((char *)(uintptr_t)progress -
				      offsetof(struct ctl_worker, progress));

	lock_take(&worker->lock);
	worker->remaining_bytes = remaining_bytes;
	worker->progressed = true;
	lock_release(&worker->lock);
	notify(worker);
}

static void work(void *argument)
{
	struct ctl_worker *worker = argument;

	lock_take(&worker->lock);
	for (;;) {
		while (worker->state != CTL_WORKER_QUEUED && !worker->stopping)
			condition_wait(&worker->wake, &worker->lock);
		if (worker->stopping)
			break;
		worker->state = CTL_WORKER_RUNNING;
		worker->progressed = false;
		/* Nobody else touches the job while it runs. */
		lock_release(&worker->lock);
		ctl_job_run(&worker->job, worker->ops, worker->context,
			    &worker->progress);
		lock_take(&worker->lock);
		worker->state = CTL_WORKER_FINISHED;
		notify(worker);
	}
	if (worker->state == CTL_WORKER_QUEUED) {
		worker->job.result = -ECANCELED;
		worker->state = CTL_WORKER_FINISHED;
	}
	lock_release(&worker->lock);
}

int ctl_worker_init(struct ctl_worker *worker, const struct ctl_ops *ops, void *context,
		    int event_fd)
{
	*worker = (struct ctl_worker){
		.progress = {.report = report},
		.ops = ops,
		.context = context,
		.event_fd = event_fd,
		.state = CTL_WORKER_IDLE,
	};
	lock_init(&worker->lock, LOCK_RANK_CTL);
	condition_init(&worker->wake);
	int err = thread_start(&worker->thread, "uzswap:ctlwork", work, worker, -1, 0);

	if (err < 0)
		ctl_worker_done(worker);
	return err;
}

void ctl_worker_stop(struct ctl_worker *worker)
{
	lock_take(&worker->lock);
	worker->stopping = true;
	condition_wake_one(&worker->wake);
	lock_release(&worker->lock);
	thread_join(&worker->thread);
}

void ctl_worker_done(struct ctl_worker *worker)
{
	condition_done(&worker->wake);
	lock_done(&worker->lock);
}

int ctl_worker_submit(struct ctl_worker *worker, const struct ctl_job *job)
{
	int err = -EBUSY;

	lock_take(&worker->lock);
	if (worker->state == CTL_WORKER_IDLE && !worker->stopping) {
		worker->job = *job;
		worker->state = CTL_WORKER_QUEUED;
		condition_wake_one(&worker->wake);
		err = 0;
	}
	lock_release(&worker->lock);
	return err;
}

enum ctl_worker_news ctl_worker_poll(struct ctl_worker *worker,
				     uint64_t *ret_remaining_bytes,
				     struct ctl_job *ret_job)
{
	enum ctl_worker_news news = CTL_WORKER_NO_NEWS;

	lock_take(&worker->lock);
	if (worker->state == CTL_WORKER_FINISHED) {
		*ret_job = worker->job;
		worker->state = CTL_WORKER_IDLE;
		news = CTL_WORKER_DONE;
	} else if (worker->progressed) {
		*ret_remaining_bytes = worker->remaining_bytes;
		news = CTL_WORKER_PROGRESS;
	}
	worker->progressed = false;
	lock_release(&worker->lock);
	return news;
}
