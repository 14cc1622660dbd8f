// SPDX-License-Identifier: MIT
/*
 * Clients that misbehave: none of them may cost another one its answer, or the
 * server its life or its memory.
 */
#include "test_ctl.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/units.h"

#define CONTROL "{'method':'io.uzswap.Control."
#define SERVICE "{'method':'org.varlink.service."

/* Longest that any good client may wait; the tests run on loaded machines, too. */
#define PATIENCE_NS (2 * UZ_NSEC_PER_SEC)

static struct ctl_test test;

static void start(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	test.config.stall_limit_ns = 200 * UZ_NSEC_PER_MSEC;
	ctl_test_start(&test, geteuid() == 0 ? TEST_GROUP : CTL_NO_GROUP);
}

static void stop(void)
{
	ctl_test_stop(&test);
}

/* A good client is served, and soon. */
static void expect_service(void)
{
	uint64_t started_ns = clock_now_ns();
	int fd = client_connect(&test);
	struct json_object *reply = client_ask(fd, CONTROL "GetStatus'}");

	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	close(fd);
	ck_assert_uint_lt(clock_now_ns() - started_ns, PATIENCE_NS);
}

static unsigned count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static const struct {
	const char *bytes;
	size_t length;
} broken[] = {
#define BROKEN(text)               \
	{                          \
		text, sizeof(text) \
	}
	BROKEN("garbage"),
	BROKEN(""),
	BROKEN("{\"method\":"),
	BROKEN("[1,2,3]"),
	BROKEN("{\"parameters\":{}}"),
	BROKEN("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
	BROKEN("\xff\xfe\xfd"),
	BROKEN("{\"method\":\"io.uzswap.Control.List\",\"more\":true,\"oneway\":true}"),
};

START_TEST(garbage_ends_the_connection)
{
	int fd = client_connect(&test);

	/* What came before the garbage is still answered. */
	json_object_put(client_ask(fd, SERVICE "GetInfo'}"));
	ck_assert_int_eq(send(fd, broken[_i].bytes, broken[_i].length, 0),
			 (ssize_t)broken[_i].length);
	client_expect_end(fd);
	close(fd);
	expect_service();
}
END_TEST

START_TEST(a_request_too_long_ends_the_connection)
{
	enum { LONGEST = 64 * 1024 };
	char *bytes = malloc(LONGEST);
	int fd = client_connect(&test);
	int head = snprintf(bytes, LONGEST,
			    "{\"method\":\"org.varlink.service.GetInfo\",\"padding\":\"");

	/* The longest message, its NUL included, is taken ... */
	memset(bytes + head, 'x', (size_t)(LONGEST - head));
	memcpy(bytes + LONGEST - 3, "\"}", 3);
	ck_assert_int_eq(send(fd, bytes, LONGEST, 0), LONGEST);
	struct json_object *reply = client_receive(fd);

	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	/* ... one more byte is not. */
	memcpy(bytes + LONGEST - 3, "x\"}", 3);
	ck_assert_int_eq(send(fd, bytes, LONGEST, MSG_NOSIGNAL), LONGEST);
	client_expect_end(fd);
	close(fd);
	free(bytes);
	expect_service();
}
END_TEST

START_TEST(clients_that_leave_early_do_no_harm)
{
	ck_assert_ptr_eq(signal(SIGPIPE, SIG_DFL), SIG_DFL);
	for (int i = 0; i < 200; i++) {
		int fd = client_connect(&test);

		for (int j = 0; j < 3; j++)
			client_send(fd, CONTROL "GetMetrics'}");
		close(fd);
	}
	expect_service();
}
END_TEST

/*
 * In a child process, as it takes more descriptors than we have: opens
 * connections to the server, `bytes` of a request on each, and keeps them.
 */
static pid_t start_flood(unsigned connections, const char *bytes, size_t length, bool as_nobody,
			 int ready_fd)
{
	pid_t pid = fork();

	if (pid != 0) {
		ck_assert_int_gt(pid, 0);
		return pid;
	}
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	unsigned opened = 0;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", test.directory);
	if (as_nobody &&
	    (setgroups(0, NULL) < 0 || setresgid(TEST_GROUP, TEST_GROUP, TEST_GROUP) < 0 ||
	     setresuid(TEST_USER, TEST_USER, TEST_USER) < 0))
		_exit(1);
	while (opened < connections) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			break;
		/* An older one may be closed by now; then nothing is sent. */
		if (length > 0 && send(fd, bytes, length, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
		    errno != ECONNRESET)
			break;
		opened++;
	}
	if (write(ready_fd, &opened, sizeof(opened)) != sizeof(opened))
		_exit(1);
	pause();
	_exit(0);
}

static unsigned raise_descriptor_limit(void)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return (unsigned)UZ_MIN(limit.rlim_cur, 1u << 20);
}

static void flood(const char *bytes, size_t length, bool as_nobody)
{
	unsigned connections = UZ_MIN(10000u, raise_descriptor_limit() - 100), opened = 0;
	unsigned before = count_descriptors();
	int ready[2];

	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = start_flood(connections, bytes, length, as_nobody, ready[1]);
	struct pollfd wait_ready = {.fd = ready[0], .events = POLLIN};

	/* Good clients come while the flood does, and after it. */
	while (poll(&wait_ready, 1, 1) == 0)
		expect_service();
	ck_assert_int_eq(read(ready[0], &opened, sizeof(opened)), sizeof(opened));
	ck_assert_uint_eq(opened, connections);
	for (int i = 0; i < 20; i++)
		expect_service();
	/* 64 connections are kept, whatever comes; two are the pipe's. */
	ck_assert_uint_le(count_descriptors(), before + 64 + 2);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
}

START_TEST(idle_clients_block_nobody)
{
	flood("", 0, false);
}
END_TEST

START_TEST(half_requests_block_nobody)
{
	static const char half[] = "{\"method\":\"io.uzswap.Con";

	flood(half, sizeof(half) - 1, false);
}
END_TEST

START_TEST(clients_that_never_read_block_nobody)
{
	static const char metrics[] = "{\"method\":\"io.uzswap.Control.GetMetrics\"}";

	flood(metrics, sizeof(metrics), false);
}
END_TEST

START_TEST(another_user_cannot_take_all_places)
{
	enum { MINE = 20 };
	int fds[MINE];

	REQUIRE_ROOT();
	for (int i = 0; i < MINE; i++)
		fds[i] = client_connect(&test);
	flood("", 0, true);
	/* Root's own connections, idle for as long, have kept their places. */
	for (int i = 0; i < MINE; i++) {
		struct json_object *reply = client_ask(fds[i], SERVICE "GetInfo'}");

		ck_assert_str_eq(error_of(reply), "");
		json_object_put(reply);
		close(fds[i]);
	}
}
END_TEST

START_TEST(a_long_call_keeps_its_place)
{
	int caller = client_connect(&test);

	ctl_fake_hold(&test.fake, true);
	client_send(caller, CONTROL "SwapOff','parameters':{'device':'swap0'}}");
	ck_assert(ctl_fake_wait_running(&test.fake, 1));
	flood("", 0, false);
	ctl_fake_hold(&test.fake, false);
	struct json_object *reply = client_receive(caller);

	ck_assert_ptr_nonnull(reply);
	ck_assert_str_eq(error_of(reply), "");
	json_object_put(reply);
	close(caller);
}
END_TEST

START_TEST(slow_readers_are_dropped)
{
	static const char metrics[] = "{\"method\":\"io.uzswap.Control.GetMetrics\"}";
	enum { CALLS = 1000 };
	int slow = client_connect(&test), idle = client_connect(&test);
	char *calls = malloc(CALLS * sizeof(metrics));
	unsigned answered = 0;
	char buffer[4096];
	ssize_t got;

	/* Far more answers than the socket holds: the server must stop at some point. */
	for (int i = 0; i < CALLS; i++)
		memcpy(calls + (size_t)i * sizeof(metrics), metrics, sizeof(metrics));
	ck_assert_int_eq(send(slow, calls, CALLS * sizeof(metrics), MSG_NOSIGNAL),
			 (ssize_t)(CALLS * sizeof(metrics)));
	free(calls);
	expect_service();
	clock_sleep_ns(4 * test.config.stall_limit_ns);
	expect_service();
	while ((got = recv(slow, buffer, sizeof(buffer), 0)) > 0)
		for (ssize_t i = 0; i < got; i++)
			answered += buffer[i] == '\0';
	ck_assert_uint_lt(answered, 100);
	/* Silence is no fault: who waits for nothing is not dropped. */
	json_object_put(client_ask(idle, SERVICE "GetInfo'}"));
	close(idle);
	close(slow);
}
END_TEST

START_TEST(readers_that_take_their_time_get_all)
{
	enum { CALLS = 60 };
	static const char metrics[] = "{\"method\":\"io.uzswap.Control.GetMetrics\"}";
	int fd = client_connect(&test);
	unsigned answered = 0;
	char buffer[16384];

	for (int i = 0; i < CALLS; i++)
		ck_assert_int_eq(send(fd, metrics, sizeof(metrics), MSG_NOSIGNAL),
				 (ssize_t)sizeof(metrics));
	/* In all this takes several times the limit, but never stands still. */
	while (answered < CALLS) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), 0);

		ck_assert_int_gt(got, 0);
		for (ssize_t i = 0; i < got; i++)
			answered += buffer[i] == '\0';
		clock_sleep_ns(10 * UZ_NSEC_PER_MSEC);
	}
	close(fd);
}
END_TEST

START_TEST(two_hundred_unread_streams_do_not_slow_a_call)
{
	int busy = client_connect(&test);
	static const char metrics[] = "{\"method\":\"io.uzswap.Control.GetMetrics\"}";

	ctl_fake_script(&test.fake, 0, NULL, 50);
	client_send(busy, CONTROL "SwapOff','parameters':{'device':'swap0'},'more':true}");
	for (int i = 0; i < 200; i++) {
		int fd = client_connect(&test);

		for (int j = 0; j < 40; j++)
			if (send(fd, metrics, sizeof(metrics), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
		/* Left open, unread, until the process ends. */
	}
	/*
	 * The daemon's own thread reports progress through all this, and is never held
	 * up.
	 */
	uint64_t started_ns = clock_now_ns();

	ck_assert(ctl_fake_wait_running(&test.fake, 0));
	ck_assert_uint_lt(clock_now_ns() - started_ns, PATIENCE_NS);
	expect_service();
	close(busy);
}
END_TEST

START_TEST(a_server_without_descriptors_recovers)
{
	struct rlimit old, none;
	int ready[2], lowest;
	char text[8] = "";

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	pid_t pid = fork();

	/* No check before this: checking allocates, which a forked child must not. */
	if (pid == 0) {
		char reply[16];

		clock_sleep_ns(100 * UZ_NSEC_PER_MSEC);
		if (client_ask_plainly(&test, CONTROL "GetStatus'}", reply, sizeof(reply)) < 0 ||
		    strncmp(reply, "{\"parameters\":", 14) != 0)
			_exit(1);
		_exit(write(ready[1], "served", 7) != 7);
	}
	ck_assert_int_gt(pid, 0);
	lowest = dup(ready[0]);
	close(lowest);
	none = old;
	none.rlim_cur = (rlim_t)lowest;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct pollfd wait_ready = {.fd = ready[0], .events = POLLIN};

	/* accept(2) fails now: the client waits, and the server does not spin. */
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	ck_assert_int_eq(poll(&wait_ready, 1, 600), 0);
	getrusage(RUSAGE_SELF, &after);
	long used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
			before.ru_stime.tv_sec) *
			       1000000 +
		       after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
		       before.ru_stime.tv_usec;

	ck_assert_int_lt(used_us, 100000);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_int_eq(poll(&wait_ready, 1, 5000), 1);
	ck_assert_int_eq(read(ready[0], text, sizeof(text)), 7);
	ck_assert_str_eq(text, "served");
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
}
END_TEST

START_TEST(nothing_leaks)
{
	unsigned before = count_descriptors();

	for (int round = 0; round < 3; round++) {
		struct ctl_test own = {0};

		ctl_test_start(&own, CTL_NO_GROUP);
		for (int i = 0; i < 100; i++) {
			int fd = client_connect(&own);

			if (i % 3 == 0)
				client_send(fd, "garbage");
			else if (i % 3 == 1)
				client_send(fd, CONTROL "GetStatus'}");
			close(fd);
		}
		ctl_test_stop(&own);
	}
	ck_assert_uint_eq(count_descriptors(), before);
}
END_TEST

Suite *suite_clients(void)
{
	Suite *suite = suite_create("clients");
	TCase *tcase = tcase_create("clients");

	tcase_add_checked_fixture(tcase, start, stop);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, garbage_ends_the_connection, 0, (int)UZ_ARRAY_SIZE(broken));
	tcase_add_test(tcase, a_request_too_long_ends_the_connection);
	tcase_add_test(tcase, clients_that_leave_early_do_no_harm);
	tcase_add_test(tcase, idle_clients_block_nobody);
	tcase_add_test(tcase, half_requests_block_nobody);
	tcase_add_test(tcase, clients_that_never_read_block_nobody);
	tcase_add_test(tcase, another_user_cannot_take_all_places);
	tcase_add_test(tcase, a_long_call_keeps_its_place);
	tcase_add_test(tcase, slow_readers_are_dropped);
	tcase_add_test(tcase, readers_that_take_their_time_get_all);
	tcase_add_test(tcase, two_hundred_unread_streams_do_not_slow_a_call);
	tcase_add_test(tcase, a_server_without_descriptors_recovers);
	tcase_add_test(tcase, nothing_leaks);
	suite_add_tcase(suite, tcase);
	return suite;
}
