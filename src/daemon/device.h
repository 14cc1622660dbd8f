/* SPDX-License-Identifier: MIT */
/*
 * One device: a store, its transport, the stable link, the swap area on it and
 * the slot balloon. Started and stopped by the main thread; swapped on and off
 * by that or by ctl's worker, one at a time (struct daemon's `operating`).
 */
#ifndef UZ_DAEMON_DEVICE_H
#define UZ_DAEMON_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "ctl/ctl.h"
#include "daemon/balloon.h"
#include "front/front.h"
#include "store/store.h"

#define DEVICE_MESSAGE_BYTES 512

struct device {
	struct conf_device conf;
	const char *runtime_dir;
	char link_path[256];
	char transport_reason[160];
	struct store *store;
	struct front *front;
	/* NULL while there is none. Changed by whoever operates on the device, under
	 * `lock`, so that a snapshot taken by ctl does not look at one that is being
	 * freed. */
	struct balloon *balloon;
	struct lock lock;     /* rank DAEMON */
	_Atomic int changing; /* swapoff or teardown runs; for `status` */
	/* The housekeeping's own: */
	struct log_limit no_space, read_errors, write_errors;
	unsigned full_level;
	bool dead;
};

/* `runtime_dir` must live as long as the device. */
void device_init(struct device *device, const struct conf_device *conf, const char *runtime_dir);

/* Bytes that will be locked for it at most, besides the process itself. */
uint64_t device_locked_bytes(const struct conf_device *conf, int cpus);

/*
 * All four return 0 or -errno with a sentence in `message` (DEVICE_MESSAGE_BYTES).
 * device_make_store comes before the process' memory is locked, device_attach after.
 */
int device_make_store(struct device *device, int cpus, char *message);
int device_attach(struct device *device, const char *link_dir, int cpus, char *message);
int device_swapon(struct device *device, const char *helper_path, char *message);

/*
 * Deflates the balloon and swaps the device off; 0 too when it was not swapped
 * on. On success all slots but the header's are freed. On failure the device
 * goes on as before.
 */
int device_swapoff(struct device *device, const char *helper_path,
		   void (*progress)(void *context, uint64_t remaining_bytes), void *context,
		   char *message);

/* Takes the device down. It must not be swapped on: checked, and -EBUSY if it is. */
int device_detach(struct device *device, char *message);
void device_done(struct device *device);

/* For ctl; any thread. */
void device_snapshot(struct device *device, struct ctl_device *ret_snapshot);

/* Once a second, by the main thread: the log lines that the I/O path could not write. */
void device_housekeeping(struct device *device, uint64_t now_ns);

#endif
