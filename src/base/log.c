// SPDX-License-Identifier: MIT
/* Log lines. Any thread but those of the I/O path; one write(2) a line, so lines never
 * mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written by ctl (`set log-level`), read by all; a stale value costs a line, so relaxed.
 */
static _Atomic int current_level = LOG_LEVEL_INFO;

static const struct {
	enum log_level level;
	const char *name;
} level_names[] = {
	{LOG_LEVEL_ERROR, "error"}, {LOG_LEVEL_WARNING, "warning"}, {LOG_LEVEL_NOTICE, "notice"},
	{LOG_LEVEL_INFO, "info"},   {LOG_LEVEL_DEBUG, "debug"},
};

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&current_level, level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

int log_level_parse(const char *name, enum log_level *ret_level)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (strcmp(name, level_names[i].name) == 0) {
			*ret_level = level_names[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (level_names[i].level == level)
			return level_names[i].name;
	return "unknown";
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	int used = 0;
	va_list args;

	if ((int)level > (int)log_get_level())
		return;
	/* systemd sets JOURNAL_STREAM for services whose stderr is the journal
	 * (systemd.exec(5)). */
	if (getenv("JOURNAL_STREAM"))
		used = snprintf(line, sizeof(line), "<%d>", (int)level);
	else
		used = snprintf(line, sizeof(line), "uzswapd: ");
	va_start(args, format);
	int body = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
	va_end(args);
	if (body < 0)
		return;
	size_t length = (size_t)used + (size_t)body;
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0)
		return; /* nowhere left to complain */
}

uint64_t log_limit_due(struct log_limit *limit, uint64_t counter, uint64_t now_ns,
		       uint64_t interval_ns)
{
	if (counter == limit->seen)
		return 0;
	if (limit->last_ns != 0 && now_ns - limit->last_ns < interval_ns)
		return 0;
	uint64_t news = counter - limit->seen;

	limit->seen = counter;
	limit->last_ns = now_ns;
	return news;
}
