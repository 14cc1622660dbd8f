/* SPDX-License-Identifier: MIT */
/* For tests of the configuration: loads a text and keeps what was reported. */
#ifndef UZ_TESTS_CONF_FINDINGS_H
#define UZ_TESTS_CONF_FINDINGS_H

#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "conf/conf.h"
#include "conf/conf_keys.h"

#define RAM (8 * UZ_GIB)

/* What the last load reported, as lines: "error f.conf:3:6 text". */
struct findings {
	char lines[128][1024];
	size_t count;
	unsigned errors;
};

static struct findings found;

static void collect(void *context, const struct conf_diagnostic *diagnostic)
{
	struct findings *findings = context;

	ck_assert_uint_lt(findings->count, UZ_ARRAY_SIZE(findings->lines));
	ck_assert(diagnostic->level >= LOG_LEVEL_ERROR &&
		  diagnostic->level <= LOG_LEVEL_DEBUG);
	ck_assert_uint_gt(strlen(diagnostic->text), 0);
	ck_assert(diagnostic->line > 0 || diagnostic->column == 0);
	for (const char *at = diagnostic->text; *at; at++)
		ck_assert_msg(*at >= ' ' && *at <= '~', "unprintable: %s",
			      diagnostic->text);
	if (diagnostic->level == LOG_LEVEL_ERROR)
		findings->errors++;
	snprintf(findings->lines[findings->count++], sizeof(findings->lines[0]),
		 "%s %s:%u:%u %s", log_level_name(diagnostic->level),
		 diagnostic->file ? diagnostic->file : "-", diagnostic->line,
		 diagnostic->column, diagnostic->text);
}

static inline const char *all_findings(void)
{
	static char text[65536];

	text[0] = '\0';
	for (size_t i = 0; i < found.count; i++) {
		strncat(text, found.lines[i], sizeof(text) - strlen(text) - 2);
		strcat(text, "\n");
	}
	return text;
}

/* The finding that starts with `start` and has `part` in it, or NULL. */
static inline const char *finding(const char *start, const char *part)
{
	for (size_t i = 0; i < found.count; i++)
		if (strncmp(found.lines[i], start, strlen(start)) == 0 &&
		    strstr(found.lines[i], part))
			return found.lines[i];
	return NULL;
}

#define ASSERT_FINDING(start, part)                                                     \
	ck_assert_msg(finding(start, part), "no finding '%s'...'%s' among:\n%s", start, \
		      part, all_findings())
#define ASSERT_COUNT(n)                                                       \
	ck_assert_msg(found.count == (n), "%zu findings instead of %zu:\n%s", \
		      found.count, (size_t)(n), all_findings())

static inline struct conf *load_bytes(const char *data, size_t length, bool strict,
				      int expected)
{
	struct conf *conf = NULL;
	int err;

	memset(&found, 0, sizeof(found));
	err = conf_load_memory(&conf, "f.conf", data, length, RAM, strict, collect,
			       &found);
	ck_assert_msg(err == expected, "%d instead of %d for:\n%.200s\n%s", err, expected,
		      data, all_findings());
	ck_assert((err == 0) == (found.errors == 0));
	ck_assert((err == 0) == (conf != NULL));
	return conf;
}

static inline struct conf *load_good(const char *text)
{
	return load_bytes(text, strlen(text), false, 0);
}

static inline void load_bad(const char *text)
{
	load_bytes(text, strlen(text), false, -EINVAL);
}

/* The line "KEY=..." of conf_describe; static. */
static inline const char *described(const struct conf *conf, const char *key)
{
	static char value[128];
	UZ_AUTO_FREE char *text = NULL;
	char start[64], *at;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	ck_assert_int_eq(conf_describe(conf, stream), 0);
	fclose(stream);
	snprintf(start, sizeof(start), "\n%s=", key);
	at = strstr(text, start);
	ck_assert_msg(at, "%s is not described", key);
	at += strlen(start);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n"), at);
	return value;
}

#endif
