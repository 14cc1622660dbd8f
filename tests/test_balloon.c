// SPDX-License-Identifier: MIT
/*
 * The slot balloon: its size on made-up fills, then the real helper on a real
 * swap area, with a made-up store behind it that has as much room as the test
 * says. The helper is found at $UZ_BALLOON or ./uzswap-balloon.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "base/spawn.h"
#include "base/units.h"
#include "daemon/balloon.h"
#include "daemon/swaparea.h"
#include "loop_swap.h"

#define MS	   UZ_NSEC_PER_MSEC
#define AREA_BYTES (256 * UZ_MIB)
#define AREA_PAGES (AREA_BYTES / UZ_PAGE_SIZE - 1)

/* ---- the size, pure ---- */

#define SIZE 262144u

static uint64_t target(uint64_t free_pages, uint64_t held_pages, uint64_t room_pages)
{
	const struct balloon_view view = {SIZE, free_pages, held_pages, room_pages};

	return balloon_target(&view);
}

START_TEST(test_target_when_the_pool_is_full)
{
	/* All that is free, to the last slot, at once. */
	ck_assert_uint_eq(target(1000, 5000, 0), 6000);
	ck_assert_uint_eq(target(1, 5000, 0), 5001);
	ck_assert_uint_eq(target(0, 5000, 0), 5000);
}
END_TEST

START_TEST(test_target_inflates)
{
	/* All at once: while a program fills the device, half would always be too late. */
	ck_assert_uint_eq(target(200000, 0, 100000), 100000);
	ck_assert_uint_eq(target(200000, 0, 1000), 199000);
	/* A trifle is left alone. */
	ck_assert_uint_eq(target(1255, 700, 1000), 700);
	ck_assert_uint_eq(target(1256, 700, 1000), 956);
}
END_TEST

START_TEST(test_target_deflates_with_hysteresis)
{
	const uint64_t three_percent = SIZE * 3 / 100;

	ck_assert_uint_eq(target(100000, 50000, 100000 + three_percent), 50000);
	ck_assert_uint_lt(target(100000, 50000, 100001 + three_percent), 50000);
	ck_assert_uint_eq(target(100000, 50000, 120000), 40000);
	/* Never below nothing. */
	ck_assert_uint_eq(target(100000, 0, 200000), 0);
	ck_assert_uint_ge(target(100000, 10, 10000000), 5);
	/* The kernel is about to give up for want of slots, and there is room: at once.
	 */
	ck_assert_uint_eq(target(0, 50000, 1000), 49000);
	ck_assert_uint_eq(target(0, 50000, 255), 50000);
	ck_assert_uint_eq(target(0, 500, 1000), 0);
}
END_TEST

/* A store of `pool` units of memory, filled with pages of `cost` units each. */
struct world {
	double pool, used, cost;
	uint64_t used_slots, held;
	uint64_t worst_lie; /* most slots that the kernel saw above the room when that was
			       scarce */
	unsigned turns;	    /* changes of direction */
	int direction;
};

static uint64_t world_room(const struct world *world)
{
	return world->used >= world->pool ? 0
					  : (uint64_t)((world->pool - world->used) / world->cost);
}

static uint64_t world_free(const struct world *world)
{
	return SIZE - world->used_slots - world->held;
}

/* One look of the balloon's, which moves at most 15000 pages (50 ms at 1.2 GB/s). */
static void world_tick(struct world *world, double noise)
{
	uint64_t room = (uint64_t)((double)world_room(world) * (1 + noise));
	uint64_t aim = target(world_free(world), world->held, room);

	if (aim > world->held + 15000)
		aim = world->held + 15000;
	int direction = aim > world->held ? 1 : aim < world->held ? -1 : 0;

	if (direction != 0 && world->direction != 0 && direction != world->direction)
		world->turns++;
	if (direction != 0)
		world->direction = direction;
	world->held = aim;
	uint64_t true_room = world_room(world);

	if (true_room < SIZE / 16 && world_free(world) > true_room)
		world->worst_lie = UZ_MAX(world->worst_lie, world_free(world) - true_room);
}

/* Swaps out up to `pages`; returns how many the store refused though the kernel had
 * slots. */
static uint64_t world_fill(struct world *world, uint64_t pages)
{
	uint64_t refused = 0;

	pages = UZ_MIN(pages, world_free(world));
	for (uint64_t i = 0; i < pages; i++) {
		if (world->used + world->cost > world->pool) {
			refused++;
			continue;
		}
		world->used += world->cost;
		world->used_slots++;
	}
	return refused;
}

/*
 * A device four times as large as what the pool takes raw, filled at 440 MB/s with
 * a look every 50 ms, the ratio going from 4 to 1 on the way.
 */
START_TEST(test_fill_with_a_ratio_that_falls)
{
	struct world world = {.pool = SIZE / 4, .cost = 0.25};
	uint64_t refused = 0;
	int looks = 0;

	for (; looks < 20; looks++)
		world_tick(&world, 0);
	for (; looks < 400 && world_free(&world) > 0; looks++) {
		world.cost = world.used < world.pool / 3       ? 0.25
			     : world.used < world.pool * 2 / 3 ? 0.5
							       : 1;
		refused += world_fill(&world, 5600);
		world_tick(&world, 0);
	}
	ck_assert_uint_eq(world_free(&world), 0);
	ck_assert_uint_eq(world_room(&world), 0);
	/* One look's worth at most was refused. */
	ck_assert_uint_le(refused, 5600);
	ck_assert_uint_le(world.worst_lie, SIZE / 8);
}
END_TEST

START_TEST(test_fill_at_a_steady_ratio)
{
	struct world world = {.pool = SIZE / 4, .cost = 0.33};
	uint64_t refused = 0;

	for (int i = 0; i < 20; i++)
		world_tick(&world, 0);
	ck_assert_uint_le(world_free(&world), world_room(&world) + 256);
	for (int i = 0; i < 400 && world_free(&world) > 0; i++) {
		refused += world_fill(&world, 5600);
		world_tick(&world, 0);
	}
	ck_assert_uint_eq(world_free(&world), 0);
	ck_assert_uint_le(refused, 256);
}
END_TEST

/* The ratio is estimated from what was stored lately: 2 % up and down must not pump. */
START_TEST(test_noise_does_not_pump)
{
	struct world world = {.pool = SIZE / 4, .cost = 0.4};
	unsigned seed = 1;

	world_fill(&world, 50000);
	for (int i = 0; i < 20; i++)
		world_tick(&world, 0);
	world.turns = 0;
	for (int i = 0; i < 1000; i++) {
		seed = seed * 1103515245 + 12345;
		world_tick(&world, ((double)(seed >> 16 & 0xff) / 255 - 0.5) * 0.04);
	}
	ck_assert_uint_le(world.turns, 2);
}
END_TEST

START_TEST(test_freeing_deflates)
{
	struct world world = {.pool = SIZE / 4, .cost = 0.5};

	for (int i = 0; i < 20; i++)
		world_tick(&world, 0);
	while (world_free(&world) > 0) {
		world_fill(&world, 5600);
		world_tick(&world, 0);
	}
	uint64_t held = world.held;

	/* Half of it is freed: the slots are free at once, and the room is that of the
	 * objects. */
	world.used /= 2;
	world.used_slots /= 2;
	for (int i = 0; i < 20; i++)
		world_tick(&world, 0);
	ck_assert_uint_eq(world.held, held);
	/* Then pages become cheaper, so that there is more room than the kernel thinks.
	 */
	world.cost = 0.25;
	for (int i = 0; i < 20; i++)
		world_tick(&world, 0);
	ck_assert_uint_lt(world.held, held);
	ck_assert_uint_le(world_free(&world), world_room(&world));
	ck_assert_uint_ge(world_free(&world) + SIZE * 3 / 100, world_room(&world));
}
END_TEST

/* ---- the helper, for real ---- */

static struct loop_swap loop;
static struct balloon *balloon;
static _Atomic uint64_t room, capacity;
static char helper[4096];

static uint64_t used_pages(void)
{
	struct swaparea area;

	ck_assert_int_eq(swaparea_find(loop.device, NULL, &area), 0);
	return area.used_pages;
}

static uint64_t free_pages(void)
{
	return AREA_PAGES - used_pages();
}

static struct balloon_stats stats(void)
{
	struct balloon_stats now;

	balloon_stats(balloon, &now);
	return now;
}

/* A store that takes `capacity` pages in all, or one that has `room` whatever happens. */
static uint64_t made_up_room(void *context)
{
	struct swaparea area;

	/* Not ck_assert: on the balloon's thread it would hide where the test itself is. */
	if (context != &room)
		abort();
	if (capacity == 0 || swaparea_find(loop.device, NULL, &area) < 0)
		return room;
	uint64_t stored = area.used_pages - UZ_MIN(area.used_pages, stats().held_pages);

	return capacity - UZ_MIN(capacity, stored);
}

/* Waits until the kernel sees `low`..`high` free slots. */
static void await_free(uint64_t low, uint64_t high)
{
	uint64_t seen = 0;

	for (int i = 0; i < 200; i++) {
		seen = free_pages();
		if (seen >= low && seen <= high)
			return;
		clock_sleep_ns(50 * MS);
	}
	ck_abort_msg("%llu free slots instead of %llu..%llu; held %llu, target %llu: %s",
		     (unsigned long long)seen, (unsigned long long)low, (unsigned long long)high,
		     (unsigned long long)stats().held_pages,
		     (unsigned long long)stats().target_pages, balloon_state_text(stats().state));
}

/* The same for the room that the test has set; a trifle more or less is left alone. */
static void await_room(void)
{
	await_free(room > 256 ? room - 256 : 0, room + 256);
}

static void await_state(enum balloon_state state)
{
	for (int i = 0; i < 100 && stats().state != state; i++)
		clock_sleep_ns(20 * MS);
	ck_assert_str_eq(balloon_state_text(stats().state), balloon_state_text(state));
}

/* The helper's pid: the child of this process with its name. 0 when there is none. */
static pid_t helper_pid(void)
{
	char path[300], line[256];
	pid_t found = 0;
	DIR *proc = opendir("/proc");

	for (struct dirent *entry; (entry = readdir(proc)) && !found;) {
		int pid = 0, parent = 0;
		char state = 0;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		FILE *file = fopen(path, "re");

		if (!file)
			continue;
		if (fgets(line, sizeof(line), file) &&
		    sscanf(line, "%d (uzswap-balloon) %c %d", &pid, &state, &parent) == 3 &&
		    parent == getpid() && state != 'Z')
			found = pid;
		fclose(file);
	}
	closedir(proc);
	return found;
}

static uint64_t status_kib(pid_t pid, const char *field)
{
	char path[64], line[256];
	unsigned long long value = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0)
			sscanf(line + strlen(field), " %llu", &value);
	fclose(file);
	return value;
}

static void swap_on(int priority)
{
	char message[256];

	ck_assert_msg(swaparea_on(loop.path, priority, true, message, sizeof(message)) == 0, "%s",
		      message);
}

static void start_balloon(void)
{
	const struct balloon_config config = {
		.device = loop.device,
		.helper_path = helper,
		.room_pages = made_up_room,
		.context = &room,
	};

	ck_assert_int_eq(balloon_start(&balloon, &config), 0);
}

static void swap_off(void)
{
	char message[256];
	const struct swaparea_off off = {.path = loop.path, .device = loop.device};

	ck_assert_msg(swaparea_off(&off, message, sizeof(message)) == 0, "%s", message);
}

static void set_up(void)
{
	log_set_level(getenv("UZ_DEBUG_TEST") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	room = AREA_PAGES;
	/* A test that was aborted has left it on. */
	swap_off();
	swap_on(LOOP_SWAP_PRIORITY);
	ck_assert(loop_swap_alone(&loop));
	start_balloon();
}

static void tear_down(void)
{
	balloon_stop(balloon);
	balloon = NULL;
	ck_assert_int_eq(helper_pid(), 0);
	swap_off();
}

START_TEST(test_follows_the_room)
{
	/* Room for everything: nothing to hold, and no helper for it. */
	await_state(BALLOON_ACTIVE);
	clock_sleep_ns(600 * MS);
	ck_assert_int_eq(helper_pid(), 0);
	ck_assert_uint_eq(stats().held_pages, 0);

	room = 20000;
	await_room();
	ck_assert_uint_ge(stats().held_pages + 100, AREA_PAGES - 20256);
	/* A sanitizer's own memory is larger than all that this is about. */
	if (!UZ_TSAN && !UZ_ASAN)
		ck_assert_uint_le(status_kib(helper_pid(), "VmRSS:"), 8 * 1024);
	ck_assert_uint_ge(status_kib(helper_pid(), "VmSwap:"), (AREA_PAGES - 20300) * 4);

	room = 0;
	await_free(0, 0);
	/* SwapFree is what the kernel decides by; other areas of the machine may add to
	 * it. */
	room = 40000;
	await_free(40000 - AREA_PAGES * 3 / 100, 40000);
	room = AREA_PAGES;
	await_free(AREA_PAGES * 96 / 100, AREA_PAGES);
	ck_assert_uint_eq(stats().restarts, 0);
}
END_TEST

/* Real pages go into the slots that are left, and come back whole. */
START_TEST(test_programs_use_the_rest)
{
	const size_t bytes = 40 * UZ_MIB, pages = bytes / UZ_PAGE_SIZE;
	uint64_t *data =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t wrong = 0;

	for (size_t i = 0; i < bytes / 8; i++)
		data[i] = i | 1;
	capacity = 30000;
	await_free(30000 - 256, 30000 + 256);
	ck_assert_int_eq(madvise(data, bytes, 21 /* MADV_PAGEOUT */), 0);
	await_free(30000 - pages - 512, 30000 - pages + 1024);
	clock_sleep_ns(500 * MS);
	await_free(30000 - pages - 512, 30000 - pages + 1024);
	for (size_t i = 0; i < bytes / 8; i++)
		wrong += data[i] != (i | 1);
	ck_assert_uint_eq(wrong, 0);
	munmap(data, bytes);
}
END_TEST

START_TEST(test_helper_killed)
{
	room = 10000;
	await_room();
	for (int i = 1; i <= 2; i++) {
		pid_t pid = helper_pid();

		ck_assert_int_gt(pid, 0);
		kill(pid, SIGKILL);
		for (int j = 0; j < 200 && stats().restarts < (uint64_t)i; j++)
			clock_sleep_ns(10 * MS);
		ck_assert_uint_eq(stats().restarts, (uint64_t)i);
		await_room();
		ck_assert_int_ne(helper_pid(), pid);
	}
	ck_assert_uint_eq(stats().state, BALLOON_ACTIVE);
}
END_TEST

START_TEST(test_helper_ignores_a_service_managers_signals)
{
	room = 10000;
	await_room();
	pid_t pid = helper_pid();

	kill(pid, SIGTERM);
	kill(pid, SIGINT);
	kill(pid, SIGHUP);
	clock_sleep_ns(300 * MS);
	ck_assert_int_eq(helper_pid(), pid);
	ck_assert_uint_eq(stats().restarts, 0);
}
END_TEST

/* A stopped helper must not keep the balloon from being given up. */
START_TEST(test_stop_with_a_helper_that_hangs)
{
	room = 10000;
	await_room();
	kill(helper_pid(), SIGSTOP);
	room = 0;
	clock_sleep_ns(300 * MS);
	uint64_t start_ns = clock_now_ns();

	balloon_stop(balloon);
	balloon = NULL;
	ck_assert_uint_le(clock_now_ns() - start_ns, 2000 * MS);
	ck_assert_uint_le(used_pages(), 256);
}
END_TEST

START_TEST(test_stop_frees_all_slots)
{
	room = 0;
	await_free(0, 0);
	balloon_stop(balloon);
	balloon = NULL;
	ck_assert_uint_ge(free_pages() + 256, AREA_PAGES);
}
END_TEST

/* An administrator's swapoff behind our back must not find the balloon in its way. */
START_TEST(test_foreign_swapoff)
{
	char *const argv[] = {"/sbin/swapoff", loop.path, NULL};
	pid_t pid;

	room = 2000;
	await_room();
	uint64_t start_ns = clock_now_ns();

	ck_assert_int_eq(spawn_start(argv, -1, -1, STDERR_FILENO, &pid), 0);
	ck_assert_int_eq(spawn_wait(pid), 0);
	ck_assert_uint_le(clock_now_ns() - start_ns, 5000 * MS);
	await_state(BALLOON_NO_SWAP);
	ck_assert_int_eq(helper_pid(), 0);
	/* And on again: it is back. */
	swap_on(LOOP_SWAP_PRIORITY);
	for (int i = 0; i < 150 && stats().held_pages == 0; i++)
		clock_sleep_ns(50 * MS);
	await_room();
}
END_TEST

START_TEST(test_missing_helper)
{
	balloon_stop(balloon);
	snprintf(helper, sizeof(helper), "/nonexistent/uzswap-balloon");
	start_balloon();
	room = 1000;
	await_state(BALLOON_RESTART);
	/* The pauses double from a quarter of a second: at most four attempts by the second's end. */
	clock_sleep_ns(600 * MS);
	for (int i = 0; i < 40 && stats().restarts < 2; i++)
		clock_sleep_ns(10 * MS);
	ck_assert_uint_ge(stats().restarts, 2);
	ck_assert_uint_le(stats().restarts, 4);
	ck_assert_uint_eq(used_pages(), 0);
}
END_TEST

/* A second area above ours: the balloon must not take its slots. */
START_TEST(test_rival)
{
	struct loop_swap other;
	char message[256];

	room = 10000;
	await_room();
	/* The fixture's lock is held by this program already. */
	ck_assert_int_eq(loop_swap_new_unlocked(&other, 64 * UZ_MIB), 0);
	ck_assert_int_eq(
		swaparea_on(other.path, LOOP_SWAP_PRIORITY + 1, false, message, sizeof(message)),
		0);
	await_state(BALLOON_RIVAL);
	uint64_t held = stats().held_pages;

	room = 0;
	clock_sleep_ns(600 * MS);
	ck_assert_uint_eq(stats().held_pages, held);
	/* Shrinking is no harm. */
	room = 40000;
	for (int i = 0; i < 100 && stats().held_pages >= held; i++)
		clock_sleep_ns(50 * MS);
	ck_assert_uint_lt(stats().held_pages, held);
	loop_swap_free(&other);
	await_state(BALLOON_ACTIVE);
	room = 0;
	await_free(0, 0);
}
END_TEST

/* Written as the helper sees it: no daemon. */
START_TEST(test_helper_by_hand)
{
	char *const argv[] = {helper, NULL};
	pid_t pid;

	balloon_stop(balloon);
	balloon = NULL;
	ck_assert_int_eq(spawn_start(argv, -1, -1, -1, &pid), 0);
	ck_assert_int_eq(spawn_wait(pid), 2);
	/* Without a socket it ends by itself. */
	char *const more[] = {helper, "1000", NULL};

	ck_assert_int_eq(spawn_start(more, -1, -1, -1, &pid), 0);
	ck_assert_int_eq(spawn_wait(pid), 0);
}
END_TEST

static bool find_helper(void)
{
	const char *path = getenv("UZ_BALLOON");

	if (!path)
		path = "./uzswap-balloon";
	return realpath(path, helper) != NULL && access(helper, X_OK) == 0;
}

int main(void)
{
	Suite *suite = suite_create("balloon");
	TCase *pure = tcase_create("pure"), *real = tcase_create("real");
	int skipped = 0;

	tcase_add_test(pure, test_target_when_the_pool_is_full);
	tcase_add_test(pure, test_target_inflates);
	tcase_add_test(pure, test_target_deflates_with_hysteresis);
	tcase_add_test(pure, test_fill_with_a_ratio_that_falls);
	tcase_add_test(pure, test_fill_at_a_steady_ratio);
	tcase_add_test(pure, test_noise_does_not_pump);
	tcase_add_test(pure, test_freeing_deflates);
	suite_add_tcase(suite, pure);
	if (!find_helper()) {
		printf("SKIP: no helper program; set UZ_BALLOON to uzswap-balloon\n");
		skipped = 77;
	} else if (loop_swap_new(&loop, AREA_BYTES) < 0) {
		printf("SKIP: the helper on a real swap area\n");
		skipped = 77;
	} else {
		tcase_set_timeout(real, 180);
		tcase_add_checked_fixture(real, set_up, tear_down);
		tcase_add_test(real, test_follows_the_room);
		tcase_add_test(real, test_programs_use_the_rest);
		tcase_add_test(real, test_helper_killed);
		tcase_add_test(real, test_helper_ignores_a_service_managers_signals);
		tcase_add_test(real, test_stop_with_a_helper_that_hangs);
		tcase_add_test(real, test_stop_frees_all_slots);
		tcase_add_test(real, test_foreign_swapoff);
		tcase_add_test(real, test_missing_helper);
		tcase_add_test(real, test_rival);
		tcase_add_test(real, test_helper_by_hand);
		suite_add_tcase(suite, real);
	}
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	if (loop.path[0])
		loop_swap_free(&loop);
	return failed > 0 ? EXIT_FAILURE : skipped;
}
