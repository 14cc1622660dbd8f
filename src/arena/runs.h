/* SPDX-License-Identifier: MIT */
/*
 * Page runs: hands out runs of 1..RUNS_MAX_PAGES neighbouring pages of a region.
 * Pages are in one of three states: vacant (no memory), reserved (populated and
 * free) and used. Handing out moves reserved pages to used and never touches the
 * kernel; a background thread calls runs_balance, which turns vacant pages into
 * reserved ones ahead of need and gives surplus reserved ones back.
 */
#ifndef UZ_ARENA_RUNS_H
#define UZ_ARENA_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/region.h"
#include "base/lock.h"

#define RUNS_MAX_PAGES	  16u
#define RUNS_CHUNK_PAGES  64u
#define RUNS_WHOLE_BUCKET (RUNS_MAX_PAGES + 1)

/* Index of a page within the runs' area. */
#define RUNS_NO_PAGE UINT32_MAX

struct runs_chunk {
	uint64_t reserved;   /* bit i: page i is populated and free */
	uint64_t populated;  /* bit i: page i has memory; a superset of reserved */
	uint32_t next, prev; /* in the bucket of its longest reserved run */
	uint8_t bucket;	     /* 0: in no bucket */
};

struct runs {
	struct region *region;
	uint64_t area_offset_bytes; /* where page 0 is in the region */
	uint32_t chunk_count;
	struct runs_chunk *chunks;
	struct lock lock; /* guards all below, and the chunks */
	uint32_t bucket_head[RUNS_WHOLE_BUCKET + 1];
	uint64_t limit_pages;
	uint64_t populated_pages; /* reserved + used; at most limit_pages unless the limit
				     was lowered */
	uint64_t reserved_pages;
	uint64_t target_pages; /* how many reserved pages to keep */
	bool starved; /* a run was asked for that no chunk has: the reserve is in too small pieces */
	uint64_t handed_out;   /* pages handed out in all, for the demand estimate */
	uint32_t vacant_hint;  /* no chunk below it has vacant pages */
	/* Called without the lock before a chunk's pages are first handed out and after
	 * its last page was given back: the owner populates or releases its own
	 * descriptors. May be NULL. */
	int (*chunk_in)(void *context, uint32_t chunk);
	void (*chunk_out)(void *context, uint32_t chunk);
	void *context;
};

/*
 * `area_pages`: a multiple of RUNS_CHUNK_PAGES; address space, larger than the
 * limit so that fragmentation does not eat into it. Returns 0 or -ENOMEM.
 */
int runs_init(struct runs *runs, struct region *region, uint64_t area_offset_bytes,
	      uint64_t area_pages, uint64_t limit_pages);
void runs_done(struct runs *runs);

/*
 * A run of `pages` (1..RUNS_MAX_PAGES) reserved pages, or RUNS_NO_PAGE when
 * there is none. `ret_low`: set when the reserve fell below half its target, so
 * that the caller wakes the thread that balances; otherwise untouched.
 */
uint32_t runs_alloc(struct runs *runs, uint32_t pages, bool *ret_low);

/* Gives a run back to the reserve. `ret_high`: set when there is a surplus worth giving
 * back. */
void runs_free(struct runs *runs, uint32_t first_page, uint32_t pages, bool *ret_high);

/*
 * One step of populating or giving back, at most one chunk. Only one thread at
 * a time. Returns 1 when it did something (call again), 0 when the reserve is
 * as it should be or the limit allows no more, or -errno when the kernel
 * refused memory (try again later).
 */
int runs_balance(struct runs *runs);

/* Sets the reserve that runs_balance works towards. */
void runs_set_target(struct runs *runs, uint64_t target_pages);
void runs_set_limit(struct runs *runs, uint64_t limit_pages);

struct runs_usage {
	uint64_t limit_pages;
	uint64_t populated_pages;
	uint64_t reserved_pages;
	uint64_t handed_out;
};
void runs_usage(struct runs *runs, struct runs_usage *ret_usage);

#endif
