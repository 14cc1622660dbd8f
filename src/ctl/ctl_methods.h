/* SPDX-License-Identifier: MIT */
/*
 * The methods of the two interfaces: who may call them, what parameters they
 * take, and their replies. Knows nothing of sockets. Calls that take long come
 * back as a job for the worker.
 */
#ifndef UZ_CTL_METHODS_H
#define UZ_CTL_METHODS_H

#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/varlink.h"

/* Who is at the other end of a connection, as the kernel told at connect(2). */
struct ctl_peer {
	uid_t uid;
	pid_t pid;
	bool may_read;
	bool may_change;
};

/* Belongs to the ctl thread, but for the two constant pointers. */
struct ctl_methods {
	const struct ctl_ops *ops;
	void *context;
	uint64_t denied; /* calls refused for want of permission */
	struct log_limit denied_limit;
};

enum ctl_job_kind {
	CTL_JOB_SWAPON,
	CTL_JOB_SWAPOFF,
	CTL_JOB_STOP,
};

/* A long call. */
struct ctl_job {
	enum ctl_job_kind kind;
	char device[CTL_NAME_BYTES];
	bool abandon;
	uid_t uid; /* who asked, for the log */
	pid_t pid;
	/* Filled in by ctl_job_run: */
	int result;
	char error_text[CTL_ERROR_BYTES];
};

/*
 * Carries out a call. Returns 0 with the whole reply (also an error reply) in
 * *ret_reply, or 1 with *ret_job filled in: run it and answer with
 * ctl_job_reply. -ENOMEM.
 */
int ctl_methods_call(struct ctl_methods *methods, const struct ctl_peer *peer,
		     const struct varlink_call *call, struct json_object **ret_reply,
		     struct ctl_job *ret_job);

/* Runs the job on the calling thread. */
void ctl_job_run(struct ctl_job *job, const struct ctl_ops *ops, void *context,
		 const struct ctl_progress *progress);

/* The replies to a job's call. NULL for want of memory. */
struct json_object *ctl_job_reply(const struct ctl_job *job);
struct json_object *ctl_job_reply_busy(void);
struct json_object *ctl_job_reply_progress(uint64_t remaining_bytes);

/* Calls `visit` with the full name of every method that is offered. */
void ctl_methods_for_each(void (*visit)(const char *name, void *context), void *context);

#endif
