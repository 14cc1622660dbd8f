// SPDX-License-Identifier: MIT
/* The socket file, the wire format over it, long calls, and permissions. */
#include "test_ctl.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/units.h"
#include "ctl/ctl_interface.h"
#include "ctl/varlink.h"

#define CONTROL "{'method':'io.uzswap.Control."
#define SERVICE "{'method':'org.varlink.service."

static struct ctl_test test;

static void start(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	ctl_test_start(&test, CTL_NO_GROUP);
}

static void stop(void)
{
	ctl_test_stop(&test);
}

/*
 * The wire format.
 */
START_TEST(the_service_describes_itself)
{
	int fd = client_connect(&test);
	struct json_object *info = client_ask(fd, SERVICE "GetInfo','parameters':{}}");

	ck_assert_str_eq(reply_text(info, "vendor"), "uzswap");
	ck_assert_str_eq(reply_text(info, "product"), "uzswapd");
	ck_assert(*reply_text(info, "version"));
	struct json_object *interfaces = member(member(info, "parameters"), "interfaces");

	ck_assert_uint_eq(json_object_array_length(interfaces), 2);
	for (size_t i = 0; i < 2; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(interfaces, i));
		char call[256], first[64];

		snprintf(call, sizeof(call),
			 SERVICE "GetInterfaceDescription','parameters':{'interface':'%s'}}", name);
		struct json_object *reply = client_ask(fd, call);

		snprintf(first, sizeof(first), "\ninterface %s\n", name);
		ck_assert_ptr_nonnull(strstr(reply_text(reply, "description"), first));
		json_object_put(reply);
	}
	json_object_put(info);
	close(fd);
}
END_TEST

START_TEST(bytes_may_come_one_by_one)
{
	static const char call[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
	int fd = client_connect(&test);

	for (size_t i = 0; i < sizeof(call); i++)
		ck_assert_int_eq(send(fd, &call[i], 1, 0), 1);
	struct json_object *reply = client_receive(fd);

	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	close(fd);
}
END_TEST

START_TEST(calls_in_one_packet_are_answered_in_order)
{
	enum { CALLS = 500 };
	int fd = client_connect(&test);
	size_t size = CALLS * 64, used = 0;
	char *packet = malloc(size);

	for (int i = 0; i < CALLS; i++) {
		used += (size_t)snprintf(packet + used, size - used,
					 "{\"method\":\"io.uzswap.Control.M%d\"}", i) +
			1;
	}
	ck_assert_int_eq(send(fd, packet, used, 0), (ssize_t)used);
	for (int i = 0; i < CALLS; i++) {
		struct json_object *reply = client_receive(fd);
		char expected[64];

		snprintf(expected, sizeof(expected), "io.uzswap.Control.M%d", i);
		ck_assert_str_eq(reply_text(reply, "method"), expected);
		json_object_put(reply);
	}
	free(packet);
	close(fd);
}
END_TEST

START_TEST(a_client_may_shut_down_its_side_early)
{
	int fd = client_connect(&test);

	client_send(fd, CONTROL "GetMetrics'}");
	client_send(fd, CONTROL "SwapOn','parameters':{'device':'swap0'}}");
	client_send(fd, CONTROL "List'}");
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
	for (int i = 0; i < 3; i++) {
		struct json_object *reply = client_receive(fd);

		ck_assert_str_eq(error_of(reply), "");
		json_object_put(reply);
	}
	client_expect_end(fd);
	close(fd);
}
END_TEST

START_TEST(oneway_calls_have_no_reply)
{
	int fd = client_connect(&test);
	char call[256];

	client_send(fd, CONTROL "Set','parameters':{'device':'swap0','key':'codec',"
				"'value':'zstd'},'oneway':true}");
	client_send(fd, CONTROL "Nonsense','oneway':true}");
	client_send(fd, CONTROL "SwapOff','parameters':{'device':'swap1'},'oneway':true}");
	struct json_object *reply = client_ask(fd, SERVICE "GetInfo'}");

	/* The first reply is that of the first call that wants one. */
	ck_assert_str_eq(reply_text(reply, "vendor"), "uzswap");
	json_object_put(reply);
	ck_assert(ctl_fake_wait_running(&test.fake, 0));
	while (ctl_fake_calls(&test.fake, call) < 2)
		clock_sleep_ns(UZ_NSEC_PER_MSEC);
	ck_assert_str_eq(call, "swapoff swap1");
	close(fd);
}
END_TEST

START_TEST(a_oneway_client_may_leave_at_once)
{
	char call[256];
	int fd = client_connect(&test);

	client_send(fd, CONTROL "Set','parameters':{'device':'swap0','key':'codec',"
				"'value':'zstd'},'oneway':true}");
	close(fd);
	for (int i = 0; i < 5000 && ctl_fake_calls(&test.fake, call) == 0; i++)
		clock_sleep_ns(UZ_NSEC_PER_MSEC);
	ck_assert_str_eq(call, "set swap0 codec zstd");
}
END_TEST

START_TEST(more_does_not_multiply_short_calls)
{
	int fd = client_connect(&test);
	struct json_object *reply = client_ask(fd, CONTROL "List','more':true}"), *continues;

	ck_assert(!json_object_object_get_ex(reply, "continues", &continues));
	json_object_put(reply);
	reply = client_ask(fd, SERVICE "GetInfo','more':true}");
	ck_assert_str_eq(reply_text(reply, "vendor"), "uzswap");
	json_object_put(reply);
	close(fd);
}
END_TEST

START_TEST(status_of_one_device)
{
	int fd = client_connect(&test);
	struct json_object *reply =
		client_ask(fd, CONTROL "GetStatus','parameters':{'device':'swap1'}}");
	struct json_object *devices = member(member(reply, "parameters"), "devices");

	ck_assert_uint_eq(json_object_array_length(devices), 1);
	ck_assert_str_eq(
		json_object_get_string(member(json_object_array_get_idx(devices, 0), "name")),
		"swap1");
	json_object_put(reply);
	close(fd);
}
END_TEST

/*
 * Long calls.
 */
START_TEST(swapoff_reports_progress)
{
	int fd = client_connect(&test), replies = 0;
	uint64_t last_bytes = UINT64_MAX;
	bool continues = true;

	ctl_fake_script(&test.fake, 0, NULL, 20);
	client_send(fd, CONTROL "SwapOff','parameters':{'device':'swap0'},'more':true}");
	while (continues) {
		struct json_object *reply = client_receive(fd), *flag = NULL;

		ck_assert_str_eq(error_of(reply), "");
		json_object_object_get_ex(reply, "continues", &flag);
		continues = json_object_get_boolean(flag);
		ck_assert_uint_lt(reply_uint(reply, "remaining_bytes"), last_bytes);
		last_bytes = reply_uint(reply, "remaining_bytes");
		json_object_put(reply);
		replies++;
	}
	ck_assert_uint_eq(last_bytes, 0);
	ck_assert_int_gt(replies, 1);
	/* Without "more" there is the last reply only. */
	struct json_object *reply =
		client_ask(fd, CONTROL "SwapOff','parameters':{'device':'swap0'}}");

	ck_assert_uint_eq(reply_uint(reply, "remaining_bytes"), 0);
	json_object_put(reply);
	reply = client_ask(fd, SERVICE "GetInfo'}");
	ck_assert_str_eq(reply_text(reply, "vendor"), "uzswap");
	json_object_put(reply);
	close(fd);
}
END_TEST

START_TEST(slow_readers_lose_progress_but_no_result)
{
	enum { REPORTS = 600 };
	int fd = client_connect(&test), replies = 0;
	uint64_t last_bytes = UINT64_MAX;
	bool continues = true;

	/* More replies than the socket holds, and nobody reads them until all is over. */
	ctl_fake_script(&test.fake, 0, NULL, REPORTS);
	client_send(fd, CONTROL "SwapOff','parameters':{'device':'swap0'},'more':true}");
	ck_assert(ctl_fake_wait_running(&test.fake, 1));
	ck_assert(ctl_fake_wait_running(&test.fake, 0));
	while (continues) {
		struct json_object *reply = client_receive(fd), *flag = NULL;

		json_object_object_get_ex(reply, "continues", &flag);
		continues = json_object_get_boolean(flag);
		ck_assert_uint_lt(reply_uint(reply, "remaining_bytes"), last_bytes);
		last_bytes = reply_uint(reply, "remaining_bytes");
		json_object_put(reply);
		replies++;
	}
	ck_assert_uint_eq(last_bytes, 0);
	/* Some were left out, so the path was taken that this is about. */
	ck_assert_int_lt(replies, REPORTS);
	json_object_put(client_ask(fd, SERVICE "GetInfo'}"));
	close(fd);
}
END_TEST

START_TEST(one_long_call_runs_at_a_time)
{
	int first = client_connect(&test), second = client_connect(&test);
	struct json_object *reply;

	ctl_fake_hold(&test.fake, true);
	client_send(first, CONTROL "SwapOff','parameters':{'device':'swap0'}}");
	ck_assert(ctl_fake_wait_running(&test.fake, 1));
	reply = client_ask(second, CONTROL "SwapOff','parameters':{'device':'swap1'}}");
	ck_assert_str_eq(error_of(reply), CTL_ERROR_BUSY);
	json_object_put(reply);
	reply = client_ask(second, CONTROL "Stop','more':true}");
	ck_assert_str_eq(error_of(reply), CTL_ERROR_BUSY);
	json_object_put(reply);
	/* Everything else goes on meanwhile. */
	reply = client_ask(second, CONTROL "GetStatus'}");
	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	reply = client_ask(second, CONTROL "Set','parameters':{'device':'swap1','key':'codec',"
					   "'value':'lz4'}}");
	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	/* The caller's next calls wait for their turn. */
	client_send(first, SERVICE "GetInfo'}");
	ctl_fake_hold(&test.fake, false);
	reply = client_receive(first);
	ck_assert_uint_eq(reply_uint(reply, "remaining_bytes"), 0);
	json_object_put(reply);
	reply = client_receive(first);
	ck_assert_str_eq(reply_text(reply, "vendor"), "uzswap");
	json_object_put(reply);
	reply = client_ask(second, CONTROL "SwapOff','parameters':{'device':'swap1'}}");
	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	ck_assert_uint_eq(ctl_fake_most_running(&test.fake), 1);
	close(first);
	close(second);
}
END_TEST

START_TEST(a_call_outlives_its_client)
{
	int fd = client_connect(&test);

	ctl_fake_script(&test.fake, 0, NULL, 5);
	ctl_fake_hold(&test.fake, true);
	client_send(fd, CONTROL "SwapOff','parameters':{'device':'swap0'},'more':true}");
	ck_assert(ctl_fake_wait_running(&test.fake, 1));
	close(fd);
	/* A new client may get the place of the old one, but not its reply. */
	fd = client_connect(&test);
	ctl_fake_hold(&test.fake, false);
	ck_assert(ctl_fake_wait_running(&test.fake, 0));
	struct json_object *reply = client_ask(fd, SERVICE "GetInfo'}");

	ck_assert_str_eq(reply_text(reply, "vendor"), "uzswap");
	json_object_put(reply);
	do {
		reply = client_ask(fd, CONTROL "SwapOn','parameters':{'device':'swap0'}}");
		bool busy = strcmp(error_of(reply), CTL_ERROR_BUSY) == 0;

		json_object_put(reply);
		if (!busy)
			break;
		clock_sleep_ns(UZ_NSEC_PER_MSEC);
	} while (true);
	ck_assert_uint_eq(ctl_fake_calls(&test.fake, NULL), 2);
	close(fd);
}
END_TEST

START_TEST(failures_of_long_calls_are_told)
{
	const char *text = "not enough memory to take 3 GiB back";
	int fd = client_connect(&test);

	ctl_fake_script(&test.fake, -ENOMEM, text, 0);
	struct json_object *reply =
		client_ask(fd, CONTROL "SwapOff','parameters':{'device':'swap0'},'more':true}");

	ck_assert_str_eq(error_of(reply), CTL_ERROR_FAILED);
	ck_assert_str_eq(reply_text(reply, "message"), text);
	ck_assert_uint_eq(reply_uint(reply, "errno"), ENOMEM);
	json_object_put(reply);
	close(fd);
}
END_TEST

static void *free_server(void *argument)
{
	ctl_server_free(argument);
	return NULL;
}

START_TEST(the_reply_to_stop_arrives)
{
	struct ctl_test own = {0};
	pthread_t thread;
	char call[256];

	ctl_test_start(&own, CTL_NO_GROUP);
	int fd = client_connect(&own), idle = client_connect(&own);

	ctl_fake_hold(&own.fake, true);
	client_send(fd, CONTROL "Stop','parameters':{'abandon':true}}");
	ck_assert(ctl_fake_wait_running(&own.fake, 1));
	ctl_fake_calls(&own.fake, call);
	ck_assert_str_eq(call, "stop abandon");
	/*
	 * The daemon's main thread ends the server while the call is still running, and
	 * the ctl thread is busy elsewhere until both are over.
	 */
	ctl_fake_delay(&own.fake, 300 * UZ_NSEC_PER_MSEC);
	client_send(idle, CONTROL "List'}");
	clock_sleep_ns(50 * UZ_NSEC_PER_MSEC);
	ck_assert_int_eq(pthread_create(&thread, NULL, free_server, own.server), 0);
	clock_sleep_ns(20 * UZ_NSEC_PER_MSEC);
	ctl_fake_hold(&own.fake, false);
	struct json_object *reply = client_receive(fd);

	ck_assert_ptr_nonnull(reply);
	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	client_expect_end(fd);
	json_object_put(client_receive(idle));
	client_expect_end(idle);
	pthread_join(thread, NULL);
	own.server = NULL;
	ctl_test_stop(&own);
	close(fd);
	close(idle);
}
END_TEST

/*
 * The socket file.
 */
static void expect_socket(const char *directory, mode_t mode, gid_t group)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/control", directory);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, mode);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_uint_eq(st.st_gid, group);
	snprintf(path, sizeof(path), "%s/.control.new", directory);
	ck_assert_int_eq(lstat(path, &st), -1);
}

START_TEST(the_umask_does_not_change_the_mode)
{
	static const mode_t umasks[] = {0, 0022, 0077, 0777};
	mode_t old = umask(0);

	for (size_t i = 0; i < UZ_ARRAY_SIZE(umasks); i++) {
		struct ctl_test own = {0};

		umask(umasks[i]);
		ctl_test_start(&own, CTL_NO_GROUP);
		expect_socket(own.directory, 0600, getegid());
		ctl_test_stop(&own);
		if (geteuid() != 0)
			continue;
		ctl_test_start(&own, TEST_GROUP);
		expect_socket(own.directory, 0660, TEST_GROUP);
		ctl_test_stop(&own);
	}
	umask(old);
}
END_TEST

START_TEST(a_live_socket_is_refused)
{
	struct ctl_server *second = NULL;
	int fd = client_connect(&test);

	ck_assert_int_eq(ctl_server_new(&second, &test.config), -EADDRINUSE);
	ck_assert_ptr_null(second);
	/* The first one has not noticed. */
	json_object_put(client_ask(fd, SERVICE "GetInfo'}"));
	close(fd);
	fd = client_connect(&test);
	json_object_put(client_ask(fd, SERVICE "GetInfo'}"));
	close(fd);
}
END_TEST

START_TEST(a_stale_socket_is_replaced)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ctl_test own = {0};
	char copy[128];

	ctl_test_start(&own, CTL_NO_GROUP);
	ctl_server_free(own.server);
	/*
	 * What a killed daemon leaves: a socket that nobody listens on, and a half-made
	 * one.
	 */
	for (int i = 0; i < 2; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", own.directory,
			 i == 0 ? "control" : ".control.new");
		ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		close(fd);
	}
	ck_assert_int_eq(ctl_server_new(&own.server, &own.config), 0);
	expect_socket(own.directory, 0600, getegid());
	int fd = client_connect(&own);

	json_object_put(client_ask(fd, SERVICE "GetInfo'}"));
	close(fd);
	/* A later daemon's socket in the same place is not ours to remove. */
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", own.directory);
	snprintf(copy, sizeof(copy), "%s/other", own.directory);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(rename(address.sun_path, copy), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ctl_server_free(own.server);
	own.server = NULL;
	ck_assert_int_eq(unlink(address.sun_path), 0);
	ck_assert_int_eq(unlink(copy), 0);
	close(fd);
	ctl_test_stop(&own);
}
END_TEST

START_TEST(other_obstacles_are_told)
{
	struct ctl_test own = {0};
	struct ctl_server *server = NULL;
	struct ctl_config config;
	char path[128], deep[300];

	ctl_test_start(&own, CTL_NO_GROUP);
	ctl_server_free(own.server);
	own.server = NULL;
	config = own.config;
	snprintf(path, sizeof(path), "%s/control", own.directory);
	FILE *file = fopen(path, "w");

	fclose(file);
	ck_assert_int_eq(ctl_server_new(&server, &config), -EEXIST);
	ck_assert_int_eq(unlink(path), 0);
	memset(deep, 'x', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	config.runtime_dir = deep;
	ck_assert_int_eq(ctl_server_new(&server, &config), -ENAMETOOLONG);
	config.runtime_dir = "/nonexistent/uzswap";
	ck_assert_int_eq(ctl_server_new(&server, &config), -ENOENT);
	ck_assert_ptr_null(server);
	ctl_test_stop(&own);
}
END_TEST

/*
 * Permissions: real processes of other users.
 */
enum identity {
	STRANGER,     /* nobody, in no group of interest */
	MEMBER,	      /* nobody, with the statistics group as its own */
	SECOND_GROUP, /* nobody, with the statistics group among its other groups */
};

static int become(enum identity identity)
{
	const gid_t other = 65533, supplementary = TEST_GROUP;

	if (setgroups(identity == SECOND_GROUP, &supplementary) < 0)
		return -1;
	gid_t gid = identity == MEMBER ? TEST_GROUP : other;

	return setresgid(gid, gid, gid) < 0 || setresuid(TEST_USER, TEST_USER, TEST_USER) < 0 ? -1
											      : 0;
}

/* What a child of that identity has met. */
struct answer {
	int err;	 /* of connect(2) */
	char start[128]; /* of the reply */
};

/*
 * Asks as a process of that identity. `ret_error`: the name of the reply's error,
 * "" for none, or "connect: ..." when it could not connect.
 */
static void ask_as(const struct ctl_test *of, enum identity identity, const char *call,
		   char ret_error[128])
{
	struct answer answer = {0};
	int pipe_fds[2], status;

	ck_assert_int_eq(pipe(pipe_fds), 0);
	pid_t pid = fork();

	/* No check before this: checking allocates, which a forked child must not. */
	if (pid == 0) {
		if (become(identity) < 0)
			_exit(1);
		answer.err = client_ask_plainly(of, call, answer.start, sizeof(answer.start));
		_exit(write(pipe_fds[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(read(pipe_fds[0], &answer, sizeof(answer)), sizeof(answer));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	if (answer.err < 0)
		snprintf(ret_error, 128, "connect: %s", strerror(-answer.err));
	else if (strncmp(answer.start, "{\"error\":\"", 10) == 0)
		snprintf(ret_error, 128, "%.*s", (int)strcspn(answer.start + 10, "\""),
			 answer.start + 10);
	else if (strncmp(answer.start, "{\"parameters\":", 14) == 0)
		ret_error[0] = '\0';
	else
		ck_abort_msg("no reply: %s", answer.start);
}

START_TEST(the_group_may_read_and_nothing_else)
{
	static const enum identity members[] = {MEMBER, SECOND_GROUP};
	static const char *const reading[] = {
		CONTROL "GetStatus'}",
		CONTROL "List'}",
		CONTROL "GetMetrics'}",
		SERVICE "GetInfo'}",
	};
	static const char *const changing[] = {
		CONTROL "Set','parameters':{'device':'swap0','key':'codec','value':'lz4'}}",
		CONTROL "SwapOn','parameters':{'device':'swap0'}}",
		CONTROL "SwapOff','parameters':{'device':'swap0'},'more':true}",
		CONTROL "Stop'}",
	};
	struct ctl_test own = {0};
	char error[128];

	REQUIRE_ROOT();
	ctl_test_start(&own, TEST_GROUP);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(members); i++) {
		for (size_t j = 0; j < UZ_ARRAY_SIZE(reading); j++) {
			ask_as(&own, members[i], reading[j], error);
			ck_assert_str_eq(error, "");
		}
		for (size_t j = 0; j < UZ_ARRAY_SIZE(changing); j++) {
			ask_as(&own, members[i], changing[j], error);
			ck_assert_str_eq(error, CTL_ERROR_PERMISSION_DENIED);
		}
	}
	ask_as(&own, STRANGER, reading[0], error);
	ck_assert_str_eq(error, "connect: Permission denied");
	ck_assert_uint_eq(ctl_fake_calls(&own.fake, NULL), 0);
	ctl_test_stop(&own);
}
END_TEST

START_TEST(credentials_count_even_when_the_file_is_open_to_all)
{
	struct ctl_test own = {0};
	char path[128], error[128];

	REQUIRE_ROOT();
	ctl_test_start(&own, TEST_GROUP);
	snprintf(path, sizeof(path), "%s/control", own.directory);
	ck_assert_int_eq(chmod(path, 0666), 0);
	ask_as(&own, STRANGER, CONTROL "GetStatus'}", error);
	ck_assert_str_eq(error, CTL_ERROR_PERMISSION_DENIED);
	ask_as(&own, STRANGER, CONTROL "Stop'}", error);
	ck_assert_str_eq(error, CTL_ERROR_PERMISSION_DENIED);
	ask_as(&own, MEMBER, CONTROL "GetStatus'}", error);
	ck_assert_str_eq(error, "");
	ctl_test_stop(&own);

	/* Without a group nobody but root may, whatever group somebody is in. */
	ctl_test_start(&own, CTL_NO_GROUP);
	snprintf(path, sizeof(path), "%s/control", own.directory);
	ask_as(&own, MEMBER, CONTROL "GetStatus'}", error);
	ck_assert_str_eq(error, "connect: Permission denied");
	ck_assert_int_eq(chmod(path, 0666), 0);
	ask_as(&own, MEMBER, CONTROL "GetStatus'}", error);
	ck_assert_str_eq(error, CTL_ERROR_PERMISSION_DENIED);
	ctl_test_stop(&own);
}
END_TEST

Suite *suite_server(void)
{
	Suite *suite = suite_create("server");
	TCase *wire = tcase_create("wire");

	tcase_add_checked_fixture(wire, start, stop);
	tcase_set_timeout(wire, 30);
	tcase_add_test(wire, the_service_describes_itself);
	tcase_add_test(wire, bytes_may_come_one_by_one);
	tcase_add_test(wire, calls_in_one_packet_are_answered_in_order);
	tcase_add_test(wire, a_client_may_shut_down_its_side_early);
	tcase_add_test(wire, oneway_calls_have_no_reply);
	tcase_add_test(wire, a_oneway_client_may_leave_at_once);
	tcase_add_test(wire, more_does_not_multiply_short_calls);
	tcase_add_test(wire, status_of_one_device);
	suite_add_tcase(suite, wire);
	TCase *calls = tcase_create("long calls");

	tcase_add_checked_fixture(calls, start, stop);
	tcase_set_timeout(calls, 30);
	tcase_add_test(calls, swapoff_reports_progress);
	tcase_add_test(calls, slow_readers_lose_progress_but_no_result);
	tcase_add_test(calls, one_long_call_runs_at_a_time);
	tcase_add_test(calls, a_call_outlives_its_client);
	tcase_add_test(calls, failures_of_long_calls_are_told);
	tcase_add_test(calls, the_reply_to_stop_arrives);
	suite_add_tcase(suite, calls);
	TCase *file = tcase_create("socket file");

	tcase_add_checked_fixture(file, start, stop);
	tcase_add_test(file, the_umask_does_not_change_the_mode);
	tcase_add_test(file, a_live_socket_is_refused);
	tcase_add_test(file, a_stale_socket_is_replaced);
	tcase_add_test(file, other_obstacles_are_told);
	suite_add_tcase(suite, file);
	TCase *permissions = tcase_create("permissions");

	tcase_add_checked_fixture(permissions, start, stop);
	tcase_set_timeout(permissions, 60);
	tcase_add_test(permissions, the_group_may_read_and_nothing_else);
	tcase_add_test(permissions, credentials_count_even_when_the_file_is_open_to_all);
	suite_add_tcase(suite, permissions);
	return suite;
}
