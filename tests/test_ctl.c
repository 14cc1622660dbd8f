// SPDX-License-Identifier: MIT
/* The ctl tests' main program, its client, and the tests of framing and methods. */
#include "test_ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/units.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_methods.h"
#include "ctl/varlink.h"

/*
 * The server and the client.
 */
void ctl_test_start(struct ctl_test *test, gid_t group)
{
	ctl_fake_init(&test->fake);
	snprintf(test->directory, sizeof(test->directory), "/tmp/uzswap-ctl-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(test->directory));
	/* The socket's own mode is what is tested, not the directory's. */
	ck_assert_int_eq(chmod(test->directory, 0755), 0);
	test->config.runtime_dir = test->directory;
	test->config.stats_group = group;
	test->config.ops = &ctl_fake_ops;
	test->config.context = &test->fake;
	ck_assert_int_eq(ctl_server_new(&test->server, &test->config), 0);
}

void ctl_test_stop(struct ctl_test *test)
{
	ctl_server_free(test->server);
	/* Also says that the server has left nothing behind. */
	ck_assert_int_eq(rmdir(test->directory), 0);
	ctl_fake_done(&test->fake);
}

int client_connect(const struct ctl_test *test)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 10};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", test->directory);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	return fd;
}

void quote(char *ret_json, const char *text)
{
	do
		*ret_json++ = *text == '\'' ? '"' : *text;
	while (*text++);
}

void client_send(int fd, const char *text)
{
	size_t length = strlen(text) + 1;
	char *json = malloc(length);

	quote(json, text);
	ck_assert_int_eq(send(fd, json, length, MSG_NOSIGNAL), (ssize_t)length);
	free(json);
}

struct json_object *client_receive(int fd)
{
	size_t used = 0, size = 64 * 1024;
	char *text = malloc(size);
	struct json_object *reply = NULL;

	/* Byte by byte: nothing of the next reply may be taken. */
	for (;;) {
		ssize_t got = recv(fd, text + used, 1, 0);

		if (got < 0 && errno == ECONNRESET)
			got = 0;
		ck_assert_msg(got >= 0, "no reply: %s", strerror(errno));
		if (got == 0) {
			ck_assert_uint_eq(used, 0);
			free(text);
			return NULL;
		}
		if (text[used] == '\0')
			break;
		if (++used == size)
			text = realloc(text, size *= 2);
	}
	reply = json_tokener_parse(text);
	ck_assert_msg(json_object_is_type(reply, json_type_object), "not an object: %s", text);
	free(text);
	return reply;
}

struct json_object *client_ask(int fd, const char *text)
{
	client_send(fd, text);
	struct json_object *reply = client_receive(fd);

	ck_assert_msg(reply, "the connection ended after: %s", text);
	return reply;
}

int client_ask_plainly(const struct ctl_test *test, const char *text, char *ret_reply, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char json[512];

	quote(json, text);
	strcpy(address.sun_path, test->directory);
	strcat(address.sun_path, "/control");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (send(fd, json, strlen(json) + 1, MSG_NOSIGNAL) < 0)
		return -errno;
	size_t used = 0;

	while (used < size - 1 && recv(fd, ret_reply + used, 1, 0) == 1 && ret_reply[used])
		used++;
	ret_reply[used] = '\0';
	close(fd);
	return 0;
}

void client_expect_end(int fd)
{
	ck_assert_ptr_null(client_receive(fd));
}

struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	ck_assert_msg(json_object_object_get_ex(object, name, &value), "no %s in %s", name,
		      json_object_to_json_string(object));
	return value;
}

const char *error_of(struct json_object *reply)
{
	struct json_object *error = NULL;

	return json_object_object_get_ex(reply, "error", &error) ? json_object_get_string(error)
								 : "";
}

const char *reply_text(struct json_object *reply, const char *name)
{
	return json_object_get_string(member(member(reply, "parameters"), name));
}

uint64_t reply_uint(struct json_object *reply, const char *name)
{
	return json_object_get_uint64(member(member(reply, "parameters"), name));
}

/*
 * Framing.
 */
static void feed(struct varlink_input *input, const char *bytes, size_t length)
{
	while (length > 0) {
		char *space;
		ssize_t room = varlink_input_space(input, &space);

		ck_assert_int_gt(room, 0);
		size_t part = UZ_MIN((size_t)room, length);

		memcpy(space, bytes, part);
		varlink_input_filled(input, part);
		bytes += part;
		length -= part;
	}
}

static void expect_message(struct varlink_input *input, const char *expected)
{
	const char *message = NULL;
	size_t length = 0;

	ck_assert_int_eq(varlink_input_next(input, &message, &length), 1);
	ck_assert_str_eq(message, expected);
	ck_assert_uint_eq(length, strlen(expected));
}

static void expect_none(struct varlink_input *input, int expected)
{
	const char *message;
	size_t length;

	ck_assert_int_eq(varlink_input_next(input, &message, &length), expected);
}

START_TEST(framing_takes_messages_apart)
{
	static const char bytes[] = "one\0\0three";
	struct varlink_input input;

	varlink_input_init(&input, 64);
	expect_none(&input, 0);
	feed(&input, bytes, sizeof(bytes)); /* with the last NUL */
	expect_message(&input, "one");
	expect_message(&input, "");
	expect_message(&input, "three");
	expect_none(&input, 0);
	varlink_input_done(&input);
}
END_TEST

START_TEST(framing_joins_split_messages)
{
	static const char bytes[] = "first\0second\0third";
	struct varlink_input input;

	for (size_t split = 0; split <= sizeof(bytes); split++) {
		char got[64] = "";
		const char *message;
		size_t length;

		varlink_input_init(&input, 64);
		feed(&input, bytes, split);
		while (varlink_input_next(&input, &message, &length) == 1)
			strcat(strcat(got, message), "|");
		feed(&input, bytes + split, sizeof(bytes) - split);
		while (varlink_input_next(&input, &message, &length) == 1)
			strcat(strcat(got, message), "|");
		ck_assert_str_eq(got, "first|second|third|");
		varlink_input_done(&input);
	}
}
END_TEST

START_TEST(framing_bounds_a_message)
{
	struct varlink_input input;
	char *space, message[100];

	memset(message, 'x', sizeof(message));
	message[99] = '\0';
	/* 99 characters and the NUL are the longest message of 100 bytes ... */
	varlink_input_init(&input, 100);
	feed(&input, message, 100);
	expect_message(&input, message);
	/* ... also when another one came before it. */
	feed(&input, "y", 2);
	expect_message(&input, "y");
	feed(&input, message, 100);
	expect_message(&input, message);
	varlink_input_done(&input);

	message[99] = 'x';
	feed(&input, message, 100);
	ck_assert_int_eq(varlink_input_space(&input, &space), 0);
	expect_none(&input, -EMSGSIZE);
	varlink_input_done(&input);
}
END_TEST

START_TEST(framing_gives_memory_back)
{
	struct varlink_input input;

	varlink_input_init(&input, 65536);
	feed(&input, "message", 8);
	varlink_input_trim(&input);
	ck_assert_ptr_nonnull(input.data);
	expect_message(&input, "message");
	varlink_input_trim(&input);
	ck_assert_ptr_null(input.data);
	feed(&input, "again", 6);
	expect_message(&input, "again");
	varlink_input_done(&input);
}
END_TEST

START_TEST(calls_are_parsed)
{
	struct varlink_call call;
	char text[128];

	quote(text, "{'method':'a.B','parameters':{'x':1},'more':true,'new':[]} \n");
	ck_assert_int_eq(varlink_call_parse(&call, text, strlen(text)), 0);
	ck_assert_str_eq(call.method, "a.B");
	ck_assert_int_eq(json_object_get_int(member(call.parameters, "x")), 1);
	ck_assert(call.more);
	ck_assert(!call.oneway);
	ck_assert(!call.upgrade);
	varlink_call_done(&call);

	quote(text, "{'method':'a.B','parameters':null,'oneway':true}");
	ck_assert_int_eq(varlink_call_parse(&call, text, strlen(text)), 0);
	ck_assert_ptr_null(call.parameters);
	ck_assert(call.oneway);
	varlink_call_done(&call);
}
END_TEST

/* clang-format off */
static const char *const garbage[] = {
	"",
	" ",
	"x",
	"{",
	"[]",
	"null",
	"\"method\"",
	"{}",
	"{'method':1}",
	"{'method':null}",
	"{'method':'a\\u0000.B'}",
	"{'method':'a.B'",
	"{'method':'a.B'}}",
	"{'method':'a.B'}{'method':'a.B'}",
	"{'method':'a.B','parameters':[]}",
	"{'method':'a.B','parameters':'x'}",
	"{'method':'a.B','more':1}",
	"{'method':'a.B','oneway':'true'}",
	"{'method':'a.B','oneway':true,'more':true}",
	"{'method':'a.B\xff\xfe'}",
	"{method:'a.B'}",
	"{'method':'a.B','parameters':{'x':[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}}",
	"\x01\x02\x03",
};
/* clang-format on */

START_TEST(garbage_is_no_call)
{
	struct varlink_call call = {.method = "untouched"};
	char text[256];

	quote(text, garbage[_i]);
	ck_assert_int_eq(varlink_call_parse(&call, text, strlen(text)), -EBADMSG);
	ck_assert_str_eq(call.method, "untouched");
}
END_TEST

START_TEST(interfaces_are_told_from_methods)
{
	ck_assert_uint_eq(varlink_interface_length("org.varlink.service.GetInfo"), 19);
	ck_assert_uint_eq(varlink_interface_length("a.B"), 1);
	ck_assert_uint_eq(varlink_interface_length("B"), 0);
	ck_assert_uint_eq(varlink_interface_length("a."), 0);
	ck_assert_uint_eq(varlink_interface_length(".B"), 0);
	ck_assert_uint_eq(varlink_interface_length(""), 0);
}
END_TEST

Suite *suite_varlink(void)
{
	Suite *suite = suite_create("varlink");
	TCase *framing = tcase_create("framing");

	tcase_add_test(framing, framing_takes_messages_apart);
	tcase_add_test(framing, framing_joins_split_messages);
	tcase_add_test(framing, framing_bounds_a_message);
	tcase_add_test(framing, framing_gives_memory_back);
	suite_add_tcase(suite, framing);
	TCase *calls = tcase_create("calls");

	tcase_add_test(calls, calls_are_parsed);
	tcase_add_loop_test(calls, garbage_is_no_call, 0, (int)UZ_ARRAY_SIZE(garbage));
	tcase_add_test(calls, interfaces_are_told_from_methods);
	suite_add_tcase(suite, calls);
	return suite;
}

/*
 * Methods, without a socket.
 */
static const struct ctl_peer root_peer = {.uid = 0, .may_read = true, .may_change = true};
static const struct ctl_peer reader_peer = {.uid = TEST_USER, .may_read = true};
static const struct ctl_peer stranger_peer = {.uid = TEST_USER};

/* Makes the call and returns its reply; NULL when it has become a job. */
static struct json_object *ask(struct ctl_methods *methods, const struct ctl_peer *peer,
			       const char *text, struct ctl_job *ret_job)
{
	struct json_object *reply = NULL;
	struct varlink_call call;
	char json[1024];

	quote(json, text);
	ck_assert_int_eq(varlink_call_parse(&call, json, strlen(json)), 0);
	int result = ctl_methods_call(methods, peer, &call, &reply, ret_job);

	varlink_call_done(&call);
	ck_assert_int_ge(result, 0);
	ck_assert_int_eq(result, reply == NULL);
	return reply;
}

#define CONTROL "{'method':'io.uzswap.Control."
#define SERVICE "{'method':'org.varlink.service."

/* clang-format off */
static const struct refusal {
	const char *call, *error;
	const char *name, *value; /* a parameter of the error */
} refusals[] = {
	{CONTROL "Format'}", VARLINK_ERROR_METHOD_NOT_FOUND,
	 "method", "io.uzswap.Control.Format"},
	{CONTROL "getstatus'}", VARLINK_ERROR_METHOD_NOT_FOUND,
	 "method", "io.uzswap.Control.getstatus"},
	{"{'method':'GetStatus'}", VARLINK_ERROR_METHOD_NOT_FOUND, "method", "GetStatus"},
	{"{'method':''}", VARLINK_ERROR_METHOD_NOT_FOUND, "method", ""},
	{"{'method':'io.uzswap.Other.GetStatus'}", VARLINK_ERROR_INTERFACE_NOT_FOUND,
	 "interface", "io.uzswap.Other"},
	{SERVICE "GetInterfaceDescription','parameters':{'interface':'org.example'}}",
	 VARLINK_ERROR_INTERFACE_NOT_FOUND, "interface", "org.example"},
	{SERVICE "GetInterfaceDescription'}", VARLINK_ERROR_INVALID_PARAMETER,
	 "parameter", "interface"},
	{CONTROL "GetStatus','parameters':{'devise':'swap0'}}", VARLINK_ERROR_INVALID_PARAMETER,
	 "parameter", "devise"},
	{CONTROL "GetStatus','parameters':{'device':0}}", VARLINK_ERROR_INVALID_PARAMETER,
	 "parameter", "device"},
	{CONTROL "GetStatus','parameters':{'device':'swap0\\u0000x'}}",
	 VARLINK_ERROR_INVALID_PARAMETER, "parameter", "device"},
	{CONTROL "GetStatus','upgrade':true}", VARLINK_ERROR_INVALID_PARAMETER,
	 "parameter", "upgrade"},
	{CONTROL "GetStatus','parameters':{'device':'swap9'}}", CTL_ERROR_NO_SUCH_DEVICE,
	 "message", "no device 'swap9'; there is: swap0, swap1"},
	{CONTROL "SwapOn','parameters':{'device':'swap9'}}", CTL_ERROR_NO_SUCH_DEVICE,
	 "device", "swap9"},
	{CONTROL "SwapOff'}", VARLINK_ERROR_INVALID_PARAMETER, "parameter", "device"},
	{CONTROL "Stop','parameters':{'abandon':'yes'}}", VARLINK_ERROR_INVALID_PARAMETER,
	 "parameter", "abandon"},
	{CONTROL "Set','parameters':{'key':'codec'}}", VARLINK_ERROR_INVALID_PARAMETER,
	 "parameter", "value"},
	{CONTROL "Set','parameters':{'key':'codec','value':'lz4'}}", CTL_ERROR_NO_SUCH_DEVICE,
	 "message", "name a device; there is: swap0, swap1"},
	{CONTROL "Set','parameters':{'device':'swap0','key':'size','value':'1'}}",
	 CTL_ERROR_INVALID_VALUE,
	 "message", "the keys are: memory-limit, codec, level, log-level"},
	{CONTROL "Set','parameters':{'device':'swap0','key':'codec','value':'gzip'}}",
	 CTL_ERROR_INVALID_VALUE, "message", "the codecs are: lz4, zstd"},
	{CONTROL "Set','parameters':{'key':'log-level','value':'loud'}}", CTL_ERROR_INVALID_VALUE,
	 "message", "the log levels are: error, warning, notice, info, debug"},
	{CONTROL "Set','parameters':{'device':'swap0','key':'log-level','value':'info'}}",
	 CTL_ERROR_INVALID_VALUE, "key", "log-level"},
};
/* clang-format on */

START_TEST(wrong_calls_are_refused)
{
	const struct refusal *refusal = &refusals[_i];
	struct ctl_fake fake;
	struct ctl_methods methods = {.ops = &ctl_fake_ops, .context = &fake};
	struct ctl_job job;

	ctl_fake_init(&fake);
	struct json_object *reply = ask(&methods, &root_peer, refusal->call, &job);

	ck_assert_ptr_nonnull(reply);
	ck_assert_str_eq(error_of(reply), refusal->error);
	ck_assert_str_eq(reply_text(reply, refusal->name), refusal->value);
	json_object_put(reply);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(a_name_too_long_is_no_device)
{
	struct ctl_fake fake;
	struct ctl_methods methods = {.ops = &ctl_fake_ops, .context = &fake};
	struct ctl_job job;
	char call[1024];

	ctl_fake_init(&fake);
	snprintf(call, sizeof(call), CONTROL "SwapOff','parameters':{'device':'%0500d'}}", 0);
	struct json_object *reply = ask(&methods, &root_peer, call, &job);

	ck_assert_str_eq(error_of(reply), CTL_ERROR_NO_SUCH_DEVICE);
	ck_assert_str_eq(reply_text(reply, "message"),
			 "no device of that name; there is: swap0, swap1");
	json_object_put(reply);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(set_reaches_the_daemon)
{
	struct ctl_fake fake;
	struct ctl_methods methods = {.ops = &ctl_fake_ops, .context = &fake};
	struct ctl_job job;
	char call[256];

	ctl_fake_init(&fake);
	log_set_level(LOG_LEVEL_ERROR);
	json_object_put(ask(
		&methods, &root_peer,
		CONTROL "Set','parameters':{'device':'swap1','key':'memory-limit','value':'1G'}}",
		&job));
	ck_assert_uint_eq(ctl_fake_calls(&fake, call), 1);
	ck_assert_str_eq(call, "set swap1 memory-limit 1G");
	json_object_put(ask(&methods, &root_peer,
			    CONTROL
			    "Set','parameters':{'device':null,'key':'log-level','value':'debug'}}",
			    &job));
	ctl_fake_calls(&fake, call);
	ck_assert_str_eq(call, "set - log-level debug");
	/* With one device there is no doubt which one is meant. */
	fake.device_count = 1;
	json_object_put(ask(&methods, &root_peer,
			    CONTROL "Set','parameters':{'key':'codec','value':'zstd'}}", &job));
	ctl_fake_calls(&fake, call);
	ck_assert_str_eq(call, "set swap0 codec zstd");
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(failures_of_the_daemon_are_told)
{
	static const struct {
		int result;
		const char *text, *error, *message;
	} cases[] = {
		{-EINVAL, "the codecs are: lz4", CTL_ERROR_INVALID_VALUE, "the codecs are: lz4"},
		{-EINVAL, NULL, CTL_ERROR_INVALID_VALUE, "Invalid argument"},
		{-EBUSY, "swapoff runs", CTL_ERROR_BUSY, "swapoff runs"},
		{-ENODEV, NULL, CTL_ERROR_NO_SUCH_DEVICE, "there is no such device"},
		{-ENOMEM, NULL, CTL_ERROR_FAILED, "Cannot allocate memory"},
		{-EIO, "the disk is broken", CTL_ERROR_FAILED, "the disk is broken"},
		{-EINVAL, "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xbe\xe2\x82': cut \xff",
		 CTL_ERROR_INVALID_VALUE, "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xbe?\?': cut ?"},
	};
	struct ctl_fake fake;
	struct ctl_methods methods = {.ops = &ctl_fake_ops, .context = &fake};
	struct ctl_job job;

	ctl_fake_init(&fake);
	log_set_level(LOG_LEVEL_ERROR);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(cases); i++) {
		ctl_fake_script(&fake, cases[i].result, cases[i].text, 0);
		struct json_object *reply =
			ask(&methods, &root_peer,
			    CONTROL "Set','parameters':{'device':'swap0','key':'codec','"
				    "value':'lz4'}}",
			    &job);

		ck_assert_str_eq(error_of(reply), cases[i].error);
		ck_assert_str_eq(reply_text(reply, "message"), cases[i].message);
		if (strcmp(cases[i].error, CTL_ERROR_FAILED) == 0)
			ck_assert_uint_eq(reply_uint(reply, "errno"), (uint64_t)-cases[i].result);
		json_object_put(reply);
	}
	ctl_fake_done(&fake);
}
END_TEST

static void expect_permission(const char *name, void *context)
{
	static const char *const open_to_all[] = {"GetInfo", "GetInterfaceDescription"};
	static const char *const reading[] = {"GetStatus", "List", "GetMetrics"};
	struct ctl_methods *methods = context;
	const struct ctl_peer *peers[] = {&root_peer, &reader_peer, &stranger_peer};
	const char *method = strrchr(name, '.') + 1;
	unsigned allowed = 1;
	char call[128];

	for (size_t i = 0; i < UZ_ARRAY_SIZE(reading); i++)
		if (strcmp(method, reading[i]) == 0)
			allowed = 2;
	for (size_t i = 0; i < UZ_ARRAY_SIZE(open_to_all); i++)
		if (strcmp(method, open_to_all[i]) == 0)
			allowed = 3;
	snprintf(call, sizeof(call), "{'method':'%s','parameters':{'x':1}}", name);
	for (unsigned i = 0; i < UZ_ARRAY_SIZE(peers); i++) {
		struct ctl_job job;
		struct json_object *reply = ask(methods, peers[i], call, &job);

		/*
		 * Who may call it gets as far as the wrong parameter; others not even
		 * there.
		 */
		ck_assert_msg(strcmp(error_of(reply), i < allowed
							      ? VARLINK_ERROR_INVALID_PARAMETER
							      : CTL_ERROR_PERMISSION_DENIED) == 0,
			      "%s by peer %u: %s", name, i, error_of(reply));
		json_object_put(reply);
	}
}

START_TEST(every_method_has_its_permission)
{
	struct ctl_fake fake;
	struct ctl_methods methods = {.ops = &ctl_fake_ops, .context = &fake};

	ctl_fake_init(&fake);
	log_set_level(LOG_LEVEL_ERROR);
	ctl_methods_for_each(expect_permission, &methods);
	ck_assert_uint_eq(ctl_fake_calls(&fake, NULL), 0);
	/* Two of three peers may not change (4 methods), one may not read (3). */
	ck_assert_uint_eq(methods.denied, 2 * 4 + 3);
	ctl_fake_done(&fake);
}
END_TEST

START_TEST(what_the_daemon_lacks_is_not_implemented)
{
	static const char *const changing[] = {"Set", "SwapOn", "SwapOff", "Stop"};
	struct ctl_fake fake;
	struct ctl_ops ops = {.daemon = ctl_fake_ops.daemon, .device = ctl_fake_ops.device};
	struct ctl_methods methods = {.ops = &ops, .context = &fake};
	struct ctl_job job;

	ctl_fake_init(&fake);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(changing); i++) {
		char call[128];

		snprintf(call, sizeof(call), CONTROL "%s'}", changing[i]);
		struct json_object *reply = ask(&methods, &root_peer, call, &job);

		ck_assert_str_eq(error_of(reply), VARLINK_ERROR_METHOD_NOT_IMPLEMENTED);
		json_object_put(reply);
	}
	ctl_fake_done(&fake);
}
END_TEST

Suite *suite_methods(void)
{
	Suite *suite = suite_create("methods");
	TCase *tcase = tcase_create("methods");

	tcase_add_loop_test(tcase, wrong_calls_are_refused, 0, (int)UZ_ARRAY_SIZE(refusals));
	tcase_add_test(tcase, a_name_too_long_is_no_device);
	tcase_add_test(tcase, set_reaches_the_daemon);
	tcase_add_test(tcase, failures_of_the_daemon_are_told);
	tcase_add_test(tcase, every_method_has_its_permission);
	tcase_add_test(tcase, what_the_daemon_lacks_is_not_implemented);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite_varlink());

	srunner_add_suite(runner, suite_methods());
	srunner_add_suite(runner, suite_format());
	srunner_add_suite(runner, suite_server());
	srunner_add_suite(runner, suite_clients());
	srunner_add_suite(runner, suite_tool());
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
