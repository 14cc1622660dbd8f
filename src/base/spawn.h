/* SPDX-License-Identifier: MIT */
/* Running a helper program without copying the daemon's locked address space. */
#ifndef UZ_BASE_SPAWN_H
#define UZ_BASE_SPAWN_H

#include <sys/types.h>

/*
 * Starts `argv[0]` (a path, or a name looked up in PATH) with the caller's
 * environment, default signal handling and an empty signal mask. `stdin_fd`,
 * `stdout_fd`, `stderr_fd`: the child's 0, 1, 2, or -1 for /dev/null.
 * All other descriptors must be close-on-exec. Returns 0 or -errno.
 */
int spawn_start(char *const argv[], int stdin_fd, int stdout_fd, int stderr_fd, pid_t *ret_pid);

/* Waits for it. Returns its exit status 0..255, 256 + signal when a signal ended it, or
 * -errno. */
int spawn_wait(pid_t pid);

#endif
