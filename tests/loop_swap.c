// SPDX-License-Identifier: MIT
/*
 * A loop device over an unlinked file on a disk; both vanish with their last
 * user (LO_FLAGS_AUTOCLEAR). Never over a memfd or tmpfs: the file's own pages
 * would be swapped out to the device, which then waits for itself.
 */
#include "loop_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/swap.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/swaparea.h"

#define LOCK_ATTEMPTS  1200 /* of 100 ms */
#define ALONE_ATTEMPTS 300

/* A name in the abstract name space is a lock that no crash leaves behind. */
static int take_lock(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,
				      .sun_path = "\0uzswap-test-swap"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < LOCK_ATTEMPTS; i++) {
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return fd;
		clock_sleep_ns(100 * UZ_NSEC_PER_MSEC);
	}
	close(fd);
	return -EBUSY;
}

static int attach(struct loop_swap *loop, int file_fd)
{
	struct loop_config config = {
		.fd = (uint32_t)file_fd,
		.block_size = UZ_PAGE_SIZE,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
	};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		return -errno;
	/* Somebody else may take the number between the two calls. */
	for (int i = 0; i < 20; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			break;
		snprintf(loop->path, sizeof(loop->path), "/dev/loop%d", number);
		loop->loop_fd = open(loop->path, O_RDWR | O_CLOEXEC);
		if (loop->loop_fd >= 0 &&
		    ioctl(loop->loop_fd, LOOP_CONFIGURE, &config) == 0) {
			close(control);
			return 0;
		}
		if (loop->loop_fd >= 0)
			close(loop->loop_fd);
		loop->loop_fd = -1;
	}
	close(control);
	loop->path[0] = '\0';
	return -EBUSY;
}

static int open_disk_file(void)
{
	struct statfs fs;
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC)
		return fd;
	close(fd);
	printf("/var/tmp is not on a disk\n");
	return -EOPNOTSUPP;
}

static int make(struct loop_swap *loop, uint64_t size_bytes)
{
	static char header[UZ_PAGE_SIZE];
	struct stat st;
	int file_fd = open_disk_file();

	if (file_fd < 0)
		return file_fd;
	int err = swaparea_header_write(header, size_bytes, "test", NULL);

	if (err == 0 && (ftruncate(file_fd, (off_t)size_bytes) < 0 ||
			 pwrite(file_fd, header, sizeof(header), 0) != sizeof(header)))
		err = -errno;
	if (err == 0)
		err = attach(loop, file_fd);
	if (err == 0 && fstat(loop->loop_fd, &st) < 0)
		err = -errno;
	if (err == 0)
		loop->device = st.st_rdev;
	close(file_fd);
	return err;
}

int loop_swap_new_unlocked(struct loop_swap *loop, uint64_t size_bytes)
{
	memset(loop, 0, sizeof(*loop));
	loop->loop_fd = -1;
	loop->lock_fd = -1;
	int err = make(loop, size_bytes);

	if (err < 0) {
		printf("no loop device: %s\n", strerror(-err));
		loop_swap_free(loop);
	}
	return err;
}

int loop_swap_new(struct loop_swap *loop, uint64_t size_bytes)
{
	loop->path[0] = '\0';
	if (geteuid() != 0) {
		printf("no loop device: not root\n");
		return -EPERM;
	}
	int lock_fd = take_lock();

	if (lock_fd < 0) {
		printf("no loop device: another test of swap does not end\n");
		return lock_fd;
	}
	int err = loop_swap_new_unlocked(loop, size_bytes);

	if (err < 0)
		close(lock_fd);
	else
		loop->lock_fd = lock_fd;
	return err;
}

int loop_swap_alone(const struct loop_swap *loop)
{
	struct swaparea rival;
	int rivals = 0;

	for (int i = 0; i < ALONE_ATTEMPTS; i++) {
		rivals = swaparea_rivals(loop->device, NULL, &rival);
		if (rivals == 0)
			return 1;
		clock_sleep_ns(100 * UZ_NSEC_PER_MSEC);
	}
	if (rivals > 0)
		printf("%s is swapped on as well, with priority %d\n", rival.path,
		       rival.priority);
	return 0;
}

void loop_swap_free(struct loop_swap *loop)
{
	if (loop->path[0])
		swapoff(loop->path);
	if (loop->loop_fd >= 0)
		close(loop->loop_fd);
	if (loop->lock_fd >= 0)
		close(loop->lock_fd);
	loop->loop_fd = -1;
	loop->lock_fd = -1;
	loop->path[0] = '\0';
}
