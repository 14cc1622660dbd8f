/* SPDX-License-Identifier: MIT */
/*
 * Varlink's wire format (https://varlink.org): JSON objects, each ended by a
 * NUL byte. Framing, calls and replies, for both sides of a connection. Pure:
 * no sockets, no threads, so that tests and the fuzzer can drive it.
 */
#ifndef UZ_CTL_VARLINK_H
#define UZ_CTL_VARLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct json_object;

/*
 * What came in and is not yet consumed. The memory appears with the first byte;
 * whoever trims it between messages has idle connections that cost nothing.
 */
struct varlink_input {
	char *data;
	size_t start;	/* first byte not yet consumed */
	size_t scanned; /* no NUL lies in [start, scanned) */
	size_t end;	/* first unused byte */
	size_t capacity;
	size_t max; /* longest message, its NUL included */
};

/* `max_bytes`: longest message that will be taken, the NUL included. */
void varlink_input_init(struct varlink_input *input, size_t max_bytes);
void varlink_input_done(struct varlink_input *input);

/*
 * Room for more bytes: *ret_space points to the returned number of bytes. 0
 * means that nothing more fits: take messages out, or give the peer up. -ENOMEM.
 */
ssize_t varlink_input_space(struct varlink_input *input, char **ret_space);

/* `bytes` were written to that space. */
void varlink_input_filled(struct varlink_input *input, size_t bytes);

/*
 * Takes the next message out: a NUL-terminated string that stays valid until
 * the next varlink_input call. Returns 1, 0 when none is complete, or -EMSGSIZE
 * when the message that has begun cannot fit any more.
 */
int varlink_input_next(struct varlink_input *input, const char **ret_message,
		       size_t *ret_length);

/* Gives the memory back when all is consumed. */
void varlink_input_trim(struct varlink_input *input);

/* Whether varlink_input_next has something to return. */
bool varlink_input_ready(struct varlink_input *input);

/* A parsed call. `method` and `parameters` belong to it. */
struct varlink_call {
	struct json_object *message;
	struct json_object *parameters; /* an object; NULL when the call has none */
	const char *method;		/* "interface.Method" */
	bool more;			/* the client takes several replies */
	bool oneway;			/* the client wants no reply at all */
	bool upgrade; /* the client wants to speak another protocol afterwards */
};

/*
 * Parses one message of `length` bytes. Returns 0; -EBADMSG for anything that
 * is not a call (no JSON object, no method, a flag that is no boolean, oneway
 * together with more); -ENOMEM.
 */
int varlink_call_parse(struct varlink_call *ret_call, const char *message, size_t length);
void varlink_call_done(struct varlink_call *call);

/*
 * The method's interface is the text before the last dot. Returns its length,
 * or 0 when there is no interface or no method name after it.
 */
size_t varlink_interface_length(const char *method);

/*
 * Messages as JSON objects. `parameters` is consumed, also on failure; NULL
 * stands for "no parameters". They return NULL for want of memory.
 */
struct json_object *varlink_make_call(const char *method, struct json_object *parameters,
				      bool more);
struct json_object *varlink_make_reply(struct json_object *parameters, bool continues);
struct json_object *varlink_make_error(const char *error, struct json_object *parameters);

/* An error with one string parameter, as all of org.varlink.service's are. */
struct json_object *varlink_make_error_string(const char *error, const char *name,
					      const char *value);

/*
 * The bytes to send: JSON and its NUL, which *ret_length counts too. The text
 * lives as long as `message`. NULL for want of memory.
 */
const char *varlink_text(struct json_object *message, size_t *ret_length);

/*
 * Parses one JSON object. Returns 0, -EBADMSG or -ENOMEM. The result is json_object_put
 * by the caller.
 */
int varlink_parse_object(struct json_object **ret_object, const char *text,
			 size_t length);

#define VARLINK_ERROR_INTERFACE_NOT_FOUND    "org.varlink.service.InterfaceNotFound"
#define VARLINK_ERROR_METHOD_NOT_FOUND       "org.varlink.service.MethodNotFound"
#define VARLINK_ERROR_METHOD_NOT_IMPLEMENTED "org.varlink.service.MethodNotImplemented"
#define VARLINK_ERROR_INVALID_PARAMETER      "org.varlink.service.InvalidParameter"

#endif
