/* SPDX-License-Identifier: MIT */
/* Text helpers of the configuration: quoting for messages, UTF-8, nearest names. */
#ifndef UZ_CONF_CONF_TEXT_H
#define UZ_CONF_CONF_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"

/*
 * Text as it may stand in a message: in single quotes, anything but printable
 * ASCII as \xNN (no escape sequence or bidirectional mark of a hostile file
 * reaches a terminal), shortened with "...". Returns `buffer`.
 */
#define CONF_QUOTE_BYTES 64
const char *conf_quote(char buffer[CONF_QUOTE_BYTES], const char *text, size_t length);

/* The same in a buffer that lives until the end of the enclosing block. */
#define CONF_QUOTE_N(text, length) conf_quote((char[CONF_QUOTE_BYTES]){0}, text, length)
#define CONF_QUOTE(text)	   CONF_QUOTE_N(text, strlen(text))

/* Offset of the first byte that is not part of valid UTF-8; `length` when all are. */
size_t conf_utf8_invalid_at(const char *text, size_t length);

/* Characters in `length` bytes. What is not UTF-8 is counted somehow. */
unsigned conf_utf8_count(const char *text, size_t length);

/* Looks for the name that was probably meant. Start with a zeroed `best`. */
struct conf_nearest {
	const char *text; /* what was written */
	const char *best; /* NULL: nothing is near enough */
	unsigned best_distance;
};

/* Considers one candidate. Letter case does not count; swapped neighbours count once. */
void conf_nearest_offer(struct conf_nearest *nearest, const char *name);

/* "; did you mean 'X'?" in `buffer`, or "" when nothing is near. Returns `buffer`. */
#define CONF_HINT_BYTES 64
const char *conf_nearest_hint(const struct conf_nearest *nearest,
			      char buffer[CONF_HINT_BYTES]);

/*
 * Fills in a remark (NULL: drops it). Returns -EINVAL for LOG_LEVEL_ERROR, else
 * 0, so that a parser can end with it.
 */
int conf_remark_set(struct conf_remark *remark, enum log_level level, size_t offset,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
