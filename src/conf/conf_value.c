// SPDX-License-Identifier: MIT
/*
 * Types of values. Each parser checks what can be known from the value alone
 * (and the RAM's size); what depends on other keys is checked when all files
 * have been read. Pure functions; any thread.
 */
#include "conf/conf_value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "conf/conf_size.h"
#include "conf/conf_text.h"

/* ---- words ---- */

struct word {
	const char *name;
	int value;
};

static const struct word bool_words[] = {
	{"yes", 1}, {"no", 0},	{"true", 1}, {"false", 0},
	{"on", 1},  {"off", 0}, {"1", 1},    {"0", 0},
};

int conf_parse_bool(const char *text, bool *ret_value)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(bool_words); i++) {
		if (strcasecmp(text, bool_words[i].name) == 0) {
			*ret_value = bool_words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

static int unknown_word(const char *text, const char *const names[], size_t count,
			struct conf_remark *remark)
{
	struct conf_nearest nearest = {.text = text};
	char hint[CONF_HINT_BYTES];

	for (size_t i = 0; i < count; i++)
		conf_nearest_offer(&nearest, names[i]);
	return conf_remark_set(remark, LOG_LEVEL_ERROR, 0, "is not known%s",
			       conf_nearest_hint(&nearest, hint));
}

static int parse_bool(const struct conf_parse_input *input, const char *text, void *field,
		      struct conf_remark *remark)
{
	static const char *const names[] = {"yes", "no", "true", "false"};

	(void)input;
	if (conf_parse_bool(text, field) < 0)
		return unknown_word(text, names, UZ_ARRAY_SIZE(names), remark);
	return 0;
}

static void print_bool(const void *field, char *buffer)
{
	strcpy(buffer, *(const bool *)field ? "yes" : "no");
}

const struct conf_type conf_type_bool = {
	.bytes = sizeof(bool), .parse = parse_bool, .print = print_bool};

static int parse_tristate(const struct conf_parse_input *input, const char *text,
			  void *field, struct conf_remark *remark)
{
	static const char *const names[] = {"auto", "yes", "no", "true", "false"};
	enum conf_tristate *tristate = field;
	bool value;

	(void)input;
	if (strcasecmp(text, "auto") == 0)
		*tristate = CONF_AUTO;
	else if (conf_parse_bool(text, &value) == 0)
		*tristate = value ? CONF_YES : CONF_NO;
	else
		return unknown_word(text, names, UZ_ARRAY_SIZE(names), remark);
	return 0;
}

static void print_tristate(const void *field, char *buffer)
{
	static const char *const names[] = {
		[CONF_AUTO] = "auto", [CONF_YES] = "yes", [CONF_NO] = "no"};

	strcpy(buffer, names[*(const enum conf_tristate *)field]);
}

const struct conf_type conf_type_tristate = {.bytes = sizeof(enum conf_tristate),
					     .parse = parse_tristate,
					     .print = print_tristate};

static int parse_log_level(const struct conf_parse_input *input, const char *text,
			   void *field, struct conf_remark *remark)
{
	const char *names[LOG_LEVEL_DEBUG - LOG_LEVEL_ERROR + 1];

	(void)input;
	if (log_level_parse(text, field) == 0)
		return 0;
	for (size_t i = 0; i < UZ_ARRAY_SIZE(names); i++)
		names[i] = log_level_name((enum log_level)(LOG_LEVEL_ERROR + i));
	return unknown_word(text, names, UZ_ARRAY_SIZE(names), remark);
}

static void print_log_level(const void *field, char *buffer)
{
	strcpy(buffer, log_level_name(*(const enum log_level *)field));
}

const struct conf_type conf_type_log_level = {.bytes = sizeof(enum log_level),
					      .parse = parse_log_level,
					      .print = print_log_level};

static const char *const transport_names[] = {
	[CONF_TRANSPORT_AUTO] = "auto",
	[CONF_TRANSPORT_UBLK] = "ublk",
	[CONF_TRANSPORT_FUSE] = "fuse",
};

static int parse_transport(const struct conf_parse_input *input, const char *text,
			   void *field, struct conf_remark *remark)
{
	(void)input;
	for (size_t i = 0; i < UZ_ARRAY_SIZE(transport_names); i++) {
		if (strcmp(text, transport_names[i]) == 0) {
			*(enum conf_transport *)field = (enum conf_transport)i;
			return 0;
		}
	}
	return unknown_word(text, transport_names, UZ_ARRAY_SIZE(transport_names),
			    remark);
}

static void print_transport(const void *field, char *buffer)
{
	strcpy(buffer, transport_names[*(const enum conf_transport *)field]);
}

const struct conf_type conf_type_transport = {.bytes = sizeof(enum conf_transport),
					      .parse = parse_transport,
					      .print = print_transport};

static int parse_codec(const struct conf_parse_input *input, const char *text,
		       void *field, struct conf_remark *remark)
{
	const struct codec_info *info = codec_info_by_name(text);
	struct conf_nearest nearest = {.text = text};
	char hint[CONF_HINT_BYTES];

	(void)input;
	if (info) {
		*(enum codec_id *)field = info->id;
		return 0;
	}
	for (int id = CODEC_RAW; id < CODEC_COUNT; id++) {
		info = codec_info_by_id((enum codec_id)id);
		if (info)
			conf_nearest_offer(&nearest, info->name);
	}
	return conf_remark_set(remark, LOG_LEVEL_ERROR, 0, "is not known%s; allowed: %s",
			       conf_nearest_hint(&nearest, hint), codec_names());
}

static void print_codec(const void *field, char *buffer)
{
	const struct codec_info *info = codec_info_by_id(*(const enum codec_id *)field);

	snprintf(buffer, CONF_VALUE_BYTES, "%s", info ? info->name : "");
}

const struct conf_type conf_type_codec = {
	.bytes = sizeof(enum codec_id), .parse = parse_codec, .print = print_codec};

/* ---- numbers ---- */

static int parse_integer(const char *text, int min, int max, int *ret_value,
			 struct conf_remark *remark)
{
	const char *at = text;
	bool negative = *at == '-';
	int64_t value = 0;

	if (negative)
		at++;
	if (!isdigit((unsigned char)*at))
		return conf_remark_set(remark, LOG_LEVEL_ERROR, (size_t)(at - text),
				       "is not an integer");
	for (; isdigit((unsigned char)*at); at++)
		value = UZ_MIN(value * 10 + (*at - '0'), (int64_t)INT_MAX + 1);
	if (*at != '\0')
		return conf_remark_set(remark, LOG_LEVEL_ERROR, (size_t)(at - text),
				       "is not an integer: unexpected %s",
				       CONF_QUOTE(at));
	if (negative)
		value = -value;
	if (value < min || value > max)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, 0, "is outside %d..%d",
				       min, max);
	*ret_value = (int)value;
	return 0;
}

static void print_integer(const void *field, char *buffer)
{
	snprintf(buffer, CONF_VALUE_BYTES, "%d", *(const int *)field);
}

/* The codec's range is checked later: Codec= may stand in another file. */
static int parse_level(const struct conf_parse_input *input, const char *text,
		       void *field, struct conf_remark *remark)
{
	(void)input;
	return parse_integer(text, INT_MIN + 1, INT_MAX, field, remark);
}

const struct conf_type conf_type_level = {
	.bytes = sizeof(int), .parse = parse_level, .print = print_integer};

/* What swapon(2) takes (SWAP_FLAG_PRIO_MASK), and -1 for no priority. */
static int parse_priority(const struct conf_parse_input *input, const char *text,
			  void *field, struct conf_remark *remark)
{
	(void)input;
	return parse_integer(text, -1, 32767, field, remark);
}

const struct conf_type conf_type_priority = {
	.bytes = sizeof(int), .parse = parse_priority, .print = print_integer};

static int parse_boost_factor(const struct conf_parse_input *input, const char *text,
			      void *field, struct conf_remark *remark)
{
	(void)input;
	if (strcmp(text, "keep") == 0) {
		*(int *)field = CONF_KEEP;
		return 0;
	}
	return parse_integer(text, 0, INT_MAX, field, remark);
}

static void print_boost_factor(const void *field, char *buffer)
{
	if (*(const int *)field == CONF_KEEP)
		strcpy(buffer, "keep");
	else
		print_integer(field, buffer);
}

const struct conf_type conf_type_boost_factor = {
	.bytes = sizeof(int), .parse = parse_boost_factor, .print = print_boost_factor};

/* A decimal with at most three places, exact in thousandths. */
static int parse_ratio(const struct conf_parse_input *input, const char *text,
		       void *field, struct conf_remark *remark)
{
	const char *at = text;
	unsigned permille = 0, place = 1000;

	(void)input;
	for (; isdigit((unsigned char)*at); at++)
		permille = UZ_MIN(permille * 10 + (unsigned)(*at - '0') * 1000, 1000000u);
	if (at > text && *at == '.') {
		at++;
		do {
			if (!isdigit((unsigned char)*at))
				return conf_remark_set(
					remark, LOG_LEVEL_ERROR, (size_t)(at - text),
					"a digit must follow the decimal point");
			place /= 10;
			if (place == 0)
				return conf_remark_set(remark, LOG_LEVEL_ERROR,
						       (size_t)(at - text),
						       "has more than three decimals");
			permille += (unsigned)(*at++ - '0') * place;
		} while (*at != '\0');
	}
	if (at == text || *at != '\0')
		return conf_remark_set(remark, LOG_LEVEL_ERROR, (size_t)(at - text),
				       "is not a decimal number%s",
				       *at == ',' ? ": decimals have a point, as in 2.5"
						  : "");
	if (permille < 1000 || permille > 20000)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, 0, "is outside 1.0..20");
	*(unsigned *)field = permille;
	return 0;
}

static void print_ratio(const void *field, char *buffer)
{
	unsigned permille = *(const unsigned *)field;

	snprintf(buffer, CONF_VALUE_BYTES, "%u.%03u", permille / 1000, permille % 1000);
}

const struct conf_type conf_type_ratio = {
	.bytes = sizeof(unsigned), .parse = parse_ratio, .print = print_ratio};

static const struct {
	const char *name;
	uint64_t ns;
} time_units[] = {{"ns", 1},
		  {"us", UZ_NSEC_PER_USEC},
		  {"ms", UZ_NSEC_PER_MSEC},
		  {"s", UZ_NSEC_PER_SEC}};

#define POLL_MAX_NS (10 * UZ_NSEC_PER_MSEC)

static int parse_poll_time(const struct conf_parse_input *input, const char *text,
			   void *field, struct conf_remark *remark)
{
	const char *at = text;
	uint64_t count = 0, unit_ns = 0;

	(void)input;
	/* Saturates far above the maximum and far below an overflow by any unit. */
	for (; isdigit((unsigned char)*at); at++)
		count = UZ_MIN(count * 10 + (uint64_t)(*at - '0'), POLL_MAX_NS + 1);
	if (at == text)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, 0,
				       "does not begin with a number");
	for (size_t i = 0; i < UZ_ARRAY_SIZE(time_units); i++)
		if (strcmp(at, time_units[i].name) == 0)
			unit_ns = time_units[i].ns;
	/* systemd would take a plain number for seconds, others for something else. */
	if (*at == '\0' && count > 0)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, (size_t)(at - text),
				       "has no unit; did you mean '%sus'?", text);
	if (*at != '\0' && unit_ns == 0)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, (size_t)(at - text),
				       "unknown unit %s; units are ns, us, ms, s",
				       CONF_QUOTE(at));
	if (count * unit_ns > POLL_MAX_NS)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, 0, "is longer than 10ms");
	*(uint64_t *)field = count * unit_ns;
	return 0;
}

static void print_poll_time(const void *field, char *buffer)
{
	uint64_t ns = *(const uint64_t *)field;

	for (size_t i = UZ_ARRAY_SIZE(time_units); i > 0; i--) {
		if (ns % time_units[i - 1].ns != 0)
			continue;
		snprintf(buffer, CONF_VALUE_BYTES, "%" PRIu64 "%s",
			 ns / time_units[i - 1].ns,
			 ns == 0 ? "" : time_units[i - 1].name);
		return;
	}
}

const struct conf_type conf_type_poll_time = {
	.bytes = sizeof(uint64_t), .parse = parse_poll_time, .print = print_poll_time};

/* ---- names ---- */

/* The names that groupadd(8) accepts. */
static int parse_group(const struct conf_parse_input *input, const char *text,
		       void *field, struct conf_remark *remark)
{
	size_t length = strlen(text);

	(void)input;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (isalpha(c) || c == '_' ||
		    (i > 0 && (isdigit(c) || c == '-' || c == '.')))
			continue;
		return conf_remark_set(
			remark, LOG_LEVEL_ERROR, i, "%s may not %s a group's name",
			CONF_QUOTE_N(text + i, 1), i == 0 ? "begin" : "stand in");
	}
	if (length > CONF_NAME_MAX)
		return conf_remark_set(remark, LOG_LEVEL_ERROR, CONF_NAME_MAX,
				       "is longer than %d characters", CONF_NAME_MAX);
	memcpy(field, text, length + 1);
	return 0;
}

static void print_group(const void *field, char *buffer)
{
	snprintf(buffer, CONF_VALUE_BYTES, "%s", (const char *)field);
}

const struct conf_type conf_type_group = {.bytes = CONF_NAME_MAX + 1,
					  .may_be_empty = true,
					  .parse = parse_group,
					  .print = print_group};

/* ---- sizes ---- */

/* "did you mean": for a plain number that its author took for another unit. */
static const char *unit_hint(const struct conf_size_result *result, char unit,
			     char buffer[CONF_HINT_BYTES])
{
	buffer[0] = '\0';
	if (result->bare && result->bare_length <= 12)
		snprintf(buffer, CONF_HINT_BYTES,
			 "; plain numbers are bytes: did you mean %.*s%c?",
			 (int)result->bare_length, result->bare, unit);
	return buffer;
}

static int below_minimum(const struct conf_size_result *result, uint64_t minimum_bytes,
			 const char *minimum, char unit, struct conf_remark *remark)
{
	char hint[CONF_HINT_BYTES];

	return conf_remark_set(
		remark, LOG_LEVEL_ERROR, 0,
		"is %" PRIu64 " bytes, below the minimum %" PRIu64 " (%s)%s",
		result->bytes, minimum_bytes, minimum, unit_hint(result, unit, hint));
}

static int parse_plain_size(const struct conf_parse_input *input, const char *text,
			    struct conf_size_result *ret_result,
			    struct conf_remark *remark)
{
	struct conf_size_names names = {.ram_bytes = input->ram_bytes};

	return conf_size_evaluate(text, &names, ret_result, remark);
}

static int parse_device_size(const struct conf_parse_input *input, const char *text,
			     void *field, struct conf_remark *remark)
{
	struct conf_size_result result;
	char hint[CONF_HINT_BYTES];
	int err = parse_plain_size(input, text, &result, remark);

	if (err < 0)
		return err;
	if (result.bytes > 0 && result.bytes < CONF_SIZE_MIN_BYTES)
		return below_minimum(&result, CONF_SIZE_MIN_BYTES,
				     "ten pages; or 0: no device", 'M', remark);
	uint64_t whole = result.bytes / UZ_PAGE_SIZE * UZ_PAGE_SIZE;

	*(uint64_t *)field = whole;
	if (result.bytes > 0 && result.bytes < UZ_MIB)
		return conf_remark_set(
			remark, LOG_LEVEL_WARNING, 0,
			"is only %" PRIu64 " bytes (%" PRIu64 " in whole pages)%s",
			result.bytes, whole, unit_hint(&result, 'M', hint));
	if (whole != result.bytes)
		return conf_remark_set(remark, LOG_LEVEL_NOTICE, 0,
				       "is %" PRIu64
				       " bytes, rounded down to whole pages: %" PRIu64,
				       result.bytes, whole);
	return 0;
}

static void print_bytes(const void *field, char *buffer)
{
	snprintf(buffer, CONF_VALUE_BYTES, "%" PRIu64, *(const uint64_t *)field);
}

const struct conf_type conf_type_device_size = {.bytes = sizeof(uint64_t),
						.is_size = true,
						.parse = parse_device_size,
						.print = print_bytes};

static int parse_memory_limit(const struct conf_parse_input *input, const char *text,
			      void *field, struct conf_remark *remark)
{
	struct conf_size_names names = {
		.ram_bytes = input->ram_bytes,
		.size_use = input->size_known ? CONF_SIZE_KNOWN : CONF_SIZE_PENDING,
		.size_bytes = input->size_bytes,
	};
	struct conf_size_result result;
	int err = conf_size_evaluate(text, &names, &result, remark);

	if (err < 0)
		return err;
	if (result.pending)
		return CONF_PARSE_PENDING;
	if (result.bytes < CONF_MEMORY_LIMIT_MIN_BYTES)
		return below_minimum(&result, CONF_MEMORY_LIMIT_MIN_BYTES, "4M", 'M',
				     remark);
	*(uint64_t *)field = result.bytes / UZ_PAGE_SIZE * UZ_PAGE_SIZE;
	return 0;
}

const struct conf_type conf_type_memory_limit = {.bytes = sizeof(uint64_t),
						 .is_size = true,
						 .parse = parse_memory_limit,
						 .print = print_bytes};

/* More than an eighth of the RAM set aside causes the shortage that it should cure. */
static int above_eighth(const struct conf_parse_input *input,
			const struct conf_size_result *result, struct conf_remark *remark)
{
	return conf_remark_set(remark, LOG_LEVEL_ERROR, 0,
			       "is %" PRIu64
			       " bytes, above the maximum ram / 8 = %" PRIu64,
			       result->bytes, input->ram_bytes / 8);
}

static int parse_relief_reserve(const struct conf_parse_input *input, const char *text,
				void *field, struct conf_remark *remark)
{
	struct conf_size_result result;
	int err = parse_plain_size(input, text, &result, remark);

	if (err < 0)
		return err;
	if (result.bytes > 0 && result.bytes < UZ_MIB)
		return below_minimum(&result, UZ_MIB, "1M; or 0: none", 'M', remark);
	if (result.bytes > input->ram_bytes / 8)
		return above_eighth(input, &result, remark);
	*(uint64_t *)field = result.bytes / UZ_PAGE_SIZE * UZ_PAGE_SIZE;
	return 0;
}

const struct conf_type conf_type_relief_reserve = {.bytes = sizeof(uint64_t),
						   .is_size = true,
						   .parse = parse_relief_reserve,
						   .print = print_bytes};

/* The kernel's admin-guide/sysctl/vm.rst warns of deadlocks below 1024 KiB. */
static int parse_min_free(const struct conf_parse_input *input, const char *text,
			  void *field, struct conf_remark *remark)
{
	struct conf_size_result result;
	int err;

	if (strcmp(text, "keep") == 0) {
		*(uint64_t *)field = 0;
		return 0;
	}
	err = parse_plain_size(input, text, &result, remark);
	if (err < 0)
		return err;
	if (result.bytes < UZ_MIB)
		return below_minimum(&result, UZ_MIB, "1M", 'K', remark);
	if (result.bytes > input->ram_bytes / 8)
		return above_eighth(input, &result, remark);
	*(uint64_t *)field = result.bytes / UZ_KIB * UZ_KIB;
	return 0;
}

static void print_min_free(const void *field, char *buffer)
{
	if (*(const uint64_t *)field == 0)
		strcpy(buffer, "keep");
	else
		print_bytes(field, buffer);
}

const struct conf_type conf_type_min_free = {.bytes = sizeof(uint64_t),
					     .is_size = true,
					     .parse = parse_min_free,
					     .print = print_min_free};
