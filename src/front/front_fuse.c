// SPDX-License-Identifier: MIT
/*
 * FUSE + loop. A file system with one file, mounted where nobody can see it, and
 * a loop device on that file. libfuse does the mount, INIT and
 * the rare requests; fuse_receive.c the rest.
 *
 * Start: mount -> receivers -> open the file (they answer) -> loop device.
 * Stop: loop device -> unmount -> receivers. All by the thread that starts and
 * stops devices. libfuse's callbacks run on receivers.
 */
#define FUSE_USE_VERSION 314
#include "front/front.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"
#include "front/fuse_receive.h"
#include "front/loopdev.h"

/* Nothing changes behind the kernel's back: attributes and names hold for ever. */
#define ATTRIBUTE_TIMEOUT_SECONDS 1e9

/* In flight at most; the loop device has 128 tags (loop.hw_queue_depth), so it never
 * waits here. */
#define MAX_BACKGROUND 128u

struct front {
	struct front_config config;
	char mount_point[128];
	struct fuse_session *session;
	struct fuse_receive *receive;
	struct loopdev loop;
};

/* --- the file system ------------------------------------------------------ */

static void on_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->max_write = FUSE_RECEIVE_MAX_BYTES;
	conn->max_background = MAX_BACKGROUND;
	conn->congestion_threshold = MAX_BACKGROUND * 3 / 4;
	/* We look at every byte, so splicing only adds system calls. */
	conn->want &=
		~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	/* Without this the kernel waits for each request of the loop device in turn. */
	if (conn->capable & FUSE_CAP_ASYNC_DIO)
		conn->want |= FUSE_CAP_ASYNC_DIO;
}

static void file_attributes(const struct front *front, struct stat *st)
{
	*st = (struct stat){
		.st_ino = FUSE_RECEIVE_FILE_NODE,
		.st_mode = S_IFREG | 0600,
		.st_nlink = 1,
		.st_size = (off_t)front->config.size_bytes,
		.st_blksize = (blksize_t)UZ_PAGE_SIZE,
	};
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct front *front = fuse_req_userdata(req);
	struct fuse_entry_param entry = {
		.ino = FUSE_RECEIVE_FILE_NODE,
		.attr_timeout = ATTRIBUTE_TIMEOUT_SECONDS,
		.entry_timeout = ATTRIBUTE_TIMEOUT_SECONDS,
	};

	if (parent != FUSE_ROOT_ID || strcmp(name, front->config.name) != 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	file_attributes(front, &entry.attr);
	fuse_reply_entry(req, &entry);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	const struct front *front = fuse_req_userdata(req);
	struct stat st = {.st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0700, .st_nlink = 2};

	(void)file;
	if (ino == FUSE_RECEIVE_FILE_NODE)
		file_attributes(front, &st);
	fuse_reply_attr(req, &st, ATTRIBUTE_TIMEOUT_SECONDS);
}

/* Times may be set (and are not kept); the size and the owner may not change. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *file)
{
	(void)st;
	if (to_set &
	    (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		fuse_reply_err(req, EPERM);
	else
		on_getattr(req, ino, file);
}

/* The loop device takes its discard granularity from f_bsize; a failure turns discard
 * off. */
static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct front *front = fuse_req_userdata(req);
	struct statvfs st = {
		.f_bsize = UZ_PAGE_SIZE,
		.f_frsize = UZ_PAGE_SIZE,
		.f_blocks = front->config.size_bytes / UZ_PAGE_SIZE,
		.f_namemax = 255,
	};

	(void)ino;
	fuse_reply_statfs(req, &st);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *file)
{
	(void)ino;
	(void)datasync;
	(void)file;
	fuse_reply_err(req, 0);
}

static void on_flush_or_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	(void)file;
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.init = on_init,
	.lookup = on_lookup,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.statfs = on_statfs,
	.fsync = on_fsync,
	.flush = on_flush_or_release,
	.release = on_flush_or_release,
};

static void handle_rare(void *context, void *message, size_t length)
{
	struct front *front = context;
	struct fuse_buf buf = {.size = length, .mem = message};

	fuse_session_process_buf(front->session, &buf);
}

/* --- life ----------------------------------------------------------------- */

/* Writes "STEP: reason" for the caller and passes `err` on. */
static int fail(char *ret_error, size_t error_size, int err, const char *step)
{
	snprintf(ret_error, error_size, "%s: %s", step, strerror(-err));
	return err;
}

/*
 * The mount lives in a namespace that only one short-lived thread ever enters.
 * Once that has ended, no path leads to the file any more; the descriptor that
 * it leaves behind, and then the loop device, keep the file system alive. The
 * daemon itself stays in the namespace that it was started in, so that
 * /proc/swaps names the block device by its usual path, also after a kill.
 */
struct private_mount {
	struct front *front;
	struct thread thread;
	sem_t mounted;	 /* posted by the thread once `error` says whether it is mounted */
	sem_t receiving; /* posted when requests are answered, or `abandoned` is set */
	bool abandoned;
	int file_fd; /* result of the second half; -1 on failure */
	int error;
	const char *step;
};

static int mount_in_new_namespace(struct private_mount *mount_job)
{
	struct front *front = mount_job->front;

	mount_job->step = "making a private mount namespace (are we root?)";
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	mount_job->step = "mounting FUSE (is /dev/fuse there?)";
	errno = 0;
	if (fuse_session_mount(front->session, front->mount_point) != 0)
		return errno ? -errno : -EIO;
	return 0;
}

static void private_mount_run(void *argument)
{
	struct private_mount *mount_job = argument;
	struct front *front = mount_job->front;
	char path[sizeof(front->mount_point) + 40];

	mount_job->error = mount_in_new_namespace(mount_job);
	bool mounted = mount_job->error == 0;

	sem_post(&mount_job->mounted);
	if (!mounted)
		return;
	while (sem_wait(&mount_job->receiving) < 0)
		; /* EINTR */
	if (mount_job->abandoned)
		return;
	mount_job->step = "opening the FUSE file";
	snprintf(path, sizeof(path), "%s/%s", front->mount_point, front->config.name);
	mount_job->file_fd = open(path, O_RDWR | O_CLOEXEC);
	if (mount_job->file_fd < 0) {
		mount_job->error = -errno;
		return;
	}
	/* The kernel asks for this attribute before the first write, unless it knows that there are
	 * none; libfuse would then allocate on a receiver. ENOSYS now is remembered for ever. */
	char value[32];
	ssize_t length = fgetxattr(mount_job->file_fd, "security.capability", value, sizeof(value));

	(void)length;
}

static int make_session(struct front *front, char *ret_error, size_t error_size)
{
	char program[] = "uzswapd",
	     option[] = "-ofsname=uzswap,subtype=uzswap,nosuid,nodev,noatime";
	char *argv[] = {program, option};
	struct fuse_args args = FUSE_ARGS_INIT(2, argv);

	if (mkdir(front->mount_point, 0700) < 0 && errno != EEXIST)
		return fail(ret_error, error_size, -errno, front->mount_point);
	front->session = fuse_session_new(&args, &operations, sizeof(operations), front);
	fuse_opt_free_args(&args);
	return front->session ? 0 : fail(ret_error, error_size, -ENOMEM, "making a FUSE session");
}

static int start_receiving(struct front *front, char *ret_error, size_t error_size)
{
	struct fuse_receive_config config = {
		.store = front->config.store,
		.fuse_fd = fuse_session_fd(front->session),
		.receivers = UZ_MIN(UZ_MAX(front->config.cpus, 2), 8),
		.writers = UZ_MIN(UZ_MAX(front->config.cpus, 1), 32),
		.poll_ns = front->config.poll_ns,
		.rare = handle_rare,
		.context = front,
	};
	int err = fuse_receive_new(&front->receive, &config);

	return err < 0 ? fail(ret_error, error_size, err, "starting the FUSE threads") : 0;
}

void front_fuse_label(const char *runtime_dir, const char *name, char *ret_label, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a: a path does not fit into a label */

	for (const char *byte = runtime_dir; *byte; byte++)
		hash = (hash ^ (unsigned char)*byte) * 0x100000001b3ull;
	snprintf(ret_label, size, "uzswap:%s@%016llx", name, (unsigned long long)hash);
}

static int attach_loop(struct front *front, int file_fd, char *ret_error, size_t error_size)
{
	char label[64];
	const char *step;

	/* By this label the next daemon of the same directory knows what a killed one has left. */
	front_fuse_label(front->config.runtime_dir, front->config.name, label, sizeof(label));
	int err = loopdev_attach(&front->loop, file_fd, label, FUSE_RECEIVE_MAX_BYTES, &step);

	return err < 0 ? fail(ret_error, error_size, err, step) : 0;
}

/* Mounts, starts the receivers, and returns the file's descriptor, or -errno. */
static int open_file(struct front *front, char *ret_error, size_t error_size)
{
	struct private_mount mount_job = {.front = front, .file_fd = -1};

	sem_init(&mount_job.mounted, 0, 0);
	sem_init(&mount_job.receiving, 0, 0);
	int err = thread_start(&mount_job.thread, "uzswap:mount", private_mount_run, &mount_job, -1,
			       0);

	if (err < 0) {
		fail(ret_error, error_size, err, "starting a thread");
	} else {
		while (sem_wait(&mount_job.mounted) < 0)
			; /* EINTR */
		if (mount_job.error == 0)
			err = start_receiving(front, ret_error, error_size);
		mount_job.abandoned = err < 0;
		sem_post(&mount_job.receiving);
		thread_join(&mount_job.thread);
		if (mount_job.error < 0)
			err = fail(ret_error, error_size, mount_job.error, mount_job.step);
	}
	sem_destroy(&mount_job.mounted);
	sem_destroy(&mount_job.receiving);
	return err < 0 ? err : mount_job.file_fd;
}

/* The loop device is gone, or never was; the last descriptor of the file ended the mount. */
static void take_down(struct front *front)
{
	fuse_receive_free(front->receive);
	if (front->session)
		fuse_session_destroy(front->session);
	rmdir(front->mount_point);
	free(front);
}

int front_fuse_new(struct front **ret_front, const struct front_config *config, char *ret_error,
		   size_t error_size)
{
	struct front *front = calloc(1, sizeof(*front));

	if (!front)
		return fail(ret_error, error_size, -ENOMEM, "making the transport");
	front->config = *config;
	front->loop.fd = -1;
	snprintf(front->mount_point, sizeof(front->mount_point), "%s/mnt-%s", config->runtime_dir,
		 config->name);
	int err = make_session(front, ret_error, error_size);

	if (err == 0) {
		int file_fd = open_file(front, ret_error, error_size);

		err = file_fd < 0 ? file_fd : attach_loop(front, file_fd, ret_error, error_size);
		if (file_fd >= 0)
			close(file_fd);
	}
	if (err < 0) {
		take_down(front);
		return err;
	}
	*ret_front = front;
	return 0;
}

const char *front_block_path(const struct front *front)
{
	return front->loop.path;
}

dev_t front_block_rdev(const struct front *front)
{
	return front->loop.rdev;
}

bool front_is_alive(const struct front *front)
{
	return !fuse_receive_ended(front->receive);
}

int front_free(struct front *front, uint64_t timeout_ns)
{
	if (!front)
		return 0;
	int err = loopdev_detach(&front->loop, timeout_ns);

	if (err < 0)
		return err;
	take_down(front);
	return 0;
}
