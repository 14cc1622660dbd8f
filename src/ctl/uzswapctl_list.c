// SPDX-License-Identifier: MIT
/*
 * `uzswapctl list`: a line for each device, with columns to choose. A cell never
 * contains a blank, so that scripts can split the lines.
 */
#include "ctl/uzswapctl_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "ctl/ctl_interface.h"
#include "ctl/ctl_json.h"
#include "ctl/uzswapctl_client.h"
#include "ctl/uzswapctl_print.h"

/* clang-format off */
static const struct list_column columns_table[] = {
	{"NAME",       LIST_TEXT,    "name",             NULL,     0},
	{"STATE",      LIST_TEXT,    "state",            NULL,     0},
	{"PATH",       LIST_TEXT,    "path",             NULL,     0},
	{"BLOCK",      LIST_TEXT,    "block_path",       NULL,     0},
	{"TRANSPORT",  LIST_TEXT,    "transport",        NULL,     0},
	{"CODEC",      LIST_TEXT,    "codec",            NULL,     0},
	{"LEVEL",      LIST_INTEGER, "level",            NULL,     0},
	{"PRIORITY",   LIST_INTEGER, "priority",         NULL,     0},
	{"PINNING",    LIST_TEXT,    "pinning",          NULL,     0},
	{"RATIO",      LIST_RATIO,   "ratio",            NULL,     0},
	{"EFFECTIVE",  LIST_RATIO,   "effective_ratio",  NULL,     0},
	{"SIZE",       LIST_FIGURE,  NULL,               NULL,     STATS_SIZE},
	{"SWAP",       LIST_FIGURE,  NULL,               NULL,     STATS_SWAP_USED},
	{"BALLOON",    LIST_FIGURE,  NULL,               NULL,     STATS_BALLOON},
	{"ROOM",       LIST_FIGURE,  NULL,               NULL,     STATS_ROOM},
	{"STORED",     LIST_FIGURE,  NULL,               NULL,     STATS_STORED},
	{"SAME",       LIST_FIGURE,  NULL,               NULL,     STATS_PAGES_SAME},
	{"INCOMPR",    LIST_FIGURE,  NULL,               NULL,     STATS_PAGES_INCOMPRESSIBLE},
	{"COMPRESSED", LIST_FIGURE,  NULL,               NULL,     STATS_COMPRESSED},
	{"MEMORY",     LIST_FIGURE,  NULL,               NULL,     STATS_MEMORY_USED},
	{"PEAK",       LIST_FIGURE,  NULL,               NULL,     STATS_MEMORY_PEAK},
	{"LIMIT",      LIST_FIGURE,  NULL,               NULL,     STATS_MEMORY_LIMIT},
	{"READ-P50",   LIST_LATENCY, "p50_ns",           "read",   0},
	{"READ-P99",   LIST_LATENCY, "p99_ns",           "read",   0},
	{"READ-MAX",   LIST_LATENCY, "max_ns",           "read",   0},
	{"WRITE-P50",  LIST_LATENCY, "p50_ns",           "write",  0},
	{"WRITE-P99",  LIST_LATENCY, "p99_ns",           "write",  0},
	{"WRITE-MAX",  LIST_LATENCY, "max_ns",           "write",  0},
};
/* clang-format on */

#define DEFAULT_COLUMNS "NAME,STATE,CODEC,SIZE,SWAP,STORED,COMPRESSED,MEMORY,RATIO"

static int find_column(struct list_column *ret_column, const char *name, size_t length)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(columns_table); i++) {
		if (strlen(columns_table[i].heading) == length &&
		    strncasecmp(columns_table[i].heading, name, length) == 0) {
			*ret_column = columns_table[i];
			return 0;
		}
	}
	for (int id = 0; id < STATS_COUNT; id++) {
		if (strlen(stats_table[id].name) == length &&
		    strncasecmp(stats_table[id].name, name, length) == 0) {
			*ret_column = (struct list_column){
				.heading = stats_table[id].name,
				.kind = LIST_FIGURE,
				.figure = id,
			};
			return 0;
		}
	}
	return -1;
}

static void print_known_columns(void)
{
	fputs("uzswapctl: the columns are:", stderr);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(columns_table); i++)
		fprintf(stderr, " %s", columns_table[i].heading);
	for (int id = 0; id < STATS_COUNT; id++)
		fprintf(stderr, " %s", stats_table[id].name);
	fputc('\n', stderr);
}

int list_parse_columns(struct list_columns *ret_columns, const char *names)
{
	struct list_columns columns = {0};

	if (!names)
		names = DEFAULT_COLUMNS;
	for (;;) {
		size_t length = strcspn(names, ",");

		if (columns.count == LIST_COLUMNS_MAX) {
			fprintf(stderr, "uzswapctl: at most %d columns\n",
				LIST_COLUMNS_MAX);
			return -1;
		}
		if (find_column(&columns.column[columns.count], names, length) < 0) {
			fprintf(stderr, "uzswapctl: no column '%.*s'\n", (int)length,
				names);
			print_known_columns();
			return -1;
		}
		columns.count++;
		if (names[length] == '\0')
			break;
		names += length + 1;
	}
	*ret_columns = columns;
	return 0;
}

/* The value of a cell in the reply, borrowed; NULL when there is none. */
static struct json_object *cell_value(struct json_object *device,
				      const struct list_column *column)
{
	struct json_object *statistics = client_get(device, "statistics");

	switch (column->kind) {
	case LIST_TEXT:
	case LIST_INTEGER:
		return client_get(device, column->key);
	case LIST_RATIO:
		return client_get(statistics, column->key);
	case LIST_FIGURE:
		return client_get(statistics, stats_table[column->figure].name);
	case LIST_LATENCY:
		return client_get(client_get(client_get(device, "latency"), column->part),
				  column->key);
	}
	return NULL;
}

/* "8.00 GiB" becomes "8.00GiB", and with --bytes "8589934592 B" becomes "8589934592". */
static void close_up(char *text, bool exact)
{
	char *blank = strchr(text, ' ');

	if (blank && exact)
		*blank = '\0';
	else if (blank)
		memmove(blank, blank + 1, strlen(blank));
}

/* Room for the longest text of a device. */
#define CELL_BYTES 256

static void format_cell(char text[CELL_BYTES], struct json_object *device,
			const struct list_column *column, bool exact)
{
	struct json_object *value = cell_value(device, column);
	char figure[PRINT_BYTES] = "";

	snprintf(text, CELL_BYTES, "-");
	if (!value)
		return;
	switch (column->kind) {
	case LIST_TEXT:
		if (*json_object_get_string(value))
			snprintf(text, CELL_BYTES, "%s", json_object_get_string(value));
		return;
	case LIST_INTEGER:
		snprintf(figure, sizeof(figure), "%" PRId64,
			 json_object_get_int64(value));
		break;
	case LIST_RATIO:
		snprintf(figure, sizeof(figure), exact ? "%.6g" : "%.2f",
			 json_object_get_double(value));
		break;
	case LIST_FIGURE:
		print_figure(figure, &stats_table[column->figure],
			     json_object_get_uint64(value), exact);
		break;
	case LIST_LATENCY:
		print_duration(figure, json_object_get_uint64(value), exact);
		break;
	}
	close_up(figure, exact);
	snprintf(text, CELL_BYTES, "%s", figure);
}

static void print_cell(const char *text, const struct list_column *column, size_t width,
		       bool last)
{
	if (column->kind != LIST_TEXT)
		print_right(text, width);
	else
		print_left(text, last ? 0 : width);
	fputs(last ? "\n" : "  ", stdout);
}

static size_t column_width(struct json_object *devices, const struct list_column *column,
			   const struct uzswapctl_options *options)
{
	size_t width = options->no_headings ? 0 : strlen(column->heading);
	char text[CELL_BYTES];

	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		format_cell(text, json_object_array_get_idx(devices, i), column,
			    options->bytes);
		width = UZ_MAX(width, print_width(text));
	}
	return width;
}

void list_print(struct json_object *status, const struct list_columns *columns,
		const struct uzswapctl_options *options)
{
	struct json_object *devices = client_get(status, "devices");
	size_t count = devices ? json_object_array_length(devices) : 0;
	size_t width[LIST_COLUMNS_MAX];

	if (count == 0)
		return;
	for (unsigned j = 0; j < columns->count; j++)
		width[j] = column_width(devices, &columns->column[j], options);
	for (unsigned j = 0; j < columns->count && !options->no_headings; j++)
		print_cell(columns->column[j].heading, &columns->column[j], width[j],
			   j + 1 == columns->count);
	for (size_t i = 0; i < count; i++) {
		struct json_object *device = json_object_array_get_idx(devices, i);

		for (unsigned j = 0; j < columns->count; j++) {
			char text[CELL_BYTES];

			format_cell(text, device, &columns->column[j], options->bytes);
			print_cell(text, &columns->column[j], width[j],
				   j + 1 == columns->count);
		}
	}
}

/*
 * The name of a cell in JSON: the reply's own, with the request's kind before a
 * latency's.
 */
static void json_key(char key[PRINT_BYTES], const struct list_column *column)
{
	if (column->kind == LIST_FIGURE)
		snprintf(key, PRINT_BYTES, "%s", stats_table[column->figure].name);
	else if (column->kind == LIST_LATENCY)
		snprintf(key, PRINT_BYTES, "%s_%s", column->part, column->key);
	else
		snprintf(key, PRINT_BYTES, "%s", column->key);
}

struct json_object *list_to_json(struct json_object *status,
				 const struct list_columns *columns)
{
	struct json_object *devices = client_get(status, "devices");
	struct json_object *list = json_object_new_object();
	struct json_object *array = json_object_new_array();
	int failed = json_put_int(list, "version", CTL_STATUS_VERSION);

	for (size_t i = 0; devices && i < json_object_array_length(devices); i++) {
		struct json_object *device = json_object_array_get_idx(devices, i);
		struct json_object *object = json_object_new_object();

		for (unsigned j = 0; j < columns->count; j++) {
			struct json_object *value =
				cell_value(device, &columns->column[j]);
			char key[PRINT_BYTES];

			json_key(key, &columns->column[j]);
			failed |= value ? json_put(object, key, json_object_get(value))
					: json_put_null(object, key);
		}
		failed |= json_append(array, object);
	}
	failed |= json_put(list, "devices", array);
	return json_finish(list, failed);
}
