/* SPDX-License-Identifier: MIT */
/*
 * Sysctls that are set while swap is on and put back afterwards, also by the
 * next daemon when this one is killed: before anything is changed, the values
 * found are written to RUNTIME-DIR/sysctl.saved. A value that somebody else
 * changes in the meantime is theirs and left alone.
 *
 * Two daemons with different runtime directories do not know of each other:
 * the second finds the first one's values in place, changes nothing, and loses
 * them when the first one stops.
 */
#ifndef UZ_DAEMON_SYSCTL_H
#define UZ_DAEMON_SYSCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSCTL_NAME_BYTES 64
#define SYSCTL_MAX	  8

struct sysctl_want {
	const char *name; /* "vm.min_free_kbytes" */
	uint64_t value;
	bool at_least; /* never lower a value that is higher already */
};

struct sysctl_status {
	char name[SYSCTL_NAME_BYTES];
	uint64_t before; /* what was there, and what is put back */
	uint64_t now;	 /* read just now */
	bool changed;	 /* it is our value that is in force */
	int error;	 /* 0, or why it could not be set: -EROFS, -EACCES ... */
};

struct sysctl_set;

/*
 * Reads what an earlier daemon left in `runtime_dir`, and changes nothing. The
 * file of another boot, or a damaged one, is ignored with a warning. `root`: ""
 * or a test's prefix of /proc. Strings are copied. Returns 0 or -ENOMEM.
 */
int sysctl_set_new(struct sysctl_set **ret_set, const char *runtime_dir,
		   const char *root);

/* Frees the memory and changes no sysctl. NULL is fine. */
void sysctl_set_free(struct sysctl_set *set);

/*
 * Sets `count` sysctls (at most SYSCTL_MAX; 0 is fine). Leftovers that are not
 * among them are put back. Returns 0; -EINVAL for a bad name; or -errno when
 * the file cannot be written: then no sysctl has been changed. A sysctl that
 * cannot be set is one warning and its `error`, and no failure.
 */
int sysctl_set_apply(struct sysctl_set *set, const struct sysctl_want *wants,
		     size_t count);

/* Puts back all that is still ours and removes the file. May be called at any time. */
void sysctl_set_restore(struct sysctl_set *set);

/*
 * The sysctls of the last apply, at most `max`. Returns the count. All of these
 * functions by one thread at a time.
 */
size_t sysctl_set_status(struct sysctl_set *set, struct sysctl_status *ret_list,
			 size_t max);

#endif
