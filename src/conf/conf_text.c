// SPDX-License-Identifier: MIT
/* Text helpers. Pure functions; any thread. */
#include "conf/conf_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~';
}

const char *conf_quote(char buffer[CONF_QUOTE_BYTES], const char *text, size_t length)
{
	/* Room for the longest escape, the dots, the closing quote and the terminator. */
	const size_t limit = CONF_QUOTE_BYTES - sizeof("\\xNN...'");
	size_t used = 0;

	buffer[used++] = '\'';
	for (size_t i = 0; i < length; i++) {
		if (used > limit) {
			memcpy(buffer + used, "...", 3);
			used += 3;
			break;
		}
		if (is_plain(text[i])) {
			buffer[used++] = text[i];
		} else {
			static const char hex[] = "0123456789ABCDEF";
			unsigned char byte = (unsigned char)text[i];

			buffer[used++] = '\\';
			buffer[used++] = 'x';
			buffer[used++] = hex[byte >> 4];
			buffer[used++] = hex[byte & 15];
		}
	}
	buffer[used++] = '\'';
	buffer[used] = '\0';
	return buffer;
}

/* Length of the valid sequence at `text`, 0 for none (Unicode 15, table 3-7). */
static size_t utf8_sequence(const unsigned char *text, size_t length)
{
	unsigned char lead = text[0], low = 0x80, high = 0xBF;
	size_t count;

	if (lead < 0x80)
		return 1;
	if (lead >= 0xC2 && lead <= 0xDF)
		count = 2;
	else if (lead >= 0xE0 && lead <= 0xEF)
		count = 3;
	else if (lead >= 0xF0 && lead <= 0xF4)
		count = 4;
	else
		return 0;
	/* No overlong forms, no surrogates, nothing above U+10FFFF. */
	if (lead == 0xE0)
		low = 0xA0;
	else if (lead == 0xED)
		high = 0x9F;
	else if (lead == 0xF0)
		low = 0x90;
	else if (lead == 0xF4)
		high = 0x8F;
	if (count > length || text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < count; i++)
		if ((text[i] & 0xC0) != 0x80)
			return 0;
	return count;
}

size_t conf_utf8_invalid_at(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length) {
		size_t step =
			utf8_sequence((const unsigned char *)text + at, length - at);

		if (step == 0)
			break;
		at += step;
	}
	return at;
}

unsigned conf_utf8_count(const char *text, size_t length)
{
	unsigned count = 0;

	for (size_t i = 0; i < length; i++)
		if (((unsigned char)text[i] & 0xC0) != 0x80)
			count++;
	return count;
}

#define COMPARED_MAX 40 /* longer than any name we have by more than a typing error */

/* Optimal string alignment distance without regard to case; UINT32_MAX for long texts. */
static unsigned distance(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b);
	unsigned rows[3][COMPARED_MAX + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];

	if (a_length > COMPARED_MAX || b_length > COMPARED_MAX)
		return UINT32_MAX;
	memset(rows, 0, sizeof(rows));
	for (unsigned j = 0; j <= b_length; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		int a_char = tolower((unsigned char)a[i - 1]);

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			int b_char = tolower((unsigned char)b[j - 1]);
			unsigned best = above[j - 1] + (a_char != b_char);

			best = UZ_MIN(best, above[j] + 1);
			best = UZ_MIN(best, row[j - 1] + 1);
			if (i > 1 && j > 1 &&
			    a_char == tolower((unsigned char)b[j - 2]) &&
			    tolower((unsigned char)a[i - 2]) == b_char)
				best = UZ_MIN(best, before[j - 2] + 1);
			row[j] = best;
		}
		unsigned *oldest = before;

		before = above;
		above = row;
		row = oldest;
	}
	return above[b_length];
}

void conf_nearest_offer(struct conf_nearest *nearest, const char *name)
{
	/* One error in three characters is a slip; more is another word. */
	unsigned limit = (unsigned)UZ_MAX(strlen(nearest->text), strlen(name)) / 3;
	unsigned this_distance = distance(nearest->text, name);

	if (this_distance > UZ_MAX(limit, 1u))
		return;
	if (nearest->best && this_distance >= nearest->best_distance)
		return;
	nearest->best = name;
	nearest->best_distance = this_distance;
}

const char *conf_nearest_hint(const struct conf_nearest *nearest,
			      char buffer[CONF_HINT_BYTES])
{
	buffer[0] = '\0';
	if (nearest->best)
		snprintf(buffer, CONF_HINT_BYTES, "; did you mean '%s'?", nearest->best);
	return buffer;
}

int conf_remark_set(struct conf_remark *remark, enum log_level level, size_t offset,
		    const char *format, ...)
{
	va_list args;

	if (remark) {
		remark->level = level;
		remark->offset = offset;
		va_start(args, format);
		vsnprintf(remark->text, sizeof(remark->text), format, args);
		va_end(args);
	}
	return level == LOG_LEVEL_ERROR ? -EINVAL : 0;
}
