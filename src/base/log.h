/* SPDX-License-Identifier: MIT */
/*
 * Log lines to standard error, with systemd's "<N>" priority prefix when the
 * journal reads them. Never called on the I/O path: that one bumps a counter,
 * and the housekeeping thread writes the line (see log_limit).
 */
#ifndef UZ_BASE_LOG_H
#define UZ_BASE_LOG_H

#include <stdint.h>

/* The numbers are syslog's. */
enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Lines above `level` are dropped. Any thread; default LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* "error", "warning", "notice", "info", "debug". Returns -EINVAL for another name. */
int log_level_parse(const char *name, enum log_level *ret_level);
const char *log_level_name(enum log_level level);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)	 log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	 log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * Turns a counter that the I/O path bumps into at most one line every interval.
 * Owned by one thread (the housekeeping one).
 */
struct log_limit {
	uint64_t seen;	  /* the counter's value when the last line was written */
	uint64_t last_ns; /* when that was; 0: never */
};

/*
 * How many events a line written now should report: 0 when there is nothing
 * new or the last line is younger than `interval_ns`.
 */
uint64_t log_limit_due(struct log_limit *limit, uint64_t counter, uint64_t now_ns,
		       uint64_t interval_ns);

#endif
