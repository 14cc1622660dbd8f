// SPDX-License-Identifier: MIT
/*
 * Requests. Threads: any registered thread submits.
 *
 * The slot table is the truth; an entry changes by one atomic operation:
 *   write   compress to private memory -> allocate -> copy -> exchange the word
 *           (acq_rel) -> the word that came out goes to this thread's limbo.
 *   discard exchange the word for 0 -> limbo.
 *   read    enter a read-side section -> load the word (acquire) -> decompress
 *           from the arena into the caller's buffer -> leave the section.
 *   move    (compaction) copy inside a read-side section -> compare-exchange;
 *           when somebody was faster, the copy is freed and the slot left alone.
 * The reclaim thread frees what is in limbo after a grace period, so a reader
 * never sees memory that is already used for something else. Two writes of one
 * slot at the same time leave one of the two pages; each word that is replaced
 * comes out of exactly one exchange, so it is freed exactly once.
 */
#include "store/store_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-memb.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "codec/fill.h"

#if UZ_TSAN
/* ThreadSanitizer cannot see liburcu's barriers: tell it that leaving a section happens
 * before the end of the grace period that waited for it (store_memory.c has the other
 * half). */
void __tsan_release(void *address);
#define READ_SECTION_LEFT(store) __tsan_release(&(store)->progress)
#else
#define READ_SECTION_LEFT(store) ((void)(store))
#endif

static void section_enter(void)
{
	urcu_memb_read_lock();
}

static void section_leave(struct store *store)
{
	READ_SECTION_LEFT(store);
	urcu_memb_read_unlock();
}

static struct slot_word slot_load(const struct store *store, uint64_t slot)
{
	/* Pairs with the release in publish: the object's bytes are there before the
	 * word. */
	return (struct slot_word){atomic_load_explicit(&store->slots[slot], memory_order_acquire)};
}

static enum page_state state_of(struct slot_word word)
{
	if (slot_is_empty(word))
		return PAGE_EMPTY;
	if (slot_is_fill(word))
		return PAGE_SAME;
	return slot_codec(word) == CODEC_RAW ? PAGE_INCOMPRESSIBLE : PAGE_COMPRESSED;
}

/* Counts `word` in (by = 1) or out (by = -1). */
static void count_word(struct store_thread *thread, struct slot_word word, uint64_t by)
{
	static const enum thread_counter counter_of[PAGE_STATES] = {
		[PAGE_SAME] = COUNT_STATE_SAME,
		[PAGE_COMPRESSED] = COUNT_STATE_COMPRESSED,
		[PAGE_INCOMPRESSIBLE] = COUNT_STATE_INCOMPRESSIBLE,
	};
	enum page_state state = state_of(word);

	if (state == PAGE_EMPTY)
		return;
	count_add(thread, counter_of[state], by);
	if (slot_is_object(word))
		count_add(thread, COUNT_OBJECT_BYTES, by * slot_length_bytes(word));
}

static void replaced(struct store_thread *thread, struct slot_word old)
{
	count_word(thread, old, (uint64_t)-1);
	if (slot_is_object(old))
		store_retire(thread, old);
}

static void publish(struct store_thread *thread, uint64_t slot, struct slot_word word)
{
	/* Release: the object first, then the word. Acquire: the old object's bytes are
	 * ours to free. */
	uint64_t old = atomic_exchange_explicit(&thread->store->slots[slot], word.bits,
						memory_order_acq_rel);

	count_word(thread, word, 1);
	replaced(thread, (struct slot_word){old});
}

/* As publish, but only if the slot still holds `expected`. */
static bool publish_if(struct store_thread *thread, uint64_t slot, struct slot_word expected,
		       struct slot_word word)
{
	uint64_t old = expected.bits;

	if (!atomic_compare_exchange_strong_explicit(&thread->store->slots[slot], &old, word.bits,
						     memory_order_acq_rel, memory_order_acquire))
		return false;
	count_word(thread, word, 1);
	replaced(thread, expected);
	return true;
}

/* Room for an object, waiting for it if need be. Returns 0, -ENOSPC or -EAGAIN. */
static int object_alloc(struct store_thread *thread, uint32_t length_bytes,
			struct arena_object *ret_object)
{
	struct store *store = thread->store;
	for (;;) {
		bool low = false;
		int err = arena_alloc(store->pool, thread->index, length_bytes, ret_object, &low);

		if (low)
			store_want_memory(store);
		if (err == 0) {
			thread->deadline_ns = 0;
			return 0;
		}
		if (thread->nowait)
			return -EAGAIN;
		err = store_wait_for_memory(thread);
		if (err < 0)
			return err;
	}
}

/* Copies an object into the pool; it is nobody's until its word is published. */
static int object_store(struct store_thread *thread, const void *bytes, uint32_t length_bytes,
			enum codec_id codec, struct slot_word *ret_word)
{
	struct arena_object object;
	int err = object_alloc(thread, length_bytes, &object);

	if (err < 0)
		return err;
	memcpy(thread->store->region.base + object.offset_bytes, bytes, length_bytes);
	*ret_word = slot_from_object(object, codec, length_bytes);
	return 0;
}

/* Turns a page into a slot word, its object stored. The page is read once by the codec
 * only. */
static int page_encode(struct store_thread *thread, const void *page, struct slot_word *ret_word)
{
	struct store *store = thread->store;
	uint64_t fill;

	if (fill_detect(page, &fill) && slot_from_fill(fill, ret_word))
		return 0;
	enum codec_id codec;
	int level;

	store_get_codec(store, &codec, &level);
	int length = codec_compress(thread->compressor, codec, level, page, thread->scratch,
				    arena_largest_compressed_bytes(store->pool));

	/* A codec that fails costs memory, not the page. */
	if (length <= 0)
		return object_store(thread, page, UZ_PAGE_SIZE, CODEC_RAW, ret_word);
	return object_store(thread, thread->scratch, (uint32_t)length, codec, ret_word);
}

static void count_cost(struct store_thread *thread, struct slot_word word)
{
	count_add(thread, COUNT_COST_PAGES, 1);
	if (slot_is_object(word))
		count_add(thread, COUNT_COST_SIXTEENTHS,
			  arena_cost_sixteenths(thread->store->pool, slot_length_bytes(word)));
}

static int page_write(struct store_thread *thread, uint64_t slot, const void *page)
{
	struct slot_word word;
	int err = page_encode(thread, page, &word);

	if (err < 0)
		return err;
	count_cost(thread, word);
	publish(thread, slot, word);
	return 0;
}

/* Restores what a word stands for; inside a read-side section. */
static int word_decode(struct store_thread *thread, struct slot_word word, void *page)
{
	if (slot_is_empty(word)) {
		memset(page, 0, UZ_PAGE_SIZE);
		return 0;
	}
	if (slot_is_fill(word)) {
		fill_page(page, slot_fill(word));
		return 0;
	}
	if (!slot_is_object(word))
		return -EIO;
	return codec_decompress(thread->decompressor, slot_codec(word),
				thread->store->region.base + slot_object(word).offset_bytes,
				slot_length_bytes(word), page);
}

static int page_read(struct store_thread *thread, uint64_t slot, void *page)
{
	section_enter();
	int err = word_decode(thread, slot_load(thread->store, slot), page);

	section_leave(thread->store);
	return err;
}

/* Frees an object whose word was never published: no reader can have seen it. */
static void object_drop(struct store_thread *thread, struct slot_word word)
{
	bool high = false;

	if (!slot_is_object(word))
		return;
	arena_free(thread->store->pool, slot_object(word), &high);
	if (high)
		store_want_memory(thread->store);
}

/*
 * Changes part of a page: `data` NULL stands for zeros. Another write of the
 * same page in between is noticed by the compare, and the part is applied again.
 */
static int page_write_part(struct store_thread *thread, uint64_t slot, unsigned start,
			   unsigned length, const void *data)
{
	for (;;) {
		section_enter();
		struct slot_word seen = slot_load(thread->store, slot);
		int err = word_decode(thread, seen, thread->bounce);

		section_leave(thread->store);
		if (err < 0)
			return err;
		if (data)
			memcpy(thread->bounce + start, data, length);
		else
			memset(thread->bounce + start, 0, length);
		struct slot_word word;

		err = page_encode(thread, thread->bounce, &word);
		if (err < 0)
			return err;
		/* An object at the same place with the same length could have come and
		 * gone since `seen`: then its bytes may differ from what we merged. Only
		 * requests that overlap in time can do that, whose order is undefined for
		 * any block device. */
		if (publish_if(thread, slot, seen, word)) {
			count_cost(thread, word);
			return 0;
		}
		object_drop(thread, word);
	}
}

static int page_read_part(struct store_thread *thread, uint64_t slot, unsigned start,
			  unsigned length, void *data)
{
	int err = page_read(thread, slot, thread->bounce);

	if (err == 0)
		memcpy(data, thread->bounce + start, length);
	return err;
}

/* Returns whether there was a page. */
static bool page_discard(struct store_thread *thread, uint64_t slot)
{
	struct store *store = thread->store;

	/* Most of a large discard is empty already: look before writing to the line. */
	if (atomic_load_explicit(&store->slots[slot], memory_order_relaxed) == 0)
		return false;
	uint64_t old = atomic_exchange_explicit(&store->slots[slot], 0, memory_order_acq_rel);

	if (old != 0)
		replaced(thread, (struct slot_word){old});
	return old != 0;
}

/* Carries out `op` on `length` bytes at `start` of a slot; whole pages are the rule. */
static int page_request(struct store_thread *thread, enum store_op op, uint64_t slot,
			unsigned start, unsigned length, void *data)
{
	bool whole = length == UZ_PAGE_SIZE;

	switch (op) {
	case STORE_READ:
		count_add(thread, COUNT_PAGES_READ, 1);
		return whole ? page_read(thread, slot, data)
			     : page_read_part(thread, slot, start, length, data);
	case STORE_WRITE:
		count_add(thread, COUNT_PAGES_WRITTEN, 1);
		return whole ? page_write(thread, slot, data)
			     : page_write_part(thread, slot, start, length, data);
	case STORE_DISCARD:
		if (!whole)
			return page_write_part(thread, slot, start, length, NULL);
		count_add(thread, COUNT_PAGES_DISCARDED, page_discard(thread, slot));
		return 0;
	case STORE_FLUSH:
		return 0; /* acknowledged writes are in the store already */
	}
	return -EINVAL;
}

static bool request_is_valid(const struct store *store, const struct store_request *request)
{
	const uint64_t sector = 512;

	return request->offset_bytes % sector == 0 && request->length_bytes % sector == 0 &&
	       request->length_bytes > 0 && request->offset_bytes <= store->config.size_bytes &&
	       request->length_bytes <= store->config.size_bytes - request->offset_bytes;
}

static int carry_out(struct store_thread *thread, const struct store_request *request)
{
	if (request->op == STORE_FLUSH)
		return 0;
	if (!request_is_valid(thread->store, request))
		return -EINVAL;
	uint64_t offset = request->offset_bytes, left = request->length_bytes;
	unsigned char *data = request->data;

	while (left > 0) {
		unsigned start = (unsigned)(offset % UZ_PAGE_SIZE);
		unsigned length = (unsigned)UZ_MIN(left, UZ_PAGE_SIZE - start);
		int err = page_request(thread, request->op, offset / UZ_PAGE_SIZE, start, length,
				       data);

		if (err < 0)
			return err;
		offset += length;
		left -= length;
		if (data)
			data += length;
	}
	return 0;
}

void store_submit(struct store_thread *thread, struct store_request *request)
{
	static const enum thread_counter counter_of[] = {
		[STORE_READ] = COUNT_READS,
		[STORE_WRITE] = COUNT_WRITES,
		[STORE_DISCARD] = COUNT_DISCARDS,
		[STORE_FLUSH] = COUNT_FLUSHES,
	};

	thread->nowait = request->nowait;
	thread->deadline_ns = 0;
	thread->seen_progress = 0;
	request->result = carry_out(thread, request);
	if (request->result == -EAGAIN) {
		if (request->done)
			request->done(request);
		return;
	}
	count_add(thread, counter_of[request->op], 1);
	if (request->result < 0 && request->op == STORE_READ)
		count_add(thread, COUNT_READ_ERRORS, 1);
	else if (request->result == -ENOSPC)
		count_add(thread, COUNT_WRITE_NO_SPACE, 1);
	else if (request->result < 0)
		count_add(thread, COUNT_WRITE_ERRORS, 1);
	if (request->op == STORE_READ)
		histogram_record(&thread->read_latency, clock_now_ns() - request->received_ns);
	else if (request->op == STORE_WRITE)
		histogram_record(&thread->write_latency, clock_now_ns() - request->received_ns);
	if (request->done)
		request->done(request);
}

void store_forget(struct store_thread *thread, uint64_t first_slot)
{
	for (uint64_t slot = first_slot; slot < thread->store->slot_count; slot++)
		page_discard(thread, slot);
}

/* Moves one object out of a marked span. Returns -ENOSPC when there is no room: not an
 * error. */
static int object_move(struct store_thread *thread, uint64_t slot)
{
	struct store *store = thread->store;
	struct arena_object object;
	bool low = false;
	int err = 0;

	section_enter();
	struct slot_word seen = slot_load(store, slot);

	if (!slot_is_object(seen) || !arena_is_marked(store->pool, slot_object(seen))) {
		section_leave(store);
		return 0;
	}
	uint32_t length = slot_length_bytes(seen);

	/* Must not sleep in here, so a plain attempt, from the memory that is there. */
	err = arena_alloc(store->pool, thread->index, length, &object, &low);
	if (err == 0)
		memcpy(store->region.base + object.offset_bytes,
		       store->region.base + slot_object(seen).offset_bytes, length);
	section_leave(store);
	if (err < 0)
		return -ENOSPC;
	struct slot_word moved = slot_from_object(object, slot_codec(seen), length);

	if (!publish_if(thread, slot, seen, moved))
		object_drop(thread, moved);
	return 0;
}

void store_compact(struct store_thread *thread)
{
	struct store *store = thread->store;

	if (arena_mark_sparse(store->pool) == 0)
		return;
	for (uint64_t slot = 0; slot < store->slot_count; slot++)
		if (object_move(thread, slot) < 0)
			break;
	arena_unmark(store->pool);
	store_want_reclaim(store, true);
}

/* Codec and level change together, so they share a word. */
static uint64_t pack_codec(enum codec_id codec, int level)
{
	return (uint64_t)codec << 32 | (uint32_t)level;
}

int store_set_codec(struct store *store, enum codec_id codec, int level)
{
	const struct codec_info *info = codec_info_by_id(codec);

	if (!info || level < info->level_min || level > info->level_max)
		return -EINVAL;
	atomic_store_explicit(&store->codec_and_level, pack_codec(codec, level),
			      memory_order_relaxed);
	return 0;
}

void store_get_codec(const struct store *store, enum codec_id *ret_codec, int *ret_level)
{
	uint64_t packed = atomic_load_explicit(&store->codec_and_level, memory_order_relaxed);

	*ret_codec = (enum codec_id)(packed >> 32);
	*ret_level = (int)(uint32_t)packed;
}

int store_thread_new(struct store_thread **ret_thread, struct store *store, bool compresses)
{
	struct store_thread *thread =
		aligned_alloc(UZ_CACHE_LINE, uz_round_up(sizeof(*thread), UZ_CACHE_LINE));
	int err = thread ? 0 : -ENOMEM;

	if (err < 0)
		return err;
	memset(thread, 0, sizeof(*thread));
	thread->store = store;
	thread->scratch = aligned_alloc(UZ_PAGE_SIZE, UZ_PAGE_SIZE);
	thread->bounce = aligned_alloc(UZ_PAGE_SIZE, UZ_PAGE_SIZE);
	if (!thread->scratch || !thread->bounce)
		err = -ENOMEM;
	if (err == 0)
		err = codec_decompressor_new(&thread->decompressor);
	if (err == 0 && compresses)
		err = codec_compressor_new(&thread->compressor);
	if (err == 0) {
		lock_take(&store->lock);
		unsigned index = 0;

		while (index < STORE_MAX_THREADS && store->threads[index])
			index++;
		if (index < STORE_MAX_THREADS) {
			thread->index = index;
			store->threads[index] = thread;
		} else {
			err = -EAGAIN;
		}
		lock_release(&store->lock);
	}
	if (err < 0) {
		codec_decompressor_free(thread->decompressor);
		codec_compressor_free(thread->compressor);
		free(thread->scratch);
		free(thread->bounce);
		free(thread);
		return err;
	}
	urcu_memb_register_thread();
	*ret_thread = thread;
	return 0;
}

void store_thread_free(struct store_thread *thread)
{
	if (!thread)
		return;
	struct store *store = thread->store;

	/* What it retired must be freed before its ring goes away. */
	while (atomic_load_explicit(&thread->limbo.head, memory_order_relaxed) !=
	       atomic_load_explicit(&thread->limbo.tail, memory_order_acquire)) {
		store_want_reclaim(store, true);
		clock_sleep_ns(UZ_NSEC_PER_MSEC / 5);
	}
	lock_take(&store->lock);
	store_stats_retire_locked(store, thread);
	store->threads[thread->index] = NULL;
	lock_release(&store->lock);
	urcu_memb_unregister_thread();
	codec_decompressor_free(thread->decompressor);
	codec_compressor_free(thread->compressor);
	free(thread->scratch);
	free(thread->bounce);
	free(thread);
}
