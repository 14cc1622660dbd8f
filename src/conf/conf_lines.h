/* SPDX-License-Identifier: MIT */
/* From a file's bytes to sections and settings, with the place of each. */
#ifndef UZ_CONF_CONF_LINES_H
#define UZ_CONF_CONF_LINES_H

#include "conf/conf_report.h"

/*
 * Longest line with a section or a setting, without the blanks around it.
 * inih's usual buffer takes 197. Comments may be of any length.
 */
#define CONF_LINE_BYTES_MAX 190

/* Who receives what was read. Strings are valid during the call only. */
struct conf_sink {
	/*
	 * "[title]". `place` is that of the title's first character. Returns 1 to
	 * get the section's settings, 0 to skip them, or -errno to stop.
	 */
	int (*section)(void *context, const struct conf_place *place, const char *title);
	/*
	 * "key=value", both without blanks around them, value perhaps "".
	 * Returns 0, or -errno to stop.
	 */
	int (*setting)(void *context, const struct conf_place *key_place,
		       const struct conf_place *value_place, const char *key,
		       const char *value);
	void *context;
};

/*
 * Reports lines that are not of the file's syntax and skips them; delivers the
 * others. Returns 0 or what the sink stopped with.
 */
int conf_lines_parse(struct conf_report *report, const char *file, const char *data,
		     size_t length, const struct conf_sink *sink);

#endif
