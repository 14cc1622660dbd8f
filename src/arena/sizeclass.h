/* SPDX-License-Identifier: MIT */
/* Size classes: how an object's length is rounded up, and how long a span of the class
 * is. */
#ifndef UZ_ARENA_SIZECLASS_H
#define UZ_ARENA_SIZECLASS_H

#include <stdint.h>

#include "base/units.h"

/* Objects start at multiples of this; slot words count in it. */
#define SIZECLASS_GRANULE     16u
#define SIZECLASS_SMALLEST    32u
#define SIZECLASS_MAX_CLASSES 254u

struct sizeclass {
	uint16_t object_bytes; /* multiple of the granule */
	uint16_t objects;      /* in a span */
	uint8_t span_pages;    /* 1..RUNS_MAX_PAGES */
};

struct sizeclass_table {
	unsigned count;
	struct sizeclass classes[SIZECLASS_MAX_CLASSES];
	/* Class of an object of n granules, n = 1..UZ_PAGE_SIZE / granule. */
	uint8_t by_granules[UZ_PAGE_SIZE / SIZECLASS_GRANULE + 1];
	/* Longest compressed object that takes less room than the page itself. */
	uint32_t largest_compressed_bytes;
};

/* `max_span_pages`: longer spans waste less at their end but more while partly filled. */
void sizeclass_table_init(struct sizeclass_table *table, unsigned max_span_pages);

/* Class index of a length of 1..UZ_PAGE_SIZE bytes. */
static inline unsigned sizeclass_of(const struct sizeclass_table *table, uint32_t length_bytes)
{
	return table->by_granules[(length_bytes + SIZECLASS_GRANULE - 1) / SIZECLASS_GRANULE];
}

#endif
