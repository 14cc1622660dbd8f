// SPDX-License-Identifier: MIT
/*
 * libFuzzer: any bytes as a configuration file, and as a size expression.
 * Beyond not crashing: a load fails exactly when it reported errors, places lie
 * within the file, messages are printable, and the description of what was
 * loaded is a configuration that means the same.
 *
 *   fuzz_conf -max_len=4096 CORPUS-DIRECTORY
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

struct seen {
	unsigned errors, lines;
};

static void check_diagnostic(void *context, const struct conf_diagnostic *diagnostic)
{
	struct seen *seen = context;

	if (diagnostic->level == LOG_LEVEL_ERROR)
		seen->errors++;
	REQUIRE(diagnostic->text[0] != '\0');
	for (const char *at = diagnostic->text; *at; at++)
		REQUIRE(*at >= ' ' && *at <= '~');
	REQUIRE(diagnostic->line <= seen->lines);
	REQUIRE(diagnostic->line > 0 || diagnostic->column == 0);
}

static struct conf *load(const char *data, size_t length, uint64_t ram_bytes, bool strict)
{
	struct seen seen = {.lines = 1};
	struct conf *conf = NULL;
	int err;

	for (size_t i = 0; i < length; i++)
		seen.lines += data[i] == '\n';
	err = conf_load_memory(&conf, "fuzz.conf", data, length, ram_bytes, strict,
			       check_diagnostic, &seen);
	REQUIRE(err == (seen.errors > 0 ? -EINVAL : 0));
	REQUIRE((conf != NULL) == (err == 0));
	return conf;
}

static void no_change(void *context, const struct conf_change *change)
{
	(void)context;
	fprintf(stderr, "%s %s: %s, %s\n", change->section,
		change->key ? change->key : "",
		change->old_value ? change->old_value : "",
		change->new_value ? change->new_value : "");
}

static void check_description(const struct conf *conf, uint64_t ram_bytes)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	struct conf *again;

	REQUIRE(stream);
	REQUIRE(conf_describe(conf, stream) == 0);
	fclose(stream);
	again = load(text, length, ram_bytes, true);
	REQUIRE(again);
	REQUIRE(conf_diff(conf, again, no_change, NULL) == 0);
	conf_free(again);
	free(text);
}

static void check_size(const char *text, size_t length, uint64_t ram_bytes)
{
	char *expression = strndup(text, length);
	struct conf_remark remark = {.text = ""};
	uint64_t bytes = 0, again = 0;
	char printed[32];

	REQUIRE(expression);
	if (conf_parse_size(expression, ram_bytes, UZ_GIB, &bytes, &remark) < 0) {
		REQUIRE(remark.text[0] != '\0');
		REQUIRE(remark.offset <= strlen(expression));
	} else {
		REQUIRE(bytes <= INT64_MAX);
		snprintf(printed, sizeof(printed), "%" PRIu64, bytes);
		REQUIRE(conf_parse_size(printed, ram_bytes, 0, &again, NULL) == 0);
		REQUIRE(bytes == again);
	}
	free(expression);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	const char *text = (const char *)data;
	uint64_t ram_bytes;
	struct conf *conf;
	uint8_t first;

	if (length == 0)
		return 0;
	first = *data;
	text++;
	length--;
	/* 64 MiB to 128 PiB, some no power of two, and both kinds of load. */
	ram_bytes = (64 * UZ_MIB + (first & 64 ? 12 * UZ_KIB : 0)) << (first & 31);
	conf = load(text, length, ram_bytes, first & 128);
	if (conf)
		check_description(conf, ram_bytes);
	conf_free(conf);
	check_size(text, length, ram_bytes);
	return 0;
}
