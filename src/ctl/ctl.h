/* SPDX-License-Identifier: MIT */
/*
 * The control socket: a Varlink service (interface io.uzswap.Control) on
 * RUNTIME_DIR/control. The daemon fills in a struct ctl_ops; ctl asks it for
 * snapshots and hands it the changes that clients ask for. Nothing here is on
 * the path of a swap request.
 */
#ifndef UZ_CTL_CTL_H
#define UZ_CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "stats/histogram.h"
#include "stats/stats.h"

#define CTL_SOCKET_NAME "control"

#define CTL_NAME_BYTES      32 /* a device's name and its NUL */
#define CTL_ERROR_BYTES     256
#define CTL_DEVICES_MAX     64
#define CTL_PROTECTIONS_MAX 16
#define CTL_SYSCTLS_MAX     16

/* All strings are UTF-8 and end with a NUL. */

enum ctl_device_state {
	CTL_DEVICE_STARTING, /* no block device yet */
	CTL_DEVICE_ACTIVE,   /* swap is on */
	CTL_DEVICE_READY,    /* the block device is there, swap is off */
	CTL_DEVICE_STOPPING, /* swapoff or teardown runs */
	CTL_DEVICE_STATE_COUNT,
};

/* "starting", "active", "ready", "stopping". */
const char *ctl_device_state_name(enum ctl_device_state state);

struct ctl_device {
	char name[CTL_NAME_BYTES];
	char path[256];	     /* the stable link, /dev/uzswap/swap0 */
	char block_path[64]; /* what it points to now, /dev/loop3; "" when starting */
	char transport[16];  /* "fuse" */
	char transport_reason[160]; /* why that one: "the ublk driver is not there" */
	char codec[16];
	int level;
	int priority;
	enum ctl_device_state state;
	char pinning[32];     /* how the store's memory is kept from being swapped */
	char honest_free[96]; /* what keeps the kernel's idea of free swap honest */
	struct stats_values values;
	struct histogram_snapshot read; /* latency of read requests */
	struct histogram_snapshot write;
};

/* A protection that this process asked for and did not get. */
struct ctl_protection {
	char name[48];	  /* "PR_SET_IO_FLUSHER" */
	char reason[128]; /* "CAP_SYS_RESOURCE is missing" */
};

/* A sysctl that the daemon has changed and will restore. */
struct ctl_sysctl {
	char name[64]; /* "vm.watermark_boost_factor" */
	char before[64];
	char now[64];
};

/* The locked reserve that is given to the kernel when it runs out of memory. */
struct ctl_relief {
	uint64_t reserve_bytes;	    /* its full size */
	uint64_t armed_bytes;	    /* what of it is locked and ready now */
	uint64_t given_bytes_total; /* given so far since the start */
};

struct ctl_daemon {
	char version[32];
	pid_t pid;
	uint64_t uptime_ns;
	enum log_level log_level;
	char takeover[32]; /* "no" */
	struct ctl_relief relief;
	unsigned protection_count; /* <= CTL_PROTECTIONS_MAX */
	struct ctl_protection protections[CTL_PROTECTIONS_MAX];
	unsigned sysctl_count; /* <= CTL_SYSCTLS_MAX */
	struct ctl_sysctl sysctls[CTL_SYSCTLS_MAX];
};

/*
 * How a long operation tells how far it is. Any thread may call it, at any rate,
 * until the operation returns; holding no lock of a rank above LOCK_RANK_DAEMON.
 */
struct ctl_progress {
	void (*report)(const struct ctl_progress *progress, uint64_t remaining_bytes);
};

static inline void ctl_progress_report(const struct ctl_progress *progress,
				       uint64_t remaining_bytes)
{
	progress->report(progress, remaining_bytes);
}

/*
 * What the daemon provides. `context` is ctl_config.context. Functions return 0
 * or -errno; those with `error_text` (of CTL_ERROR_BYTES) put a sentence there
 * when they fail, or leave it empty. Structs to fill come zeroed. A device is
 * always named by one that `device` has told, at the latest call.
 *
 * The first three run on the ctl thread, so they must return soon: they delay
 * other clients, though nothing else. The last three run on ctl's worker, one
 * at a time, concurrently with the first three, and may take minutes.
 */
struct ctl_ops {
	int (*daemon)(void *context, struct ctl_daemon *ret_daemon);

	/*
	 * The index-th device, in the order of the configuration; -ENOENT past the last
	 * one.
	 */
	int (*device)(void *context, unsigned index, struct ctl_device *ret_device);

	/*
	 * Changes a setting. `key` is "memory-limit", "codec", "level" (of `device`) or
	 * "log-level" (`device` is NULL and `value` a valid level). -EINVAL refuses the
	 * value; error_text then names the allowed ones.
	 */
	int (*set)(void *context, const char *device, const char *key, const char *value,
		   char *error_text);

	int (*swapon)(void *context, const char *device, char *error_text);
	int (*swapoff)(void *context, const char *device,
		       const struct ctl_progress *progress, char *error_text);

	/*
	 * Swaps all devices off, unless `abandon`, and has the daemon's main thread
	 * begin to end. It must not wait for that: ctl_server_free waits for this call.
	 * `progress`: the sum over all devices.
	 */
	int (*stop)(void *context, bool abandon, const struct ctl_progress *progress,
		    char *error_text);
};

#define CTL_NO_GROUP ((gid_t)-1)

struct ctl_config {
	const char *runtime_dir; /* exists; writable by nobody but this process' user */
	gid_t stats_group; /* its members may read statistics; CTL_NO_GROUP: only root may
			    */
	const struct ctl_ops *ops;
	void *context;
	uint64_t stall_limit_ns; /* 0: CTL_STALL_LIMIT_NS */
};

/* A client that takes nothing of its reply for so long is dropped. */
#define CTL_STALL_LIMIT_NS (10 * 1000000000ull)

struct ctl_server;

/*
 * Makes RUNTIME_DIR/control and starts the threads that serve it. The socket
 * appears with its final owner and mode: 0660 root:stats_group, or 0600. One
 * that a dead daemon has left is replaced. The caller keeps two daemons from
 * starting in one directory at the same moment. `ops` must outlive the server.
 * Returns 0; -EADDRINUSE when a daemon listens there; -ENAMETOOLONG; -errno.
 */
int ctl_server_new(struct ctl_server **ret_server, const struct ctl_config *config);

/*
 * Waits for a SwapOn, SwapOff or Stop that runs, sends the replies that are due
 * (for CTL_FAREWELL_NS at most), and removes the socket. NULL is fine.
 */
void ctl_server_free(struct ctl_server *server);

#define CTL_FAREWELL_NS (1000 * 1000000ull)

#endif
