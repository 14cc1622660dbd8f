// SPDX-License-Identifier: MIT
/* The table, spelled out. Constant data. */
#include "stats/stats.h"

const struct stats_metric stats_table[STATS_COUNT] = {
#define STATS_ROW(id, name_, type_, unit_, help_) \
	[STATS_##id] = {                          \
		.name = name_, .type = STATS_##type_, .unit = STATS_UNIT_##unit_, .help = help_},
	STATS_FOR_EACH (STATS_ROW)
#undef STATS_ROW
};
