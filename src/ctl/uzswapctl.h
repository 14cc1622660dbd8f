/* SPDX-License-Identifier: MIT */
/* The command line tool: its verbs, options and exit codes. */
#ifndef UZ_CTL_UZSWAPCTL_H
#define UZ_CTL_UZSWAPCTL_H

#include <stdbool.h>

#define UZSWAPCTL_RUNTIME_DIR "/run/uzswap"

/* Documented in uzswapctl(8); scripts rely on the numbers. */
enum uzswapctl_exit {
	UZSWAPCTL_OK = 0,
	UZSWAPCTL_REFUSED =
		1, /* the daemon refused or failed; or the output could not be written */
	UZSWAPCTL_USAGE = 2,	  /* the command line is wrong */
	UZSWAPCTL_NO_DAEMON = 3,  /* nobody answers */
	UZSWAPCTL_PERMISSION = 4, /* only others may do that */
};

struct uzswapctl_options {
	const char *runtime_dir;
	bool json;
	bool bytes; /* exact numbers instead of readable ones */
	bool no_headings;
	bool abandon;
	const char *columns; /* of list; NULL: the usual ones */
};

/* What options a verb takes, beside --runtime-dir. */
#define UZSWAPCTL_JSON    1u
#define UZSWAPCTL_BYTES   2u
#define UZSWAPCTL_COLUMNS 4u /* --noheadings and --output */
#define UZSWAPCTL_ABANDON 8u

/*
 * X(name, arguments, fewest, most, options, help). "help" has no function of
 * its own to call the daemon.
 */
#define UZSWAPCTL_FOR_EACH_VERB(X)                                                      \
	X(status, "[DEVICE]", 0, 1, UZSWAPCTL_JSON | UZSWAPCTL_BYTES,                   \
	  "show the figures of all devices, or of one")                                 \
	X(list, "", 0, 0, UZSWAPCTL_JSON | UZSWAPCTL_BYTES | UZSWAPCTL_COLUMNS,         \
	  "show one line for each device")                                              \
	X(metrics, "", 0, 0, UZSWAPCTL_JSON, "print all figures for Prometheus")        \
	X(set, "[DEVICE] KEY VALUE", 2, 3, 0,                                           \
	  "change memory-limit, codec, level or log-level")                             \
	X(swapon, "DEVICE", 1, 1, 0, "let the kernel swap to the device")               \
	X(swapoff, "DEVICE", 1, 1, 0,                                                   \
	  "take back what is swapped out, and swap there no more")                      \
	X(stop, "", 0, 0, UZSWAPCTL_ABANDON, "swap off all devices and end the daemon") \
	X(help, "", 0, 0, 0, "show this text")

/*
 * The verbs. Each returns an exit code; `arguments` ends with a NULL. What goes
 * wrong is said on standard error.
 */
int uzswapctl_status(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_list(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_metrics(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_set(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_swapon(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_swapoff(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_stop(const struct uzswapctl_options *options, char **arguments);
int uzswapctl_help(const struct uzswapctl_options *options, char **arguments);

#endif
