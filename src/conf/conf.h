/* SPDX-License-Identifier: MIT */
/*
 * The configuration: which files, what they say, and what is wrong with them.
 * Nothing here prints or logs: all findings go to a callback, so that the
 * daemon can log them, --check-config can print them and tests can count them.
 * The file format is described in uzswapd.conf(5). No function keeps state
 * between calls; any thread may call.
 */
#ifndef UZ_CONF_CONF_H
#define UZ_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/units.h"
#include "codec/codec.h"

#define CONF_DEVICES_MAX 16
#define CONF_NAME_MAX	 31 /* bytes of a device's or a group's name */

/* mkswap(8) refuses areas below ten pages. */
#define CONF_SIZE_MIN_BYTES	    (10 * UZ_PAGE_SIZE)
#define CONF_MEMORY_LIMIT_MIN_BYTES (4 * UZ_MIB)

#define CONF_CMDLINE_PATH "/proc/cmdline"

enum conf_transport {
	CONF_TRANSPORT_AUTO,
	CONF_TRANSPORT_UBLK,
	CONF_TRANSPORT_FUSE,
};

enum conf_tristate {
	CONF_AUTO,
	CONF_YES,
	CONF_NO,
};

/* Names of the keys' origins below, in the order of the manual page. */
enum conf_daemon_key {
	CONF_LOG_LEVEL,
	CONF_STATS_GROUP,
	CONF_RELIEF_RESERVE,
	CONF_WATERMARK_BOOST_FACTOR,
	CONF_MIN_FREE,
	CONF_DAEMON_KEY_COUNT,
};

enum conf_device_key {
	CONF_ENABLED,
	CONF_TRANSPORT,
	CONF_SIZE,
	CONF_MEMORY_LIMIT,
	CONF_CODEC,
	CONF_LEVEL,
	CONF_PRIORITY,
	CONF_SWAP_ON,
	CONF_HONEST_FREE,
	CONF_EXPECTED_RATIO,
	CONF_POLL_TIME,
	CONF_DEVICE_KEY_COUNT,
};

/* Where a value comes from. The strings belong to the struct conf. */
struct conf_origin {
	const char *file; /* NULL: the built-in default */
	unsigned line;
	const char *text; /* as written: "min(ram, 16G)" */
};

#define CONF_KEEP (-1) /* of watermark_boost_factor: leave the kernel's value alone */

struct conf_daemon {
	enum log_level log_level;
	char stats_group[CONF_NAME_MAX + 1]; /* "": root only. Not looked up here */
	uint64_t relief_reserve_bytes;	     /* whole pages; 0: no relief valve */
	int watermark_boost_factor;	     /* CONF_KEEP, or the sysctl's value */
	uint64_t min_free_bytes; /* whole KiB; 0: leave vm.min_free_kbytes alone */
	struct conf_origin origins[CONF_DAEMON_KEY_COUNT];
};

struct conf_device {
	char name[CONF_NAME_MAX + 1];
	bool enabled; /* false for Enabled=no and for Size=0 */
	enum conf_transport transport;
	uint64_t size_bytes;	     /* whole pages; 0 or at least CONF_SIZE_MIN_BYTES */
	uint64_t memory_limit_bytes; /* whole pages; at least 4 MiB */
	enum codec_id codec;
	int level;    /* within the codec's range */
	int priority; /* -1..32767; -1: the kernel chooses */
	bool swap_on;
	enum conf_tristate honest_free;
	unsigned expected_ratio_permille; /* 1000..20000 */
	uint64_t poll_ns;		  /* 0..10 ms */
	struct conf_origin origins[CONF_DEVICE_KEY_COUNT];
};

struct conf_string; /* private: owns the strings of origins and files */

struct conf {
	/*
	 * By uzswap=off on the kernel command line. No file was read and there are
	 * no devices, except for a strict load.
	 */
	bool disabled;
	struct conf_daemon daemon;
	size_t device_count; /* in the order of first mention */
	struct conf_device devices[CONF_DEVICES_MAX];
	size_t file_count; /* files that were read, lowest precedence first */
	const char **files;
	struct conf_string *strings;
};

/* Where to look. All zero: the running system. */
struct conf_sources {
	const char *file; /* --config: this and FILE.d/ only; NULL: the usual places */
	const char *root; /* put before the usual places; NULL: none */
	const char *cmdline_path; /* NULL: CONF_CMDLINE_PATH */
	uint64_t ram_bytes;	  /* what `ram` means; 0: ask the kernel */
};

struct conf_diagnostic {
	enum log_level level; /* error, warning, notice or debug */
	const char *file;     /* NULL: about no file in particular */
	unsigned line;	      /* from 1; 0: the file as a whole */
	unsigned column;      /* from 1, in characters; 0: the line as a whole */
	const char *text;     /* one line: printable ASCII but for names of files */
};

/* Valid during the call only. */
typedef void (*conf_diagnostic_fn)(void *context,
				   const struct conf_diagnostic *diagnostic);

/*
 * Reads all sources, reports everything that is wrong with them, and makes a
 * configuration of them. `strict` is for --check-config: unknown keys and
 * sections are errors instead of warnings, and the files are looked at even
 * when the kernel command line says uzswap=off.
 * Returns 0; -EINVAL when errors were reported; -EACCES, -ENOENT or what
 * else reading said when a file could not be read (also reported); or -ENOMEM
 * (not reported). On failure *ret_conf is left alone: a running configuration
 * stays in force.
 */
int conf_load(struct conf **ret_conf, const struct conf_sources *sources, bool strict,
	      conf_diagnostic_fn diagnose, void *context);

/* The same for one text in memory; `name` stands for its file in messages. */
int conf_load_memory(struct conf **ret_conf, const char *name, const char *data,
		     size_t length, uint64_t ram_bytes, bool strict,
		     conf_diagnostic_fn diagnose, void *context);

void conf_free(struct conf *conf);

/*
 * Writes the effective configuration: every key with its value, sizes also in
 * MiB, and where each comes from. The text is a valid configuration itself, and
 * means the same as long as the RAM does not change. Returns 0, or -EIO when the stream
 * failed.
 */
int conf_describe(const struct conf *conf, FILE *stream);

/*
 * A difference. `key` NULL: the whole section is new (`old_value` NULL) or gone
 * (`new_value` NULL). Valid during the call only.
 */
struct conf_change {
	const char *section; /* "Daemon" or "Device swap0" */
	const char *key;
	const char *old_value, *new_value;
};

typedef void (*conf_change_fn)(void *context, const struct conf_change *change);

/* Reports each key whose effective value differs. Returns the number of differences. */
unsigned conf_diff(const struct conf *old_conf, const struct conf *new_conf,
		   conf_change_fn change, void *context);

/* What a value's parser has to say about it. */
struct conf_remark {
	enum log_level level;
	size_t offset;	/* byte of the value that it is about, from 0 */
	char text[256]; /* "": nothing to say */
};

/*
 * Evaluates a size such as "512M", "25%" or "min(ram / 2, 4G)". `device_bytes`:
 * what `size` means, 0 where it may not be used. Rounds to the nearest byte.
 * Returns 0, or -EINVAL with the reason in *ret_remark (may be NULL).
 */
int conf_parse_size(const char *text, uint64_t ram_bytes, uint64_t device_bytes,
		    uint64_t *ret_bytes, struct conf_remark *ret_remark);

/* yes, true, on, 1, no, false, off, 0, in any case. Returns 0 or -EINVAL. */
int conf_parse_bool(const char *text, bool *ret_value);

#endif
