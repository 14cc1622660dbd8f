// SPDX-License-Identifier: MIT
/*
 * The relief valve: parser and decisions on made-up numbers, then the real
 * threads on a made-up /proc/zoneinfo, where what is given shows in the size
 * of the reserve.
 */
#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/relief.h"

#define MS UZ_NSEC_PER_MSEC

/* ---- parser ---- */

/* As Linux 6.18 prints it, shortened: Normal is empty, as on a machine with 512 MiB. */
static const char small_machine[] = "Node 0, zone      DMA\n"
				    "  per-node stats\n"
				    "      nr_inactive_anon 1569\n"
				    "      nr_free_cma  0\n"
				    "  pages free     3840\n"
				    "        boost    0\n"
				    "        min      55\n"
				    "        low      68\n"
				    "        high     81\n"
				    "        promo    94\n"
				    "        spanned  4095\n"
				    "        managed  3840\n"
				    "        cma      0\n"
				    "        protection: (0, 453, 453, 453, 453)\n"
				    "      nr_free_pages 3840\n"
				    "  pagesets\n"
				    "    cpu: 0\n"
				    "              count:    0\n"
				    "              high:     999999\n"
				    "              high_min: 34\n"
				    "  node_unreclaimable:  0\n"
				    "Node 0, zone    DMA32\n"
				    "  pages free     7000\n"
				    "        boost    6400\n"
				    "        min      8100\n"
				    "        low      8500\n"
				    "        high     8900\n"
				    "        protection: (0, 0, 0, 0, 0)\n"
				    "      nr_free_pages 7000\n"
				    "Node 0, zone   Normal\n"
				    "  pages free     0\n"
				    "        min      0\n"
				    "        low      0\n"
				    "        high     0\n"
				    "        protection: (0, 0, 0, 0, 0)\n"
				    "Node 0, zone  Movable\n"
				    "  pages free     0\n"
				    "        min      32\n"
				    "        low      32\n"
				    "        high     32\n"
				    "        protection: (0, 0, 0, 0, 0)\n";

/* Two nodes; the second has all its memory in Normal and in Movable. */
static const char two_nodes[] = "Node 0, zone    DMA32\n"
				"  pages free     70000\n"
				"        min      1000\n"
				"        low      1200\n"
				"        high     1400\n"
				"        protection: (0, 65536, 90000)\n"
				"Node 0, zone   Normal\n"
				"  pages free     20000\n"
				"        min      10000\n"
				"        low      12000\n"
				"        high     14000\n"
				"        protection: (0, 0, 50000)\n"
				"Node 0, zone  Movable\n"
				"  pages free     500000\n"
				"        min      9000\n"
				"        low      9100\n"
				"        high     9200\n"
				"        protection: (0, 0, 0)\n"
				"Node 1, zone   Normal\n"
				"  pages free     3000\n"
				"        min      5000\n"
				"        low      6000\n"
				"        high     7000\n"
				"        protection: (0, 50000)\n";

static struct relief_view parse(const char *text, size_t piece)
{
	struct relief_parser parser = {0};
	struct relief_view view = {0};
	size_t length = strlen(text);

	for (size_t at = 0; at < length; at += piece)
		relief_parser_feed(&parser, text + at, UZ_MIN(piece, length - at));
	ck_assert_int_eq(relief_parser_finish(&parser, &view), 0);
	return view;
}

START_TEST(test_parse_small_machine)
{
	/* DMA keeps 453 pages for others: it can spare 3840 - 453 - 55. */
	for (size_t piece = 1; piece < 300; piece += 7) {
		struct relief_view view = parse(small_machine, piece);

		ck_assert_uint_eq(view.free_pages, 7000 + 3840 - 453 - 55);
		ck_assert_uint_eq(view.min_pages, 8100);
		ck_assert_uint_eq(view.high_pages, 8900);
	}
}
END_TEST

START_TEST(test_parse_two_nodes)
{
	struct relief_view view = parse(two_nodes, 4096);

	/* Movable memory is of no use to the kernel; DMA32 spares 70000 - 65536 - 1000.
	 */
	ck_assert_uint_eq(view.free_pages, 3464 + 20000 + 3000);
	ck_assert_uint_eq(view.min_pages, 15000);
	ck_assert_uint_eq(view.high_pages, 21000);
}
END_TEST

START_TEST(test_parse_nonsense)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"hello",
		"Node 0, zone\n",
		"pages free 5\n min 3\n high 9\n",
		"Node 0, zone Normal\n",
		"Node 0, zone Normal\n protection: (((((\n",
	};
	struct relief_view view = {1, 2, 3};

	for (size_t i = 0; i < UZ_ARRAY_SIZE(texts); i++) {
		struct relief_parser parser = {0};

		relief_parser_feed(&parser, texts[i], strlen(texts[i]));
		ck_assert_int_lt(relief_parser_finish(&parser, &view), 0);
		ck_assert_uint_eq(view.high_pages, 3);
	}
	/* More zones than any kernel has, and a line without end. */
	struct relief_parser parser = {0};

	for (int i = 0; i < 100; i++)
		relief_parser_feed(&parser,
				   "Node 0, zone Odd\n pages free 9\n min 1\n high 2\n",
				   45);
	for (int i = 0; i < 10000; i++)
		relief_parser_feed(&parser, "x", 1);
	relief_parser_finish(&parser, &view);
}
END_TEST

START_TEST(test_parse_this_machine)
{
	static char text[1 << 20];
	FILE *file = fopen("/proc/zoneinfo", "re");

	ck_assert_ptr_nonnull(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	struct relief_view view = parse(text, 4096);

	ck_assert_uint_gt(view.min_pages, 0);
	ck_assert_uint_gt(view.high_pages, view.min_pages);
	ck_assert_uint_gt(view.free_pages, 0);
}
END_TEST

/* ---- decisions ---- */

#define MIN  2000u
#define HIGH 3000u

static struct relief_decision decide(struct relief_state *state, uint64_t free_pages,
				     uint64_t now_ns)
{
	const struct relief_view view = {free_pages, MIN, HIGH};

	return relief_decide(state, &view, now_ns);
}

START_TEST(test_gives_at_min_at_every_look)
{
	struct relief_state state = {
		.chunks = 8, .armed_chunks = 8, .last_sleep_ns = 250 * MS};
	uint64_t now_ns = 1;

	for (int i = 0; i < 20; i++) {
		struct relief_decision decision = decide(&state, MIN - 100, now_ns);

		ck_assert_int_eq(decision.action, RELIEF_GIVE);
		ck_assert_uint_eq(decision.sleep_ns, 2 * MS);
		now_ns += decision.sleep_ns;
	}
	ck_assert_int_eq(decide(&state, MIN, now_ns).action, RELIEF_GIVE);
	ck_assert_int_eq(decide(&state, MIN + 64, now_ns).action, RELIEF_GIVE);
	ck_assert_int_eq(decide(&state, MIN + 65, now_ns).action, RELIEF_NOTHING);
	state.armed_chunks = 0;
	ck_assert_int_eq(decide(&state, 0, now_ns).action, RELIEF_NOTHING);
	ck_assert_uint_eq(decide(&state, 0, now_ns).sleep_ns, 2 * MS);
}
END_TEST

START_TEST(test_arms_slowly_after_a_calm)
{
	struct relief_state state = {.chunks = 8, .armed_chunks = 0};
	const uint64_t start_ns = 5000 * MS;
	uint64_t now_ns = start_ns, first_ns = 0, last_ns = 0;
	int armed = 0;

	while (now_ns < start_ns + 3000 * MS) {
		struct relief_decision decision = decide(&state, HIGH + 5000, now_ns);

		if (decision.action == RELIEF_ARM) {
			ck_assert_uint_ge(now_ns - last_ns, 20 * MS);
			last_ns = now_ns;
			if (armed++ == 0)
				first_ns = now_ns;
			state.armed_chunks++;
		}
		now_ns += decision.sleep_ns;
	}
	ck_assert_uint_ge(first_ns - start_ns, 1000 * MS);
	ck_assert_uint_le(first_ns - start_ns, 1100 * MS);
	ck_assert_int_eq(armed, 8);
	ck_assert_uint_eq(state.armed_chunks, state.chunks);
	/* Complete: it sleeps longer again. */
	ck_assert_uint_gt(decide(&state, 1 << 20, now_ns).sleep_ns, 200 * MS);
}
END_TEST

START_TEST(test_does_not_arm_near_high_or_twice_at_once)
{
	struct relief_state state = {.chunks = 8, .armed_chunks = 0};
	uint64_t now_ns = 1;

	for (int i = 0; i < 2000; i++, now_ns += 10 * MS)
		ck_assert_int_eq(decide(&state, HIGH + 4 * 64, now_ns).action,
				 RELIEF_NOTHING);
	/* A dip starts the calm anew. */
	for (int i = 0; i < 2000; i++, now_ns += 10 * MS)
		ck_assert_int_ne(
			decide(&state, i % 50 == 0 ? HIGH : HIGH + 5000, now_ns).action,
			RELIEF_ARM);
	state.arming = true;
	for (int i = 0; i < 2000; i++, now_ns += 10 * MS)
		ck_assert_int_eq(decide(&state, HIGH + 5000, now_ns).action,
				 RELIEF_NOTHING);
}
END_TEST

/*
 * Lets free memory fall at a steady rate and returns how long after it reached
 * min the valve first gave.
 */
static uint64_t lateness_ns(struct relief_state *state, uint64_t start_pages,
			    double bytes_per_ns)
{
	const double pages_per_ns = bytes_per_ns / UZ_PAGE_SIZE;
	const uint64_t start_ns = 1;
	const double min_after_ns = (double)(start_pages - MIN) / pages_per_ns;
	uint64_t now_ns = start_ns;

	for (;;) {
		double fallen = pages_per_ns * (double)(now_ns - start_ns);
		double free_pages = (double)start_pages - fallen;
		struct relief_decision decision =
			decide(state, free_pages < 0 ? 0 : (uint64_t)free_pages, now_ns);

		if (decision.action == RELIEF_GIVE) {
			double late = (double)(now_ns - start_ns) - min_after_ns;

			return late < 0 ? 0 : (uint64_t)late;
		}
		now_ns += decision.sleep_ns;
	}
}

START_TEST(test_sees_a_steady_fall_in_time)
{
	static const double gigabytes_per_s[] = {0.05, 0.2, 0.5, 1, 2, 4};

	for (size_t i = 0; i < UZ_ARRAY_SIZE(gigabytes_per_s); i++) {
		for (uint64_t start = HIGH; start < 4000000; start = start * 6 / 5) {
			struct relief_state state = {.chunks = 8, .armed_chunks = 8};

			ck_assert_uint_le(lateness_ns(&state, start, gigabytes_per_s[i]),
					  2 * MS);
		}
	}
}
END_TEST

/* Out of a long quiet, at any speed, it costs one sleep: 100 ms near the watermarks. */
START_TEST(test_sees_a_sudden_fall)
{
	for (uint64_t start = HIGH + 1; start < 100000; start = start * 6 / 5) {
		struct relief_state state = {.chunks = 8, .armed_chunks = 8};
		uint64_t now_ns = 1;

		while (now_ns < 2000 * MS)
			now_ns += decide(&state, start, now_ns).sleep_ns;
		ck_assert_uint_le(lateness_ns(&state, start, 8), 102 * MS);
	}
}
END_TEST

static unsigned looks_per_second(uint64_t free_pages)
{
	struct relief_state state = {.chunks = 8, .armed_chunks = 8};
	uint64_t now_ns = 1;
	unsigned looks = 0;

	/* Once it has settled. */
	while (now_ns < 2000 * MS)
		now_ns += decide(&state, free_pages, now_ns).sleep_ns;
	for (; now_ns < 12000 * MS; looks++)
		now_ns += decide(&state, free_pages, now_ns).sleep_ns;
	return looks / 10;
}

START_TEST(test_idle_machines_sleep)
{
	ck_assert_uint_le(looks_per_second(4000000), 4);
	ck_assert_uint_le(looks_per_second(100000), 20);
	/* The page cache keeps free memory just above high for ever. */
	ck_assert_uint_le(looks_per_second(HIGH + 1), 10);
	/* Between min and high it stays close. */
	ck_assert_uint_ge(looks_per_second(HIGH - 100), 90);
	ck_assert_uint_ge(looks_per_second(MIN), 490);
}
END_TEST

/* ---- the threads ---- */

static char zoneinfo[] = "/tmp/uzswap-zoneinfo-XXXXXX";
static struct relief *relief;
static _Atomic uint64_t machine_free;

static uint64_t fake_free(void)
{
	return machine_free;
}

/* In place and of one length, so that a reader sees either the old or the new text. */
static void set_free(uint64_t free_pages)
{
	char text[256];
	int fd = open(zoneinfo, O_WRONLY | O_CLOEXEC);
	int length = snprintf(text, sizeof(text),
			      "Node 0, zone Normal\n pages free %8" PRIu64
			      "\n min 2000\n high 3000\n protection: (0)\n",
			      free_pages);

	machine_free = free_pages;
	ck_assert_int_eq(pwrite(fd, text, (size_t)length, 0), length);
	close(fd);
}

/* What the kernel has really allocated for the reserve: the memfds of this process. */
static uint64_t reserve_in_use(void)
{
	char line[512];
	uint64_t total_kib = 0, kib;
	int here = 0;
	FILE *file = fopen("/proc/self/smaps", "re");

	while (fgets(line, sizeof(line), file)) {
		if (strchr(line, '-') && strstr(line, " rw-s "))
			here = strstr(line, "memfd:uzswap-relief") != NULL;
		else if (here && sscanf(line, "Rss: %" SCNu64, &kib) == 1)
			total_kib += kib, here = 0;
	}
	fclose(file);
	return total_kib * UZ_KIB;
}

static struct relief_stats stats(void)
{
	struct relief_stats now;

	relief_stats(relief, &now);
	return now;
}

static void start(void)
{
	const struct relief_config config = {
		.reserve_bytes = 4 * UZ_MIB,
		.zoneinfo_path = zoneinfo,
		.free_pages = fake_free,
	};

	ck_assert_int_ge(mkstemp(zoneinfo), 0);
	set_free(100000);
	ck_assert_int_eq(relief_start(&relief, &config), 0);
}

static void stop(void)
{
	relief_stop(relief);
	unlink(zoneinfo);
}

START_TEST(test_gives_all_and_takes_it_back)
{
	ck_assert_uint_eq(stats().reserve_bytes, 4 * UZ_MIB);
	ck_assert_uint_eq(stats().armed_bytes, 4 * UZ_MIB);
	ck_assert_uint_eq(reserve_in_use(), 4 * UZ_MIB);
	clock_sleep_ns(300 * MS);
	ck_assert_uint_eq(stats().gives, 0);

	set_free(1500);
	/* At most 50 ms until it looks, then a chunk every 2 ms. */
	clock_sleep_ns(400 * MS);
	ck_assert_uint_eq(stats().armed_bytes, 0);
	ck_assert_uint_eq(stats().given_bytes, 4 * UZ_MIB);
	ck_assert_uint_eq(stats().gives, 16);
	ck_assert_uint_eq(stats().emptied, 1);
	ck_assert_uint_eq(reserve_in_use(), 0);

	set_free(20000);
	clock_sleep_ns(500 * MS);
	ck_assert_uint_eq(stats().armed_bytes, 0);
	for (int i = 0; i < 100 && stats().armed_bytes < 4 * UZ_MIB; i++)
		clock_sleep_ns(50 * MS);
	ck_assert_uint_eq(stats().armed_bytes, 4 * UZ_MIB);
	ck_assert_uint_eq(reserve_in_use(), 4 * UZ_MIB);
	ck_assert_uint_eq(stats().given_bytes, 4 * UZ_MIB);
}
END_TEST

START_TEST(test_gives_a_part)
{
	set_free(1500);
	for (int i = 0; i < 1000 && stats().gives < 3; i++)
		clock_sleep_ns(MS / 2);
	set_free(2500);
	clock_sleep_ns(20 * MS);
	uint64_t gives = stats().gives;

	ck_assert_uint_ge(gives, 3);
	ck_assert_uint_lt(gives, 16);
	clock_sleep_ns(50 * MS);
	ck_assert_uint_eq(stats().gives, gives);
	ck_assert_uint_eq(reserve_in_use(), 4 * UZ_MIB - gives * RELIEF_CHUNK_BYTES);
	ck_assert_uint_eq(stats().armed_bytes, reserve_in_use());
	ck_assert_uint_eq(stats().emptied, 0);
}
END_TEST

START_TEST(test_gives_while_arming)
{
	/* Back and forth: the counts must stay right. */
	for (int round = 0; round < 3; round++) {
		set_free(1500);
		clock_sleep_ns(150 * MS);
		set_free(20000);
		clock_sleep_ns(1150 * MS);
	}
	set_free(2500);
	clock_sleep_ns(150 * MS);
	ck_assert_uint_eq(stats().armed_bytes, reserve_in_use());
}
END_TEST

START_TEST(test_start_failures)
{
	const struct relief_config config = {.zoneinfo_path = "/nonexistent"};
	struct relief *none = NULL;

	ck_assert_int_lt(relief_start(&none, &config), 0);
	ck_assert_ptr_null(none);
	relief_stop(NULL);
}
END_TEST

/* The costs of the real thing at rest, on this machine. */
START_TEST(test_real_valve_at_rest)
{
	const struct relief_config config = {.reserve_bytes = 2 * UZ_MIB};

	ck_assert_int_eq(relief_start(&relief, &config), 0);
	clock_sleep_ns(1000 * MS);
	ck_assert_uint_ge(stats().looks, 2);
	relief_stop(relief);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("relief");
	TCase *pure = tcase_create("pure"), *real = tcase_create("threads"),
	      *bare = tcase_create("bare");
	void *page = mmap(NULL, 8 * UZ_MIB, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int skipped = 0;

	tcase_add_test(pure, test_parse_small_machine);
	tcase_add_test(pure, test_parse_two_nodes);
	tcase_add_test(pure, test_parse_nonsense);
	tcase_add_test(pure, test_parse_this_machine);
	tcase_add_test(pure, test_gives_at_min_at_every_look);
	tcase_add_test(pure, test_arms_slowly_after_a_calm);
	tcase_add_test(pure, test_does_not_arm_near_high_or_twice_at_once);
	tcase_add_test(pure, test_sees_a_steady_fall_in_time);
	tcase_add_test(pure, test_sees_a_sudden_fall);
	tcase_add_test(pure, test_idle_machines_sleep);
	tcase_add_test(pure, test_start_failures);
	suite_add_tcase(suite, pure);
	if (mlock(page, 8 * UZ_MIB) == 0) {
		tcase_set_timeout(real, 30);
		tcase_add_checked_fixture(real, start, stop);
		tcase_add_test(real, test_gives_all_and_takes_it_back);
		tcase_add_test(real, test_gives_a_part);
		tcase_add_test(real, test_gives_while_arming);
		tcase_add_test(bare, test_real_valve_at_rest);
		suite_add_tcase(suite, real);
		suite_add_tcase(suite, bare);
	} else {
		printf("SKIP: 8 MiB cannot be locked, so the threads are not tested\n");
		skipped = 77;
	}
	munmap(page, 8 * UZ_MIB);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed > 0 ? EXIT_FAILURE : skipped;
}
