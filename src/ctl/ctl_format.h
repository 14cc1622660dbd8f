/* SPDX-License-Identifier: MIT */
/*
 * Snapshots as JSON and as Prometheus text. Pure functions on plain structs:
 * both forms are made from the same values by the same table.
 */
#ifndef UZ_CTL_FORMAT_H
#define UZ_CTL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/ctl.h"

struct json_object;

struct ctl_snapshot {
	struct ctl_daemon daemon;
	unsigned device_count;
	struct ctl_device *devices;
};

/* Replies of GetStatus and List. NULL for want of memory. */
struct json_object *ctl_format_status(const struct ctl_snapshot *snapshot);
struct json_object *ctl_format_list(const struct ctl_snapshot *snapshot);

/* Prometheus' text format. The caller frees *ret_text. Returns 0 or -ENOMEM. */
int ctl_format_metrics(const struct ctl_snapshot *snapshot, char **ret_text);

#define CTL_METRIC_NAME_BYTES 80

/* "uzswap_reads_total": the name under which a row of the table is exported. */
void ctl_metric_name(const struct stats_metric *metric,
		     char ret_name[CTL_METRIC_NAME_BYTES]);

#define CTL_RATIO_BYTES 32

/* numerator / denominator as text. Returns false, and no text, when either is 0. */
bool ctl_format_ratio(uint64_t numerator, uint64_t denominator,
		      char ret_text[CTL_RATIO_BYTES]);

#endif
