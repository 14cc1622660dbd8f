/* SPDX-License-Identifier: MIT */
/*
 * The pool: objects of 1..4096 bytes in spans, spans in page runs. Each CPU
 * allocates from its own arena, but a class is spread over several arenas only
 * once it is large enough for their partly filled spans not to matter.
 *
 * The arena knows offsets, not slots. Objects have no header: whoever frees one
 * names its offset, and the page descriptors tell the class.
 */
#ifndef UZ_ARENA_ARENA_H
#define UZ_ARENA_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/region.h"
#include "arena/runs.h"
#include "arena/sizeclass.h"

/* Where an object is: bytes from the region's start, a multiple of SIZECLASS_GRANULE.
 * Never 0. */
struct arena_object {
	uint64_t offset_bytes;
};

struct arena_pool;

struct arena_config {
	struct region *region;	    /* lives longer than the pool */
	uint64_t area_offset_bytes; /* where the objects' area starts in it; > 0,
				       page-aligned */
	uint64_t area_pages;	    /* multiple of RUNS_CHUNK_PAGES */
	uint64_t limit_pages;
	unsigned arenas; /* 1..ARENA_MAX_ARENAS */
};

#define ARENA_MAX_ARENAS 64u

/*
 * Bytes of the region that a pool takes from area_offset_bytes on: the objects'
 * pages and, behind them, a descriptor for each.
 */
uint64_t arena_region_bytes(uint64_t area_pages);

/* Address space to set aside for a limit: room for runs that fragmentation leaves
 * unusable. */
uint64_t arena_area_pages(uint64_t limit_pages);

/* Bytes of bookkeeping per populated page of objects (descriptors, populated with it). */
#define ARENA_DESCRIPTOR_BYTES 16u

/* Returns 0 or -ENOMEM. */
int arena_pool_new(struct arena_pool **ret_pool, const struct arena_config *config);
void arena_pool_free(struct arena_pool *pool);

/*
 * Room for an object of `length_bytes` (1..UZ_PAGE_SIZE) from the arena of CPU
 * `cpu` (any number >= 0). Never enters the kernel but for a contended lock.
 * Returns 0, or -ENOMEM when no reserved memory fits; wakes nobody: see ret_low.
 * `ret_low` is set when arena_balance should be called soon.
 */
int arena_alloc(struct arena_pool *pool, unsigned cpu, uint32_t length_bytes,
		struct arena_object *ret_object, bool *ret_low);

/*
 * Frees an object. No reader may look at it any more: the first bytes are
 * reused at once. `ret_high` is set when arena_balance should be called soon.
 */
void arena_free(struct arena_pool *pool, struct arena_object object, bool *ret_high);

/* One step of populating or giving back; as runs_balance. One background thread. */
int arena_balance(struct arena_pool *pool);

/* How much memory to keep populated and free; see runs_set_target. */
void arena_set_target(struct arena_pool *pool, uint64_t target_pages);
void arena_set_limit(struct arena_pool *pool, uint64_t limit_pages);

struct arena_usage {
	struct runs_usage runs;
	uint64_t descriptor_bytes; /* populated page descriptors, shards and chunk tables
				    */
	uint64_t object_bytes;	   /* live objects, each rounded up to its class */
};
void arena_usage(struct arena_pool *pool, struct arena_usage *ret_usage);

/* Longest compressed form that saves memory over keeping the page as it is. */
uint32_t arena_largest_compressed_bytes(const struct arena_pool *pool);

/*
 * Memory that an object of this length costs, the span's tail and descriptors
 * included, in 1/16 bytes: for estimates of how many more pages fit.
 */
uint64_t arena_cost_sixteenths(const struct arena_pool *pool, uint32_t length_bytes);

/*
 * Compaction. arena_mark_sparse marks, in every class, spans to be emptied so
 * that the class's objects fit into the others; returns how many spans were
 * marked. Nothing is allocated in a marked span. arena_is_marked tells whether
 * an object lies in one; the owner of the objects then copies it elsewhere and
 * frees it here. arena_unmark ends the round. One thread at a time.
 */
unsigned arena_mark_sparse(struct arena_pool *pool);
bool arena_is_marked(const struct arena_pool *pool, struct arena_object object);
void arena_unmark(struct arena_pool *pool);

#endif
