// SPDX-License-Identifier: MIT
/*
 * The store against a plain array: random reads, writes and discards from many
 * threads, overlapping or not, with compaction, codec changes and a full pool.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "store/slot.h"
#include "store/store.h"
#include "tests/pages.h"

static unsigned scale(unsigned normal)
{
	const char *factor = getenv("UZ_TEST_SCALE_PERCENT");

	return factor ? UZ_MAX(normal * (unsigned)atoi(factor) / 100, 1u) : normal;
}

static struct store *make_store(uint64_t size_bytes, uint64_t limit_bytes, enum codec_id codec)
{
	struct store_config config = {
		.size_bytes = size_bytes,
		.memory_limit_bytes = limit_bytes,
		.codec = codec,
		.level = codec_info_by_id(codec)->level_default,
		.cpus = 4,
		.name = "test",
		.expected_ratio_permille = 3000,
	};
	struct store *store;

	ck_assert_int_eq(store_new(&store, &config), 0);
	return store;
}

static int submit(struct store_thread *thread, enum store_op op, uint64_t offset, uint64_t length,
		  void *data)
{
	struct store_request request = {
		.op = op,
		.offset_bytes = offset,
		.length_bytes = length,
		.data = data,
		.received_ns = clock_now_ns(),
		.result = 1,
	};

	store_submit(thread, &request);
	return request.result;
}

static void check_sums(struct store *store)
{
	struct stats_values values = {0};
	const uint64_t *value = values.value;

	store_stats(store, &values);
	ck_assert_uint_eq(value[STATS_PAGES_EMPTY] + value[STATS_PAGES_SAME] +
				  value[STATS_PAGES_COMPRESSED] + value[STATS_PAGES_INCOMPRESSIBLE],
			  value[STATS_SIZE] / UZ_PAGE_SIZE);
	for (unsigned i = 0; i < STATS_COUNT; i++)
		ck_assert_int_ge((int64_t)value[i], 0);
	ck_assert_uint_le(value[STATS_MEMORY_USED], value[STATS_MEMORY_PEAK]);
}

START_TEST(slot_words)
{
	struct slot_word word;
	unsigned collisions = 0;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t fill = test_mix(i);

		if (!slot_from_fill(fill, &word)) {
			collisions++;
			continue;
		}
		ck_assert(slot_is_fill(word) && !slot_is_object(word) && !slot_is_empty(word));
		ck_assert_uint_eq(slot_fill(word), fill);
	}
	/* 1 of 128. */
	ck_assert_uint_gt(collisions, 500);
	ck_assert_uint_lt(collisions, 1100);
	static const uint64_t usual[] = {0,
					 1,
					 UINT64_MAX,
					 0x8000000000000000ull,
					 0xaaaaaaaaaaaaaaaaull,
					 0x5555555555555555ull,
					 0x3ff0000000000000ull,
					 0x7ff8000000000000ull,
					 0xdeadbeefdeadbeefull,
					 0x2020202020202020ull,
					 0xcccccccccccccccc};

	for (unsigned i = 0; i < UZ_ARRAY_SIZE(usual); i++) {
		ck_assert(slot_from_fill(usual[i], &word));
		ck_assert_uint_eq(slot_fill(word), usual[i]);
	}
	for (unsigned i = 0; i < 10000; i++) {
		struct arena_object object = {
			(test_mix(i) % (SLOT_MAX_REGION_BYTES / SIZECLASS_GRANULE)) *
			SIZECLASS_GRANULE};
		uint32_t length = 1 + (uint32_t)(test_mix(i + 7) % UZ_PAGE_SIZE);
		enum codec_id codec = (enum codec_id)(i % CODEC_COUNT);

		word = slot_from_object(object, codec, length);
		ck_assert(slot_is_object(word) && !slot_is_fill(word));
		ck_assert_uint_eq(slot_object(word).offset_bytes, object.offset_bytes);
		ck_assert_uint_eq(slot_length_bytes(word), length);
		ck_assert_int_eq(slot_codec(word), codec);
	}
}
END_TEST

START_TEST(every_kind_of_page)
{
	enum codec_id codec = _i == 0 ? CODEC_LZ4 : CODEC_ZSTD;
	struct store *store = make_store(16 * UZ_MIB, 32 * UZ_MIB, codec);
	struct store_thread *thread;
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8))), back[UZ_PAGE_SIZE];

	ck_assert_int_eq(store_thread_new(&thread, store, true), 0);
	for (uint64_t slot = 0; slot < 4096; slot++) {
		memset(back, 0xff, sizeof(back));
		ck_assert_int_eq(
			submit(thread, STORE_READ, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, back), 0);
		memset(page, 0, sizeof(page));
		ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
	}
	/* Twice: the second round replaces each page by one of another kind. */
	for (uint64_t round = 0; round < 2; round++) {
		for (uint64_t slot = 0; slot < 4096; slot++) {
			test_page_fill(page, slot * 3 + round);
			ck_assert_int_eq(submit(thread, STORE_WRITE, slot * UZ_PAGE_SIZE,
						UZ_PAGE_SIZE, page),
					 0);
		}
		for (uint64_t slot = 0; slot < 4096; slot++) {
			test_page_fill(page, slot * 3 + round);
			ck_assert_int_eq(
				submit(thread, STORE_READ, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, back),
				0);
			ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
		}
	}
	check_sums(store);
	ck_assert_int_eq(submit(thread, STORE_DISCARD, 0, 16 * UZ_MIB, NULL), 0);
	struct stats_values values = {0};

	store_stats(store, &values);
	ck_assert_uint_eq(values.value[STATS_PAGES_EMPTY], 4096);
	ck_assert_uint_eq(values.value[STATS_COMPRESSED], 0);
	ck_assert_uint_eq(values.value[STATS_PAGES_DISCARDED], 4096);
	store_thread_free(thread);
	store_free(store);
}
END_TEST

START_TEST(bad_requests)
{
	struct store *store = make_store(1 * UZ_MIB, 8 * UZ_MIB, CODEC_LZ4);
	struct store_thread *thread;
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8))) = {1};

	ck_assert_int_eq(store_thread_new(&thread, store, true), 0);
	ck_assert_int_eq(submit(thread, STORE_READ, 1 * UZ_MIB, 512, page), -EINVAL);
	ck_assert_int_eq(submit(thread, STORE_READ, 1 * UZ_MIB - 512, 1024, page), -EINVAL);
	ck_assert_int_eq(submit(thread, STORE_WRITE, 100, 512, page), -EINVAL);
	ck_assert_int_eq(submit(thread, STORE_WRITE, 0, 0, page), -EINVAL);
	ck_assert_int_eq(submit(thread, STORE_WRITE, UINT64_MAX - 511, 4096, page), -EINVAL);
	ck_assert_int_eq(submit(thread, STORE_DISCARD, 0, 2 * UZ_MIB, NULL), -EINVAL);
	ck_assert_int_eq(submit(thread, STORE_FLUSH, 0, 0, NULL), 0);
	store_thread_free(thread);
	store_free(store);
}
END_TEST

START_TEST(any_sector_alignment)
{
	const uint64_t size = 256 * UZ_KIB;
	struct store *store = make_store(size, 8 * UZ_MIB, CODEC_LZ4);
	struct store_thread *thread;
	unsigned char *model = calloc(1, size), *data = malloc(64 * UZ_KIB);

	ck_assert_int_eq(store_thread_new(&thread, store, true), 0);
	for (uint64_t i = 0; i < scale(20000); i++) {
		uint64_t offset = test_mix(i) % (size / 512) * 512;
		uint64_t length = UZ_MIN((1 + test_mix(i + 1) % 40) * 512, size - offset);

		switch (test_mix(i + 2) % 4) {
		case 0:
			ck_assert_int_eq(submit(thread, STORE_DISCARD, offset, length, NULL), 0);
			memset(model + offset, 0, length);
			break;
		case 1:
			for (uint64_t j = 0; j < length; j++)
				data[j] = (unsigned char)test_mix(i + j / 64);
			ck_assert_int_eq(submit(thread, STORE_WRITE, offset, length, data), 0);
			memcpy(model + offset, data, length);
			break;
		default:
			ck_assert_int_eq(submit(thread, STORE_READ, offset, length, data), 0);
			ck_assert_mem_eq(data, model + offset, length);
		}
	}
	free(model);
	free(data);
	store_thread_free(thread);
	store_free(store);
}
END_TEST

/* --- threads -------------------------------------------------------------- */

#define MODEL_THREADS 6u
#define MODEL_SLOTS   2048u

struct model {
	struct store *store;
	/* Disjoint mode: slot s belongs to thread s % MODEL_THREADS. Shared mode: the
	 * generation written last by anybody is between `acknowledged` before and
	 * `started` after a read. */
	bool shared;
	_Atomic uint64_t generation[MODEL_SLOTS];
	_Atomic int running;
	unsigned steps;
};

struct model_thread {
	struct model *model;
	unsigned number;
	pthread_t handle;
};

static void model_page(void *page, uint64_t slot, uint64_t generation)
{
	if (generation == 0)
		memset(page, 0, UZ_PAGE_SIZE);
	else
		test_page_fill(page, slot << 32 | generation);
}

/* Shared mode: every page says what it is, so that a reader can tell whether it is one of
 * ours. */
static void shared_page(void *page, uint64_t slot, uint64_t stamp)
{
	uint64_t *words = page;

	for (unsigned i = 0; i < 512; i++)
		words[i] = stamp % 3 == 0 ? stamp : i % 8 == 0 ? test_mix(stamp + i) : stamp + slot;
	words[0] = stamp;
	words[511] = stamp;
}

static void *model_run(void *argument)
{
	struct model_thread *self = argument;
	struct model *model = self->model;
	struct store_thread *thread;
	unsigned char *page = aligned_alloc(4096, 8 * UZ_PAGE_SIZE);
	unsigned char *expected = aligned_alloc(4096, UZ_PAGE_SIZE);

	ck_assert_int_eq(store_thread_new(&thread, model->store, true), 0);
	for (uint64_t step = 0; step < model->steps; step++) {
		uint64_t random = test_mix(step * 64 + self->number);
		uint64_t slot = random % MODEL_SLOTS;

		if (!model->shared)
			slot = slot - slot % MODEL_THREADS + self->number;
		if (slot >= MODEL_SLOTS)
			continue;
		uint64_t offset = slot * UZ_PAGE_SIZE;
		unsigned choice = (unsigned)(random >> 40) % 10;

		if (model->shared) {
			uint64_t stamp = step * MODEL_THREADS + self->number + 1;

			if (choice < 4) {
				shared_page(page, slot, stamp);
				ck_assert_int_eq(
					submit(thread, STORE_WRITE, offset, UZ_PAGE_SIZE, page), 0);
			} else if (choice == 4) {
				ck_assert_int_eq(
					submit(thread, STORE_DISCARD, offset, UZ_PAGE_SIZE, NULL),
					0);
			} else {
				ck_assert_int_eq(
					submit(thread, STORE_READ, offset, UZ_PAGE_SIZE, page), 0);
				uint64_t seen;

				memcpy(&seen, page, sizeof(seen));
				if (seen == 0)
					memset(expected, 0, UZ_PAGE_SIZE);
				else
					shared_page(expected, slot, seen);
				ck_assert_mem_eq(page, expected, UZ_PAGE_SIZE);
			}
			continue;
		}
		uint64_t generation =
			atomic_load_explicit(&model->generation[slot], memory_order_relaxed);

		if (choice < 4) {
			generation = step + 1;
			model_page(page, slot, generation);
			ck_assert_int_eq(submit(thread, STORE_WRITE, offset, UZ_PAGE_SIZE, page),
					 0);
			atomic_store_explicit(&model->generation[slot], generation,
					      memory_order_relaxed);
		} else if (choice == 4) {
			ck_assert_int_eq(submit(thread, STORE_DISCARD, offset, UZ_PAGE_SIZE, NULL),
					 0);
			atomic_store_explicit(&model->generation[slot], 0, memory_order_relaxed);
		} else {
			model_page(expected, slot, generation);
			ck_assert_int_eq(submit(thread, STORE_READ, offset, UZ_PAGE_SIZE, page), 0);
			ck_assert_mem_eq(page, expected, UZ_PAGE_SIZE);
		}
	}
	free(page);
	free(expected);
	store_thread_free(thread);
	return NULL;
}

/* Compacts, changes the codec and reads the statistics while the others work. */
static void *disturb_run(void *argument)
{
	struct model *model = argument;
	struct store_thread *thread;

	ck_assert_int_eq(store_thread_new(&thread, model->store, false), 0);
	for (unsigned i = 0; atomic_load(&model->running); i++) {
		store_compact(thread);
		check_sums(model->store);
		ck_assert_int_eq(store_set_codec(model->store, i % 2 ? CODEC_LZ4 : CODEC_ZSTD, 1),
				 0);
		clock_sleep_ns(UZ_NSEC_PER_MSEC);
	}
	store_thread_free(thread);
	return NULL;
}

static void run_model(bool shared, unsigned steps)
{
	struct model *model = calloc(1, sizeof(*model));
	struct model_thread threads[MODEL_THREADS];
	pthread_t disturber;

	model->store = make_store(MODEL_SLOTS * UZ_PAGE_SIZE, 24 * UZ_MIB, CODEC_LZ4);
	model->shared = shared;
	model->steps = steps;
	atomic_init(&model->running, 1);
	for (unsigned i = 0; i < MODEL_THREADS; i++) {
		threads[i] = (struct model_thread){.model = model, .number = i};
		ck_assert_int_eq(pthread_create(&threads[i].handle, NULL, model_run, &threads[i]),
				 0);
	}
	ck_assert_int_eq(pthread_create(&disturber, NULL, disturb_run, model), 0);
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pthread_join(threads[i].handle, NULL);
	atomic_store(&model->running, 0);
	pthread_join(disturber, NULL);
	check_sums(model->store);
	struct store_thread *thread;
	struct stats_values values = {0};

	ck_assert_int_eq(store_thread_new(&thread, model->store, true), 0);
	store_forget(thread, 0);
	store_thread_free(thread);
	store_stats(model->store, &values);
	ck_assert_uint_eq(values.value[STATS_PAGES_EMPTY], MODEL_SLOTS);
	ck_assert_uint_eq(values.value[STATS_COMPRESSED], 0);
	store_free(model->store);
	free(model);
}

START_TEST(model_of_disjoint_slots)
{
	run_model(false, scale(300000));
}
END_TEST

START_TEST(model_of_shared_slots)
{
	run_model(true, scale(300000));
}
END_TEST

/* --- memory --------------------------------------------------------------- */

static uint64_t settled_memory(struct store *store)
{
	struct stats_values values = {0};
	uint64_t last = 0;

	for (unsigned i = 0; i < 60; i++) {
		store_stats(store, &values);
		if (values.value[STATS_MEMORY_USED] == last && i > 30)
			break;
		last = values.value[STATS_MEMORY_USED];
		clock_sleep_ns(100 * UZ_NSEC_PER_MSEC);
	}
	return last;
}

START_TEST(full_pool_refuses_quickly_and_reads_on)
{
	const uint64_t size = 128 * UZ_MIB, limit = 32 * UZ_MIB;
	struct store *store = make_store(size, limit, CODEC_LZ4);
	struct store_thread *thread;
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8))), back[UZ_PAGE_SIZE];
	uint64_t *words = (uint64_t *)(void *)page, stored = 0;
	uint64_t empty = settled_memory(store);

	ck_assert_int_eq(store_thread_new(&thread, store, true), 0);
	for (; stored < size / UZ_PAGE_SIZE; stored++) {
		struct stats_values values = {0};

		for (unsigned i = 0; i < 512; i++)
			words[i] = test_mix(stored * 512 + i);
		int err = submit(thread, STORE_WRITE, stored * UZ_PAGE_SIZE, UZ_PAGE_SIZE, page);

		if (stored % 64 == 0) {
			store_stats(store, &values);
			ck_assert_uint_le(values.value[STATS_MEMORY_USED], limit);
		}
		if (err == -ENOSPC)
			break;
		ck_assert_int_eq(err, 0);
	}
	/* 32 MiB less the table (256 KiB) and bookkeeping hold at least 29 MiB of noise.
	 */
	ck_assert_uint_gt(stored, 29 * UZ_MIB / UZ_PAGE_SIZE);
	ck_assert_uint_lt(stored, 32 * UZ_MIB / UZ_PAGE_SIZE);
	ck_assert_uint_eq(store_room_pages(store), 0);
	uint64_t start_ns = clock_now_ns();

	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(
			submit(thread, STORE_WRITE, stored * UZ_PAGE_SIZE, UZ_PAGE_SIZE, page),
			-ENOSPC);
	ck_assert_uint_lt((clock_now_ns() - start_ns) / 100, 10 * UZ_NSEC_PER_MSEC);
	for (uint64_t slot = 0; slot < stored; slot++) {
		for (unsigned i = 0; i < 512; i++)
			words[i] = test_mix(slot * 512 + i);
		ck_assert_int_eq(
			submit(thread, STORE_READ, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, back), 0);
		ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
	}
	/* Room again after discards, and overwriting needs no more room than there was.
	 */
	ck_assert_int_eq(submit(thread, STORE_DISCARD, 0, 1000 * UZ_PAGE_SIZE, NULL), 0);
	for (unsigned i = 0; i < 900; i++) {
		words[0] = i;
		ck_assert_int_eq(submit(thread, STORE_WRITE, i * UZ_PAGE_SIZE, UZ_PAGE_SIZE, page),
				 0);
	}
	struct stats_values values = {0};

	store_stats(store, &values);
	ck_assert_uint_ge(values.value[STATS_WRITE_NO_SPACE], 101);
	ck_assert_int_eq(submit(thread, STORE_DISCARD, 0, size, NULL), 0);
	uint64_t emptied = settled_memory(store);

	ck_assert_uint_le(emptied, empty + 2 * UZ_MIB);
	store_thread_free(thread);
	store_free(store);
}
END_TEST

START_TEST(limit_can_change)
{
	struct store *store = make_store(64 * UZ_MIB, 16 * UZ_MIB, CODEC_LZ4);
	struct store_thread *thread;
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8)));
	uint64_t *words = (uint64_t *)(void *)page;
	uint64_t slot = 0;

	ck_assert_int_eq(store_thread_new(&thread, store, true), 0);
	for (unsigned round = 0; round < 2; round++) {
		int err = 0;

		for (; err == 0; slot++) {
			for (unsigned i = 0; i < 512; i++)
				words[i] = test_mix(slot * 512 + i);
			err = submit(thread, STORE_WRITE, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, page);
		}
		ck_assert_int_eq(err, -ENOSPC);
		ck_assert_int_eq(store_set_limit(store, 32 * UZ_MIB), 0);
	}
	ck_assert_uint_gt(slot, 29 * UZ_MIB / UZ_PAGE_SIZE);
	ck_assert_int_eq(store_set_limit(store, 1 * UZ_MIB), -EINVAL);
	ck_assert_int_eq(store_set_limit(store, store_maximum_limit_bytes(store) + 1), -EINVAL);
	ck_assert_int_eq(store_set_limit(store, 8 * UZ_MIB), 0);
	ck_assert_int_eq(submit(thread, STORE_WRITE, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, page),
			 -ENOSPC);
	ck_assert_int_eq(submit(thread, STORE_READ, 0, UZ_PAGE_SIZE, page), 0);
	ck_assert_uint_eq(words[0], test_mix(0));
	store_thread_free(thread);
	store_free(store);
}
END_TEST

/* After discarding all pages but a few here and there, compaction gives the memory back.
 */
START_TEST(compaction_gives_memory_back)
{
	const uint64_t slots = 16384;
	struct store *store = make_store(slots * UZ_PAGE_SIZE, 80 * UZ_MIB, CODEC_LZ4);
	struct store_thread *thread;
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8))), back[UZ_PAGE_SIZE];

	ck_assert_int_eq(store_thread_new(&thread, store, true), 0);
	for (uint64_t slot = 0; slot < slots; slot++) {
		test_page_fill(page, slot);
		ck_assert_int_eq(
			submit(thread, STORE_WRITE, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, page), 0);
	}
	for (uint64_t slot = 0; slot < slots; slot++)
		if (test_mix(slot + 99) % 8 != 0)
			ck_assert_int_eq(submit(thread, STORE_DISCARD, slot * UZ_PAGE_SIZE,
						UZ_PAGE_SIZE, NULL),
					 0);
	uint64_t before = settled_memory(store);
	struct stats_values values = {0};

	for (unsigned i = 0; i < 4; i++) {
		store_compact(thread);
		settled_memory(store);
	}
	uint64_t after = settled_memory(store);

	store_stats(store, &values);
	ck_assert_uint_lt(after, before);
	ck_assert_uint_lt(after - values.value[STATS_MEMORY_TABLE],
			  values.value[STATS_COMPRESSED] * 3 / 2 + 4 * UZ_MIB);
	for (uint64_t slot = 0; slot < slots; slot++) {
		if (test_mix(slot + 99) % 8 == 0)
			test_page_fill(page, slot);
		else
			memset(page, 0, UZ_PAGE_SIZE);
		ck_assert_int_eq(
			submit(thread, STORE_READ, slot * UZ_PAGE_SIZE, UZ_PAGE_SIZE, back), 0);
		ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
	}
	store_thread_free(thread);
	store_free(store);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store");
	TCase *tcase = tcase_create("store");

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, slot_words);
	tcase_add_loop_test(tcase, every_kind_of_page, 0, 2);
	tcase_add_test(tcase, bad_requests);
	tcase_add_test(tcase, any_sector_alignment);
	tcase_add_test(tcase, model_of_disjoint_slots);
	tcase_add_test(tcase, model_of_shared_slots);
	tcase_add_test(tcase, full_pool_refuses_quickly_and_reads_on);
	tcase_add_test(tcase, limit_can_change);
	tcase_add_test(tcase, compaction_gives_memory_back);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
