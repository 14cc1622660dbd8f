// SPDX-License-Identifier: MIT
/*
 * Varlink messages. Every function works on its arguments alone, on whatever
 * thread calls it.
 *
 * Input comes from strangers: its size is bounded before anything is copied,
 * nesting is bounded while parsing, and strings with a NUL inside are refused
 * because all that compare them use C strings.
 */
#include "ctl/varlink.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/units.h"
#include "ctl/ctl_json.h"

/* The first allocation; calls are some 100 bytes long. */
#define INPUT_INITIAL_BYTES 4096u

/* Our own messages nest four deep; a parser that recurses needs a bound. */
#define JSON_DEPTH_MAX 16

void varlink_input_init(struct varlink_input *input, size_t max_bytes)
{
	*input = (struct varlink_input){.max = max_bytes};
}

void varlink_input_done(struct varlink_input *input)
{
	free(input->data);
	varlink_input_init(input, input->max);
}

/* Moves what is left to the front of the buffer. */
static void compact(struct varlink_input *input)
{
	if (input->start == 0)
		return;
	memmove(input->data, input->data + input->start, input->end - input->start);
	input->end -= input->start;
	input->scanned -= input->start;
	input->start = 0;
}

ssize_t varlink_input_space(struct varlink_input *input, char **ret_space)
{
	compact(input);
	if (input->end == input->capacity && input->capacity < input->max) {
		size_t capacity = UZ_MAX(input->capacity * 2, INPUT_INITIAL_BYTES);

		capacity = UZ_MIN(capacity, input->max);
		char *data = realloc(input->data, capacity);

		if (!data)
			return -ENOMEM;
		input->data = data;
		input->capacity = capacity;
	}
	*ret_space = input->data + input->end;
	return (ssize_t)(input->capacity - input->end);
}

void varlink_input_filled(struct varlink_input *input, size_t bytes)
{
	assert(bytes <= input->capacity - input->end);
	input->end += bytes;
}

bool varlink_input_ready(struct varlink_input *input)
{
	/* A byte is looked at once, however slowly the message drips in. */
	if (input->scanned < input->end) {
		const char *nul = memchr(input->data + input->scanned, '\0',
					 input->end - input->scanned);

		input->scanned = nul ? (size_t)(nul - input->data) : input->end;
	}
	return input->scanned < input->end;
}

int varlink_input_next(struct varlink_input *input, const char **ret_message,
		       size_t *ret_length)
{
	if (!varlink_input_ready(input))
		return input->end - input->start >= input->max ? -EMSGSIZE : 0;
	*ret_message = input->data + input->start;
	*ret_length = input->scanned - input->start;
	input->start = input->scanned + 1;
	input->scanned = input->start;
	return 1;
}

void varlink_input_trim(struct varlink_input *input)
{
	if (input->start == input->end)
		varlink_input_done(input);
}

int varlink_parse_object(struct json_object **ret_object, const char *text, size_t length)
{
	if (length > INT32_MAX)
		return -EBADMSG;
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX);

	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	struct json_object *object = json_tokener_parse_ex(tokener, text, (int)length);
	size_t parsed = json_tokener_get_parse_end(tokener);

	json_tokener_free(tokener);
	/* Anything but white space after the object means that this is no message. */
	for (; object && parsed < length; parsed++)
		if (!memchr(" \t\r\n", text[parsed], 4))
			break;
	if (!json_object_is_type(object, json_type_object) || parsed < length) {
		json_object_put(object);
		return -EBADMSG;
	}
	*ret_object = object;
	return 0;
}

/* A flag of a call: absent and null are false. Returns 0 or -EBADMSG. */
static int get_flag(const struct json_object *message, const char *name, bool *ret_flag)
{
	struct json_object *value = NULL;

	if (json_object_object_get_ex(message, name, &value) && value) {
		if (!json_object_is_type(value, json_type_boolean))
			return -EBADMSG;
		*ret_flag = json_object_get_boolean(value);
	}
	return 0;
}

int varlink_call_parse(struct varlink_call *ret_call, const char *message, size_t length)
{
	struct varlink_call call = {0};
	struct json_object *method = NULL;
	int err = varlink_parse_object(&call.message, message, length);

	if (err < 0)
		return err;
	if (!json_object_object_get_ex(call.message, "method", &method) ||
	    !json_object_is_type(method, json_type_string))
		goto bad;
	call.method = json_object_get_string(method);
	if (strlen(call.method) != (size_t)json_object_get_string_len(method))
		goto bad;
	if (json_object_object_get_ex(call.message, "parameters", &call.parameters) &&
	    call.parameters && !json_object_is_type(call.parameters, json_type_object))
		goto bad;
	if (get_flag(call.message, "more", &call.more) < 0 ||
	    get_flag(call.message, "oneway", &call.oneway) < 0 ||
	    get_flag(call.message, "upgrade", &call.upgrade) < 0)
		goto bad;
	if (call.more && call.oneway)
		goto bad;
	*ret_call = call;
	return 0;
bad:
	json_object_put(call.message);
	return -EBADMSG;
}

void varlink_call_done(struct varlink_call *call)
{
	json_object_put(call->message);
	*call = (struct varlink_call){0};
}

size_t varlink_interface_length(const char *method)
{
	const char *dot = strrchr(method, '.');

	return dot && dot[1] ? (size_t)(dot - method) : 0;
}

/* An object with a string, `parameters` and a flag; NULL names are left out. */
static struct json_object *make_message(const char *string_name, const char *string,
					struct json_object *parameters,
					const char *flag_name)
{
	struct json_object *message = json_object_new_object();
	int failed = 0;

	if (string_name)
		failed |= json_put_text(message, string_name, string);
	failed |= json_put(message, "parameters",
			   parameters ? parameters : json_object_new_object());
	if (flag_name)
		failed |= json_put(message, flag_name, json_object_new_boolean(true));
	return json_finish(message, failed);
}

struct json_object *varlink_make_call(const char *method, struct json_object *parameters,
				      bool more)
{
	return make_message("method", method, parameters, more ? "more" : NULL);
}

struct json_object *varlink_make_reply(struct json_object *parameters, bool continues)
{
	return make_message(NULL, NULL, parameters, continues ? "continues" : NULL);
}

struct json_object *varlink_make_error(const char *error, struct json_object *parameters)
{
	return make_message("error", error, parameters, NULL);
}

struct json_object *varlink_make_error_string(const char *error, const char *name,
					      const char *value)
{
	struct json_object *parameters = json_object_new_object();

	parameters = json_finish(parameters, json_put_text(parameters, name, value));
	return parameters ? varlink_make_error(error, parameters) : NULL;
}

const char *varlink_text(struct json_object *message, size_t *ret_length)
{
	size_t length;
	const char *text = json_object_to_json_string_length(
		message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE,
		&length);

	if (text)
		*ret_length = length +
			      1; /* json-c ends it with a NUL, which is Varlink's too */
	return text;
}
