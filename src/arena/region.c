// SPDX-License-Identifier: MIT
/*
 * The store's memory. A detached tmpfs mount (fsopen, fsmount) is private by
 * construction: it is in no mount namespace, so nobody can open the file.
 */
#include "arena/region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14, include/uapi/asm-generic/mman-common.h */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3, include/uapi/linux/memfd.h */
#endif

static int config(int fs_fd, unsigned command, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, fs_fd, command, key, value, 0) < 0 ? -errno : 0;
}

/* Returns a descriptor, or -errno (-EINVAL: the kernel does not know noswap). */
static int open_noswap_tmpfs(uint64_t size_bytes)
{
	char size[32];
	UZ_AUTO_CLOSE int fs_fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	if (fs_fd < 0)
		return -errno;
	/* The mount's limit is not ours: the runs allocator bounds what is populated. */
	snprintf(size, sizeof(size), "%llu", (unsigned long long)size_bytes);
	int err = config(fs_fd, FSCONFIG_SET_STRING, "size", size);

	if (err == 0)
		err = config(fs_fd, FSCONFIG_SET_FLAG, "noswap", NULL);
	if (err == 0)
		err = config(fs_fd, FSCONFIG_SET_STRING, "huge", "never");
	if (err == -EINVAL) /* tmpfs without huge page support does not know the key */
		err = 0;
	if (err == 0)
		err = config(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL);
	if (err < 0)
		return err;
	UZ_AUTO_CLOSE int mount_fd =
		(int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC,
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	if (mount_fd < 0)
		return -errno;
	int fd = openat(mount_fd, "store", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	unlinkat(mount_fd, "store", 0);
	return fd;
}

static int open_memfd(void)
{
	int fd = memfd_create("uzswap-store", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	/* Kernels before 6.3 do not know the flag; a refusal by policy (EACCES) stands.
	 */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("uzswap-store", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int region_init(struct region *region, uint64_t size_bytes)
{
	enum region_pinning pinning = REGION_NOSWAP_TMPFS;
	UZ_AUTO_CLOSE int fd = open_noswap_tmpfs(size_bytes);

	if (fd < 0) {
		pinning = REGION_LOCKED_MEMFD;
		fd = open_memfd();
		if (fd < 0)
			return fd;
	}
	if (ftruncate(fd, (off_t)size_bytes) < 0)
		return -errno;
	void *base =
		mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	/* Locked as it comes in: for a memfd the protection itself, for tmpfs a second
	 * one. */
	if (syscall(SYS_mlock2, base, size_bytes, MLOCK_ONFAULT) < 0 &&
	    pinning == REGION_LOCKED_MEMFD) {
		int err = -errno;

		munmap(base, size_bytes);
		return err;
	}
	madvise(base, size_bytes, MADV_DONTDUMP);
	region->fd = uz_take_fd(&fd);
	region->base = base;
	region->size_bytes = size_bytes;
	region->pinning = pinning;
	return 0;
}

void region_done(struct region *region)
{
	if (!region->base)
		return;
	munmap(region->base, region->size_bytes);
	close(region->fd);
	region->base = NULL;
}

int region_populate(struct region *region, uint64_t offset_bytes, uint64_t length_bytes)
{
	while (madvise(region->base + offset_bytes, length_bytes, MADV_POPULATE_WRITE) < 0)
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

int region_punch(struct region *region, uint64_t offset_bytes, uint64_t length_bytes)
{
	if (fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset_bytes,
		      (off_t)length_bytes) < 0)
		return -errno;
	return 0;
}

uint64_t region_resident_bytes(const struct region *region)
{
	struct stat st;

	if (fstat(region->fd, &st) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

const char *region_pinning_name(enum region_pinning pinning)
{
	return pinning == REGION_NOSWAP_TMPFS ? "noswap-tmpfs" : "locked-memfd";
}
