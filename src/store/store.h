/* SPDX-License-Identifier: MIT */
/*
 * The store: slots 0..n-1, each holding at most one page. The only interface
 * that a transport sees. Below it: the arena (memory) and the codecs.
 *
 * Every thread that submits requests has a store_thread of its own: its codec
 * contexts, its counters and its place in safe memory reclamation.
 */
#ifndef UZ_STORE_STORE_H
#define UZ_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "stats/histogram.h"
#include "stats/stats.h"

struct store;
struct store_thread;

struct store_config {
	uint64_t size_bytes;	     /* of the device; a multiple of the page size, at least 40
					KiB */
	uint64_t memory_limit_bytes; /* bounds all memory of the store */
	enum codec_id codec;
	int level;
	int cpus;			  /* number of arenas at most; >= 1 */
	uint32_t expected_ratio_permille; /* assumed until pages have been measured; 3000
					     is 3:1 */
	const char *name;		  /* of the device, for thread names and messages; copied */
};

/* Smallest memory_limit_bytes that a device of this size can work with. */
uint64_t store_minimum_limit_bytes(uint64_t size_bytes);

/*
 * Makes a store and starts its two background threads. Returns 0 or -errno:
 * -EINVAL for a limit below the minimum, -ENOMEM, or what mmap and tmpfs say.
 */
int store_new(struct store **ret_store, const struct store_config *config);

/* No thread may be registered any more. NULL is fine. */
void store_free(struct store *store);

/*
 * Registers the calling thread. `compresses`: also allocate a compress context
 * (a thread without one must not submit writes). Returns 0 or -errno.
 */
int store_thread_new(struct store_thread **ret_thread, struct store *store, bool compresses);

/* By the thread that registered. NULL is fine. */
void store_thread_free(struct store_thread *thread);

enum store_op {
	STORE_READ,
	STORE_WRITE,
	STORE_DISCARD,
	STORE_FLUSH,
};

/*
 * A request. The submitter owns it and its buffer until `done` is called,
 * which happens exactly once, on the submitting thread before store_submit
 * returns, or later on a thread of the store's (once there is a backing disk).
 */
struct store_request {
	enum store_op op;
	uint64_t offset_bytes; /* any multiple of 512; whole pages are the fast path */
	uint64_t length_bytes; /* any multiple of 512, > 0 except for flush */
	void *data;	       /* read: filled; write: source, not changed meanwhile; else unused */
	uint64_t received_ns;  /* clock_now_ns() when the request arrived: the latency's
				  start */
	bool nowait; /* rather -EAGAIN than wait for memory; the pages written so far stay */
	/* Results: */
	int result; /* 0; -EINVAL outside the device; -ENOSPC full; -EIO corrupt object */
	void (*done)(struct store_request *request);
	void *context; /* the submitter's */
};

/*
 * Carries out a request. Reads take no lock and allocate nothing. A write that
 * fails half-way leaves each page either old or new. A write may wait for
 * memory; when none has come for STORE_WAIT_LIMIT_NS it ends with -ENOSPC, and
 * at once when none can come.
 * A request that ends with -EAGAIN (see nowait) is not counted.
 */
void store_submit(struct store_thread *thread, struct store_request *request);

#define STORE_WAIT_LIMIT_NS (200 * 1000000ull)

/* Frees every slot from `first_slot` on: after swapoff. On a registered thread. */
void store_forget(struct store_thread *thread, uint64_t first_slot);

/*
 * Moves objects out of sparse spans so that their memory can be given back.
 * Reads and writes go on meanwhile. One thread at a time, registered.
 */
void store_compact(struct store_thread *thread);

/* Changes for pages written from now on. Returns 0, or -EINVAL for a level out of range.
 */
int store_set_codec(struct store *store, enum codec_id codec, int level);
void store_get_codec(const struct store *store, enum codec_id *ret_codec, int *ret_level);

/*
 * Changes MemoryLimit=. Lowering it below what is in use keeps all pages;
 * writes get -ENOSPC until enough is freed. Returns 0, or -EINVAL below the
 * minimum or above what was reserved in address space at start
 * (store_maximum_limit_bytes).
 */
int store_set_limit(struct store *store, uint64_t memory_limit_bytes);
uint64_t store_maximum_limit_bytes(const struct store *store);

/* Fills in all that the store knows; BALLOON and SWAP_USED are left alone. Any thread. */
void store_stats(struct store *store, struct stats_values *values);

/* Adds the latencies of finished requests of this kind. */
void store_latency(struct store *store, enum store_op op, struct histogram_snapshot *snapshot);

/*
 * Pages that can still be stored: the free part of the limit divided by what a
 * page has cost lately, less a safety margin. 0 when the pool is full.
 */
uint64_t store_room_pages(struct store *store);

/* "noswap-tmpfs" or "locked-memfd": how the store's memory is kept from being swapped. */
const char *store_pinning(const struct store *store);

#endif
