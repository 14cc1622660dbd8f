/* SPDX-License-Identifier: MIT */
/* The listening socket in the file system, and who connects to it. */
#ifndef UZ_CTL_SOCKET_H
#define UZ_CTL_SOCKET_H

#include <sys/stat.h>
#include <sys/un.h>

#include "ctl/ctl_methods.h"

struct ctl_socket {
	int fd; /* listening, non-blocking, close-on-exec */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	dev_t device; /* of the file that we made, so that only that one is removed */
	ino_t inode;
};

/*
 * Listens on RUNTIME_DIR/control. The file appears there complete: with its
 * owner, its mode (0660 with a group, 0600 with CTL_NO_GROUP; whatever the
 * umask) and accepting connections. Replaces the socket of a dead daemon.
 * Returns 0; -EADDRINUSE when somebody listens there; -EEXIST when the path is
 * not a socket; -ENAMETOOLONG; -errno.
 */
int ctl_socket_listen(struct ctl_socket *ret_socket, const char *runtime_dir,
		      gid_t group);

/* Closes the socket and removes its file, unless another daemon has replaced it. */
void ctl_socket_close(struct ctl_socket *listener);

/*
 * Who connected, as the kernel recorded it at that time. A group that cannot be
 * read counts as not being a member. Returns 0 or -errno.
 */
int ctl_socket_peer(int fd, gid_t stats_group, struct ctl_peer *ret_peer);

/* The address of RUNTIME_DIR/name. Returns 0 or -ENAMETOOLONG. */
int ctl_socket_address(struct sockaddr_un *ret_address, const char *runtime_dir,
		       const char *name);

#endif
