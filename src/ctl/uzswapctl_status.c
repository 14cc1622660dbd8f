// SPDX-License-Identifier: MIT
/*
 * The status page: for each device a block of two columns, then a table of
 * requests, then what concerns the daemon. It fits 80 columns with readable
 * figures; exact ones may need more.
 *
 * Every statistic is shown. Those that the layout below does not name, because
 * they are new, come out under "other" with the name of the table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_json.h"
#include "ctl/uzswapctl.h"
#include "ctl/uzswapctl_client.h"
#include "ctl/uzswapctl_print.h"

#define COLUMN_WIDTH 37
#define COLUMN_GAP   4
#define FACT_INDENT  15
#define BAR_WIDTH    44

/* A line of a column: a figure of the table, a ratio, or a heading. */
struct line {
	const char *label; /* starts with blanks when it is a part of the line above */
	enum { END, BLANK, HEADING, FIGURE, RATIO } kind;
	int figure;	   /* FIGURE: enum stats_id */
	const char *ratio; /* RATIO: its name in the reply */
};

static const struct line left_lines[] = {
	{"device", HEADING, 0, NULL},
	{"size", FIGURE, STATS_SIZE, NULL},
	{"swap used", FIGURE, STATS_SWAP_USED, NULL},
	{"  by the balloon", FIGURE, STATS_BALLOON, NULL},
	{"free room", FIGURE, STATS_ROOM, NULL},
	{"", BLANK, 0, NULL},
	{"pages", HEADING, 0, NULL},
	{"empty", FIGURE, STATS_PAGES_EMPTY, NULL},
	{"stored", FIGURE, STATS_STORED, NULL},
	{"  compressed", FIGURE, STATS_PAGES_COMPRESSED, NULL},
	{"  incompressible", FIGURE, STATS_PAGES_INCOMPRESSIBLE, NULL},
	{"  same-filled", FIGURE, STATS_PAGES_SAME, NULL},
	{0},
};

static const struct line right_lines[] = {
	{"memory", HEADING, 0, NULL},
	{"limit", FIGURE, STATS_MEMORY_LIMIT, NULL},
	{"used in all", FIGURE, STATS_MEMORY_USED, NULL},
	{"  compressed bytes", FIGURE, STATS_COMPRESSED, NULL},
	{"  slot table", FIGURE, STATS_MEMORY_TABLE, NULL},
	{"  free reserve", FIGURE, STATS_MEMORY_RESERVE, NULL},
	{"highest so far", FIGURE, STATS_MEMORY_PEAK, NULL},
	{"ratio", RATIO, 0, "ratio"},
	{"effective ratio", RATIO, 0, "effective_ratio"},
	{"waits for memory", FIGURE, STATS_STORE_WAITS, NULL},
	{"  time in all", FIGURE, STATS_STORE_WAIT_TIME, NULL},
	{"  longest", FIGURE, STATS_STORE_WAIT_LONGEST, NULL},
	{0},
};

/* The table of requests; -1: not counted. */
static const struct request_line {
	const char *label;
	int requests, pages, errors, no_space;
	const char *latency; /* its name in the reply */
} request_lines[] = {
	{"reads", STATS_READS, STATS_PAGES_READ, STATS_READ_ERRORS, -1, "read"},
	{"writes", STATS_WRITES, STATS_PAGES_WRITTEN, STATS_WRITE_ERRORS,
	 STATS_WRITE_NO_SPACE, "write"},
	{"discards", STATS_DISCARDS, STATS_PAGES_DISCARDED, -1, -1, NULL},
	{"flushes", STATS_FLUSHES, -1, -1, -1, NULL},
};

static uint64_t figure_of(struct json_object *statistics, int id)
{
	return client_uint(statistics, stats_table[id].name);
}

/* A statistic that an older daemon does not have is shown as "-". */
static void format_figure(char text[PRINT_BYTES], struct json_object *statistics, int id,
			  bool exact)
{
	if (id >= 0 && client_get(statistics, stats_table[id].name))
		print_figure(text, &stats_table[id], figure_of(statistics, id), exact);
	else
		snprintf(text, PRINT_BYTES, "-");
}

static void format_ratio(char text[PRINT_BYTES], struct json_object *statistics,
			 const char *name, bool exact)
{
	struct json_object *value = client_get(statistics, name);

	if (value)
		snprintf(text, PRINT_BYTES, exact ? "%.6g" : "%.2f",
			 json_object_get_double(value));
	else
		snprintf(text, PRINT_BYTES, "no data");
}

/* Prints a line of a column; the label to the left, the figure to the right. */
static void print_line(const struct line *line, struct json_object *statistics,
		       bool exact)
{
	char text[PRINT_BYTES] = "";

	if (line->kind == HEADING)
		print_heading(line->label);
	else
		fputs(line->label, stdout);
	if (line->kind == FIGURE)
		format_figure(text, statistics, line->figure, exact);
	else if (line->kind == RATIO)
		format_ratio(text, statistics, line->ratio, exact);
	if (*text)
		print_right(text, COLUMN_WIDTH - print_width(line->label));
}

static void print_columns(struct json_object *statistics, bool exact)
{
	const struct line *left = left_lines, *right = right_lines;
	static const struct line empty = {"", BLANK, 0, NULL};

	while (left->kind != END || right->kind != END) {
		const struct line *line = left->kind != END ? left++ : &empty;

		fputs("  ", stdout);
		print_line(line, statistics, exact);
		if (right->kind != END) {
			size_t used = line->kind == FIGURE || line->kind == RATIO
					      ? COLUMN_WIDTH
					      : print_width(line->label);

			printf("%*s", (int)(COLUMN_WIDTH - used + COLUMN_GAP), "");
			print_line(right++, statistics, exact);
		}
		putchar('\n');
	}
}

static void print_requests(struct json_object *device, struct json_object *statistics,
			   bool exact)
{
	static const char *const headings[] = {"number", "pages", "errors", "no space",
					       "p50",	 "p99",	  "max"};
	static const size_t readable[] = {11, 13, 8, 9, 9, 9, 9},
			    wide[] = {13, 15, 9, 9, 15, 15, 15};
	static const char *const quantiles[] = {"p50_ns", "p99_ns", "max_ns"};
	const size_t *width = exact ? wide : readable;
	struct json_object *latencies = client_get(device, "latency");

	fputs("\n  ", stdout);
	print_heading("requests");
	for (size_t i = 0; i < UZ_ARRAY_SIZE(headings); i++)
		print_right(headings[i], width[i]);
	putchar('\n');
	for (size_t i = 0; i < UZ_ARRAY_SIZE(request_lines); i++) {
		const struct request_line *line = &request_lines[i];
		const int counts[] = {line->requests, line->pages, line->errors,
				      line->no_space};
		char text[PRINT_BYTES];

		fputs("  ", stdout);
		print_left(line->label, strlen("requests"));
		for (size_t j = 0; j < UZ_ARRAY_SIZE(counts); j++) {
			format_figure(text, statistics, counts[j], exact);
			print_right(text, width[j]);
		}
		struct json_object *latency =
			line->latency ? client_get(latencies, line->latency) : NULL;

		for (size_t j = 0; j < UZ_ARRAY_SIZE(quantiles); j++) {
			if (latency && client_uint(latency, "count") > 0)
				print_duration(text, client_uint(latency, quantiles[j]),
					       exact);
			else
				snprintf(text, sizeof(text), "-");
			print_right(text, width[UZ_ARRAY_SIZE(counts) + j]);
		}
		putchar('\n');
	}
}

/* Marks what the layouts show. */
static void mark_shown(bool shown[STATS_COUNT])
{
	for (const struct line *line = left_lines; line->kind != END; line++)
		if (line->kind == FIGURE)
			shown[line->figure] = true;
	for (const struct line *line = right_lines; line->kind != END; line++)
		if (line->kind == FIGURE)
			shown[line->figure] = true;
	for (size_t i = 0; i < UZ_ARRAY_SIZE(request_lines); i++) {
		const struct request_line *line = &request_lines[i];
		const int counts[] = {line->requests, line->pages, line->errors,
				      line->no_space};

		for (size_t j = 0; j < UZ_ARRAY_SIZE(counts); j++)
			if (counts[j] >= 0)
				shown[counts[j]] = true;
	}
}

static void print_others(struct json_object *statistics, bool exact)
{
	bool shown[STATS_COUNT] = {false}, any = false;

	mark_shown(shown);
	for (int id = 0; id < STATS_COUNT; id++) {
		char text[PRINT_BYTES];

		if (shown[id])
			continue;
		if (!any) {
			fputs("\n  ", stdout);
			print_heading("other");
			putchar('\n');
			any = true;
		}
		format_figure(text, statistics, id, exact);
		fputs("  ", stdout);
		print_left(stats_table[id].name, COLUMN_WIDTH - 12);
		print_right(text, 12);
		putchar('\n');
	}
}

/* "[####++..]": `first` and `second` of `whole`. Something that is not 0 shows. */
static void print_bar(const char *label, uint64_t first, uint64_t second, uint64_t whole,
		      const char *legend)
{
	unsigned marks[2] = {0, 0};
	const uint64_t parts[2] = {first, second};
	unsigned used = 0;

	for (int i = 0; i < 2 && whole > 0; i++) {
		double share = (double)parts[i] / (double)whole;

		marks[i] = (unsigned)(UZ_MIN(share, 1.0) * BAR_WIDTH + 0.5);
		if (parts[i] > 0 && marks[i] == 0)
			marks[i] = 1;
		marks[i] = UZ_MIN(marks[i], BAR_WIDTH - used);
		used += marks[i];
	}
	fputs("  ", stdout);
	print_left(label, 9);
	putchar('[');
	for (unsigned i = 0; i < BAR_WIDTH; i++)
		putchar(i < marks[0] ? '#' : i < used ? 'o' : '.');
	printf("] %s\n", legend);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

static void print_bars(struct json_object *statistics)
{
	uint64_t size = figure_of(statistics, STATS_SIZE);
	uint64_t swap = figure_of(statistics, STATS_SWAP_USED);
	uint64_t balloon = figure_of(statistics, STATS_BALLOON) * UZ_PAGE_SIZE;
	uint64_t limit = figure_of(statistics, STATS_MEMORY_LIMIT);
	uint64_t memory = figure_of(statistics, STATS_MEMORY_USED);
	char legend[PRINT_BYTES];

	snprintf(legend, sizeof(legend), "%u %% used%s", percent(swap, size),
		 balloon > 0 ? ", o balloon" : "");
	print_bar("swap", swap - UZ_MIN(swap, balloon), UZ_MIN(swap, balloon), size,
		  legend);
	snprintf(legend, sizeof(legend), "%u %% of the limit", percent(memory, limit));
	print_bar("memory", memory, 0, limit, legend);
}

/* "  path       /dev/uzswap/swap0" */
static void print_fact(const char *label, const char *text, const char *separator,
		       const char *more)
{
	char line[512];

	snprintf(line, sizeof(line), "%s%s%s", text, *more ? separator : "", more);
	fputs("  ", stdout);
	print_left(label, FACT_INDENT - 2);
	print_wrapped(line, FACT_INDENT, FACT_INDENT);
}

static void print_device(struct json_object *device, bool exact)
{
	struct json_object *statistics = client_get(device, "statistics");
	const char *state = client_text(device, "state");
	char text[96];

	print_heading(client_text(device, "name"));
	printf(": %s", state);
	if (strcmp(state, "active") == 0)
		printf(", swap is on with priority %" PRId64,
		       json_object_get_int64(client_get(device, "priority")));
	else if (strcmp(state, "ready") == 0)
		fputs(", swap is off", stdout);
	putchar('\n');
	print_fact("device", client_text(device, "path"), " -> ",
		   client_text(device, "block_path"));
	print_fact("transport", client_text(device, "transport"), ": ",
		   client_text(device, "transport_reason"));
	snprintf(text, sizeof(text), "%s, level %" PRId64, client_text(device, "codec"),
		 json_object_get_int64(client_get(device, "level")));
	print_fact("codec", text, "", "");
	print_fact("pinning", client_text(device, "pinning"), "", "");
	print_fact("honest free", client_text(device, "honest_free"), "", "");
	putchar('\n');
	print_bars(statistics);
	putchar('\n');
	print_columns(statistics, exact);
	print_requests(device, statistics, exact);
	print_others(statistics, exact);
}

static void print_daemon(struct json_object *daemon, bool exact)
{
	char text[PRINT_BYTES], line[512];

	print_uptime(text, client_uint(daemon, "uptime_ns"));
	print_heading("uzswapd");
	printf(" %s, pid %" PRIu64 ", up %s, log level %s, takeover %s\n",
	       client_text(daemon, "version"), client_uint(daemon, "pid"), text,
	       client_text(daemon, "log_level"), client_text(daemon, "takeover"));
	struct json_object *valve = client_get(daemon, "relief_valve");

	print_size(text, client_uint(valve, "reserve_bytes"), exact);
	printf("relief valve %s", text);
	print_size(text, client_uint(valve, "armed_bytes"), exact);
	printf(", armed %s", text);
	print_size(text, client_uint(valve, "given_bytes_total"), exact);
	printf(", given so far %s\n", text);
	struct json_object *sysctls = client_get(daemon, "sysctls");

	for (size_t i = 0; sysctls && i < json_object_array_length(sysctls); i++) {
		struct json_object *sysctl = json_object_array_get_idx(sysctls, i);

		printf("sysctl %s set to %s, before %s\n", client_text(sysctl, "name"),
		       client_text(sysctl, "now"), client_text(sysctl, "before"));
	}
	struct json_object *missing = client_get(daemon, "protections_missing");
	size_t count = missing ? json_object_array_length(missing) : 0;

	for (size_t i = 0; i < count; i++) {
		struct json_object *protection = json_object_array_get_idx(missing, i);

		print_heading("missing protection");
		snprintf(line, sizeof(line), " %s: %s", client_text(protection, "name"),
			 client_text(protection, "reason"));
		print_wrapped(line, strlen("missing protection"), 2);
	}
}

void print_status(struct json_object *status, const struct uzswapctl_options *options)
{
	struct json_object *devices = client_get(status, "devices");
	size_t count = devices ? json_object_array_length(devices) : 0;

	if (client_uint(status, "version") != CTL_STATUS_VERSION)
		fprintf(stderr,
			"uzswapctl: the daemon's status has version %" PRIu64
			", not %d: figures may be missing\n",
			client_uint(status, "version"), CTL_STATUS_VERSION);
	print_daemon(client_get(status, "daemon"), options->bytes);
	if (count == 0)
		fputs("\nno devices\n", stdout);
	for (size_t i = 0; i < count; i++) {
		putchar('\n');
		print_device(json_object_array_get_idx(devices, i), options->bytes);
	}
}
