// SPDX-License-Identifier: MIT
/*
 * libFuzzer program for what strangers can send: framing, parsing, and every
 * method that answers at once. The first byte chooses who asks and how the
 * bytes are split into reads; the rest is what comes over the socket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/units.h"
#include "ctl/ctl_methods.h"
#include "ctl/varlink.h"
#include "ctl_fake.h"

/* Small, so that the fuzzer meets the limit. */
#define MESSAGE_BYTES_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "violated: %s\n", what);
	abort();
}

/* A reply is one JSON object without a NUL inside, and either a result or an error. */
static void check_reply(struct json_object *reply)
{
	struct json_object *again = NULL, *error = NULL;
	size_t length = 0;
	const char *text = varlink_text(reply, &length);

	require(text && strlen(text) + 1 == length, "a reply is a string");
	require(varlink_parse_object(&again, text, length - 1) == 0,
		"a reply can be parsed");
	require(json_object_is_type(json_object_object_get(again, "parameters"),
				    json_type_object),
		"a reply has parameters");
	if (json_object_object_get_ex(again, "error", &error))
		require(varlink_interface_length(json_object_get_string(error)) > 0,
			"an error has an interface");
	json_object_put(again);
}

static void answer(struct ctl_methods *methods, const struct ctl_peer *peer,
		   const char *message, size_t length)
{
	struct json_object *reply = NULL;
	struct varlink_call call;
	struct ctl_job job;

	require(strlen(message) == length, "a message ends at its NUL");
	if (varlink_call_parse(&call, message, length) < 0)
		return;
	int result = ctl_methods_call(methods, peer, &call, &reply, &job);

	require(result == 0 || result == 1, "a call is answered");
	if (result == 1) {
		require(peer->may_change, "only who may change anything starts a job");
		require(memchr(job.device, '\0', sizeof(job.device)) != NULL,
			"a device's name ends");
		job.result = 0;
		reply = ctl_job_reply(&job);
	}
	check_reply(reply);
	json_object_put(reply);
	varlink_call_done(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ctl_fake fake;
	static bool ready;
	struct ctl_methods methods = {.ops = &ctl_fake_ops, .context = &fake};
	struct varlink_input input;

	if (!ready) {
		ctl_fake_init(&fake);
		log_set_level(LOG_LEVEL_ERROR);
		ready = true;
	}
	if (size == 0)
		return 0;
	const struct ctl_peer peer = {
		.uid = data[0] & 1 ? 0 : 65534,
		.may_change = data[0] & 1,
		.may_read = data[0] & 2,
	};
	size_t part = 1u + (data[0] >> 2);
	const char *message;
	size_t length;
	int found = 0;

	data++;
	size--;
	varlink_input_init(&input, MESSAGE_BYTES_MAX);
	while (size > 0 && found >= 0) {
		char *space;
		ssize_t room = varlink_input_space(&input, &space);

		require(room >= 0 && input.capacity <= MESSAGE_BYTES_MAX,
			"the input is bounded");
		if (room == 0)
			break;
		size_t take = UZ_MIN(UZ_MIN((size_t)room, part), size);

		memcpy(space, data, take);
		varlink_input_filled(&input, take);
		data += take;
		size -= take;
		while ((found = varlink_input_next(&input, &message, &length)) == 1)
			answer(&methods, &peer, message, length);
		varlink_input_trim(&input);
	}
	varlink_input_done(&input);
	return 0;
}
