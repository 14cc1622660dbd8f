// SPDX-License-Identifier: MIT
/*
 * Size classes, computed once. Candidates are all multiples of the granule. For
 * each the span length is chosen that wastes least at the span's end; a longer
 * span must earn each page that it is longer by, because about half a span per
 * class is unfilled at any time. Candidates that would hold the same number of
 * objects in a span of the same length are one class, of the largest size.
 */
#include "arena/sizeclass.h"

#include <assert.h>

#include "arena/runs.h"

/* Each further page of a span must save this much of it, in 1/10000 (measured on dumps of
 * real processes, doc/design.md "Size classes"). */
#define PAGE_PENALTY_PERMYRIAD 10u

static struct sizeclass best_span(unsigned object_bytes, unsigned max_span_pages)
{
	struct sizeclass best = {0};
	unsigned best_cost = UINT32_MAX;

	for (unsigned pages = 1; pages <= max_span_pages; pages++) {
		unsigned objects = pages * UZ_PAGE_SIZE / object_bytes;
		unsigned waste = pages * UZ_PAGE_SIZE - objects * object_bytes;
		unsigned cost =
			waste * 10000 / (pages * UZ_PAGE_SIZE) + pages * PAGE_PENALTY_PERMYRIAD;

		if (cost < best_cost) {
			best_cost = cost;
			best.objects = (uint16_t)objects;
			best.span_pages = (uint8_t)pages;
		}
	}
	/* Room left over at the end belongs to the objects, as far as the granule allows.
	 */
	unsigned widest = best.span_pages * UZ_PAGE_SIZE / best.objects;

	best.object_bytes = (uint16_t)(widest / SIZECLASS_GRANULE * SIZECLASS_GRANULE);
	return best;
}

void sizeclass_table_init(struct sizeclass_table *table, unsigned max_span_pages)
{
	assert(max_span_pages >= 1 && max_span_pages <= RUNS_MAX_PAGES);
	table->count = 0;
	unsigned granules = SIZECLASS_SMALLEST / SIZECLASS_GRANULE;

	while (granules <= UZ_PAGE_SIZE / SIZECLASS_GRANULE) {
		struct sizeclass class = best_span(granules * SIZECLASS_GRANULE, max_span_pages);

		assert(table->count < SIZECLASS_MAX_CLASSES);
		table->classes[table->count++] = class;
		granules = class.object_bytes / SIZECLASS_GRANULE + 1;
	}
	unsigned class = 0;

	for (unsigned n = 0; n <= UZ_PAGE_SIZE / SIZECLASS_GRANULE; n++) {
		while (table->classes[class].object_bytes < n * SIZECLASS_GRANULE)
			class ++;
		table->by_granules[n] = (uint8_t) class;
	}
	table->largest_compressed_bytes = table->classes[table->count - 2].object_bytes;
}
