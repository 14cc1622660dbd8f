// SPDX-License-Identifier: MIT
/* Loop devices. Called by the thread that starts and stops a device; never on the I/O
 * path. */
#include "front/loopdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"

/* Another process may take the number that LOOP_CTL_GET_FREE gave us. */
#define ATTACH_TRIES 32

static int write_queue_limit(int number, const char *key, unsigned value)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/sys/block/loop%d/queue/%s", number, key);
	UZ_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	int length = snprintf(text, sizeof(text), "%u", value);

	if (fd < 0 || write(fd, text, (size_t)length) != length)
		return -errno;
	return 0;
}

static int read_flag(int number, const char *key)
{
	char path[64], text[4] = "";

	snprintf(path, sizeof(path), "/sys/block/loop%d/loop/%s", number, key);
	UZ_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 1)
		return -EIO;
	return text[0] == '1';
}

static int open_free(int control_fd, int *ret_number)
{
	char path[32];
	int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

	if (number < 0)
		return -errno;
	snprintf(path, sizeof(path), "/dev/loop%d", number);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_number = number;
	return fd;
}

static int configure(int fd, int file_fd, const char *label)
{
	struct loop_config config = {
		.fd = (uint32_t)file_fd,
		.block_size = UZ_PAGE_SIZE,
		.info = {.lo_flags = LO_FLAGS_DIRECT_IO | LO_FLAGS_AUTOCLEAR},
	};

	snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", label);
	return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

static int bind_free_device(struct loopdev *device, int file_fd, const char *label)
{
	UZ_AUTO_CLOSE int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control_fd < 0)
		return -errno;
	for (int try = 0; try < ATTACH_TRIES; try++) {
		int number = -1;
		UZ_AUTO_CLOSE int fd = open_free(control_fd, &number);

		if (fd < 0)
			return fd;
		int err = configure(fd, file_fd, label);

		if (err == 0) {
			device->number = number;
			device->fd = uz_take_fd(&fd);
			return 0;
		}
		if (err != -EBUSY)
			return err;
		clock_sleep_ns(10 * UZ_NSEC_PER_MSEC);
	}
	return -EBUSY;
}

int loopdev_attach(struct loopdev *device, int file_fd, const char *label,
		   uint32_t max_request_bytes, const char **ret_step)
{
	struct loopdev bound = {.fd = -1};
	struct stat st;

	*ret_step = "binding a free loop device (LOOP_CONFIGURE)";
	int err = bind_free_device(&bound, file_fd, label);

	if (err < 0)
		return err;
	snprintf(bound.path, sizeof(bound.path), "/dev/loop%d", bound.number);
	snprintf(bound.label, sizeof(bound.label), "%s", label);
	*ret_step = "looking at the loop device";
	if (fstat(bound.fd, &st) < 0) {
		err = -errno;
		goto fail;
	}
	bound.rdev = st.st_rdev;
	*ret_step = "checking that the loop device uses direct I/O";
	if (read_flag(bound.number, "dio") != 1) {
		err = -EOPNOTSUPP;
		goto fail;
	}
	/* The limit of an earlier user survives a detach, so it is always set. */
	*ret_step = "setting the loop device's max_sectors_kb";
	err = write_queue_limit(bound.number, "max_sectors_kb", max_request_bytes / 1024);
	if (err < 0)
		goto fail;
	/*
	 * Complete a request on the CPU that submitted it. The interrupt that takes it there runs
	 * the completion at once; completed here, in process context, it would first wake
	 * ksoftirqd. A kernel without the setting is slower, nothing else.
	 */
	write_queue_limit(bound.number, "rq_affinity", 2);
	*device = bound;
	return 0;
fail:
	loopdev_detach(&bound, UZ_NSEC_PER_SEC);
	return err;
}

/* Whether the device is bound under our label: another process may have taken the number. */
static bool is_bound_as(int fd, const char *label)
{
	struct loop_info64 info;

	return ioctl(fd, LOOP_GET_STATUS64, &info) == 0 &&
	       strncmp((const char *)info.lo_file_name, label, sizeof(info.lo_file_name) - 1) == 0;
}

int loopdev_detach(struct loopdev *device, uint64_t timeout_ns)
{
	uint64_t deadline_ns = clock_now_ns() + timeout_ns;

	if (device->fd < 0)
		return 0;
	ioctl(device->fd, LOOP_CLR_FD);
	close(device->fd);
	device->fd = -1;
	/* With other openers the kernel unbinds at the last close. */
	for (;;) {
		UZ_AUTO_CLOSE int fd = open(device->path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || !is_bound_as(fd, device->label))
			return 0;
		if (clock_now_ns() > deadline_ns) {
			device->fd = uz_take_fd(&fd);
			return -EBUSY;
		}
		clock_sleep_ns(20 * UZ_NSEC_PER_MSEC);
	}
}

static int open_labelled(int number, const char *prefix, const char *suffix,
			 struct loopdev *ret_device)
{
	struct loopdev device = {.number = number};
	struct loop_info64 info;
	struct stat st;

	snprintf(device.path, sizeof(device.path), "/dev/loop%d", number);
	UZ_AUTO_CLOSE int fd = open(device.path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0 || fstat(fd, &st) < 0)
		return -ENOENT;
	info.lo_file_name[sizeof(info.lo_file_name) - 1] = '\0';
	const char *label = (const char *)info.lo_file_name;
	size_t length = strlen(label), tail = strlen(suffix);

	if (strncmp(label, prefix, strlen(prefix)) != 0 || length < tail ||
	    strcmp(label + length - tail, suffix) != 0)
		return -ENOENT;
	snprintf(device.label, sizeof(device.label), "%s", label);
	device.rdev = st.st_rdev;
	device.fd = uz_take_fd(&fd);
	*ret_device = device;
	return 0;
}

void loopdev_each(const char *prefix, const char *suffix,
		  void (*call)(void *context, struct loopdev *device), void *context)
{
	DIR *directory = opendir("/sys/block");
	struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		struct loopdev device;
		int number;

		if (sscanf(entry->d_name, "loop%d", &number) != 1 ||
		    open_labelled(number, prefix, suffix, &device) < 0)
			continue;
		call(context, &device);
		if (device.fd >= 0)
			close(device.fd);
	}
	closedir(directory);
}
