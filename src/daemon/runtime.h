/* SPDX-License-Identifier: MIT */
/* The runtime directory: one daemon a directory, closed to others, nothing stale in it.
 */
#ifndef UZ_DAEMON_RUNTIME_H
#define UZ_DAEMON_RUNTIME_H

#include <stddef.h>
#include <sys/types.h>

#define RUNTIME_DEFAULT_DIR "/run/uzswap"

/*
 * Makes the directory (0700, or 0750 for `group`) and takes its lock. Returns
 * the lock's descriptor, held until exit, or -errno with a sentence in `message`.
 * -EADDRINUSE: another daemon is running there.
 */
int runtime_enter(const char *directory, gid_t group, char *message, size_t message_bytes);

/*
 * Looks for loop devices that an earlier daemon of this directory left behind
 * when it was killed. Unused ones are unbound. Returns 0, or -EBUSY with a
 * sentence that names the one that is in use.
 */
int runtime_clean_stale(const char *directory, char *message, size_t message_bytes);

#endif
