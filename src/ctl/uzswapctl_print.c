// SPDX-License-Identifier: MIT
/* Formatting of single figures. Pure, but for the locale's character set. */
#include "ctl/uzswapctl_print.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

static const char *micro = "u";
static bool bold;

void print_init(void)
{
	const char *terminal = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");

	/* Only the character set: numbers keep their dots. */
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
		micro = "\xc2\xb5";
	bold = isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

/* Three significant digits: 1.23, 12.3, 123 and, below 1024, 1023. */
static void print_three_digits(char *text, size_t size, double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(text, size, "%.*f %s", decimals, value, unit);
}

void print_size(char ret_text[PRINT_BYTES], uint64_t bytes, bool exact)
{
	static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
					    "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (exact || bytes < 1024) {
		snprintf(ret_text, PRINT_BYTES, "%" PRIu64 " B", bytes);
		return;
	}
	/* What would be shown as 1024 of a unit is 1.00 of the next. */
	while (value >= 1023.5 && unit + 1 < UZ_ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	print_three_digits(ret_text, PRINT_BYTES, value, units[unit]);
}

void print_duration(char ret_text[PRINT_BYTES], uint64_t ns, bool exact)
{
	char unit[8];

	if (exact || ns < 1000) {
		snprintf(ret_text, PRINT_BYTES, "%" PRIu64 " ns", ns);
	} else if ((double)ns < 999.5e3) {
		snprintf(unit, sizeof(unit), "%ss", micro);
		print_three_digits(ret_text, PRINT_BYTES, (double)ns / 1e3, unit);
	} else if ((double)ns < 999.5e6) {
		print_three_digits(ret_text, PRINT_BYTES, (double)ns / 1e6, "ms");
	} else {
		print_three_digits(ret_text, PRINT_BYTES, (double)ns / 1e9, "s");
	}
}

void print_uptime(char ret_text[PRINT_BYTES], uint64_t ns)
{
	uint64_t seconds = ns / UZ_NSEC_PER_SEC;
	uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

	if (days > 0)
		snprintf(ret_text, PRINT_BYTES,
			 "%" PRIu64 " d %" PRIu64 " h %" PRIu64 " min", days, hours % 24,
			 minutes % 60);
	else if (hours > 0)
		snprintf(ret_text, PRINT_BYTES, "%" PRIu64 " h %" PRIu64 " min", hours,
			 minutes % 60);
	else if (minutes > 0)
		snprintf(ret_text, PRINT_BYTES, "%" PRIu64 " min %" PRIu64 " s", minutes,
			 seconds % 60);
	else
		snprintf(ret_text, PRINT_BYTES, "%" PRIu64 " s", seconds);
}

void print_figure(char ret_text[PRINT_BYTES], const struct stats_metric *metric,
		  uint64_t value, bool exact)
{
	/*
	 * Pages that are held are memory and shown as such; pages that went by are
	 * counted.
	 */
	bool is_size = metric->unit == STATS_UNIT_BYTES ||
		       (metric->unit == STATS_UNIT_PAGES && metric->type == STATS_GAUGE);

	if (metric->unit == STATS_UNIT_NS)
		print_duration(ret_text, value, exact);
	else if (is_size)
		print_size(ret_text,
			   metric->unit == STATS_UNIT_PAGES ? value * UZ_PAGE_SIZE
							    : value,
			   exact);
	else
		snprintf(ret_text, PRINT_BYTES, "%" PRIu64, value);
}

size_t print_width(const char *text)
{
	size_t width = 0;

	/* UTF-8: bytes that continue a character take no column. */
	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_blanks(size_t width, size_t used)
{
	if (used < width)
		printf("%*s", (int)(width - used), "");
}

void print_left(const char *text, size_t width)
{
	fputs(text, stdout);
	print_blanks(width, print_width(text));
}

void print_right(const char *text, size_t width)
{
	print_blanks(width, print_width(text));
	fputs(text, stdout);
}

void print_wrapped(const char *text, size_t used, size_t indent)
{
	bool first = true;

	while (*text) {
		char word[PRINT_TERMINAL_WIDTH];
		size_t length = strcspn(text, " ");

		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		size_t width = print_width(word);

		if (!first && used + 1 + width > PRINT_TERMINAL_WIDTH) {
			printf("\n%*s", (int)indent, "");
			used = indent;
		} else if (!first) {
			putchar(' ');
			used++;
		}
		printf("%.*s", (int)length, text);
		used += width;
		first = false;
		text += length + strspn(text + length, " ");
	}
	putchar('\n');
}

void print_heading(const char *text)
{
	printf("%s%s%s", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}
