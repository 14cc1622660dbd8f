/* SPDX-License-Identifier: MIT */
/*
 * The threads that carry out writes, so that compression happens neither in the
 * faulting task nor on a thread that could serve a read meanwhile.
 */
#ifndef UZ_FRONT_WORKERS_H
#define UZ_FRONT_WORKERS_H

#include <stdbool.h>

#include "store/store.h"

struct workers;

/* A write under way. Embedded in the transport's own structure; `request.done` tells its
 * end. */
struct write_job {
	struct store_request request;
	struct write_job *next;
};

/*
 * Starts `count` threads "uzswap:c0"… at `nice`.
 * Returns 0 or -errno.
 */
int workers_new(struct workers **ret_workers, struct store *store, int count, int nice);

/* Carries out what is queued, then ends the threads. NULL is fine. */
void workers_free(struct workers *workers);

/* Queues a write. Allocates nothing. The job belongs to the workers until request.done.
 */
void workers_submit(struct workers *workers, struct write_job *job);

/* Tells whether no write is queued or being carried out. A hint: it may be old when it
 * returns. */
bool workers_idle(const struct workers *workers);

#endif
