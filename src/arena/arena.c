// SPDX-License-Identifier: MIT
/*
 * Spans. Threads: any thread allocates and frees; one background thread
 * balances and compacts.
 *
 * A shard is one class in one arena: a lock (rank SHARD), the list of the spans
 * that have free objects and the list of those being emptied (marked). Full
 * spans are on no list. Class c uses the
 * arenas 0..active(c)-1, where active grows with the number of c's spans, so
 * that the partly filled spans of all CPUs together stay a small part of c.
 *
 * A span's state is in the descriptor of its first page; the other pages'
 * descriptors only say how far back that is. Free objects form a list through
 * their own first two bytes. All of this can be rebuilt from the slot table.
 *
 * Lock order: SHARD, then RUNS. A thread that holds one shard takes another
 * shard of the same class by lock_try only (stealing).
 */
#include "arena/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

#define NO_OBJECT UINT16_MAX

/* An arena more per so many spans of the class: half a span each is then below 2 % of the
 * class. */
#define SPANS_PER_ARENA 32u

/* How many larger classes are tried when no memory is left for the right one. */
#define FALLBACK_CLASSES 12u

struct page_desc {
	uint8_t distance; /* pages back to the span's first; constant while the span lives
			   */
	uint8_t class;	  /* of the span (first page); constant while the span lives */
	/* First page: owning arena. Written under the locks of the old and the new shard,
	 * read without one to find the lock, then checked again under it; hence relaxed
	 * suffices. */
	_Atomic uint8_t arena;
	/* First page: being emptied. Written and read under the shard's lock, and read
	 * without it by arena_is_marked, for which an old value only delays the move. */
	_Atomic uint8_t marked;
	uint16_t live;	     /* objects in use; shard's lock, as all below */
	uint16_t free_head;  /* first free object, NO_OBJECT when full */
	uint32_t next, prev; /* in the shard's list */
};
_Static_assert(sizeof(struct page_desc) == ARENA_DESCRIPTOR_BYTES, "descriptor size");

struct shard {
	struct lock lock;
	/* Head of the list of spans with free objects. Written under the lock; stealers
	 * peek at it without, and look again under it. */
	_Atomic uint32_t partial;
	/* Head of the list of spans that are being emptied. Under the lock; atomic only
	 * to share code. */
	_Atomic uint32_t marked;
} UZ_CACHE_ALIGNED;

struct class_state {
	/* Spans of the class in all arenas. Written under some shard's lock, hence
	 * atomic; read for an estimate only, hence relaxed. */
	_Atomic uint32_t spans;
	_Atomic uint64_t live; /* objects; the same */
} UZ_CACHE_ALIGNED;

struct arena_pool {
	struct runs runs;
	struct sizeclass_table table;
	struct region *region;
	uint64_t area_offset_bytes;
	unsigned arenas;
	/* One a page of the area, in the region behind it; populated by the balancing thread. */
	struct page_desc *descs;
	uint64_t descs_offset_bytes;
	_Atomic uint64_t desc_bytes; /* populated; written by that thread, relaxed */
	struct class_state states[SIZECLASS_MAX_CLASSES];
	struct shard shards[]; /* [arena * table.count + class] */
};

/* Chunks whose descriptors share a page of memory. */
#define DESC_GROUP_CHUNKS (UZ_PAGE_SIZE / (RUNS_CHUNK_PAGES * ARENA_DESCRIPTOR_BYTES))

uint64_t arena_area_pages(uint64_t limit_pages)
{
	return uz_round_up(limit_pages + limit_pages / 4 + 16 * RUNS_CHUNK_PAGES,
			   (uint64_t)DESC_GROUP_CHUNKS * RUNS_CHUNK_PAGES);
}

uint64_t arena_region_bytes(uint64_t area_pages)
{
	return area_pages * UZ_PAGE_SIZE +
	       uz_round_up(area_pages * sizeof(struct page_desc), UZ_PAGE_SIZE);
}

/* Tells whether any other chunk of the group still needs the group's page of descriptors.
 */
static bool desc_group_in_use(const struct arena_pool *pool, uint32_t chunk)
{
	uint32_t first = chunk - chunk % DESC_GROUP_CHUNKS;

	/* Only the balancing thread, which runs this, changes `populated`. */
	for (uint32_t i = first; i < first + DESC_GROUP_CHUNKS && i < pool->runs.chunk_count; i++)
		if (i != chunk && pool->runs.chunks[i].populated != 0)
			return true;
	return false;
}

/* Where the group's page of descriptors is in the region. */
static uint64_t desc_group_offset(const struct arena_pool *pool, uint32_t chunk)
{
	return pool->descs_offset_bytes + (uint64_t)(chunk / DESC_GROUP_CHUNKS) * UZ_PAGE_SIZE;
}

static int descs_in(void *context, uint32_t chunk)
{
	struct arena_pool *pool = context;

	if (desc_group_in_use(pool, chunk))
		return 0;
	int err = region_populate(pool->region, desc_group_offset(pool, chunk), UZ_PAGE_SIZE);

	if (err < 0)
		return err;
	atomic_fetch_add_explicit(&pool->desc_bytes, UZ_PAGE_SIZE, memory_order_relaxed);
	return 0;
}

static void descs_out(void *context, uint32_t chunk)
{
	struct arena_pool *pool = context;
	if (desc_group_in_use(pool, chunk) ||
	    region_punch(pool->region, desc_group_offset(pool, chunk), UZ_PAGE_SIZE) < 0)
		return;
	atomic_fetch_sub_explicit(&pool->desc_bytes, UZ_PAGE_SIZE, memory_order_relaxed);
}

/* Longer spans waste less but are harder to fill: a small pool takes shorter ones. */
static unsigned max_span_pages(uint64_t limit_pages)
{
	uint64_t limit_bytes = limit_pages * UZ_PAGE_SIZE;

	if (limit_bytes < 64 * UZ_MIB)
		return 4;
	if (limit_bytes < 512 * UZ_MIB)
		return 6;
	return limit_bytes < 4 * UZ_GIB ? 10 : RUNS_MAX_PAGES;
}

int arena_pool_new(struct arena_pool **ret_pool, const struct arena_config *config)
{
	struct sizeclass_table table;

	assert(config->arenas >= 1 && config->arenas <= ARENA_MAX_ARENAS);
	sizeclass_table_init(&table, max_span_pages(config->limit_pages));
	size_t shards = (size_t)config->arenas * table.count;
	size_t bytes = uz_round_up(sizeof(struct arena_pool) + shards * sizeof(struct shard),
				   UZ_CACHE_LINE);
	struct arena_pool *pool = aligned_alloc(UZ_CACHE_LINE, bytes);

	if (!pool)
		return -ENOMEM;
	memset(pool, 0, bytes);
	pool->table = table;
	pool->region = config->region;
	pool->area_offset_bytes = config->area_offset_bytes;
	pool->arenas = config->arenas;
	pool->descs_offset_bytes = config->area_offset_bytes + config->area_pages * UZ_PAGE_SIZE;
	pool->descs = (void *)(config->region->base + pool->descs_offset_bytes);
	if (runs_init(&pool->runs, config->region, config->area_offset_bytes, config->area_pages,
		      config->limit_pages) < 0) {
		free(pool);
		return -ENOMEM;
	}
	pool->runs.chunk_in = descs_in;
	pool->runs.chunk_out = descs_out;
	pool->runs.context = pool;
	for (size_t i = 0; i < shards; i++) {
		lock_init(&pool->shards[i].lock, LOCK_RANK_SHARD);
		atomic_init(&pool->shards[i].partial, RUNS_NO_PAGE);
		atomic_init(&pool->shards[i].marked, RUNS_NO_PAGE);
	}
	*ret_pool = pool;
	return 0;
}

void arena_pool_free(struct arena_pool *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < (size_t)pool->arenas * pool->table.count; i++)
		lock_done(&pool->shards[i].lock);
	runs_done(&pool->runs);
	free(pool);
}

static struct shard *shard_of(struct arena_pool *pool, unsigned arena, unsigned class)
{
	return &pool->shards[arena * pool->table.count + class];
}

static unsigned active_arenas(struct arena_pool *pool, unsigned class)
{
	uint32_t spans = atomic_load_explicit(&pool->states[class].spans, memory_order_relaxed);
	unsigned active = 1 + spans / SPANS_PER_ARENA;

	return UZ_MIN(active, pool->arenas);
}

static unsigned char *object_address(const struct arena_pool *pool, uint32_t head, unsigned class,
				     unsigned index)
{
	return pool->region->base + pool->area_offset_bytes + (uint64_t)head * UZ_PAGE_SIZE +
	       (uint64_t)index * pool->table.classes[class].object_bytes;
}

static uint32_t list_head(const _Atomic uint32_t *list)
{
	return atomic_load_explicit(list, memory_order_relaxed);
}

static void list_push_locked(struct arena_pool *pool, _Atomic uint32_t *list, uint32_t head)
{
	struct page_desc *desc = &pool->descs[head];

	desc->prev = RUNS_NO_PAGE;
	desc->next = list_head(list);
	if (desc->next != RUNS_NO_PAGE)
		pool->descs[desc->next].prev = head;
	atomic_store_explicit(list, head, memory_order_relaxed);
}

static void list_remove_locked(struct arena_pool *pool, _Atomic uint32_t *list, uint32_t head)
{
	struct page_desc *desc = &pool->descs[head];

	if (desc->prev != RUNS_NO_PAGE)
		pool->descs[desc->prev].next = desc->next;
	else
		atomic_store_explicit(list, desc->next, memory_order_relaxed);
	if (desc->next != RUNS_NO_PAGE)
		pool->descs[desc->next].prev = desc->prev;
}

/* Cuts a fresh run into objects and makes it the shard's. */
static bool span_new_locked(struct arena_pool *pool, struct shard *shard, unsigned arena,
			    unsigned class, bool *ret_low)
{
	const struct sizeclass *sc = &pool->table.classes[class];
	uint32_t head = runs_alloc(&pool->runs, sc->span_pages, ret_low);

	if (head == RUNS_NO_PAGE)
		return false;
	for (unsigned i = 0; i < sc->span_pages; i++)
		pool->descs[head + i].distance = (uint8_t)i;
	struct page_desc *desc = &pool->descs[head];

	desc->class = (uint8_t) class;
	atomic_store_explicit(&desc->arena, (uint8_t)arena, memory_order_relaxed);
	atomic_store_explicit(&desc->marked, 0, memory_order_relaxed);
	desc->live = 0;
	desc->free_head = 0;
	for (unsigned i = 0; i < sc->objects; i++) {
		uint16_t next = i + 1 < sc->objects ? (uint16_t)(i + 1) : NO_OBJECT;

		memcpy(object_address(pool, head, class, i), &next, sizeof(next));
	}
	list_push_locked(pool, &shard->partial, head);
	atomic_fetch_add_explicit(&pool->states[class].spans, 1, memory_order_relaxed);
	return true;
}

/* Takes over a span with free objects from another arena's shard of the class. */
static bool span_steal_locked(struct arena_pool *pool, struct shard *shard, unsigned arena,
			      unsigned class)
{
	for (unsigned i = 1; i < pool->arenas; i++) {
		unsigned victim_arena = (arena + i) % pool->arenas;
		struct shard *victim = shard_of(pool, victim_arena, class);

		if (list_head(&victim->partial) == RUNS_NO_PAGE || !lock_try(&victim->lock))
			continue;
		uint32_t head = list_head(&victim->partial);

		if (head != RUNS_NO_PAGE) {
			list_remove_locked(pool, &victim->partial, head);
			atomic_store_explicit(&pool->descs[head].arena, (uint8_t)arena,
					      memory_order_relaxed);
			list_push_locked(pool, &shard->partial, head);
		}
		lock_release(&victim->lock);
		if (head != RUNS_NO_PAGE)
			return true;
	}
	return false;
}

static void object_take_locked(struct arena_pool *pool, struct shard *shard, unsigned class,
			       struct arena_object *ret_object)
{
	uint32_t head = list_head(&shard->partial);
	struct page_desc *desc = &pool->descs[head];
	unsigned char *object = object_address(pool, head, class, desc->free_head);

	memcpy(&desc->free_head, object, sizeof(desc->free_head));
	desc->live++;
	if (desc->free_head == NO_OBJECT)
		list_remove_locked(pool, &shard->partial, head);
	ret_object->offset_bytes = (uint64_t)(object - pool->region->base);
}

static bool alloc_in_class(struct arena_pool *pool, unsigned cpu, unsigned class, bool fresh_span,
			   struct arena_object *ret_object, bool *ret_low)
{
	unsigned active = active_arenas(pool, class);
	unsigned arena = cpu % active;
	struct shard *shard = shard_of(pool, arena, class);

	lock_take(&shard->lock);
	bool have = list_head(&shard->partial) != RUNS_NO_PAGE;

	/* A class that lives in few arenas may have left spans in the others when it
	 * shrank. */
	if (!have && (active < pool->arenas || !fresh_span))
		have = span_steal_locked(pool, shard, arena, class);
	if (!have && fresh_span)
		have = span_new_locked(pool, shard, arena, class, ret_low) ||
		       span_steal_locked(pool, shard, arena, class);
	if (have)
		object_take_locked(pool, shard, class, ret_object);
	lock_release(&shard->lock);
	if (have)
		atomic_fetch_add_explicit(&pool->states[class].live, 1, memory_order_relaxed);
	return have;
}

int arena_alloc(struct arena_pool *pool, unsigned cpu, uint32_t length_bytes,
		struct arena_object *ret_object, bool *ret_low)
{
	assert(length_bytes >= 1 && length_bytes <= UZ_PAGE_SIZE);
	unsigned class = sizeclass_of(&pool->table, length_bytes);

	if (alloc_in_class(pool, cpu, class, true, ret_object, ret_low))
		return 0;
	/* Rather a little waste in a span that is there than a page refused. */
	for (unsigned larger = class + 1;
	     larger < pool->table.count && larger <= class + FALLBACK_CLASSES; larger++)
		if (alloc_in_class(pool, cpu, larger, false, ret_object, ret_low))
			return 0;
	return -ENOMEM;
}

/* The span's first page. */
static uint32_t span_head(const struct arena_pool *pool, struct arena_object object)
{
	uint32_t page =
		(uint32_t)((object.offset_bytes - pool->area_offset_bytes) >> UZ_PAGE_SHIFT);

	return page - pool->descs[page].distance;
}

/* Locks the shard that owns the span, which may change hands until then. */
static struct shard *lock_owner(struct arena_pool *pool, struct page_desc *desc)
{
	for (;;) {
		unsigned arena = atomic_load_explicit(&desc->arena, memory_order_relaxed);
		struct shard *shard = shard_of(pool, arena, desc->class);

		lock_take(&shard->lock);
		if (atomic_load_explicit(&desc->arena, memory_order_relaxed) == arena)
			return shard;
		lock_release(&shard->lock);
	}
}

void arena_free(struct arena_pool *pool, struct arena_object object, bool *ret_high)
{
	uint32_t head = span_head(pool, object);
	struct page_desc *desc = &pool->descs[head];
	unsigned class = desc->class;
	const struct sizeclass *sc = &pool->table.classes[class];
	unsigned char *address = pool->region->base + object.offset_bytes;
	uint16_t index = (uint16_t)((uint64_t)(address - object_address(pool, head, class, 0)) /
				    sc->object_bytes);
	struct shard *shard = lock_owner(pool, desc);
	bool was_full = desc->free_head == NO_OBJECT;
	bool marked = atomic_load_explicit(&desc->marked, memory_order_relaxed) != 0;

	assert(desc->live > 0 && address == object_address(pool, head, class, index));
	memcpy(address, &desc->free_head, sizeof(desc->free_head));
	desc->free_head = index;
	desc->live--;
	bool empty = desc->live == 0;

	/* A full span is on no list, a marked one (never full) on the list of those. */
	if (empty && !was_full)
		list_remove_locked(pool, marked ? &shard->marked : &shard->partial, head);
	else if (!empty && was_full)
		list_push_locked(pool, &shard->partial, head);
	lock_release(&shard->lock);
	atomic_fetch_sub_explicit(&pool->states[class].live, 1, memory_order_relaxed);
	if (empty) {
		/* Nobody can find it any more: no object lives in it and it is on no
		 * list. */
		atomic_fetch_sub_explicit(&pool->states[class].spans, 1, memory_order_relaxed);
		runs_free(&pool->runs, head, sc->span_pages, ret_high);
	}
}

int arena_balance(struct arena_pool *pool)
{
	return runs_balance(&pool->runs);
}

void arena_set_target(struct arena_pool *pool, uint64_t target_pages)
{
	runs_set_target(&pool->runs, target_pages);
}

void arena_set_limit(struct arena_pool *pool, uint64_t limit_pages)
{
	runs_set_limit(&pool->runs, limit_pages);
}

void arena_usage(struct arena_pool *pool, struct arena_usage *ret_usage)
{
	struct arena_usage usage = {0};

	runs_usage(&pool->runs, &usage.runs);
	usage.descriptor_bytes = atomic_load_explicit(&pool->desc_bytes, memory_order_relaxed) +
				 (uint64_t)pool->arenas * pool->table.count * sizeof(struct shard) +
				 sizeof(struct arena_pool) +
				 (uint64_t)pool->runs.chunk_count * sizeof(struct runs_chunk);
	for (unsigned i = 0; i < pool->table.count; i++)
		usage.object_bytes +=
			atomic_load_explicit(&pool->states[i].live, memory_order_relaxed) *
			pool->table.classes[i].object_bytes;
	*ret_usage = usage;
}

uint32_t arena_largest_compressed_bytes(const struct arena_pool *pool)
{
	return pool->table.largest_compressed_bytes;
}

uint64_t arena_cost_sixteenths(const struct arena_pool *pool, uint32_t length_bytes)
{
	const struct sizeclass *sc = &pool->table.classes[sizeclass_of(&pool->table, length_bytes)];

	return (uint64_t)sc->span_pages * (UZ_PAGE_SIZE + ARENA_DESCRIPTOR_BYTES) * 16 /
	       sc->objects;
}

/*
 * Of one shard's partly filled spans, marks those that are at most half full, as
 * long as their objects fit into the free room of the spans that stay.
 */
static unsigned mark_shard(struct arena_pool *pool, struct shard *shard, unsigned class)
{
	unsigned objects = pool->table.classes[class].objects;
	uint64_t room = 0;
	unsigned marked = 0;

	lock_take(&shard->lock);
	for (uint32_t head = list_head(&shard->partial); head != RUNS_NO_PAGE;
	     head = pool->descs[head].next)
		room += objects - pool->descs[head].live;
	for (uint32_t head = list_head(&shard->partial), next; head != RUNS_NO_PAGE; head = next) {
		struct page_desc *desc = &pool->descs[head];

		next = desc->next;
		if (desc->live * 2u > objects)
			continue;
		/* Its own free room goes away, and its objects need as much elsewhere:
		 * together a span. */
		if (room < objects)
			break;
		room -= objects;
		list_remove_locked(pool, &shard->partial, head);
		list_push_locked(pool, &shard->marked, head);
		atomic_store_explicit(&desc->marked, 1, memory_order_relaxed);
		marked++;
	}
	lock_release(&shard->lock);
	return marked;
}

unsigned arena_mark_sparse(struct arena_pool *pool)
{
	unsigned marked = 0;

	for (unsigned arena = 0; arena < pool->arenas; arena++)
		for (unsigned class = 0; class < pool->table.count; class ++)
			marked += mark_shard(pool, shard_of(pool, arena, class), class);
	return marked;
}

bool arena_is_marked(const struct arena_pool *pool, struct arena_object object)
{
	return atomic_load_explicit(&pool->descs[span_head(pool, object)].marked,
				    memory_order_relaxed) != 0;
}

void arena_unmark(struct arena_pool *pool)
{
	for (size_t i = 0; i < (size_t)pool->arenas * pool->table.count; i++) {
		struct shard *shard = &pool->shards[i];

		lock_take(&shard->lock);
		for (uint32_t head; (head = list_head(&shard->marked)) != RUNS_NO_PAGE;) {
			list_remove_locked(pool, &shard->marked, head);
			atomic_store_explicit(&pool->descs[head].marked, 0, memory_order_relaxed);
			list_push_locked(pool, &shard->partial, head);
		}
		lock_release(&shard->lock);
	}
}
