/* SPDX-License-Identifier: MIT */
/*
 * Receiving and answering the FUSE requests that carry data. The few others
 * (mount, lookup, attributes) are handed to a callback, which may allocate.
 */
#ifndef UZ_FRONT_FUSE_RECEIVE_H
#define UZ_FRONT_FUSE_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* Largest READ or WRITE; fs/fuse's limit without raising fs.fuse.max_pages_limit. */
#define FUSE_RECEIVE_MAX_BYTES (1024u * 1024u)

/* The node id of our only file; 1 is the root (FUSE_ROOT_ID). */
#define FUSE_RECEIVE_FILE_NODE 2u

struct fuse_receive;

struct fuse_receive_config {
	struct store *store;
	int fuse_fd;   /* of the session; set to non-blocking; not closed here */
	int receivers; /* threads that receive and serve reads, >= 2 */
	int writers;   /* threads that compress */
	uint64_t poll_ns;
	/* Any request that is not about data. `message` is as read from the descriptor.
	 */
	void (*rare)(void *context, void *message, size_t length);
	void *context;
};

/* Starts the threads. Returns 0 or -errno. */
int fuse_receive_new(struct fuse_receive **ret_receive, const struct fuse_receive_config *config);

/* True once the kernel has ended the connection. Any thread. */
bool fuse_receive_ended(const struct fuse_receive *receive);

/* Ends the threads; requests under way are answered first. NULL is fine. */
void fuse_receive_free(struct fuse_receive *receive);

#endif
