// SPDX-License-Identifier: MIT
/*
 * Hardening. Every test runs in a process of its own (Check forks), so what it
 * does to its limits and memory ends with it.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/spawn.h"
#include "base/units.h"
#include "daemon/protect.h"

#ifndef PR_GET_IO_FLUSHER
#define PR_GET_IO_FLUSHER 58
#endif

#define PAGES(n) ((size_t)(n)*UZ_PAGE_SIZE)

static const struct protection *find(const char *name)
{
	const struct protection *list;
	size_t count = protect_list(&list);

	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	ck_abort_msg("no protection %s", name);
	return NULL;
}

static void drop_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
	data[capability / 32].effective &= ~(1u << (capability % 32));
	data[capability / 32].permitted &= ~(1u << (capability % 32));
	ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

static void limit_memlock(uint64_t bytes)
{
	const struct rlimit limit = {bytes, bytes};

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	drop_capability(CAP_SYS_RESOURCE);
	drop_capability(CAP_IPC_LOCK);
}

/* The sanitizers turn the calls that lock and populate into nothing. */
static bool can_lock(void)
{
	void *page = mmap(NULL, PAGES(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char resident = 0;

	int locked = mlock(page, PAGES(1));

	mincore(page, PAGES(1), &resident);
	munmap(page, PAGES(1));
	return locked == 0 && (resident & 1);
}

static size_t resident_pages(void *start, size_t bytes)
{
	static unsigned char map[16384];
	size_t resident = 0;

	ck_assert_uint_le(bytes / UZ_PAGE_SIZE, sizeof(map));
	ck_assert_int_eq(mincore(start, bytes, map), 0);
	for (size_t i = 0; i < bytes / UZ_PAGE_SIZE; i++)
		resident += map[i] & 1;
	return resident;
}

/* Whether the kernel shows the mapping at `start` as locked ("lo" in smaps' VmFlags). */
static bool is_locked(void *start)
{
	char line[512];
	bool here = false, locked = false;
	uintptr_t from, to;
	FILE *file = fopen("/proc/self/smaps", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			here = from <= (uintptr_t)start && (uintptr_t)start < to;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			locked = strstr(line, " lo") != NULL;
	}
	fclose(file);
	return locked;
}

START_TEST(test_apply_says_what_is_missing)
{
	const struct protection *list;
	int adj;

	protect_apply();
	size_t count = protect_list(&list);

	ck_assert_uint_ge(count, 5);
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(list[i].missing == (list[i].reason[0] != '\0'), "%s: %s",
			      list[i].name, list[i].reason);
	ck_assert_int_eq(protect_oom_score_adj(&adj), 0);
	ck_assert(find("oom-score")->missing == (adj != -1000));
	ck_assert(find("io-flusher")->missing ==
		  (prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) != 1));
	ck_assert(find("locked-memory")->missing);
}
END_TEST

START_TEST(test_missing_io_flusher_names_the_capability)
{
	drop_capability(CAP_SYS_RESOURCE);
	protect_apply();
	ck_assert(find("io-flusher")->missing);
	ck_assert_ptr_nonnull(strstr(find("io-flusher")->reason, "CAP_SYS_RESOURCE"));
	ck_assert(find("oom-score")->missing);
	ck_assert_ptr_nonnull(strstr(find("oom-score")->reason, "CAP_SYS_RESOURCE"));
	ck_assert(!protect_io_flusher_pause());
	protect_io_flusher_resume(false);
}
END_TEST

START_TEST(test_io_flusher_pause_and_resume)
{
	protect_apply();
	if (find("io-flusher")->missing)
		return; /* said by main */
	bool paused = protect_io_flusher_pause();

	ck_assert(paused);
	ck_assert_int_eq(prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0), 0);
	protect_io_flusher_resume(paused);
	ck_assert_int_eq(prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0), 1);
}
END_TEST

/* Whether a program started now has the flag: this one, which then exits with it. */
static int flag_in_a_new_program(void)
{
	char *const argv[] = {"/proc/self/exe", "--io-flusher", NULL};
	pid_t pid;

	ck_assert_int_eq(spawn_start(argv, -1, -1, -1, &pid), 0);
	return spawn_wait(pid);
}

START_TEST(test_io_flusher_survives_exec)
{
	protect_apply();
	if (find("io-flusher")->missing)
		return; /* said by main */
	ck_assert_int_eq(flag_in_a_new_program(), 1);
	bool paused = protect_io_flusher_pause();

	ck_assert_int_eq(flag_in_a_new_program(), 0);
	protect_io_flusher_resume(paused);
	ck_assert_int_eq(flag_in_a_new_program(), 1);
}
END_TEST

START_TEST(test_limit_is_raised_where_allowed)
{
	char message[256] = "";
	struct rlimit limit = {64 * UZ_KIB, 64 * UZ_KIB};

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	drop_capability(CAP_IPC_LOCK);
	protect_apply();
	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	int err = protect_check_lockable(16 * UZ_MIB, message, sizeof(message));

	ck_assert_int_eq(err, limit.rlim_cur == RLIM_INFINITY ? 0 : -EPERM);
}
END_TEST

START_TEST(test_no_core_dump)
{
	struct rlimit limit;

	protect_apply();
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_CORE, &limit), 0);
	ck_assert_uint_eq(limit.rlim_max, 0);
	ck_assert(!find("no-core-dump")->missing);
}
END_TEST

START_TEST(test_enough_can_be_locked)
{
	char message[256] = "";

	limit_memlock(4 * UZ_MIB);
	ck_assert_int_eq(protect_check_lockable(2 * UZ_MIB, message, sizeof(message)), 0);
	ck_assert_str_eq(message, "");
}
END_TEST

START_TEST(test_too_little_can_be_locked)
{
	char message[256] = "";

	limit_memlock(64 * UZ_KIB);
	protect_apply(); /* must not help: the hard limit is low as well */
	ck_assert_int_eq(protect_check_lockable(16 * UZ_MIB, message, sizeof(message)),
			 -EPERM);
	ck_assert_ptr_nonnull(strstr(message, "16777216 bytes needed"));
	ck_assert_ptr_nonnull(strstr(message, "65536 available"));
	ck_assert_ptr_null(strchr(message, '\n'));
}
END_TEST

START_TEST(test_what_is_locked_already_counts)
{
	char message[256] = "";
	void *used =
		mmap(NULL, 4 * UZ_MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	limit_memlock(8 * UZ_MIB);
	ck_assert_int_eq(protect_check_lockable(6 * UZ_MIB, message, sizeof(message)), 0);
	ck_assert_int_eq(syscall(SYS_mlock, used, 4 * UZ_MIB), 0);
	ck_assert_int_eq(protect_check_lockable(6 * UZ_MIB, message, sizeof(message)),
			 -EPERM);
	ck_assert_ptr_nonnull(strstr(message, "4194304 available"));
}
END_TEST

START_TEST(test_soft_limit_is_raised)
{
	struct rlimit limit = {64 * UZ_KIB, 4 * UZ_MIB};

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	protect_apply();
	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert_uint_ge(limit.rlim_cur, 4 * UZ_MIB);
}
END_TEST

START_TEST(test_check_touches_nothing)
{
	char message[256];
	struct rusage before, after;

	if (!can_lock())
		return;
	getrusage(RUSAGE_SELF, &before);
	ck_assert_int_eq(protect_check_lockable(1024 * UZ_MIB, message, sizeof(message)),
			 0);
	getrusage(RUSAGE_SELF, &after);
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 1024);
}
END_TEST

START_TEST(test_store_mapping_is_locked_but_not_populated)
{
	const size_t store_bytes = 32 * UZ_MIB;
	int fd = memfd_create("store", MFD_CLOEXEC);

	if (!can_lock())
		return;
	ck_assert_int_eq(ftruncate(fd, (off_t)store_bytes), 0);
	char *early = mmap(NULL, PAGES(16), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_int_eq(protect_lock_on_fault(), 0);
	char *store = mmap(NULL, store_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *between = mmap(NULL, PAGES(32), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *sparse = mmap(NULL, 2 * PROTECT_POPULATE_MAX_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	store[PAGES(5)] = 1;
	ck_assert_uint_eq(resident_pages(between, PAGES(32)), 0);

	ck_assert_int_eq(protect_lock_all(), 0);
	char *late = mmap(NULL, PAGES(8), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* The store: one page there, the whole mapping locked. */
	ck_assert_uint_eq(resident_pages(store, store_bytes), 1);
	ck_assert(is_locked(store));
	/* Everything private: there and locked, whenever it was mapped. */
	ck_assert_uint_eq(resident_pages(early, PAGES(16)), 16);
	ck_assert_uint_eq(resident_pages(between, PAGES(32)), 32);
	ck_assert_uint_eq(resident_pages(late, PAGES(8)), 8);
	ck_assert(is_locked(early) && is_locked(between) && is_locked(late));
	ck_assert(is_locked((void *)(uintptr_t)&find));
	/* A sparse private mapping is locked page by page. */
	ck_assert_uint_eq(resident_pages(sparse, 32 * UZ_MIB), 0);
	ck_assert(is_locked(sparse));
	ck_assert(!find("locked-memory")->missing);
	/* Again, with more in the store: idempotent. */
	store[PAGES(6)] = 1;
	ck_assert_int_eq(protect_lock_all(), 0);
	ck_assert_uint_eq(resident_pages(store, store_bytes), 2);
}
END_TEST

START_TEST(test_failure_to_lock_is_reported)
{
	if (!can_lock())
		return;
	char *memory = mmap(NULL, 16 * UZ_MIB, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	limit_memlock(8 * UZ_MIB);
	ck_assert_int_lt(protect_lock_all(), 0);
	ck_assert(find("locked-memory")->missing);
	ck_assert_ptr_nonnull(strstr(find("locked-memory")->reason, "KiB"));
}
END_TEST

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--io-flusher") == 0)
		return prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) == 1;
	Suite *suite = suite_create("protect");
	TCase *tcase = tcase_create("protect");

	if (geteuid() != 0) {
		printf("SKIP: locking memory and dropping capabilities need root\n");
		return 77;
	}
	if (!can_lock())
		printf("mlock does nothing in this build (a sanitizer's): not tested "
		       "here\n");
	if (prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) < 0)
		printf("no CAP_SYS_RESOURCE: a set PR_SET_IO_FLUSHER is not tested "
		       "here\n");
	tcase_add_test(tcase, test_apply_says_what_is_missing);
	tcase_add_test(tcase, test_missing_io_flusher_names_the_capability);
	tcase_add_test(tcase, test_io_flusher_pause_and_resume);
	tcase_add_test(tcase, test_io_flusher_survives_exec);
	tcase_add_test(tcase, test_limit_is_raised_where_allowed);
	tcase_add_test(tcase, test_no_core_dump);
	tcase_add_test(tcase, test_enough_can_be_locked);
	tcase_add_test(tcase, test_too_little_can_be_locked);
	tcase_add_test(tcase, test_what_is_locked_already_counts);
	tcase_add_test(tcase, test_soft_limit_is_raised);
	tcase_add_test(tcase, test_check_touches_nothing);
	tcase_add_test(tcase, test_store_mapping_is_locked_but_not_populated);
	tcase_add_test(tcase, test_failure_to_lock_is_reported);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
