/* SPDX-License-Identifier: MIT */
/* Loop devices: see loop(4) and include/uapi/linux/loop.h. */
#ifndef UZ_FRONT_LOOPDEV_H
#define UZ_FRONT_LOOPDEV_H

#include <stdint.h>
#include <sys/types.h>

struct loopdev {
	int fd; /* of the device, kept open while it is ours; -1: none */
	int number;
	char path[32]; /* "/dev/loop3" */
	dev_t rdev;
	char label[64]; /* tells ours from another's that takes the number after us */
};

/*
 * Binds a free loop device to the open file `file_fd`: direct I/O, 4096-byte
 * blocks, discards of single pages, requests of up to `max_request_bytes`. The
 * binding goes away by itself when this process and all other users have closed
 * the device. `label` (at most 63 characters) is what loopdev_each knows it by.
 * Returns 0 or -errno; `ret_step` names the step that failed, for the message.
 */
int loopdev_attach(struct loopdev *device, int file_fd, const char *label,
		   uint32_t max_request_bytes, const char **ret_step);

/*
 * Unbinds it. Others that have it open (udev) delay that: waits for them, at
 * most `timeout_ns`. Returns 0, or -EBUSY when the device is still bound then; it
 * is then still open and ours.
 */
int loopdev_detach(struct loopdev *device, uint64_t timeout_ns);

/*
 * Calls `call` for each bound loop device whose label begins with `prefix` and
 * ends with `suffix`. It may detach it; the descriptor is closed afterwards.
 */
void loopdev_each(const char *prefix, const char *suffix,
		  void (*call)(void *context, struct loopdev *device), void *context);

#endif
