// SPDX-License-Identifier: MIT
/*
 * Creating the socket, and reading peer credentials. Called at start and end,
 * and by the ctl thread for each new connection.
 */
#include "ctl/ctl_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/*
 * Connections that wait for accept(2). The ctl thread drains them fast; more only hides
 * a fault.
 */
#define BACKLOG 128

int ctl_socket_address(struct sockaddr_un *ret_address, const char *runtime_dir,
		       const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s",
			      runtime_dir, name);

	if (length < 0 || (size_t)length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	*ret_address = address;
	return 0;
}

/* Returns 0 when the path is free: nothing there, or a socket without a listener. */
static int check_free(const struct sockaddr_un *address)
{
	UZ_AUTO_CLOSE int fd = -1;
	struct stat st;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return -EADDRINUSE;
	/* EAGAIN: there is a listener, with a full backlog. */
	if (errno == EAGAIN)
		return -EADDRINUSE;
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : -errno;
}

/* Binds to `address` and makes the file what it should be. Returns 0 or -errno. */
static int bind_private(int fd, const struct sockaddr_un *address, gid_t group,
			struct stat *ret_stat)
{
	/* Linux gives the file the socket's mode: nobody can connect in between. */
	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0)
		return -errno;
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	mode_t mode = S_IRUSR | S_IWUSR;

	if (group != CTL_NO_GROUP) {
		mode |= S_IRGRP | S_IWGRP;
		if (lchown(address->sun_path, (uid_t)-1, group) < 0)
			return -errno;
	}
	/* Also where the umask has taken bits away. */
	if (chmod(address->sun_path, mode) < 0)
		return -errno;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	return lstat(address->sun_path, ret_stat) < 0 ? -errno : 0;
}

int ctl_socket_listen(struct ctl_socket *ret_socket, const char *runtime_dir, gid_t group)
{
	struct sockaddr_un final, temporary;
	UZ_AUTO_CLOSE int fd = -1;
	struct stat st;
	int err = ctl_socket_address(&temporary, runtime_dir, "." CTL_SOCKET_NAME ".new");

	if (err == 0)
		err = ctl_socket_address(&final, runtime_dir, CTL_SOCKET_NAME);
	if (err == 0)
		err = check_free(&final);
	if (err < 0)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind_private(fd, &temporary, group, &st);
	if (err == 0 && rename(temporary.sun_path, final.sun_path) < 0)
		err = -errno;
	if (err < 0) {
		unlink(temporary.sun_path);
		return err;
	}
	*ret_socket = (struct ctl_socket){.device = st.st_dev, .inode = st.st_ino};
	snprintf(ret_socket->path, sizeof(ret_socket->path), "%s", final.sun_path);
	ret_socket->fd = uz_take_fd(&fd);
	return 0;
}

void ctl_socket_close(struct ctl_socket *listener)
{
	struct stat st;

	if (lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
	    st.st_ino == listener->inode)
		unlink(listener->path);
	close(listener->fd);
	listener->fd = -1;
}

static bool is_member(int fd, const struct ucred *credentials, gid_t group)
{
	UZ_AUTO_FREE gid_t *groups = NULL;
	socklen_t bytes = 0;

	if (credentials->gid == group)
		return true;
	/* With no room given the kernel tells how much it takes. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 ||
	    errno != ERANGE)
		return false;
	groups = malloc(bytes);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

int ctl_socket_peer(int fd, gid_t stats_group, struct ctl_peer *ret_peer)
{
	struct ucred credentials;
	socklen_t bytes = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) < 0)
		return -errno;
	bool is_root = credentials.uid == 0;

	*ret_peer = (struct ctl_peer){
		.uid = credentials.uid,
		.pid = credentials.pid,
		.may_change = is_root,
		.may_read = is_root || (stats_group != CTL_NO_GROUP &&
					is_member(fd, &credentials, stats_group)),
	};
	return 0;
}
