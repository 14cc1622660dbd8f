/* SPDX-License-Identifier: MIT */
/*
 * The device as a swap area: its header, swapon, swapoff, and what /proc/swaps
 * says about it and its rivals. A swap area is always known by its device
 * number; paths in /proc/swaps are escaped, may be another name of the same
 * device, and outlive it.
 *
 * `swaps_path` arguments: NULL for /proc/swaps, another file in tests.
 * `message` arguments: on failure one line of text that names the step.
 */
#ifndef UZ_DAEMON_SWAPAREA_H
#define UZ_DAEMON_SWAPAREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SWAPAREA_UUID_BYTES 16
#define SWAPAREA_LABEL_BYTES \
	16 /* a shorter one is padded with NULs, a full one has none */

#define SWAPAREA_PRIORITY_MIN	  (-1) /* leaves the choice to the kernel */
#define SWAPAREA_PRIORITY_MAX	  32767
#define SWAPAREA_PRIORITY_DEFAULT 100

/* The kernel refuses areas of fewer than 10 pages. */
#define SWAPAREA_MIN_PAGES 10

struct swaparea_header {
	uint64_t size_pages; /* as the header says: last_page + 1 */
	uint8_t uuid[SWAPAREA_UUID_BYTES];
	char label[SWAPAREA_LABEL_BYTES + 1];
};

/*
 * Fills `page` (4096 bytes, the device's first) with the signature of an area
 * of `size_bytes`. `label`: NULL for none. `uuid`: NULL for a random one.
 * Returns 0; -EINVAL for a size out of range or a label that is too long; or
 * what getrandom(2) says.
 */
int swaparea_header_write(void *page, uint64_t size_bytes, const char *label,
			  const uint8_t uuid[SWAPAREA_UUID_BYTES]);

/*
 * Reads the signature in `page`, the first of a device of `size_bytes`. Returns
 * 0; -ENODATA when there is none; -EINVAL when there is one that the kernel
 * would refuse here (other page size or byte order, larger than the device) or
 * that we would not have written (bad pages, a hibernation image).
 */
int swaparea_header_read(const void *page, uint64_t size_bytes,
			 struct swaparea_header *ret_header);

struct swaparea {
	char path[512];	     /* unescaped, without " (deleted)" */
	uint64_t size_pages; /* without the header */
	uint64_t used_pages;
	int priority;
	bool deleted; /* the node has gone, the area is still in use */
};

/*
 * Reads one line of /proc/swaps; allocates nothing. Returns 0, or -EINVAL for
 * the heading, a line cut short or a path that does not fit.
 */
int swaparea_parse(const char *line, struct swaparea *ret_area);

/* Whether this line of /proc/swaps is about `device`. Looks at the file system. */
bool swaparea_is_on(const struct swaparea *area, dev_t device);

/*
 * All that /proc/swaps says about a device and its neighbours, in one reading.
 *
 * An area is leaving while a swapoff of it runs: the kernel takes no slots there
 * any more, but lists it like any other. What gives it away is that SwapTotal is
 * short by just the free slots of that area.
 */
struct swaparea_survey {
	bool listed;	      /* the device is swapped on */
	bool leaving;	      /* and a swapoff of it is running */
	struct swaparea ours; /* if listed */
	unsigned rivals;      /* others with an equal or higher priority, if listed */
	struct swaparea first_rival; /* the one with the highest priority, if any */
	uint64_t rival_free_pages;   /* free slots of all rivals */
};

/* SwapTotal, for swaparea_survey. */
uint64_t swaparea_total_pages(void);

/*
 * Reads `swaps_fd`, a descriptor of /proc/swaps that may be kept open, from its
 * start. `total_pages`: SwapTotal, or UINT64_MAX not to look for leaving areas,
 * which then count as any other. Returns 0, or -errno: then nothing is known
 * about the device.
 */
int swaparea_survey(int swaps_fd, uint64_t total_pages, dev_t device,
		    struct swaparea_survey *ret_survey);

/*
 * Looks for the swap area on block device `device`. Returns 0; -ENOENT when the
 * device is not swapped on; or what open and read say: then nothing is known
 * and nothing may be released.
 */
int swaparea_find(dev_t device, const char *swaps_path, struct swaparea *ret_area);

/*
 * Counts the other areas that the kernel fills before or together with ours
 * (equal or higher priority), and returns the one with the highest priority in
 * `ret_first`. Returns the count, -ENOENT when ours is not there, or -errno.
 */
int swaparea_rivals(dev_t device, const char *swaps_path, struct swaparea *ret_first);

/*
 * Whether zswap is enabled: it would compress pages a first time in the kernel,
 * and we would see only what it writes back. `root`: "" or a test's prefix.
 */
bool swaparea_zswap_enabled(const char *root);

/*
 * swapon(2) of the block device at `path` with `priority` and, if `discard`,
 * both kinds of discard. EBUSY (a probing udev has the device open) is retried
 * 20 times, 100 ms apart. Success means that /proc/swaps lists the device.
 * Returns 0 or -errno: -EALREADY when it was swapped on already, -EINVAL for a
 * priority out of range, -ENOTBLK, -EBUSY at last, or what swapon(2) says.
 * Blocks while the device is read: not on a thread that serves it.
 */
int swaparea_on(const char *path, int priority, bool discard, char *message,
		size_t message_bytes);

struct swaparea_off {
	const char *path; /* a name of the device; checked against `device` */
	dev_t device;
	const char *program; /* NULL: util-linux's swapoff */
	const char *swaps_path;
	/* Called about every 200 ms with what is still in the area. May be NULL. */
	void (*progress)(void *context, uint64_t remaining_bytes);
	void *context;
};

/*
 * swapoff in a child process, since swapoff(2) makes its caller the OOM
 * killer's first victim, oom_score_adj or not (the kernel's oom_task_origin),
 * and with it every thread that shares the caller's memory. A child that a
 * signal ends is started again, SWAPAREA_OFF_ATTEMPTS times in all. What
 * decides is /proc/swaps, never the child's exit status.
 *
 * Returns 0 when the device is not listed (any more). Otherwise the area is
 * still in use and nothing of the device may be released: -ENOMEM when swapoff
 * said that memory does not suffice, -EINTR when signals ended every attempt,
 * -ENOENT without a swapoff program, -ENODEV when no known path leads to the
 * device, -EIO for all else. Has no time limit. Any thread that serves no I/O.
 */
int swaparea_off(const struct swaparea_off *off, char *message, size_t message_bytes);

#define SWAPAREA_OFF_ATTEMPTS 5

#endif
