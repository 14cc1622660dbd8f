// SPDX-License-Identifier: MIT
/*
 * posix_spawn uses CLONE_VM|CLONE_VFORK: neither the page tables of a large
 * locked store are copied nor a second commitment of its memory asked for.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int redirect(posix_spawn_file_actions_t *actions, int from, int to, int flags)
{
	if (from < 0)
		return posix_spawn_file_actions_addopen(actions, to, "/dev/null", flags, 0);
	return posix_spawn_file_actions_adddup2(actions, from, to);
}

int spawn_start(char *const argv[], int stdin_fd, int stdout_fd, int stderr_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int err = redirect(&actions, stdin_fd, STDIN_FILENO, O_RDONLY);

	if (err == 0)
		err = redirect(&actions, stdout_fd, STDOUT_FILENO, O_WRONLY);
	if (err == 0)
		err = redirect(&actions, stderr_fd, STDERR_FILENO, O_WRONLY);
	if (err == 0)
		err = posix_spawnp(ret_pid, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int spawn_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}
