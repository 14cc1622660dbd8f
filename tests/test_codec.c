// SPDX-License-Identifier: MIT
/* Codecs: round trips at every level, exact capacities, damaged objects. */
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "codec/codec.h"
#include "codec/fill.h"
#include "tests/pages.h"

static struct codec_compressor *compressor;
static struct codec_decompressor *decompressor;

static void set_up(void)
{
	ck_assert_int_eq(codec_compressor_new(&compressor), 0);
	ck_assert_int_eq(codec_decompressor_new(&decompressor), 0);
}

static void tear_down(void)
{
	codec_compressor_free(compressor);
	codec_decompressor_free(decompressor);
}

static const enum codec_id codecs[] = {CODEC_LZ4, CODEC_ZSTD};

START_TEST(every_level_round_trips_without_allocating)
{
	const struct codec_info *info = codec_info_by_id(codecs[_i]);
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8)));
	unsigned char out[2 * UZ_PAGE_SIZE], back[UZ_PAGE_SIZE];

	for (int level = info->level_min; level <= info->level_max;
	     level += level > 30 ? 5957 : 1) {
		struct mallinfo2 before = mallinfo2();

		for (uint64_t seed = 0; seed < 60; seed++) {
			test_page_fill(page, seed);
			int length =
				codec_compress(compressor, info->id, level, page, out, sizeof(out));

			ck_assert_int_gt(length, 0);
			ck_assert_int_eq(
				codec_decompress(decompressor, info->id, out, (size_t)length, back),
				0);
			ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
		}
		struct mallinfo2 after = mallinfo2();

		ck_assert_uint_eq(before.uordblks, after.uordblks);
		ck_assert_uint_eq(before.hblkhd, after.hblkhd);
	}
}
END_TEST

START_TEST(capacity_is_kept_exactly)
{
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8)));
	unsigned char out[UZ_PAGE_SIZE + 64];

	for (uint64_t seed = 0; seed < 200; seed++) {
		test_page_fill(page, seed);
		unsigned char full[2 * UZ_PAGE_SIZE];
		int length = codec_compress(compressor, codecs[_i], 1, page, full, sizeof(full));

		for (int capacity = length - 40; capacity < length; capacity += 13) {
			if (capacity < 16 || capacity > (int)UZ_PAGE_SIZE)
				continue;
			memset(out, 0xa5, sizeof(out));
			int got = codec_compress(compressor, codecs[_i], 1, page, out,
						 (size_t)capacity);

			/* A library may do better when it has less room, never write past it. */
			ck_assert_int_ge(got, 0);
			ck_assert_int_le(got, capacity);
			for (unsigned i = 0; i < 64; i++)
				ck_assert_uint_eq(out[(unsigned)capacity + i], 0xa5);
		}
	}
}
END_TEST

START_TEST(noise_is_incompressible)
{
	uint64_t page[UZ_PAGE_SIZE / 8];
	unsigned char out[UZ_PAGE_SIZE];

	for (unsigned i = 0; i < UZ_ARRAY_SIZE(page); i++)
		page[i] = test_mix(i);
	ck_assert_int_eq(codec_compress(compressor, codecs[_i], 1, page, out, 3840), 0);
}
END_TEST

/* Whatever the bytes are: an error or some page, never a crash (sanitizers) or a wrong length. */
START_TEST(damaged_objects_are_errors_or_whole_pages)
{
	unsigned char page[UZ_PAGE_SIZE] __attribute__((aligned(8)));
	unsigned char out[UZ_PAGE_SIZE], back[UZ_PAGE_SIZE];
	unsigned errors = 0;

	for (uint64_t seed = 0; seed < 3000; seed++) {
		test_page_fill(page, seed % 100);
		int length = codec_compress(compressor, codecs[_i], 1, page, out, sizeof(out));

		if (length <= 0)
			continue;
		size_t cut = (size_t)length;

		if (seed % 3 == 0)
			cut = 1 + test_mix(seed) % cut;
		else
			out[test_mix(seed) % cut] ^= (unsigned char)(1u << seed % 8);
		int err = codec_decompress(decompressor, codecs[_i], out, cut, back);

		ck_assert(err == 0 || err == -EIO);
		errors += err != 0;
	}
	ck_assert_uint_gt(errors, 100);
}
END_TEST

START_TEST(raw_pages_must_be_whole)
{
	unsigned char page[UZ_PAGE_SIZE], back[UZ_PAGE_SIZE];

	memset(page, 0x5a, sizeof(page));
	ck_assert_int_eq(codec_decompress(decompressor, CODEC_RAW, page, UZ_PAGE_SIZE, back), 0);
	ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
	ck_assert_int_eq(codec_decompress(decompressor, CODEC_RAW, page, UZ_PAGE_SIZE - 1, back),
			 -EIO);
	ck_assert_int_eq(codec_decompress(decompressor, CODEC_COUNT, page, 100, back), -EIO);
}
END_TEST

START_TEST(same_filled_pages_are_found)
{
	uint64_t page[UZ_PAGE_SIZE / 8], word;

	for (unsigned i = 0; i < 100; i++) {
		for (unsigned j = 0; j < UZ_ARRAY_SIZE(page); j++)
			page[j] = test_mix(i);
		ck_assert(fill_detect(page, &word));
		ck_assert_uint_eq(word, test_mix(i));
		uint64_t back[UZ_PAGE_SIZE / 8];

		fill_page(back, word);
		ck_assert_mem_eq(page, back, UZ_PAGE_SIZE);
		page[test_mix(i + 1) % 512] ^= 1ull << i % 64;
		ck_assert(!fill_detect(page, &word));
	}
}
END_TEST

START_TEST(names_and_ranges)
{
	ck_assert_ptr_null(codec_info_by_name("snappy"));
	ck_assert_ptr_null(codec_info_by_id(CODEC_RAW));
	for (unsigned i = 0; i < UZ_ARRAY_SIZE(codecs); i++) {
		const struct codec_info *info = codec_info_by_id(codecs[i]);

		ck_assert_ptr_eq(codec_info_by_name(info->name), info);
		ck_assert_int_le(info->level_min, info->level_default);
		ck_assert_int_le(info->level_default, info->level_max);
		ck_assert_ptr_nonnull(strstr(codec_names(), info->name));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec");
	TCase *tcase = tcase_create("codec");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, every_level_round_trips_without_allocating, 0, 2);
	tcase_add_loop_test(tcase, capacity_is_kept_exactly, 0, 2);
	tcase_add_loop_test(tcase, noise_is_incompressible, 0, 2);
	tcase_add_loop_test(tcase, damaged_objects_are_errors_or_whole_pages, 0, 2);
	tcase_add_test(tcase, raw_pages_must_be_whole);
	tcase_add_test(tcase, same_filled_pages_are_found);
	tcase_add_test(tcase, names_and_ranges);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
