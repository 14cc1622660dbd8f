/* SPDX-License-Identifier: MIT */
/*
 * A transport: makes a store appear as a block device. Nothing above this
 * interface knows which one it is.
 */
#ifndef UZ_FRONT_FRONT_H
#define UZ_FRONT_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/store.h"

struct front;

struct front_config {
	struct store *store;
	const char *name;	 /* of the device; outlives the front */
	const char *runtime_dir; /* the transport may keep a directory in it */
	uint64_t size_bytes;
	uint64_t poll_ns; /* how long a receiver polls before it sleeps; 0: never */
	int cpus;	  /* CPUs that the daemon may use: sizes the thread pools */
};

/*
 * FUSE file behind a loop device. All threads and buffers are made here;
 * afterwards requests allocate nothing. Returns 0 or -errno; `ret_error`
 * (`error_size` bytes) then says which step failed and why.
 */
int front_fuse_new(struct front **ret_front, const struct front_config *config, char *ret_error,
		   size_t error_size);

/*
 * The label of the loop device: "uzswap:NAME@HASH" of the runtime directory. With
 * an empty name: what all labels of that directory end with, after the colon.
 */
void front_fuse_label(const char *runtime_dir, const char *name, char *ret_label, size_t size);

/* "/dev/loop3", and its device number. */
const char *front_block_path(const struct front *front);
dev_t front_block_rdev(const struct front *front);

/*
 * False once the kernel has ended the connection (an administrator's abort): all
 * requests then fail in the kernel. Any thread.
 */
bool front_is_alive(const struct front *front);

/*
 * Removes the block device and frees everything. Must not be called while the
 * device is swapped on. Returns 0, or -EBUSY when somebody else still has the
 * device open after `timeout_ns`; the front then goes on serving.
 */
int front_free(struct front *front, uint64_t timeout_ns);

#endif
