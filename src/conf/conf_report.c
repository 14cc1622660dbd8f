// SPDX-License-Identifier: MIT
/* Findings on their way to the callback. Owned by one load; no locks. */
#include "conf/conf_report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void deliver(const struct conf_report *report, enum log_level level,
		    const struct conf_place *place, const char *text)
{
	struct conf_diagnostic diagnostic = {
		.level = level,
		.file = place->file,
		.line = place->line,
		.column = place->column,
		.text = text,
	};

	if (report->diagnose)
		report->diagnose(report->context, &diagnostic);
}

void conf_report_at(struct conf_report *report, enum log_level level,
		    const struct conf_place *place, const char *format, ...)
{
	char text[640]; /* with a path before it still one log line */
	va_list args;

	if (level == LOG_LEVEL_ERROR)
		report->errors++;
	if (report->shown >= CONF_REPORTS_PER_FILE) {
		if (report->hidden++ == 0 || level < report->hidden_worst)
			report->hidden_worst = level;
		return;
	}
	report->shown++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	deliver(report, level, place, text);
}

void conf_report_file_end(struct conf_report *report, const char *file)
{
	struct conf_place place = {.file = file};
	char text[64];

	if (report->hidden > 0) {
		snprintf(text, sizeof(text), "%u more problems are not shown",
			 report->hidden);
		deliver(report, report->hidden_worst, &place, text);
	}
	report->shown = 0;
	report->hidden = 0;
}

int conf_report_result(const struct conf_report *report)
{
	if (report->errors == 0)
		return 0;
	return report->status != 0 ? report->status : -EINVAL;
}
