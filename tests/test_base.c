// SPDX-License-Identifier: MIT
/* base and stats: histogram, log limiter, threads, spawning, the table of statistics. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spawn.h"
#include "base/thread.h"
#include "base/units.h"
#include "stats/histogram.h"
#include "stats/stats.h"

START_TEST(histogram_quantiles_are_within_an_eighth)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));
	struct histogram_snapshot snapshot = {0};

	ck_assert_uint_eq(histogram_quantile_ns(&snapshot, 5000), 0);
	for (uint64_t value = 1; value <= 100000; value++)
		histogram_record(histogram, value * 100);
	histogram_add_to(histogram, &snapshot);
	ck_assert_uint_eq(snapshot.total, 100000);
	ck_assert_uint_eq(snapshot.max_ns, 10000000);
	static const unsigned permyriads[] = {1, 100, 5000, 9000, 9900, 9999, 10000};

	for (unsigned i = 0; i < UZ_ARRAY_SIZE(permyriads); i++) {
		uint64_t exact = permyriads[i] * 1000ull;
		uint64_t got = histogram_quantile_ns(&snapshot, permyriads[i]);

		ck_assert_uint_ge(got, exact);
		ck_assert_uint_le(got, exact + exact / 8 + 1);
	}
	ck_assert_uint_eq(histogram_count_below(&snapshot, UINT64_MAX), 100000);
	ck_assert_uint_le(histogram_count_below(&snapshot, 5000000), 50000);
	ck_assert_uint_ge(histogram_count_below(&snapshot, 5000000), 43000);
	free(histogram);
}
END_TEST

START_TEST(histogram_takes_any_value)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));
	struct histogram_snapshot snapshot = {0};
	static const uint64_t values[] = {0, 1, 7, 8, 9, 1ull << 39, 1ull << 40, UINT64_MAX};

	for (unsigned i = 0; i < UZ_ARRAY_SIZE(values); i++)
		histogram_record(histogram, values[i]);
	histogram_add_to(histogram, &snapshot);
	ck_assert_uint_eq(snapshot.total, UZ_ARRAY_SIZE(values));
	ck_assert_uint_eq(histogram_quantile_ns(&snapshot, 1), 0);
	ck_assert_uint_eq(snapshot.max_ns, UINT64_MAX);
	free(histogram);
}
END_TEST

START_TEST(log_lines_are_limited)
{
	struct log_limit limit = {0};
	unsigned lines = 0;
	uint64_t reported = 0;

	/* 50,000 refusals in a minute, looked at every 100 ms, a line every 10 s at most. */
	for (uint64_t tick = 1; tick <= 600; tick++) {
		uint64_t news =
			log_limit_due(&limit, tick * 50000 / 600, tick * 100000000, 10000000000);

		lines += news > 0;
		reported += news;
	}
	ck_assert_uint_le(lines, 7);
	ck_assert_uint_ge(lines, 5);
	reported += log_limit_due(&limit, 50000, 100000000000, 10000000000);
	ck_assert_uint_eq(reported, 50000);
	ck_assert_uint_eq(log_limit_due(&limit, 50000, 200000000000, 10000000000), 0);
}
END_TEST

START_TEST(log_levels)
{
	enum log_level level = LOG_LEVEL_INFO;

	ck_assert_int_eq(log_level_parse("debug", &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(log_level_parse("loud", &level), -EINVAL);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_str_eq(log_level_name(LOG_LEVEL_WARNING), "warning");
}
END_TEST

static void note_name(void *argument)
{
	pthread_getname_np(pthread_self(), argument, 16);
}

START_TEST(threads_are_named)
{
	struct thread thread;
	char name[16] = "";

	ck_assert_int_eq(thread_start(&thread, "uzswap:a-name-too-long", note_name, name, 0, 0), 0);
	thread_join(&thread);
	ck_assert_str_eq(name, "uzswap:a-name-t");
	int cpus[4];

	ck_assert_int_ge(thread_allowed_cpus(cpus, 4), 1);
}
END_TEST

START_TEST(spawned_programs_report_their_end)
{
	char program[] = "sh", option[] = "-c", exit3[] = "exit 3", kill9[] = "kill -9 $$";
	char missing[] = "/nonexistent/program";
	char *argv[] = {program, option, exit3, NULL};
	pid_t pid;

	ck_assert_int_eq(spawn_start(argv, -1, -1, -1, &pid), 0);
	ck_assert_int_eq(spawn_wait(pid), 3);
	argv[2] = kill9;
	ck_assert_int_eq(spawn_start(argv, -1, -1, -1, &pid), 0);
	ck_assert_int_eq(spawn_wait(pid), 256 + 9);
	argv[0] = missing;
	ck_assert_int_eq(spawn_start(argv, -1, -1, -1, &pid), -ENOENT);
}
END_TEST

/* The Prometheus conventions that the exporters rely on. */
START_TEST(statistics_are_well_named)
{
	for (unsigned i = 0; i < STATS_COUNT; i++) {
		const struct stats_metric *metric = &stats_table[i];
		size_t length = strlen(metric->name);
		bool total = length > 6 && strcmp(metric->name + length - 6, "_total") == 0;

		ck_assert_msg(strspn(metric->name, "abcdefghijklmnopqrstuvwxyz_") == length, "%s",
			      metric->name);
		ck_assert_msg(
			total == (metric->type == STATS_COUNTER && metric->unit != STATS_UNIT_NS),
			"%s", metric->name);
		if (metric->unit == STATS_UNIT_BYTES)
			ck_assert_ptr_nonnull(strstr(metric->name, "_bytes"));
		if (metric->unit == STATS_UNIT_PAGES)
			ck_assert_ptr_nonnull(strstr(metric->name, "_pages"));
		ck_assert_int_eq(metric->help[strlen(metric->help) - 1], '.');
		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(metric->name, stats_table[j].name);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *tcase = tcase_create("base");

	tcase_add_test(tcase, histogram_quantiles_are_within_an_eighth);
	tcase_add_test(tcase, histogram_takes_any_value);
	tcase_add_test(tcase, log_lines_are_limited);
	tcase_add_test(tcase, log_levels);
	tcase_add_test(tcase, threads_are_named);
	tcase_add_test(tcase, spawned_programs_report_their_end);
	tcase_add_test(tcase, statistics_are_well_named);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
