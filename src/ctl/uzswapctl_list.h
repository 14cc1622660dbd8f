/* SPDX-License-Identifier: MIT */
/* The columns of `uzswapctl list`. */
#ifndef UZ_CTL_UZSWAPCTL_LIST_H
#define UZ_CTL_UZSWAPCTL_LIST_H

#include "ctl/uzswapctl.h"

struct json_object;

enum list_kind {
	LIST_TEXT,
	LIST_INTEGER,
	LIST_RATIO,
	LIST_FIGURE, /* a statistic of the table */
	LIST_LATENCY,
};

struct list_column {
	const char *heading;
	enum list_kind kind;
	const char *key;  /* name in the reply; of a latency: within its part */
	const char *part; /* LIST_LATENCY: "read" or "write" */
	int figure;	  /* LIST_FIGURE: enum stats_id */
};

#define LIST_COLUMNS_MAX 64

struct list_columns {
	unsigned count;
	struct list_column column[LIST_COLUMNS_MAX];
};

/*
 * "NAME,size_bytes" in any case; NULL: the usual columns. Returns 0, or -1 after
 * a message that names all columns.
 */
int list_parse_columns(struct list_columns *ret_columns, const char *names);

/* Prints the devices of a status reply. */
void list_print(struct json_object *status, const struct list_columns *columns,
		const struct uzswapctl_options *options);

/*
 * The chosen columns as JSON, with the reply's names and numbers. NULL for want of
 * memory.
 */
struct json_object *list_to_json(struct json_object *status,
				 const struct list_columns *columns);

#endif
