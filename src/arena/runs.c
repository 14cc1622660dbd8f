// SPDX-License-Identifier: MIT
/*
 * Page runs. Threads: any thread allocates and frees; one background thread
 * balances. One lock (rank RUNS) for everything: it is taken once per span, not
 * per object, and never held over a system call.
 *
 * A chunk is 64 pages, one bit each. Chunks with reserved pages stand in the
 * bucket of their longest reserved run (16 and more share one, whole chunks have
 * their own), so that a run is taken from the chunk where it fits best, whole
 * chunks are broken last, and the smallest pieces are given back first.
 *
 * Only the balancing thread turns pages vacant or populated. While it does so
 * without the lock the pages concerned are neither reserved nor (for giving
 * back) populated, so nobody else can be handed them.
 */
#include "arena/runs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/units.h"

/* Positions where a run of `pages` ones starts. */
static uint64_t run_starts(uint64_t bits, uint32_t pages)
{
	uint32_t have = 1;

	while (have < pages) {
		uint32_t step = UZ_MIN(have, pages - have);

		bits &= bits >> step;
		have += step;
	}
	return bits;
}

static uint8_t longest_run(uint64_t bits)
{
	uint8_t length = 0;

	while (bits && length < RUNS_MAX_PAGES) {
		bits &= bits >> 1;
		length++;
	}
	return length;
}

/* Buckets 1..RUNS_MAX_PAGES by longest run; the last one for chunks that are reserved as
 * a whole. */
static uint8_t bucket_for(uint64_t reserved)
{
	return reserved == UINT64_MAX ? RUNS_WHOLE_BUCKET : longest_run(reserved);
}

static uint64_t run_mask(uint32_t first, uint32_t pages)
{
	return (pages == 64 ? UINT64_MAX : (1ull << pages) - 1) << first;
}

static void bucket_remove(struct runs *runs, uint32_t index)
{
	struct runs_chunk *chunk = &runs->chunks[index];

	if (chunk->bucket == 0)
		return;
	if (chunk->prev != RUNS_NO_PAGE)
		runs->chunks[chunk->prev].next = chunk->next;
	else
		runs->bucket_head[chunk->bucket] = chunk->next;
	if (chunk->next != RUNS_NO_PAGE)
		runs->chunks[chunk->next].prev = chunk->prev;
	chunk->bucket = 0;
}

/* Files the chunk after its reserved bits changed. */
static void bucket_update_locked(struct runs *runs, uint32_t index)
{
	struct runs_chunk *chunk = &runs->chunks[index];
	uint8_t bucket = bucket_for(chunk->reserved);

	if (bucket == chunk->bucket)
		return;
	bucket_remove(runs, index);
	if (bucket == 0)
		return;
	chunk->bucket = bucket;
	chunk->prev = RUNS_NO_PAGE;
	chunk->next = runs->bucket_head[bucket];
	if (chunk->next != RUNS_NO_PAGE)
		runs->chunks[chunk->next].prev = index;
	runs->bucket_head[bucket] = index;
}

int runs_init(struct runs *runs, struct region *region, uint64_t area_offset_bytes,
	      uint64_t area_pages, uint64_t limit_pages)
{
	assert(area_pages % RUNS_CHUNK_PAGES == 0 && area_pages < RUNS_NO_PAGE);
	*runs = (struct runs){
		.region = region,
		.area_offset_bytes = area_offset_bytes,
		.chunk_count = (uint32_t)(area_pages / RUNS_CHUNK_PAGES),
		.limit_pages = limit_pages,
	};
	runs->chunks = calloc(runs->chunk_count, sizeof(*runs->chunks));
	if (!runs->chunks)
		return -ENOMEM;
	for (uint32_t i = 0; i <= RUNS_WHOLE_BUCKET; i++)
		runs->bucket_head[i] = RUNS_NO_PAGE;
	lock_init(&runs->lock, LOCK_RANK_RUNS);
	return 0;
}

void runs_done(struct runs *runs)
{
	if (!runs->chunks)
		return;
	free(runs->chunks);
	runs->chunks = NULL;
	lock_done(&runs->lock);
}

uint32_t runs_alloc(struct runs *runs, uint32_t pages, bool *ret_low)
{
	uint32_t page = RUNS_NO_PAGE;

	assert(pages >= 1 && pages <= RUNS_MAX_PAGES);
	lock_take(&runs->lock);
	for (uint32_t bucket = pages; bucket <= RUNS_WHOLE_BUCKET; bucket++) {
		uint32_t index = runs->bucket_head[bucket];

		if (index == RUNS_NO_PAGE)
			continue;
		struct runs_chunk *chunk = &runs->chunks[index];
		uint32_t first = (uint32_t)__builtin_ctzll(run_starts(chunk->reserved, pages));

		chunk->reserved &= ~run_mask(first, pages);
		bucket_update_locked(runs, index);
		runs->reserved_pages -= pages;
		runs->handed_out += pages;
		page = index * RUNS_CHUNK_PAGES + first;
		break;
	}
	if (page == RUNS_NO_PAGE)
		runs->starved = true;
	if (page == RUNS_NO_PAGE || runs->reserved_pages < runs->target_pages / 2)
		*ret_low = true;
	lock_release(&runs->lock);
	return page;
}

void runs_free(struct runs *runs, uint32_t first_page, uint32_t pages, bool *ret_high)
{
	uint32_t index = first_page / RUNS_CHUNK_PAGES;
	uint64_t mask = run_mask(first_page % RUNS_CHUNK_PAGES, pages);
	struct runs_chunk *chunk = &runs->chunks[index];

	lock_take(&runs->lock);
	assert((chunk->reserved & mask) == 0 && (chunk->populated & mask) == mask);
	chunk->reserved |= mask;
	runs->reserved_pages += pages;
	bucket_update_locked(runs, index);
	if (runs->reserved_pages > 2 * runs->target_pages + RUNS_CHUNK_PAGES ||
	    runs->populated_pages > runs->limit_pages)
		*ret_high = true;
	lock_release(&runs->lock);
}

/* The lowest chunk with vacant pages, RUNS_NO_PAGE if there is none. */
static uint32_t find_vacant_locked(struct runs *runs)
{
	while (runs->vacant_hint < runs->chunk_count &&
	       runs->chunks[runs->vacant_hint].populated == UINT64_MAX)
		runs->vacant_hint++;
	return runs->vacant_hint < runs->chunk_count ? runs->vacant_hint : RUNS_NO_PAGE;
}

/* Walks the runs of ones in `bits` and calls the region's function on each. */
static int on_each_run(struct runs *runs, uint32_t index, uint64_t bits,
		       int (*call)(struct region *, uint64_t, uint64_t))
{
	while (bits) {
		uint32_t first = (uint32_t)__builtin_ctzll(bits);
		uint64_t rest = ~(bits >> first);
		uint32_t pages = rest ? (uint32_t)__builtin_ctzll(rest) : 64 - first;
		uint64_t page = (uint64_t)index * RUNS_CHUNK_PAGES + first;
		int err = call(runs->region, runs->area_offset_bytes + page * UZ_PAGE_SIZE,
			       (uint64_t)pages * UZ_PAGE_SIZE);

		if (err < 0)
			return err;
		bits &= ~run_mask(first, pages);
	}
	return 0;
}

/* Keeps the lowest `count` ones of `bits`. */
static uint64_t lowest_bits(uint64_t bits, uint64_t count)
{
	uint64_t kept = 0;

	for (; bits && count > 0; count--) {
		kept |= bits & -bits;
		bits &= bits - 1;
	}
	return kept;
}

/* A chunk without any memory, where a run of any length will fit; RUNS_NO_PAGE if there is none. */
static uint32_t find_empty_locked(const struct runs *runs)
{
	for (uint32_t index = runs->vacant_hint; index < runs->chunk_count; index++)
		if (runs->chunks[index].populated == 0)
			return index;
	return RUNS_NO_PAGE;
}

static int populate_one_chunk(struct runs *runs)
{
	lock_take(&runs->lock);
	uint64_t allowed = runs->limit_pages > runs->populated_pages
				   ? runs->limit_pages - runs->populated_pages
				   : 0;
	uint32_t index = RUNS_NO_PAGE;
	bool starved = runs->starved;

	runs->starved = false;
	if (allowed > 0 && starved)
		index = find_empty_locked(runs);
	if (allowed > 0 && index == RUNS_NO_PAGE)
		index = find_vacant_locked(runs);

	if (index == RUNS_NO_PAGE) {
		lock_release(&runs->lock);
		return 0;
	}
	struct runs_chunk *chunk = &runs->chunks[index];
	bool first_in = chunk->populated == 0;
	uint64_t lack = runs->target_pages > runs->reserved_pages
				? runs->target_pages - runs->reserved_pages
				: 0;
	/* A whole chunk when somebody may be waiting, else what is missing, in steps worth a call.
	 */
	uint64_t step = starved || runs->reserved_pages < RUNS_MAX_PAGES ? RUNS_CHUNK_PAGES
									 : RUNS_MAX_PAGES;
	uint64_t bits = lowest_bits(~chunk->populated, UZ_MIN(allowed, UZ_MAX(lack, step)));

	lock_release(&runs->lock);

	int err = 0;

	if (first_in && runs->chunk_in)
		err = runs->chunk_in(runs->context, index);
	if (err == 0)
		err = on_each_run(runs, index, bits, region_populate);
	if (err < 0) {
		/* Some of them may have come in; they are vacant in our books and must be
		 * in fact. */
		on_each_run(runs, index, bits, region_punch);
		return err;
	}
	lock_take(&runs->lock);
	/* Meanwhile others may have freed runs of this chunk, nothing else. */
	chunk->populated |= bits;
	chunk->reserved |= bits;
	runs->populated_pages += (uint64_t)__builtin_popcountll(bits);
	runs->reserved_pages += (uint64_t)__builtin_popcountll(bits);
	bucket_update_locked(runs, index);
	lock_release(&runs->lock);
	return 1;
}

/* The smallest pieces go first: what stays in the reserve is then good for any run. */
static uint32_t find_surplus_locked(const struct runs *runs)
{
	for (uint32_t bucket = 1; bucket <= RUNS_WHOLE_BUCKET; bucket++)
		if (runs->bucket_head[bucket] != RUNS_NO_PAGE)
			return runs->bucket_head[bucket];
	return RUNS_NO_PAGE;
}

static int give_back_one_chunk(struct runs *runs, uint64_t surplus)
{
	lock_take(&runs->lock);
	uint32_t index = find_surplus_locked(runs);

	if (index == RUNS_NO_PAGE) {
		lock_release(&runs->lock);
		return 0;
	}
	struct runs_chunk *chunk = &runs->chunks[index];
	uint64_t bits = lowest_bits(chunk->reserved, surplus);

	chunk->reserved &= ~bits;
	runs->reserved_pages -= (uint64_t)__builtin_popcountll(bits);
	bucket_update_locked(runs, index);
	lock_release(&runs->lock);

	int err = on_each_run(runs, index, bits, region_punch);

	lock_take(&runs->lock);
	if (err < 0) {
		chunk->reserved |= bits;
		runs->reserved_pages += (uint64_t)__builtin_popcountll(bits);
		bucket_update_locked(runs, index);
		lock_release(&runs->lock);
		return err;
	}
	chunk->populated &= ~bits;
	runs->populated_pages -= (uint64_t)__builtin_popcountll(bits);
	bool last_out = chunk->populated == 0;

	if (index < runs->vacant_hint)
		runs->vacant_hint = index;
	lock_release(&runs->lock);
	if (last_out && runs->chunk_out)
		runs->chunk_out(runs->context, index);
	return 1;
}

int runs_balance(struct runs *runs)
{
	lock_take(&runs->lock);
	uint64_t reserved = runs->reserved_pages, target = runs->target_pages;
	uint64_t over = runs->populated_pages > runs->limit_pages
				? runs->populated_pages - runs->limit_pages
				: 0;
	bool starved = runs->starved;
	uint64_t growth = runs->limit_pages > runs->populated_pages
				  ? runs->limit_pages - runs->populated_pages
				  : 0;

	lock_release(&runs->lock);
	if (over > 0 && reserved > 0)
		return give_back_one_chunk(runs, UZ_MIN(over, reserved));
	/* The reserve has enough pages but not in one piece. At the limit, pieces are exchanged for
	 * a run elsewhere in the address space, as long as there are enough of them. */
	if (starved && growth >= RUNS_MAX_PAGES)
		return populate_one_chunk(runs);
	if (starved && growth + reserved >= RUNS_MAX_PAGES)
		return give_back_one_chunk(runs, RUNS_MAX_PAGES - growth);
	/* Just above the target nothing happens: no flapping. */
	if (reserved < target)
		return populate_one_chunk(runs);
	if (reserved > target + target / 4 + RUNS_MAX_PAGES)
		return give_back_one_chunk(runs, reserved - target);
	return 0;
}

void runs_set_target(struct runs *runs, uint64_t target_pages)
{
	lock_take(&runs->lock);
	runs->target_pages = target_pages;
	lock_release(&runs->lock);
}

void runs_set_limit(struct runs *runs, uint64_t limit_pages)
{
	lock_take(&runs->lock);
	runs->limit_pages = limit_pages;
	lock_release(&runs->lock);
}

void runs_usage(struct runs *runs, struct runs_usage *ret_usage)
{
	lock_take(&runs->lock);
	*ret_usage = (struct runs_usage){
		.limit_pages = runs->limit_pages,
		.populated_pages = runs->populated_pages,
		.reserved_pages = runs->reserved_pages,
		.handed_out = runs->handed_out,
	};
	lock_release(&runs->lock);
}
