/* SPDX-License-Identifier: MIT */
/* A transport without a kernel: requests come from function calls. For tests and
 * benchmarks. */
#ifndef UZ_FRONT_FRONT_INPROC_H
#define UZ_FRONT_FRONT_INPROC_H

#include "front/workers.h"
#include "store/store.h"

struct front_inproc;

/* `writers`: number of write workers. Returns 0 or -errno. */
int front_inproc_new(struct front_inproc **ret_front, struct store *store, int writers);
void front_inproc_free(struct front_inproc *front);

/*
 * Carries out one request and waits for its end. Reads and discards run on the
 * calling thread, which has registered as `thread`; writes go to the workers.
 * Returns the request's result.
 */
int front_inproc_request(struct front_inproc *front, struct store_thread *thread, enum store_op op,
			 uint64_t offset_bytes, uint64_t length_bytes, void *data);

#endif
