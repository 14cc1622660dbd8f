/* SPDX-License-Identifier: MIT */
/* The tool's side of the socket: one call on one connection. */
#ifndef UZ_CTL_UZSWAPCTL_CLIENT_H
#define UZ_CTL_UZSWAPCTL_CLIENT_H

#include <stdint.h>

struct json_object;

struct client_call {
	const char *runtime_dir;
	const char *method;		/* of io.uzswap.Control */
	struct json_object *parameters; /* consumed; NULL: none */
	/*
	 * For a long call: called with each progress reply, and with NULL when the call
	 * is over, before anything is said about it. Without it the reply must come soon.
	 */
	void (*progress)(struct json_object *parameters, void *context);
	void *context;
};

/*
 * Makes the call. Returns UZSWAPCTL_OK and the reply's parameters, which the
 * caller json_object_puts, or another exit code after a message on stderr.
 */
int client_run(const struct client_call *call, struct json_object **ret_parameters);

/* A reply's number or string; 0 or "" where it has none. */
uint64_t client_uint(struct json_object *object, const char *name);
const char *client_text(struct json_object *object, const char *name);

/* A reply's part: object, array or NULL. */
struct json_object *client_get(struct json_object *object, const char *name);

#endif
