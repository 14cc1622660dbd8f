// SPDX-License-Identifier: MIT
/* Page runs, size classes and spans against simple models; threads; memory given back. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arena/arena.h"
#include "arena/region.h"
#include "arena/runs.h"
#include "arena/sizeclass.h"
#include "base/units.h"
#include "tests/pages.h"

#define AREA_OFFSET UZ_PAGE_SIZE

static void settle(struct arena_pool *pool)
{
	while (arena_balance(pool) > 0)
		;
}

START_TEST(region_gives_memory_back)
{
	struct region region;

	ck_assert_int_eq(region_init(&region, 16 * UZ_MIB), 0);
	ck_assert_uint_eq(region_resident_bytes(&region), 0);
	ck_assert_int_eq(region_populate(&region, UZ_MIB, 2 * UZ_MIB), 0);
	ck_assert_uint_eq(region_resident_bytes(&region), 2 * UZ_MIB);
	memset(region.base + UZ_MIB, 1, 2 * UZ_MIB);
	ck_assert_int_eq(region_punch(&region, UZ_MIB, UZ_MIB), 0);
	ck_assert_uint_eq(region_resident_bytes(&region), UZ_MIB);
	ck_assert_uint_eq(region.base[2 * UZ_MIB], 1);
	region_done(&region);
	region_done(&region);
}
END_TEST

START_TEST(runs_never_overlap_and_respect_the_limit)
{
	enum { AREA = 16 * RUNS_CHUNK_PAGES, HELD = 400 };
	struct region region;
	struct runs runs;
	unsigned char used[AREA] = {0};
	struct {
		uint32_t first, pages;
	} held[HELD] = {0};
	bool low = false, high = false;

	ck_assert_int_eq(region_init(&region, AREA_OFFSET + (uint64_t)AREA * UZ_PAGE_SIZE), 0);
	ck_assert_int_eq(runs_init(&runs, &region, AREA_OFFSET, AREA, 10 * RUNS_CHUNK_PAGES), 0);
	ck_assert_uint_eq(runs_alloc(&runs, 1, &low), RUNS_NO_PAGE);
	ck_assert(low);
	runs_set_target(&runs, 100);
	for (uint64_t i = 0; i < 60000; i++) {
		unsigned slot = (unsigned)(test_mix(i) % HELD);
		struct runs_usage usage;

		if (held[slot].pages) {
			runs_free(&runs, held[slot].first, held[slot].pages, &high);
			memset(used + held[slot].first, 0, held[slot].pages);
			held[slot].pages = 0;
		} else if (i / 10000 % 2 == 0 || slot % 4 == 0) {
			uint32_t pages = 1 + (uint32_t)(test_mix(i + 5) % RUNS_MAX_PAGES);
			uint32_t first = runs_alloc(&runs, pages, &low);

			if (first != RUNS_NO_PAGE) {
				ck_assert_ptr_null(memchr(used + first, 1, pages));
				memset(used + first, 1, pages);
				memset(region.base + AREA_OFFSET + (uint64_t)first * UZ_PAGE_SIZE,
				       0xee, (size_t)pages * UZ_PAGE_SIZE);
				held[slot].first = first;
				held[slot].pages = pages;
			}
		}
		if (i % 3 == 0)
			ck_assert_int_ge(runs_balance(&runs), 0);
		if (i % 64 == 0) {
			uint64_t in_use = 0;

			for (unsigned p = 0; p < AREA; p++)
				in_use += used[p];
			runs_usage(&runs, &usage);
			ck_assert_uint_eq(usage.populated_pages - usage.reserved_pages, in_use);
			ck_assert_uint_le(usage.populated_pages, usage.limit_pages);
			ck_assert_uint_eq(region_resident_bytes(&region) / UZ_PAGE_SIZE,
					  usage.populated_pages);
		}
	}
	for (unsigned i = 0; i < HELD; i++)
		if (held[i].pages)
			runs_free(&runs, held[i].first, held[i].pages, &high);
	runs_set_target(&runs, 0);
	while (runs_balance(&runs) > 0)
		;
	ck_assert_uint_le(region_resident_bytes(&region), RUNS_CHUNK_PAGES * UZ_PAGE_SIZE);
	runs_done(&runs);
	region_done(&region);
}
END_TEST

/* A reserve of single pages is no use for a longer run: it must be exchanged, also at the limit. */
START_TEST(scattered_reserve_becomes_a_run)
{
	enum { AREA = 16 * RUNS_CHUNK_PAGES, LIMIT = 2 * RUNS_CHUNK_PAGES };
	struct region region;
	struct runs runs;
	uint32_t pages[LIMIT];
	bool low = false, high = false;

	ck_assert_int_eq(region_init(&region, AREA_OFFSET + (uint64_t)AREA * UZ_PAGE_SIZE), 0);
	ck_assert_int_eq(runs_init(&runs, &region, AREA_OFFSET, AREA, LIMIT), 0);
	runs_set_target(&runs, 16);
	for (unsigned i = 0; i < LIMIT; i++) {
		while (runs_balance(&runs) > 0)
			;
		pages[i] = runs_alloc(&runs, 1, &low);
		ck_assert_uint_ne(pages[i], RUNS_NO_PAGE);
	}
	for (unsigned i = 0; i < LIMIT; i += 2)
		runs_free(&runs, pages[i], 1, &high);
	ck_assert_uint_eq(runs_alloc(&runs, RUNS_MAX_PAGES, &low), RUNS_NO_PAGE);
	for (unsigned i = 0; i < 100 && runs_balance(&runs) > 0; i++)
		;
	ck_assert_uint_ne(runs_alloc(&runs, RUNS_MAX_PAGES, &low), RUNS_NO_PAGE);
	struct runs_usage usage;

	runs_usage(&runs, &usage);
	ck_assert_uint_le(usage.populated_pages, LIMIT);
	runs_done(&runs);
	region_done(&region);
}
END_TEST

START_TEST(size_classes_waste_little)
{
	static const unsigned spans[] = {4, 8, 12, 16};
	static const unsigned worst_permille[] = {64, 24, 15, 12};

	for (unsigned s = 0; s < UZ_ARRAY_SIZE(spans); s++) {
		struct sizeclass_table table;
		double overhead = 0;
		unsigned lengths = 0;

		sizeclass_table_init(&table, spans[s]);
		for (unsigned i = 0; i < table.count; i++) {
			const struct sizeclass *class = &table.classes[i];

			ck_assert_uint_ge(class->span_pages, 1);
			ck_assert_uint_le(class->span_pages, spans[s]);
			ck_assert_uint_le((unsigned)class->objects * class->object_bytes,
					  class->span_pages * UZ_PAGE_SIZE);
			if (i > 0)
				ck_assert_uint_gt(class->object_bytes,
						  table.classes[i - 1].object_bytes);
		}
		for (unsigned length = 1; length <= UZ_PAGE_SIZE; length++) {
			const struct sizeclass *class =
				&table.classes[sizeclass_of(&table, length)];

			ck_assert_uint_ge(class->object_bytes, length);
			if (length < 300 || length >= 3800)
				continue;
			overhead +=
				(double)class->span_pages * UZ_PAGE_SIZE / class->objects / length -
				1;
			lengths++;
		}
		ck_assert_double_lt(overhead / lengths * 1000, worst_permille[s]);
		ck_assert_uint_lt(table.largest_compressed_bytes, UZ_PAGE_SIZE);
	}
}
END_TEST

struct fixture {
	struct region region;
	struct arena_pool *pool;
};

static void make_pool(struct fixture *fixture, uint64_t limit_pages, unsigned arenas)
{
	uint64_t area_pages = arena_area_pages(limit_pages);
	struct arena_config config = {
		.region = &fixture->region,
		.area_offset_bytes = AREA_OFFSET,
		.area_pages = area_pages,
		.limit_pages = limit_pages,
		.arenas = arenas,
	};

	ck_assert_int_eq(
		region_init(&fixture->region, AREA_OFFSET + arena_region_bytes(area_pages)), 0);
	ck_assert_int_eq(arena_pool_new(&fixture->pool, &config), 0);
	arena_set_target(fixture->pool, 512);
	settle(fixture->pool);
}

static void free_pool(struct fixture *fixture)
{
	arena_pool_free(fixture->pool);
	region_done(&fixture->region);
}

#define OBJECTS 20000u

struct object {
	struct arena_object where;
	uint32_t length; /* 0: none */
	unsigned char stamp;
};

static void check_object(const struct fixture *fixture, const struct object *object)
{
	const unsigned char *bytes = fixture->region.base + object->where.offset_bytes;

	uint32_t right = 0;

	/* One assertion an object: each costs a system call. */
	while (right < object->length && bytes[right] == object->stamp)
		right++;
	ck_assert_uint_eq(right, object->length);
}

/* Half a step of a random walk: frees the object if there is one, makes one if not. */
static void toggle(struct fixture *fixture, struct object *object, uint64_t random, unsigned cpu)
{
	bool low = false, high = false;

	if (object->length) {
		check_object(fixture, object);
		arena_free(fixture->pool, object->where, &high);
		object->length = 0;
		return;
	}
	uint32_t length = 1 + (uint32_t)(random >> 20) % UZ_PAGE_SIZE;

	if (arena_alloc(fixture->pool, cpu, length, &object->where, &low) < 0)
		return;
	object->length = length;
	object->stamp = (unsigned char)random;
	memset(fixture->region.base + object->where.offset_bytes, object->stamp, length);
}

START_TEST(objects_keep_their_bytes)
{
	struct fixture fixture;
	struct object *objects = calloc(OBJECTS, sizeof(*objects));
	struct arena_usage usage;

	make_pool(&fixture, 16384, 4);
	for (uint64_t i = 0; i < 300000; i++) {
		uint64_t random = test_mix(i);

		toggle(&fixture, &objects[random % OBJECTS], random, (unsigned)(random >> 40));
		if (i % 16 == 0)
			ck_assert_int_ge(arena_balance(fixture.pool), 0);
		/* Emptying marked spans is the owner's work: here they are just unmarked again. */
		if (i % 50000 == 0) {
			arena_mark_sparse(fixture.pool);
			arena_unmark(fixture.pool);
		}
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		if (objects[i].length)
			toggle(&fixture, &objects[i], 0, 0);
	arena_usage(fixture.pool, &usage);
	ck_assert_uint_eq(usage.object_bytes, 0);
	ck_assert_uint_eq(usage.runs.populated_pages, usage.runs.reserved_pages);
	arena_set_target(fixture.pool, 0);
	settle(fixture.pool);
	/* A chunk may stay, with its descriptors. */
	ck_assert_uint_le(region_resident_bytes(&fixture.region),
			  (RUNS_CHUNK_PAGES + 1) * UZ_PAGE_SIZE);
	free_pool(&fixture);
	free(objects);
}
END_TEST

struct walker {
	struct fixture *fixture;
	pthread_t thread;
	unsigned number;
};

static void *walk(void *argument)
{
	struct walker *walker = argument;
	struct object *objects = calloc(OBJECTS / 8, sizeof(*objects));

	for (uint64_t i = 0; i < 150000; i++) {
		uint64_t random = test_mix(i * 16 + walker->number);

		toggle(walker->fixture, &objects[random % (OBJECTS / 8)], random, walker->number);
		/* One thread balances, as in the daemon. */
		if (walker->number == 0 && i % 4 == 0)
			ck_assert_int_ge(arena_balance(walker->fixture->pool), 0);
	}
	for (unsigned i = 0; i < OBJECTS / 8; i++)
		if (objects[i].length)
			toggle(walker->fixture, &objects[i], 0, 0);
	free(objects);
	return NULL;
}

START_TEST(threads_share_the_pool)
{
	struct fixture fixture;
	struct walker walkers[4];
	struct arena_usage usage;

	make_pool(&fixture, 16384, 3);
	for (unsigned i = 0; i < UZ_ARRAY_SIZE(walkers); i++) {
		walkers[i] = (struct walker){.fixture = &fixture, .number = i};
		ck_assert_int_eq(pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]), 0);
	}
	for (unsigned i = 0; i < UZ_ARRAY_SIZE(walkers); i++)
		pthread_join(walkers[i].thread, NULL);
	arena_usage(fixture.pool, &usage);
	ck_assert_uint_eq(usage.object_bytes, 0);
	ck_assert_uint_eq(usage.runs.populated_pages, usage.runs.reserved_pages);
	free_pool(&fixture);
}
END_TEST

/* Many CPUs must not mean many half-empty spans. */
START_TEST(arenas_do_not_multiply_the_overhead)
{
	uint64_t used[2];

	for (unsigned round = 0; round < 2; round++) {
		struct fixture fixture;
		struct arena_usage usage;
		bool low = false;

		make_pool(&fixture, 32768, round == 0 ? 1 : 64);
		for (uint64_t i = 0; i < 20000; i++) {
			struct arena_object object;
			uint32_t length = 200 + (uint32_t)(test_mix(i) % 3000);

			ck_assert_int_eq(arena_alloc(fixture.pool, (unsigned)(i % 64), length,
						     &object, &low),
					 0);
			if (i % 8 == 0)
				settle(fixture.pool);
		}
		arena_usage(fixture.pool, &usage);
		used[round] = usage.runs.populated_pages - usage.runs.reserved_pages;
		free_pool(&fixture);
	}
	ck_assert_uint_le(used[1], used[0] + used[0] * 4 / 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arena");
	TCase *tcase = tcase_create("arena");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, region_gives_memory_back);
	tcase_add_test(tcase, runs_never_overlap_and_respect_the_limit);
	tcase_add_test(tcase, scattered_reserve_becomes_a_run);
	tcase_add_test(tcase, size_classes_waste_little);
	tcase_add_test(tcase, objects_keep_their_bytes);
	tcase_add_test(tcase, threads_share_the_pool);
	tcase_add_test(tcase, arenas_do_not_multiply_the_overhead);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
