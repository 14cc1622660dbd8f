/* SPDX-License-Identifier: MIT */
/*
 * The daemon as a whole. The main thread starts and stops it; ctl's threads ask
 * and change things through daemon_ctl.c.
 */
#ifndef UZ_DAEMON_DAEMON_H
#define UZ_DAEMON_DAEMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "conf/conf.h"
#include "ctl/ctl.h"
#include "daemon/device.h"
#include "daemon/relief.h"
#include "daemon/sysctl.h"

enum daemon_wish {
	DAEMON_GO_ON,
	DAEMON_STOP,	/* all devices are off: end */
	DAEMON_ABANDON, /* end although pages will be lost: an explicit order */
};

struct daemon {
	const struct conf *conf;
	const char *runtime_dir;
	const char *helper_path; /* uzswap-balloon */
	int cpus;
	uint64_t started_ns;
	unsigned device_count;
	struct device *devices;
	struct relief *relief;
	/*
	 * Swapping on and off and stopping: one thread at a time, the main one or ctl's
	 * worker. `operating` is under `lock` (rank DAEMON; not held while operating).
	 */
	struct lock lock;
	struct condition operated;
	bool operating;
	struct sysctl_set *sysctls; /* whoever operates; its status is copied below for ctl */
	unsigned sysctl_count;	    /* under the lock, as the next */
	struct sysctl_status sysctl_status[SYSCTL_MAX];
	/* Set by ctl's worker (release), read by the main thread (acquire) after
	 * `wake_fd`. */
	_Atomic int wish;
	int wake_fd; /* eventfd */
};

/* Waits until nobody else swaps on or off; then it is the caller's turn until
 * daemon_operate_end. */
void daemon_operate_begin(struct daemon *daemon);
void daemon_operate_end(struct daemon *daemon);

/*
 * To be called while operating. Sysctls are set before the first device is
 * swapped on and restored after the last one was swapped off. `message`:
 * DEVICE_MESSAGE_BYTES. Return 0 or -errno.
 */
int daemon_swapon(struct daemon *daemon, struct device *device, char *message);
int daemon_swapoff(struct daemon *daemon, struct device *device,
		   void (*progress)(void *context, uint64_t remaining_bytes), void *context,
		   char *message);

/* Swaps all devices off, as far as possible. Returns 0, or the first failure with its
 * message. */
int daemon_swapoff_all(struct daemon *daemon,
		       void (*progress)(void *context, uint64_t remaining_bytes), void *context,
		       char *message);

/* daemon_ctl.c: what ctl may ask; the context is the struct daemon. */
extern const struct ctl_ops daemon_ctl_ops;

#endif
