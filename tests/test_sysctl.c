// SPDX-License-Identifier: MIT
/* Sysctls set while swap is on, on a made-up /proc. A daemon that is killed is one that
 * frees without restoring. */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "daemon/sysctl.h"

#define BOOST "vm.watermark_boost_factor"
#define KEPT  "vm.min_free_kbytes"

static char root[] = "/tmp/uzswap-sysctl-XXXXXX";
static char run_dir[64];

static const struct sysctl_want wants[] = {
	{.name = BOOST, .value = 0},
	{.name = KEPT, .value = 131072, .at_least = true},
};

static void write_at(const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	FILE *file = fopen(full, "we");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void set(const char *file, uint64_t value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "proc/sys/vm/%s", file);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	write_at(path, text);
}

static uint64_t get(const char *file)
{
	char full[512];
	uint64_t value = UINT64_MAX;

	snprintf(full, sizeof(full), "%s/proc/sys/vm/%s", root, file);
	FILE *stream = fopen(full, "re");

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(fscanf(stream, "%" SCNu64, &value), 1);
	fclose(stream);
	return value;
}

static bool saved(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/sysctl.saved", run_dir);
	return access(path, F_OK) == 0;
}

static void write_saved(const char *text)
{
	write_at("run/sysctl.saved", text);
}

static struct sysctl_set *open_set(void)
{
	struct sysctl_set *opened;

	ck_assert_int_eq(sysctl_set_new(&opened, run_dir, root), 0);
	return opened;
}

static void apply(struct sysctl_set *opened)
{
	ck_assert_int_eq(sysctl_set_apply(opened, wants, UZ_ARRAY_SIZE(wants)), 0);
}

static void make_proc(void)
{
	static const char *const parts[] = {"proc",
					    "proc/sys",
					    "proc/sys/vm",
					    "proc/sys/kernel",
					    "proc/sys/kernel/random",
					    "run"};
	char path[512];

	ck_assert_ptr_nonnull(mkdtemp(root));
	for (size_t i = 0; i < UZ_ARRAY_SIZE(parts); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, parts[i]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
	}
	snprintf(run_dir, sizeof(run_dir), "%s/run", root);
	write_at("proc/sys/kernel/random/boot_id",
		 "11111111-2222-3333-4444-555555555555\n");
	set("watermark_boost_factor", 15000);
	set("min_free_kbytes", 67584);
	log_set_level(LOG_LEVEL_ERROR);
}

static void remove_proc(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(test_set_and_put_back)
{
	struct sysctl_status list[SYSCTL_MAX];
	struct sysctl_set *opened = open_set();

	apply(opened);
	ck_assert_uint_eq(get("watermark_boost_factor"), 0);
	ck_assert_uint_eq(get("min_free_kbytes"), 131072);
	ck_assert(saved());
	ck_assert_uint_eq(sysctl_set_status(opened, list, SYSCTL_MAX), 2);
	ck_assert_str_eq(list[0].name, BOOST);
	ck_assert_uint_eq(list[0].before, 15000);
	ck_assert_uint_eq(list[0].now, 0);
	ck_assert(list[0].changed && list[0].error == 0);
	ck_assert_uint_eq(list[1].before, 67584);
	ck_assert_uint_eq(list[1].now, 131072);

	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	ck_assert(!saved());
	ck_assert_uint_eq(sysctl_set_status(opened, list, SYSCTL_MAX), 0);
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_nothing_to_change)
{
	struct sysctl_status list[SYSCTL_MAX];
	struct sysctl_set *opened = open_set();

	set("watermark_boost_factor", 0);
	set("min_free_kbytes", 200000);
	apply(opened);
	ck_assert_uint_eq(get("min_free_kbytes"), 200000);
	ck_assert(!saved());
	ck_assert_uint_eq(sysctl_set_status(opened, list, SYSCTL_MAX), 2);
	ck_assert(!list[0].changed && !list[1].changed);
	/* Not ours, so not ours to put back. */
	set("min_free_kbytes", 300000);
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("min_free_kbytes"), 300000);
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_changed_by_the_administrator)
{
	struct sysctl_status list[SYSCTL_MAX];
	struct sysctl_set *opened = open_set();

	apply(opened);
	set("min_free_kbytes", 99999);
	ck_assert_uint_eq(sysctl_set_status(opened, list, SYSCTL_MAX), 2);
	ck_assert(list[0].changed && !list[1].changed);
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	ck_assert_uint_eq(get("min_free_kbytes"), 99999);
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_killed_and_started_again)
{
	struct sysctl_set *opened = open_set();

	/* Twice, so that a first restart does not take our values for the originals. */
	for (int i = 0; i < 3; i++) {
		apply(opened);
		sysctl_set_free(opened);
		ck_assert_uint_eq(get("min_free_kbytes"), 131072);
		ck_assert(saved());
		opened = open_set();
	}
	apply(opened);
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	ck_assert(!saved());
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_killed_and_restored_only)
{
	struct sysctl_set *opened = open_set();

	apply(opened);
	sysctl_set_free(opened);
	opened = open_set();
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	ck_assert(!saved());
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_killed_and_wishes_changed)
{
	const struct sysctl_want other[] = {
		{.name = KEPT, .value = 100000, .at_least = true}};
	struct sysctl_set *opened = open_set();

	apply(opened);
	sysctl_set_free(opened);
	opened = open_set();
	/* One is not wished for any more, the other with another value. */
	ck_assert_int_eq(sysctl_set_apply(opened, other, 1), 0);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	ck_assert_uint_eq(get("min_free_kbytes"), 100000);
	sysctl_set_free(opened);
	opened = open_set();
	/* And none at all. */
	ck_assert_int_eq(sysctl_set_apply(opened, NULL, 0), 0);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	ck_assert(!saved());
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_killed_then_changed_by_the_administrator)
{
	struct sysctl_set *opened = open_set();

	apply(opened);
	sysctl_set_free(opened);
	set("min_free_kbytes", 99999);
	opened = open_set();
	apply(opened);
	ck_assert_uint_eq(get("min_free_kbytes"), 131072);
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("min_free_kbytes"), 99999);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	sysctl_set_free(opened);
}
END_TEST

/* A kill between writing the file and setting the value. */
START_TEST(test_killed_before_setting)
{
	write_saved("boot 11111111-2222-3333-4444-555555555555\n" KEPT " 67584 131072\n");
	struct sysctl_set *opened = open_set();

	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	ck_assert(!saved());
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_files_to_be_ignored)
{
	static const char *const files[] = {
		"",
		"boot 99999999-2222-3333-4444-555555555555\n" KEPT " 1 131072\n",
		KEPT " 1 131072\n",
		"boot 11111111-2222-3333-4444-555555555555\n" KEPT " 1\n",
		"boot 11111111-2222-3333-4444-555555555555\n../../etc/passwd 1 131072\n",
		"boot 11111111-2222-3333-4444-555555555555\nvm.no_such_thing 1 131072\n",
		"\x01\x02\x03",
	};

	for (size_t i = 0; i < UZ_ARRAY_SIZE(files); i++) {
		set("min_free_kbytes", 131072);
		write_saved(files[i]);
		struct sysctl_set *opened = open_set();

		sysctl_set_restore(opened);
		ck_assert_uint_eq(get("min_free_kbytes"), 131072);
		sysctl_set_free(opened);
	}
}
END_TEST

START_TEST(test_missing_sysctl)
{
	const struct sysctl_want some[] = {
		{.name = "vm.no_such_thing", .value = 1},
		{.name = BOOST, .value = 0},
	};
	struct sysctl_status list[SYSCTL_MAX];
	struct sysctl_set *opened = open_set();

	ck_assert_int_eq(sysctl_set_apply(opened, some, 2), 0);
	ck_assert_uint_eq(sysctl_set_status(opened, list, SYSCTL_MAX), 2);
	ck_assert_int_eq(list[0].error, -ENOENT);
	ck_assert(!list[0].changed);
	ck_assert_uint_eq(get("watermark_boost_factor"), 0);
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_bad_names)
{
	char long_name[SYSCTL_NAME_BYTES + 8];
	const char *const names[] = {"", "vm/min_free_kbytes", "vm..min_free_kbytes",
				     "../x", long_name};
	struct sysctl_set *opened = open_set();

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	for (size_t i = 0; i < UZ_ARRAY_SIZE(names); i++) {
		const struct sysctl_want want = {.name = names[i], .value = 1};

		ck_assert_int_eq(sysctl_set_apply(opened, &want, 1), -EINVAL);
	}
	ck_assert(!saved());
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_no_place_for_the_file)
{
	struct sysctl_set *opened;

	ck_assert_int_eq(sysctl_set_new(&opened, "/nonexistent/run", root), 0);
	ck_assert_int_eq(sysctl_set_apply(opened, wants, 2), -ENOENT);
	ck_assert_uint_eq(get("watermark_boost_factor"), 15000);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	sysctl_set_restore(opened);
	ck_assert_uint_eq(get("min_free_kbytes"), 67584);
	sysctl_set_free(opened);
}
END_TEST

START_TEST(test_free_takes_null)
{
	sysctl_set_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sysctl");
	TCase *tcase = tcase_create("sysctl");

	tcase_add_checked_fixture(tcase, make_proc, remove_proc);
	tcase_add_test(tcase, test_set_and_put_back);
	tcase_add_test(tcase, test_nothing_to_change);
	tcase_add_test(tcase, test_changed_by_the_administrator);
	tcase_add_test(tcase, test_killed_and_started_again);
	tcase_add_test(tcase, test_killed_and_restored_only);
	tcase_add_test(tcase, test_killed_and_wishes_changed);
	tcase_add_test(tcase, test_killed_then_changed_by_the_administrator);
	tcase_add_test(tcase, test_killed_before_setting);
	tcase_add_test(tcase, test_files_to_be_ignored);
	tcase_add_test(tcase, test_missing_sysctl);
	tcase_add_test(tcase, test_bad_names);
	tcase_add_test(tcase, test_no_place_for_the_file);
	tcase_add_test(tcase, test_free_takes_null);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
