/* SPDX-License-Identifier: MIT */
/* Collects findings on their way to the caller's callback: counts, limits, remembers. */
#ifndef UZ_CONF_CONF_REPORT_H
#define UZ_CONF_CONF_REPORT_H

#include "conf/conf.h"

/* A binary file given by mistake must not fill the journal. */
#define CONF_REPORTS_PER_FILE 50

struct conf_report {
	conf_diagnostic_fn diagnose;
	void *context;
	bool strict;
	unsigned errors;
	int status;	 /* the first -errno of a file that could not be read */
	unsigned shown;	 /* of this file */
	unsigned hidden; /* of this file, beyond the limit */
	enum log_level hidden_worst;
};

struct conf_place {
	const char *file;
	unsigned line, column;
};

void conf_report_at(struct conf_report *report, enum log_level level,
		    const struct conf_place *place, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Of unknown names: a warning, or an error when strict. */
static inline enum log_level conf_report_unknown(const struct conf_report *report)
{
	return report->strict ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING;
}

/* Ends a file's findings: says how many were left out, and counts anew. */
void conf_report_file_end(struct conf_report *report, const char *file);

/* What the load as a whole returns: 0, -EINVAL, or why a file could not be read. */
int conf_report_result(const struct conf_report *report);

#endif
