// SPDX-License-Identifier: MIT
/*
 * The store's memory: its layout, the reserve and the reclaim of replaced objects.
 *
 * Layout of the region (position-independent; offsets only):
 *   page 0          header: magic, version, sizes
 *   page 1..        slot table, 8 bytes a slot, populated as a whole at start
 *   area            objects, populated by the memory thread ahead of need
 *
 * "uzswap:mem" keeps the reserve: it populates and gives back. Its system calls
 * may sleep in the kernel's own reclaim, which may need us; so nothing that
 * serves requests ever waits for it longer than STORE_WAIT_LIMIT_NS.
 * "uzswap:gc" frees replaced objects once no reader can look at them.
 */
#include "store/store_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <urcu/urcu-memb.h>

#include "base/clock.h"
#include "base/sanitize.h"

#define STORE_MAGIC   0x50415753555a0a1aull /* "\x1a\nZUSWAP" little-endian; never a page's start */
#define STORE_VERSION 1u

/* What the memory thread keeps populated: enough for the demand of this long ... */
#define RESERVE_AHEAD_NS (12 * UZ_NSEC_PER_MSEC)
/* ... within these bounds, and at most this part of the limit. */
#define RESERVE_MIN_PAGES      (256 * UZ_KIB / UZ_PAGE_SIZE)
#define RESERVE_MAX_PAGES      (32 * UZ_MIB / UZ_PAGE_SIZE)
#define RESERVE_LIMIT_DIVISOR  16u
#define RESERVE_DECAY_INTERVAL (100 * UZ_NSEC_PER_MSEC)

/* Objects wait so long in limbo for company: a grace period costs interrupts on other
 * CPUs. */
#define RECLAIM_BATCH_NS (2 * UZ_NSEC_PER_MSEC)

struct store_header {
	uint64_t magic;
	uint32_t version;
	uint32_t page_size;
	uint64_t size_bytes;
	uint64_t slots_offset_bytes;
	uint64_t area_offset_bytes;
};

static uint64_t table_bytes(uint64_t size_bytes)
{
	return uz_round_up(size_bytes / UZ_PAGE_SIZE * sizeof(uint64_t), UZ_PAGE_SIZE);
}

/* Everything but objects and their descriptors. Thread objects are counted for a typical
 * machine. */
static uint64_t fixed_bytes(uint64_t size_bytes)
{
	return UZ_PAGE_SIZE + table_bytes(size_bytes) + 8 * sizeof(struct store_thread);
}

uint64_t store_minimum_limit_bytes(uint64_t size_bytes)
{
	return fixed_bytes(size_bytes) + 2 * UZ_MIB;
}

uint64_t store_limit_to_pages(const struct store *store, uint64_t limit_bytes)
{
	struct arena_usage usage = {0};

	if (store->pool)
		arena_usage(store->pool, &usage);
	/* Descriptors come with the pages; what is left of them (shards, chunks) is
	 * fixed. */
	uint64_t descs = usage.runs.populated_pages * ARENA_DESCRIPTOR_BYTES;
	uint64_t shards = usage.descriptor_bytes > descs ? usage.descriptor_bytes - descs : 0;
	uint64_t fixed = store->fixed_bytes + shards;

	return limit_bytes > fixed ? (limit_bytes - fixed) / (UZ_PAGE_SIZE + ARENA_DESCRIPTOR_BYTES)
				   : 0;
}

/* The largest limit that could make sense: all pages incompressible, or all of RAM. */
static uint64_t largest_limit(const struct store_config *config)
{
	struct sysinfo info;
	uint64_t all = fixed_bytes(config->size_bytes) + config->size_bytes +
		       config->size_bytes / 16 + 8 * UZ_MIB;

	if (sysinfo(&info) == 0)
		all = UZ_MIN(all, (uint64_t)info.totalram * info.mem_unit);
	return UZ_MAX(all, config->memory_limit_bytes);
}

uint64_t store_maximum_limit_bytes(const struct store *store)
{
	return largest_limit(&store->config);
}

int store_set_limit(struct store *store, uint64_t memory_limit_bytes)
{
	if (memory_limit_bytes < store_minimum_limit_bytes(store->config.size_bytes) ||
	    memory_limit_bytes > store_maximum_limit_bytes(store))
		return -EINVAL;
	atomic_store_explicit(&store->limit_bytes, memory_limit_bytes, memory_order_relaxed);
	arena_set_limit(store->pool, store_limit_to_pages(store, memory_limit_bytes));
	store_want_memory(store);
	return 0;
}

const char *store_pinning(const struct store *store)
{
	return region_pinning_name(store->region.pinning);
}

static void wake(_Atomic int *wanted, sem_t *semaphore)
{
	/* The relaxed look keeps the line shared while a wake-up is under way. A stale 1
	 * is harmless: the exchange that will clear it has not happened yet, so the work
	 * will be seen. */
	if (atomic_load_explicit(wanted, memory_order_relaxed) == 0 &&
	    atomic_exchange_explicit(wanted, 1, memory_order_acq_rel) == 0)
		sem_post(semaphore);
}

void store_want_memory(struct store *store)
{
	wake(&store->memory_wanted, &store->memory_wake);
}

void store_want_reclaim(struct store *store, bool urgent)
{
	if (urgent)
		atomic_store_explicit(&store->reclaim_urgent, 1, memory_order_release);
	wake(&store->reclaim_wanted, &store->reclaim_wake);
}

static void announce_progress(struct store *store)
{
	lock_take(&store->lock);
	store->progress++;
	condition_wake_all(&store->progressed);
	lock_release(&store->lock);
}

/* --- reclaim ------------------------------------------------------------- */

static uint32_t limbo_count(struct limbo *limbo)
{
	return atomic_load_explicit(&limbo->head, memory_order_relaxed) -
	       atomic_load_explicit(&limbo->tail, memory_order_acquire);
}

void store_retire(struct store_thread *thread, struct slot_word word)
{
	struct limbo *limbo = &thread->limbo;
	uint32_t head = atomic_load_explicit(&limbo->head, memory_order_relaxed);

	while (limbo_count(limbo) >= LIMBO_ENTRIES) {
		/* Readers leave their sections within a page's decompression, so this is
		 * short. */
		store_want_reclaim(thread->store, true);
		lock_take(&thread->store->lock);
		if (limbo_count(limbo) >= LIMBO_ENTRIES)
			condition_wait_until(&thread->store->progressed, &thread->store->lock,
					     clock_now_ns() + UZ_NSEC_PER_MSEC);
		lock_release(&thread->store->lock);
	}
	limbo->entry[head % LIMBO_ENTRIES] = word;
	atomic_store_explicit(&limbo->head, head + 1, memory_order_release);
	store_want_reclaim(thread->store, false);
}

static void wait_for_readers(struct store *store)
{
	urcu_memb_synchronize_rcu();
#if UZ_TSAN
	void __tsan_acquire(void *address); /* other half of READ_SECTION_LEFT in store.c */
	__tsan_acquire(&store->progress);
#else
	(void)store;
#endif
}

/* Frees everything that was in limbo when it was called. Returns the number of objects.
 */
static uint64_t reclaim_once(struct store *store)
{
	struct {
		struct store_thread *thread;
		uint32_t head;
	} work[STORE_MAX_THREADS];
	unsigned works = 0;
	uint64_t freed = 0;
	bool high = false;

	/* Threads leave under the lock and with an empty ring, so one whose ring is not
	 * empty now stays until this function has emptied it. */
	lock_take(&store->lock);
	for (unsigned i = 0; i < STORE_MAX_THREADS; i++) {
		struct store_thread *thread = store->threads[i];

		if (!thread || limbo_count(&thread->limbo) == 0)
			continue;
		work[works].thread = thread;
		work[works++].head =
			atomic_load_explicit(&thread->limbo.head, memory_order_acquire);
	}
	lock_release(&store->lock);
	if (works == 0)
		return 0;
	wait_for_readers(store);
	for (unsigned i = 0; i < works; i++) {
		struct limbo *limbo = &work[i].thread->limbo;
		uint32_t tail = atomic_load_explicit(&limbo->tail, memory_order_relaxed);

		for (; tail != work[i].head; freed++) {
			arena_free(store->pool, slot_object(limbo->entry[tail % LIMBO_ENTRIES]),
				   &high);
			/* After the last one the thread may be gone. */
			atomic_store_explicit(&limbo->tail, ++tail, memory_order_release);
		}
	}
	if (high)
		store_want_memory(store);
	return freed;
}

static bool stopping(struct store *store)
{
	return atomic_load_explicit(&store->stopping, memory_order_acquire) != 0;
}

static void sleep_until_wanted(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		; /* EINTR is the only failure */
}

static void reclaim_run(void *argument)
{
	struct store *store = argument;

	while (!stopping(store)) {
		sleep_until_wanted(&store->reclaim_wake);
		if (!atomic_load_explicit(&store->reclaim_urgent, memory_order_acquire))
			clock_sleep_ns(RECLAIM_BATCH_NS);
		atomic_store_explicit(&store->reclaim_urgent, 0, memory_order_relaxed);
		atomic_exchange_explicit(&store->reclaim_wanted, 0, memory_order_acq_rel);
		reclaim_once(store);
		announce_progress(store);
	}
	reclaim_once(store);
}

/* --- the reserve --------------------------------------------------------- */

/* The reserve for a demand of `pages` in `elapsed_ns`, never below a quarter of what it was.
 */
static uint64_t reserve_target(uint64_t limit_pages, uint64_t pages, uint64_t elapsed_ns,
			       uint64_t last_target)
{
	uint64_t most = UZ_MAX(RESERVE_MIN_PAGES,
			       UZ_MIN(RESERVE_MAX_PAGES, limit_pages / RESERVE_LIMIT_DIVISOR));
	uint64_t wanted = elapsed_ns > 0 ? pages * RESERVE_AHEAD_NS / elapsed_ns : 0;

	wanted = UZ_MAX(wanted, last_target / 4);
	return UZ_MIN(UZ_MAX(wanted, RESERVE_MIN_PAGES), most);
}

static void note_peak(struct store *store)
{
	uint64_t used = store_memory_used(store);

	/* Written by the memory thread alone. */
	if (used > atomic_load_explicit(&store->peak_bytes, memory_order_relaxed))
		atomic_store_explicit(&store->peak_bytes, used, memory_order_relaxed);
}

static bool sleep_until_wanted_or(sem_t *semaphore, uint64_t timeout_ns)
{
	struct timespec ts;
	uint64_t deadline_ns = clock_now_ns() + timeout_ns;

	ts.tv_sec = (time_t)(deadline_ns / UZ_NSEC_PER_SEC);
	ts.tv_nsec = (long)(deadline_ns % UZ_NSEC_PER_SEC);
	while (sem_clockwait(semaphore, CLOCK_MONOTONIC, &ts) < 0)
		if (errno == ETIMEDOUT)
			return false;
	return true;
}

static void memory_run(void *argument)
{
	struct store *store = argument;
	uint64_t target = RESERVE_MIN_PAGES, last_ns = clock_now_ns(), last_handed_out = 0;

	while (!stopping(store)) {
		struct arena_usage usage;

		/* With nothing more to decay there is no reason to wake up by itself. */
		if (target > RESERVE_MIN_PAGES)
			sleep_until_wanted_or(&store->memory_wake, RESERVE_DECAY_INTERVAL);
		else
			sleep_until_wanted(&store->memory_wake);
		atomic_exchange_explicit(&store->memory_wanted, 0, memory_order_acq_rel);
		arena_usage(store->pool, &usage);
		uint64_t now_ns = clock_now_ns();

		if (now_ns - last_ns >= 2 * UZ_NSEC_PER_MSEC) {
			target = reserve_target(usage.runs.limit_pages,
						usage.runs.handed_out - last_handed_out,
						now_ns - last_ns, target);
			last_ns = now_ns;
			last_handed_out = usage.runs.handed_out;
			arena_set_target(store->pool, target);
		}
		int did;

		while ((did = arena_balance(store->pool)) > 0 && !stopping(store))
			announce_progress(store);
		note_peak(store);
		announce_progress(store);
		/* The kernel has no memory at the moment: a short pause, then again. */
		if (did < 0 && !stopping(store)) {
			clock_sleep_ns(UZ_NSEC_PER_MSEC);
			store_want_memory(store);
		}
	}
}

/* Tells whether waiting can help: the pool may still grow, or replaced objects are on
 * their way. */
static bool memory_may_come(struct store *store)
{
	struct arena_usage usage;

	arena_usage(store->pool, &usage);
	/* Reserved pages that are in too small pieces can be exchanged for a run. */
	if (usage.runs.populated_pages < usage.runs.limit_pages ||
	    usage.runs.reserved_pages >= RUNS_MAX_PAGES)
		return true;
	lock_take(&store->lock);
	bool limbo = false;

	for (unsigned i = 0; i < STORE_MAX_THREADS && !limbo; i++)
		limbo = store->threads[i] && limbo_count(&store->threads[i]->limbo) > 0;
	lock_release(&store->lock);
	return limbo;
}

int store_wait_for_memory(struct store_thread *thread)
{
	struct store *store = thread->store;
	uint64_t start_ns = clock_now_ns();
	bool may_come = memory_may_come(store);
	int err = 0;

	if (thread->deadline_ns == 0)
		thread->deadline_ns = start_ns + STORE_WAIT_LIMIT_NS;
	store_want_reclaim(store, true);
	store_want_memory(store);
	lock_take(&store->lock);
	/* Progress since the caller's last look is worth another try; else wait for some.
	 */
	if (thread->seen_progress == store->progress || thread->seen_progress == 0) {
		if (!may_come && thread->seen_progress != 0)
			err = -ENOSPC;
		else
			condition_wait_until(
				&store->progressed, &store->lock,
				UZ_MIN(thread->deadline_ns, start_ns + 5 * UZ_NSEC_PER_MSEC));
	} else if (!may_come) {
		err = -ENOSPC;
	}
	thread->seen_progress = store->progress;
	lock_release(&store->lock);
	uint64_t now_ns = clock_now_ns(), waited_ns = now_ns - start_ns;

	count_add(thread, COUNT_STORE_WAITS, 1);
	count_add(thread, COUNT_STORE_WAIT_NS, waited_ns);
	if (waited_ns > atomic_load_explicit(&thread->longest_wait_ns, memory_order_relaxed))
		atomic_store_explicit(&thread->longest_wait_ns, waited_ns, memory_order_relaxed);
	if (err == 0 && now_ns >= thread->deadline_ns)
		err = -ENOSPC;
	return err;
}

/* --- life ---------------------------------------------------------------- */

static void write_header(struct store *store, uint64_t area_offset_bytes)
{
	struct store_header header = {
		.magic = STORE_MAGIC,
		.version = STORE_VERSION,
		.page_size = UZ_PAGE_SIZE,
		.size_bytes = store->config.size_bytes,
		.slots_offset_bytes = UZ_PAGE_SIZE,
		.area_offset_bytes = area_offset_bytes,
	};

	memcpy(store->region.base, &header, sizeof(header));
}

static int map_memory(struct store *store)
{
	uint64_t area_offset = UZ_PAGE_SIZE + table_bytes(store->config.size_bytes);
	uint64_t area_pages = arena_area_pages(largest_limit(&store->config) / UZ_PAGE_SIZE);
	uint64_t region_bytes = area_offset + arena_region_bytes(area_pages);

	if (region_bytes > SLOT_MAX_REGION_BYTES)
		return -EFBIG;
	int err = region_init(&store->region, region_bytes);

	if (err < 0)
		return err;
	err = region_populate(&store->region, 0, area_offset);
	if (err < 0)
		return err;
	store->slots = (_Atomic uint64_t *)(void *)(store->region.base + UZ_PAGE_SIZE);
	write_header(store, area_offset);
	struct arena_config arena = {
		.region = &store->region,
		.area_offset_bytes = area_offset,
		.area_pages = area_pages,
		.limit_pages = store_limit_to_pages(store, store->config.memory_limit_bytes),
		.arenas = (unsigned)UZ_MIN(UZ_MAX(store->config.cpus, 1), (int)ARENA_MAX_ARENAS),
	};
	err = arena_pool_new(&store->pool, &arena);
	if (err < 0)
		return err;
	/* Now the shards' size is known too. */
	arena_set_limit(store->pool, store_limit_to_pages(store, store->config.memory_limit_bytes));
	arena_set_target(store->pool, RESERVE_MIN_PAGES);
	while ((err = arena_balance(store->pool)) > 0)
		;
	return err;
}

static int start_threads(struct store *store)
{
	char name[16];

	/* Above the compressors, which need what these two provide. */
	snprintf(name, sizeof(name), "uzswap:mem");
	int err = thread_start(&store->memory_thread, name, memory_run, store, -1, -10);

	if (err < 0)
		return err;
	snprintf(name, sizeof(name), "uzswap:gc");
	return thread_start(&store->reclaim_thread, name, reclaim_run, store, -1, -10);
}

int store_new(struct store **ret_store, const struct store_config *config)
{
	if (config->memory_limit_bytes < store_minimum_limit_bytes(config->size_bytes) ||
	    config->size_bytes % UZ_PAGE_SIZE != 0 || config->size_bytes < 10 * UZ_PAGE_SIZE)
		return -EINVAL;
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	store->config = *config;
	snprintf(store->name, sizeof(store->name), "%s", config->name);
	store->config.name = store->name;
	store->slot_count = config->size_bytes / UZ_PAGE_SIZE;
	store->fixed_bytes = fixed_bytes(config->size_bytes);
	store->progress = 1;
	atomic_init(&store->limit_bytes, config->memory_limit_bytes);
	lock_init(&store->lock, LOCK_RANK_STORE);
	condition_init(&store->progressed);
	sem_init(&store->memory_wake, 0, 0);
	sem_init(&store->reclaim_wake, 0, 0);
	int err = store_set_codec(store, config->codec, config->level);

	if (err == 0)
		err = map_memory(store);
	if (err == 0)
		err = start_threads(store);
	if (err < 0) {
		store_free(store);
		return err;
	}
	*ret_store = store;
	return 0;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	atomic_store_explicit(&store->stopping, 1, memory_order_release);
	sem_post(&store->memory_wake);
	store_want_reclaim(store, true);
	sem_post(&store->reclaim_wake);
	thread_join(&store->memory_thread);
	thread_join(&store->reclaim_thread);
	arena_pool_free(store->pool);
	region_done(&store->region);
	sem_destroy(&store->memory_wake);
	sem_destroy(&store->reclaim_wake);
	condition_done(&store->progressed);
	lock_done(&store->lock);
	free(store);
}
