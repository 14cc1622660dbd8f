/* SPDX-License-Identifier: MIT */
/* What the files of the store share. Nobody else includes this. */
#ifndef UZ_STORE_STORE_INTERNAL_H
#define UZ_STORE_STORE_INTERNAL_H

#include <semaphore.h>
#include <stdatomic.h>

#include "arena/arena.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/units.h"
#include "store/slot.h"
#include "store/store.h"

#define STORE_MAX_THREADS 256u

/* Objects that a thread has replaced and that readers may still look at. A power of two.
 */
#define LIMBO_ENTRIES 4096u

/* The states that a slot's page can be in. */
enum page_state {
	PAGE_EMPTY,
	PAGE_SAME,
	PAGE_COMPRESSED,
	PAGE_INCOMPRESSIBLE,
	PAGE_STATES,
};

/* Counted by each thread for itself: one writer, so relaxed load and store; summed by
 * readers. */
enum thread_counter {
	COUNT_READS,
	COUNT_WRITES,
	COUNT_DISCARDS,
	COUNT_FLUSHES,
	COUNT_PAGES_READ,
	COUNT_PAGES_WRITTEN,
	COUNT_PAGES_DISCARDED,
	COUNT_READ_ERRORS,
	COUNT_WRITE_ERRORS,
	COUNT_WRITE_NO_SPACE,
	COUNT_STORE_WAITS,
	COUNT_STORE_WAIT_NS,
	COUNT_COST_PAGES,      /* pages that the cost below is about */
	COUNT_COST_SIXTEENTHS, /* memory that they took when written, in 1/16 bytes */
	/* Differences, taken modulo 2^64: a page written by one thread may be freed by
	   another. */
	COUNT_STATE_SAME,
	COUNT_STATE_COMPRESSED,
	COUNT_STATE_INCOMPRESSIBLE,
	COUNT_OBJECT_BYTES,
	COUNT_COUNT,
};

/*
 * Single-producer, single-consumer ring of replaced slot words. `head` is
 * written by the owning thread (release, after the entry) and read by the
 * reclaim thread (acquire); `tail` the other way round (release, after the
 * object was freed; acquire by the owner before it overwrites an entry).
 */
struct limbo {
	_Atomic uint32_t head UZ_CACHE_ALIGNED;
	_Atomic uint32_t tail UZ_CACHE_ALIGNED;
	struct slot_word entry[LIMBO_ENTRIES];
};

struct store_thread {
	struct store *store;
	unsigned index;
	struct codec_compressor *compressor; /* NULL: this thread does not write */
	struct codec_decompressor *decompressor;
	unsigned char *scratch; /* a page: compression's output */
	bool nowait;		/* of the request that is being carried out */
	uint64_t deadline_ns;	/* its last moment to wait for memory; 0: has not waited yet */
	uint64_t seen_progress; /* see store_wait_for_memory */
	unsigned char *bounce;	/* a page: requests that are not whole pages */
	_Atomic uint64_t counter[COUNT_COUNT];
	_Atomic uint64_t longest_wait_ns;
	struct histogram read_latency;
	struct histogram write_latency;
	struct limbo limbo;
};

struct store {
	struct store_config config;
	char name[32];
	struct region region;
	struct arena_pool *pool;
	_Atomic uint64_t *slots; /* in the region; publish with release, read with acquire */
	uint64_t slot_count;
	uint64_t fixed_bytes; /* slot table, header, thread objects: counts towards the
				 limit */

	/* Set by ctl, read by writers for each page: an old value is as good, so relaxed.
	 */
	_Atomic uint64_t codec_and_level;
	_Atomic uint64_t limit_bytes;
	_Atomic uint64_t peak_bytes;

	struct lock lock; /* rank STORE: thread list, progress hand-shake */
	struct store_thread *threads[STORE_MAX_THREADS];
	/* What threads that have gone counted; so that totals never fall. Under the lock.
	 */
	uint64_t retired[COUNT_COUNT];
	uint64_t retired_longest_wait_ns;
	struct histogram retired_read_latency, retired_write_latency;
	/* The room estimate's view of late writes: totals at its start, cost per page in
	 * 1/16 bytes. Under the lock. */
	uint64_t recent_pages, recent_total, recent_cost;
	uint64_t progress; /* bumped when memory was populated or freed */
	struct condition progressed;

	/*
	 * Wake-ups of the two background threads. The flag says that one is under way, so
	 * that only the first of many requests costs a system call. Requester: exchange
	 * (acq_rel), post when it was clear. Thread: wait, clear (exchange acq_rel), then
	 * look at the work: work that was announced before the clear is seen after it.
	 */
	sem_t memory_wake, reclaim_wake;
	_Atomic int memory_wanted, reclaim_wanted, reclaim_urgent;
	_Atomic int stopping;
	struct thread memory_thread, reclaim_thread;
};

static inline void count_add(struct store_thread *thread, enum thread_counter counter, uint64_t by)
{
	_Atomic uint64_t *value = &thread->counter[counter];

	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + by,
			      memory_order_relaxed);
}

/* store_memory.c: */
int store_memory_start(struct store *store);
void store_memory_stop(struct store *store);
void store_want_memory(struct store *store);
void store_want_reclaim(struct store *store, bool urgent);
/* Puts a replaced object into the thread's limbo; waits when that is full. */
void store_retire(struct store_thread *thread, struct slot_word word);
/*
 * Sleeps until memory was populated or freed, for the request that the thread
 * carries out. Returns 0 (try again), or -ENOSPC when nothing more can come or
 * the request's deadline is over.
 */
int store_wait_for_memory(struct store_thread *thread);
uint64_t store_limit_to_pages(const struct store *store, uint64_t limit_bytes);

/* store_stats.c: */
/* Adds a leaving thread's numbers to the store's; under the lock. */
void store_stats_retire_locked(struct store *store, const struct store_thread *thread);
uint64_t store_memory_used(struct store *store);

#endif
