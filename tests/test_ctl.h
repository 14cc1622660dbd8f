/* SPDX-License-Identifier: MIT */
/* What the files of the ctl tests share: a running server, and a plain client. */
#ifndef UZ_TESTS_TEST_CTL_H
#define UZ_TESTS_TEST_CTL_H

#include <check.h>
#include <sys/types.h>

#include "ctl_fake.h"

struct json_object;

Suite *suite_varlink(void);
Suite *suite_methods(void);
Suite *suite_format(void);
Suite *suite_server(void);
Suite *suite_clients(void);
Suite *suite_tool(void);

/* A server with the fake daemon behind it, in a directory of its own. */
struct ctl_test {
	struct ctl_fake fake;
	char directory[64];
	struct ctl_config config;
	struct ctl_server *server;
};

/* The members of this group may read in tests: nogroup, as nobody is one of them. */
#define TEST_GROUP 65534
#define TEST_USER  65534

/* Fails the test when the server does not start. `group`: CTL_NO_GROUP, or TEST_GROUP. */
void ctl_test_start(struct ctl_test *test, gid_t group);
void ctl_test_stop(struct ctl_test *test);

/* Connects. Fails the test when that is not possible. */
int client_connect(const struct ctl_test *test);

/* Copies JSON that is written with single quotes, for the sake of C, with real ones. */
void quote(char *ret_json, const char *text);

/* Sends a message: the JSON text, quoted so, and its NUL. */
void client_send(int fd, const char *text);

/* The next reply; NULL at the connection's end. Fails the test after ten seconds. */
struct json_object *client_receive(int fd);

/* One call and its reply, which must come. */
struct json_object *client_ask(int fd, const char *text);

/*
 * For a forked child, which may use system calls only, as another thread of ours
 * may have held a lock at the fork: connects, makes one call and takes the start
 * of its reply, with a NUL. Returns 0, or -errno when it cannot connect.
 */
int client_ask_plainly(const struct ctl_test *test, const char *text, char *ret_reply, size_t size);

/* Fails the test unless the connection ends without another byte. */
void client_expect_end(int fd);

/* "io.uzswap.Control.Busy", or "" when the reply is no error. */
const char *error_of(struct json_object *reply);

/* A string or number of the reply's parameters. */
const char *reply_text(struct json_object *reply, const char *name);
uint64_t reply_uint(struct json_object *reply, const char *name);

/* object->name, which must be there. */
struct json_object *member(struct json_object *object, const char *name);

/* Skips the rest of the test, with the reason, unless root runs it. */
#define REQUIRE_ROOT()                                                 \
	do {                                                           \
		if (geteuid() != 0) {                                  \
			printf("%s: skipped: needs root\n", __func__); \
			return;                                        \
		}                                                      \
	} while (0)

#endif
