// SPDX-License-Identifier: MIT
/*
 * Numbers. Threads count for themselves without locks; whoever asks adds up.
 * A sum taken while pages move may be off by the pages that move at that
 * moment; it is clamped so that no number is negative and that the states of
 * all slots add up to the device.
 */
#include "store/store_internal.h"

#include <string.h>

/* Part of the estimated room that is kept back, in 1/100: the next pages may compress
 * worse. */
#define ROOM_MARGIN_PERCENT 3u

/* Weight of the expected ratio against measured pages. */
#define ROOM_PRIOR_PAGES 64u

/* From so many pages on the pool itself is the measure; with fewer, its partly filled spans weigh
 * too much. */
#define ROOM_HELD_PAGES 8192u

/* How many pages "lately" is. */
#define ROOM_RECENT_PAGES 4096u

uint64_t store_memory_used(struct store *store)
{
	struct arena_usage usage;

	arena_usage(store->pool, &usage);
	return store->fixed_bytes + usage.descriptor_bytes +
	       usage.runs.populated_pages * UZ_PAGE_SIZE;
}

static void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		atomic_fetch_add_explicit(
			&into->count[i],
			atomic_load_explicit(&from->count[i], memory_order_relaxed),
			memory_order_relaxed);
	atomic_fetch_add_explicit(&into->sum_ns,
				  atomic_load_explicit(&from->sum_ns, memory_order_relaxed),
				  memory_order_relaxed);
	uint64_t max = atomic_load_explicit(&from->max_ns, memory_order_relaxed);

	if (max > atomic_load_explicit(&into->max_ns, memory_order_relaxed))
		atomic_store_explicit(&into->max_ns, max, memory_order_relaxed);
}

void store_stats_retire_locked(struct store *store, const struct store_thread *thread)
{
	for (unsigned i = 0; i < COUNT_COUNT; i++)
		store->retired[i] +=
			atomic_load_explicit(&thread->counter[i], memory_order_relaxed);
	uint64_t longest = atomic_load_explicit(&thread->longest_wait_ns, memory_order_relaxed);

	store->retired_longest_wait_ns = UZ_MAX(store->retired_longest_wait_ns, longest);
	histogram_merge(&store->retired_read_latency, &thread->read_latency);
	histogram_merge(&store->retired_write_latency, &thread->write_latency);
}

static void sum_counters(struct store *store, uint64_t *ret_sum, uint64_t *ret_longest_wait_ns)
{
	lock_take(&store->lock);
	memcpy(ret_sum, store->retired, sizeof(store->retired));
	*ret_longest_wait_ns = store->retired_longest_wait_ns;
	for (unsigned i = 0; i < STORE_MAX_THREADS; i++) {
		const struct store_thread *thread = store->threads[i];

		if (!thread)
			continue;
		for (unsigned j = 0; j < COUNT_COUNT; j++)
			ret_sum[j] +=
				atomic_load_explicit(&thread->counter[j], memory_order_relaxed);
		uint64_t longest =
			atomic_load_explicit(&thread->longest_wait_ns, memory_order_relaxed);

		*ret_longest_wait_ns = UZ_MAX(*ret_longest_wait_ns, longest);
	}
	lock_release(&store->lock);
	static const enum thread_counter differences[] = {COUNT_STATE_SAME, COUNT_STATE_COMPRESSED,
							  COUNT_STATE_INCOMPRESSIBLE,
							  COUNT_OBJECT_BYTES};

	for (unsigned i = 0; i < UZ_ARRAY_SIZE(differences); i++)
		if ((int64_t)ret_sum[differences[i]] < 0)
			ret_sum[differences[i]] = 0;
}

/*
 * What a page costs, in 1/16 bytes. Three views: the configuration's
 * expectation, which fades as pages come in; the pages that are held now (memory
 * in use over pages); and the pages written lately. When the last compress
 * worse than those held, the estimate goes half of the way to meet them.
 */
static uint64_t cost_per_page_sixteenths(struct store *store, const uint64_t *sum,
					 uint64_t used_pages, uint64_t held_pages)
{
	uint64_t expected = (uint64_t)UZ_PAGE_SIZE * 16 * 1000 /
			    UZ_MAX(store->config.expected_ratio_permille, 1000u);
	uint64_t written = sum[COUNT_COST_PAGES], written_cost = sum[COUNT_COST_SIXTEENTHS];

	if (held_pages < ROOM_HELD_PAGES)
		return (written_cost + expected * ROOM_PRIOR_PAGES) / (written + ROOM_PRIOR_PAGES);
	lock_take(&store->lock);
	if (written - store->recent_pages >= ROOM_RECENT_PAGES) {
		store->recent_cost =
			(written_cost - store->recent_total) / (written - store->recent_pages);
		store->recent_pages = written;
		store->recent_total = written_cost;
	}
	uint64_t recent = store->recent_cost;

	lock_release(&store->lock);
	uint64_t held = used_pages * (UZ_PAGE_SIZE + ARENA_DESCRIPTOR_BYTES) * 16 / held_pages;

	return recent > held ? (held + recent) / 2 : held;
}

static uint64_t room_pages(struct store *store, const uint64_t *sum)
{
	struct arena_usage usage;

	arena_usage(store->pool, &usage);
	uint64_t used = usage.runs.populated_pages - usage.runs.reserved_pages;
	uint64_t held = sum[COUNT_STATE_SAME] + sum[COUNT_STATE_COMPRESSED] +
			sum[COUNT_STATE_INCOMPRESSIBLE];
	uint64_t free_pages = usage.runs.limit_pages > used ? usage.runs.limit_pages - used : 0;
	/* At least a byte a page: pages that are all same-filled would make the room
	 * infinite. */
	uint64_t cost = UZ_MAX(cost_per_page_sixteenths(store, sum, used, held), 16u);
	uint64_t room = free_pages * UZ_PAGE_SIZE * 16 / cost * (100 - ROOM_MARGIN_PERCENT) / 100;
	uint64_t empty = store->slot_count > held ? store->slot_count - held : 0;

	return UZ_MIN(room, empty);
}

uint64_t store_room_pages(struct store *store)
{
	uint64_t sum[COUNT_COUNT], longest;

	sum_counters(store, sum, &longest);
	return room_pages(store, sum);
}

void store_stats(struct store *store, struct stats_values *values)
{
	uint64_t sum[COUNT_COUNT], longest_wait_ns;
	struct arena_usage usage;
	uint64_t *value = values->value;

	sum_counters(store, sum, &longest_wait_ns);
	arena_usage(store->pool, &usage);
	uint64_t left = store->slot_count;

	value[STATS_SIZE] = store->config.size_bytes;
	value[STATS_PAGES_SAME] = UZ_MIN(sum[COUNT_STATE_SAME], left);
	left -= value[STATS_PAGES_SAME];
	value[STATS_PAGES_COMPRESSED] = UZ_MIN(sum[COUNT_STATE_COMPRESSED], left);
	left -= value[STATS_PAGES_COMPRESSED];
	value[STATS_PAGES_INCOMPRESSIBLE] = UZ_MIN(sum[COUNT_STATE_INCOMPRESSIBLE], left);
	left -= value[STATS_PAGES_INCOMPRESSIBLE];
	value[STATS_PAGES_EMPTY] = left;
	value[STATS_STORED] = (store->slot_count - left) * UZ_PAGE_SIZE;
	value[STATS_COMPRESSED] = sum[COUNT_OBJECT_BYTES];
	value[STATS_MEMORY_USED] = store_memory_used(store);
	value[STATS_MEMORY_PEAK] =
		UZ_MAX(atomic_load_explicit(&store->peak_bytes, memory_order_relaxed),
		       value[STATS_MEMORY_USED]);
	value[STATS_MEMORY_LIMIT] = atomic_load_explicit(&store->limit_bytes, memory_order_relaxed);
	value[STATS_MEMORY_RESERVE] = usage.runs.reserved_pages * UZ_PAGE_SIZE;
	value[STATS_MEMORY_TABLE] = store->fixed_bytes + usage.descriptor_bytes;
	value[STATS_ROOM] = room_pages(store, sum);
	value[STATS_READS] = sum[COUNT_READS];
	value[STATS_WRITES] = sum[COUNT_WRITES];
	value[STATS_DISCARDS] = sum[COUNT_DISCARDS];
	value[STATS_FLUSHES] = sum[COUNT_FLUSHES];
	value[STATS_PAGES_READ] = sum[COUNT_PAGES_READ];
	value[STATS_PAGES_WRITTEN] = sum[COUNT_PAGES_WRITTEN];
	value[STATS_PAGES_DISCARDED] = sum[COUNT_PAGES_DISCARDED];
	value[STATS_READ_ERRORS] = sum[COUNT_READ_ERRORS];
	value[STATS_WRITE_ERRORS] = sum[COUNT_WRITE_ERRORS];
	value[STATS_WRITE_NO_SPACE] = sum[COUNT_WRITE_NO_SPACE];
	value[STATS_STORE_WAITS] = sum[COUNT_STORE_WAITS];
	value[STATS_STORE_WAIT_TIME] = sum[COUNT_STORE_WAIT_NS];
	value[STATS_STORE_WAIT_LONGEST] = longest_wait_ns;
}

void store_latency(struct store *store, enum store_op op, struct histogram_snapshot *snapshot)
{
	if (op != STORE_READ && op != STORE_WRITE)
		return;
	lock_take(&store->lock);
	histogram_add_to(op == STORE_READ ? &store->retired_read_latency
					  : &store->retired_write_latency,
			 snapshot);
	for (unsigned i = 0; i < STORE_MAX_THREADS; i++) {
		const struct store_thread *thread = store->threads[i];

		if (thread)
			histogram_add_to(op == STORE_READ ? &thread->read_latency
							  : &thread->write_latency,
					 snapshot);
	}
	lock_release(&store->lock);
}
