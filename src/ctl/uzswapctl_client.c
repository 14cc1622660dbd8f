// SPDX-License-Identifier: MIT
/* Calling the daemon. One thread, blocking; a reading call gives up after a while. */
#include "ctl/uzswapctl_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_json.h"
#include "ctl/ctl_socket.h"
#include "ctl/uzswapctl.h"
#include "ctl/varlink.h"

/* The ctl thread answers within milliseconds; a machine in deep trouble needs longer. */
#define ANSWER_SECONDS 30

/* Twice what the server sends at most. */
#define REPLY_BYTES_MAX (8 * 1024 * 1024)

struct json_object *client_get(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

uint64_t client_uint(struct json_object *object, const char *name)
{
	return json_object_get_uint64(client_get(object, name));
}

const char *client_text(struct json_object *object, const char *name)
{
	struct json_object *value = client_get(object, name);

	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : "";
}

/* Says why there is no connection. Returns the exit code. */
static int report_no_connection(const char *path, int err)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		fprintf(stderr, "uzswapctl: no daemon at %s: is uzswapd running?\n",
			path);
		return UZSWAPCTL_NO_DAEMON;
	case -EACCES:
	case -EPERM:
		fprintf(stderr,
			"uzswapctl: %s: permission denied: only root and the statistics "
			"group "
			"may talk to the daemon\n",
			path);
		return UZSWAPCTL_PERMISSION;
	default:
		fprintf(stderr, "uzswapctl: %s: %s\n", path, strerror(-err));
		return UZSWAPCTL_NO_DAEMON;
	}
}

static int connect_to(const struct sockaddr_un *address, bool patient)
{
	struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	UZ_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* The limit for sending is also that for connect(2). */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	if (!patient &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	return uz_take_fd(&fd);
}

static int send_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		text += sent;
		length -= (size_t)sent;
	}
	return 0;
}

/* Reads one reply. Returns 0, -ECONNRESET at the connection's end, or -errno. */
static int receive(int fd, struct varlink_input *input, struct json_object **ret_reply)
{
	const char *message;
	size_t length;
	int found;

	while ((found = varlink_input_next(input, &message, &length)) == 0) {
		char *space;
		ssize_t room = varlink_input_space(input, &space);

		if (room <= 0)
			return room < 0 ? (int)room : -EMSGSIZE;
		ssize_t got = recv(fd, space, (size_t)room, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ECONNRESET;
		varlink_input_filled(input, (size_t)got);
	}
	return found < 0 ? found : varlink_parse_object(ret_reply, message, length);
}

/* Says what the daemon's error reply says. Returns the exit code. */
static int report_error(const char *error, struct json_object *parameters)
{
	const char *message = client_text(parameters, "message");

	if (*message)
		fprintf(stderr, "uzswapctl: %s\n", message);
	else
		fprintf(stderr, "uzswapctl: the daemon answers: %s %s\n", error,
			json_object_to_json_string(parameters));
	return strcmp(error, CTL_ERROR_PERMISSION_DENIED) == 0 ? UZSWAPCTL_PERMISSION
							       : UZSWAPCTL_REFUSED;
}

static int report_broken(const char *path, int err)
{
	if (err == -ECONNRESET || err == -EPIPE)
		fprintf(stderr, "uzswapctl: the daemon at %s closed the connection\n",
			path);
	else if (err == -EAGAIN)
		fprintf(stderr,
			"uzswapctl: no answer from the daemon at %s within %d seconds\n",
			path, ANSWER_SECONDS);
	else
		fprintf(stderr, "uzswapctl: talking to the daemon at %s: %s\n", path,
			strerror(-err));
	return UZSWAPCTL_NO_DAEMON;
}

static void end_progress(const struct client_call *call)
{
	if (call->progress)
		call->progress(NULL, call->context);
}

/* Takes replies until the last one. Like client_run. */
static int collect(int fd, const char *path, const struct client_call *call,
		   struct json_object **ret_parameters)
{
	struct varlink_input input;
	bool continues = true;
	int code = UZSWAPCTL_OK;

	varlink_input_init(&input, REPLY_BYTES_MAX);
	while (code == UZSWAPCTL_OK && continues) {
		struct json_object *reply = NULL;
		int err = receive(fd, &input, &reply);

		if (err < 0) {
			end_progress(call);
			code = report_broken(path, err);
			break;
		}
		const char *error = client_text(reply, "error");
		struct json_object *parameters = client_get(reply, "parameters");

		continues = json_object_get_boolean(client_get(reply, "continues"));
		if (!continues)
			end_progress(call);
		if (*error)
			code = report_error(error, parameters);
		else if (!continues)
			*ret_parameters = json_object_get(parameters);
		else if (call->progress)
			call->progress(parameters, call->context);
		json_object_put(reply);
	}
	varlink_input_done(&input);
	return code;
}

int client_run(const struct client_call *call, struct json_object **ret_parameters)
{
	UZ_AUTO_CLOSE int fd = -1;
	struct sockaddr_un address;
	char method[64];
	size_t length;

	snprintf(method, sizeof(method), CTL_INTERFACE ".%s", call->method);
	struct json_object *message =
		varlink_make_call(method, call->parameters, call->progress != NULL);
	const char *text = message ? varlink_text(message, &length) : NULL;
	int err = ctl_socket_address(&address, call->runtime_dir, CTL_SOCKET_NAME);
	int code = UZSWAPCTL_REFUSED;

	if (!text) {
		fprintf(stderr, "uzswapctl: %s\n", strerror(ENOMEM));
	} else if (err < 0) {
		fprintf(stderr, "uzswapctl: %s: %s\n", call->runtime_dir, strerror(-err));
		code = UZSWAPCTL_USAGE;
	} else {
		fd = connect_to(&address, call->progress != NULL);
		if (fd < 0) {
			code = report_no_connection(address.sun_path, fd);
		} else {
			err = send_all(fd, text, length);
			code = err < 0 ? report_broken(address.sun_path, err)
				       : collect(fd, address.sun_path, call,
						 ret_parameters);
		}
	}
	json_object_put(message);
	return code;
}
