/* SPDX-License-Identifier: MIT */
/*
 * The thread for calls that take long. It takes one job at a time; the ctl
 * thread hands it over and collects the result, so that it never waits itself.
 */
#ifndef UZ_CTL_WORKER_H
#define UZ_CTL_WORKER_H

#include "base/lock.h"
#include "base/thread.h"
#include "ctl/ctl_methods.h"

struct ctl_worker {
	struct ctl_progress progress; /* what jobs report to */
	const struct ctl_ops *ops;
	void *context;
	int event_fd; /* written to when there is news */
	struct thread thread;
	struct condition wake; /* the worker waits here */
	struct lock lock;      /* guards all below */
	enum ctl_worker_state {
		CTL_WORKER_IDLE,
		CTL_WORKER_QUEUED,
		CTL_WORKER_RUNNING, /* the job belongs to the worker, without the lock */
		CTL_WORKER_FINISHED,
	} state;
	bool stopping;
	bool progressed; /* remaining_bytes is news */
	uint64_t remaining_bytes;
	struct ctl_job job;
};

enum ctl_worker_news {
	CTL_WORKER_NO_NEWS,
	CTL_WORKER_PROGRESS,
	CTL_WORKER_DONE,
};

/* Starts the thread. `event_fd` (an eventfd) stays the caller's. Returns 0 or -errno. */
int ctl_worker_init(struct ctl_worker *worker, const struct ctl_ops *ops, void *context,
		    int event_fd);

/*
 * Ends the thread after the job that runs; one that is only queued is not run
 * and has the result -ECANCELED. The last result can still be collected.
 */
void ctl_worker_stop(struct ctl_worker *worker);

/* After ctl_worker_stop. */
void ctl_worker_done(struct ctl_worker *worker);

/* Hands a job over. Returns 0, or -EBUSY while another one is not yet collected. */
int ctl_worker_submit(struct ctl_worker *worker, const struct ctl_job *job);

/*
 * What is new: CTL_WORKER_PROGRESS with the latest *ret_remaining_bytes, or
 * CTL_WORKER_DONE with *ret_job, after which the worker takes another one.
 */
enum ctl_worker_news ctl_worker_poll(struct ctl_worker *worker,
				     uint64_t *ret_remaining_bytes,
				     struct ctl_job *ret_job);

#endif
