// SPDX-License-Identifier: MIT
/* The runtime directory. Main thread, at start. */
#include "daemon/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/swaparea.h"
#include "front/front.h"
#include "front/loopdev.h"

static int lock_directory(const char *directory, char *message, size_t message_bytes)
{
	char path[256], pid[16] = "";

	snprintf(path, sizeof(path), "%s/lock", directory);
	UZ_AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		int err = -errno;

		snprintf(message, message_bytes, "%s: %s", path, strerror(-err));
		return err;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		ssize_t length = read(fd, pid, sizeof(pid) - 1);

		if (length > 0)
			pid[strcspn(pid, "\n")] = '\0';
		snprintf(message, message_bytes, "another uzswapd (process %s) is running in %s",
			 pid, directory);
		return -EADDRINUSE;
	}
	int length = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

	if (ftruncate(fd, 0) < 0 || write(fd, pid, (size_t)length) != length)
		log_debug("%s: the process number could not be written", path);
	return uz_take_fd(&fd);
}

int runtime_enter(const char *directory, gid_t group, char *message, size_t message_bytes)
{
	const bool shared = group != (gid_t)-1;
	struct stat st;

	if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
		int err = -errno;

		snprintf(message, message_bytes, "%s: %s", directory, strerror(-err));
		return err;
	}
	if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		snprintf(message, message_bytes, "%s: not a directory of ours", directory);
		return -ENOTDIR;
	}
	if (chown(directory, (uid_t)-1, shared ? group : (gid_t)-1) < 0 ||
	    chmod(directory, shared ? 0750 : 0700) < 0) {
		int err = -errno;

		snprintf(message, message_bytes, "%s: %s", directory, strerror(-err));
		return err;
	}
	return lock_directory(directory, message, message_bytes);
}

struct stale_search {
	char *message;
	size_t message_bytes;
	int result;
};

static void handle_stale(void *context, struct loopdev *device)
{
	struct stale_search *search = context;
	struct swaparea area;

	if (swaparea_find(device->rdev, NULL, &area) != -ENOENT) {
		snprintf(search->message, search->message_bytes,
			 "%s is still swapped on from a daemon that was killed; its "
			 "pages are lost. "
			 "Processes that have pages there will be killed when they touch "
			 "them; "
			 "'swapoff %s' or a reboot frees it",
			 device->path, device->path);
		search->result = -EBUSY;
		return;
	}
	if (loopdev_detach(device, UZ_NSEC_PER_SEC) < 0) {
		snprintf(search->message, search->message_bytes,
			 "%s was left by a daemon that was killed and is open in another "
			 "process",
			 device->path);
		search->result = -EBUSY;
		return;
	}
	log_notice("unbound %s, which a daemon that was killed had left", device->path);
}

int runtime_clean_stale(const char *directory, char *message, size_t message_bytes)
{
	struct stale_search search = {.message = message, .message_bytes = message_bytes};
	char label[64];

	front_fuse_label(directory, "", label, sizeof(label));
	loopdev_each("uzswap:", strchr(label, '@'), handle_stale, &search);
	return search.result;
}
