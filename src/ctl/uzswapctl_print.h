/* SPDX-License-Identifier: MIT */
/* Figures for people: sizes, durations, and text that lines up. */
#ifndef UZ_CTL_UZSWAPCTL_PRINT_H
#define UZ_CTL_UZSWAPCTL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/stats.h"

#define PRINT_BYTES 48 /* room for any formatted figure */

/* Asks the locale whether it can show a micro sign. Once, at start. */
void print_init(void);

/* "1.95 GiB": three digits; `exact`: "2093796352 B". */
void print_size(char ret_text[PRINT_BYTES], uint64_t bytes, bool exact);

/* "41.2 us", with a micro sign where the locale has one; `exact`: "41234 ns". */
void print_duration(char ret_text[PRINT_BYTES], uint64_t ns, bool exact);

/* "3 d 4 h 12 min": the two or three largest units. */
void print_uptime(char ret_text[PRINT_BYTES], uint64_t ns);

/* A figure of the table in its unit: sizes and pages as bytes, times, plain counts. */
void print_figure(char ret_text[PRINT_BYTES], const struct stats_metric *metric,
		  uint64_t value, bool exact);

/* Columns that `text` takes on a terminal; all our characters are one wide. */
size_t print_width(const char *text);

/* Prints `text` in at least `width` columns, to their left or right. */
void print_left(const char *text, size_t width);
void print_right(const char *text, size_t width);

/* What status makes its lines fit. */
#define PRINT_TERMINAL_WIDTH 80

/*
 * Prints `text` and ends the line, as several lines when it is too long for a
 * terminal. `used`: columns that the first line has taken, and `indent` of the
 * others.
 */
void print_wrapped(const char *text, size_t used, size_t indent);

/* A heading; bold on a terminal, unless NO_COLOR is set. */
void print_heading(const char *text);

struct json_object;
struct uzswapctl_options;

/* The status reply as a page of text. */
void print_status(struct json_object *status, const struct uzswapctl_options *options);

#endif
