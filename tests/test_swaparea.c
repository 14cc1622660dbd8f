// SPDX-License-Identifier: MIT
/*
 * Swap areas: header, /proc/swaps, and, as root, swapon and swapoff of a real
 * loop device with programs in swapoff's place that die or refuse.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"
#include "daemon/swaparea.h"
#include "loop_swap.h"

#define AREA_BYTES (64 * UZ_MIB)

static struct loop_swap loop;
static char directory[] = "/tmp/uzswap-swaparea-XXXXXX";

static const char *in_directory(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static const char *write_file(const char *name, const char *text, mode_t mode)
{
	const char *path = in_directory(name);
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(chmod(path, mode), 0);
	return path;
}

/* ---- header ---- */

START_TEST(test_header_round_trip)
{
	char page[UZ_PAGE_SIZE];
	struct swaparea_header header;

	ck_assert_int_eq(swaparea_header_write(page, 40 * UZ_KIB, "swap0", NULL), 0);
	ck_assert_int_eq(swaparea_header_read(page, 40 * UZ_KIB, &header), 0);
	ck_assert_uint_eq(header.size_pages, 10);
	ck_assert_str_eq(header.label, "swap0");
	ck_assert_int_eq(header.uuid[6] >> 4, 4);
	ck_assert_int_eq(header.uuid[8] >> 6, 2);

	char again[UZ_PAGE_SIZE];

	ck_assert_int_eq(swaparea_header_write(again, 40 * UZ_KIB, "swap0", header.uuid),
			 0);
	ck_assert_mem_eq(page, again, sizeof(page));
	ck_assert_int_eq(swaparea_header_write(again, 40 * UZ_KIB, "swap0", NULL), 0);
	ck_assert_mem_ne(page, again, sizeof(page));
}
END_TEST

START_TEST(test_header_layout)
{
	/* Offsets from mkswap(8)'s and the kernel's description, spelt out. */
	unsigned char page[UZ_PAGE_SIZE], uuid[16];
	uint32_t number;

	memset(uuid, 0xab, sizeof(uuid));
	ck_assert_int_eq(swaparea_header_write(page, UZ_GIB, "sixteen-letters!", uuid),
			 0);
	memcpy(&number, page + 1024, 4);
	ck_assert_uint_eq(number, 1);
	memcpy(&number, page + 1028, 4);
	ck_assert_uint_eq(number, 262143);
	memcpy(&number, page + 1032, 4);
	ck_assert_uint_eq(number, 0);
	ck_assert_mem_eq(page + 1036, uuid, 16);
	ck_assert_mem_eq(page + 1052, "sixteen-letters!", 16);
	ck_assert_mem_eq(page + 4086, "SWAPSPACE2", 10);
	for (size_t i = 0; i < 1024; i++)
		ck_assert_int_eq(page[i], 0);
	for (size_t i = 1068; i < 4086; i++)
		ck_assert_int_eq(page[i], 0);
}
END_TEST

START_TEST(test_header_refusals)
{
	char page[UZ_PAGE_SIZE], untouched[UZ_PAGE_SIZE];

	memset(page, 0x55, sizeof(page));
	memset(untouched, 0x55, sizeof(untouched));
	ck_assert_int_eq(swaparea_header_write(page, 36 * UZ_KIB, NULL, NULL), -EINVAL);
	ck_assert_int_eq(swaparea_header_write(page,
					       (1ull << 32) * UZ_PAGE_SIZE + UZ_PAGE_SIZE,
					       NULL, NULL),
			 -EINVAL);
	ck_assert_int_eq(swaparea_header_write(page, UZ_MIB, "seventeen-letters", NULL),
			 -EINVAL);
	ck_assert_mem_eq(page, untouched, sizeof(page));
	ck_assert_int_eq(
		swaparea_header_write(page, (1ull << 32) * UZ_PAGE_SIZE, NULL, NULL), 0);
}
END_TEST

START_TEST(test_header_read_of_others)
{
	char page[UZ_PAGE_SIZE] = {0};
	struct swaparea_header header;

	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB, &header), -ENODATA);
	ck_assert_int_eq(swaparea_header_write(page, UZ_MIB, NULL, NULL), 0);
	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB, &header), 0);
	/* Larger than the device; a smaller one is fine. */
	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB - UZ_PAGE_SIZE, &header),
			 -EINVAL);
	ck_assert_int_eq(swaparea_header_read(page, 2 * UZ_MIB, &header), 0);
	ck_assert_uint_eq(header.size_pages, 256);
	/* Of a machine of the other byte order. */
	page[1024] = 0;
	page[1027] = 1;
	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB, &header), -EINVAL);
	page[1024] = 1;
	page[1027] = 0;
	/* With bad pages. */
	page[1032] = 1;
	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB, &header), -EINVAL);
	page[1032] = 0;
	/* A hibernation image. */
	memcpy(page + 4086, "S1SUSPEND", 10);
	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB, &header), -EINVAL);
	memcpy(page + 4086, "SWAP-SPACE", 10);
	ck_assert_int_eq(swaparea_header_read(page, UZ_MIB, &header), -ENODATA);
}
END_TEST

/* ---- /proc/swaps ---- */

START_TEST(test_parse)
{
	struct swaparea area;

	ck_assert_int_eq(swaparea_parse("/dev/dm-2                               "
					"partition\t8388604\t\t1024\t\t-2\n",
					&area),
			 0);
	ck_assert_str_eq(area.path, "/dev/dm-2");
	ck_assert_uint_eq(area.size_pages, 2097151);
	ck_assert_uint_eq(area.used_pages, 256);
	ck_assert_int_eq(area.priority, -2);
	ck_assert(!area.deleted);

	ck_assert_int_eq(swaparea_parse("/mnt/a\\040b\\134c\\011d\\040(deleted) "
					"file\t\t16777212\t16777212\t32767\n",
					&area),
			 0);
	ck_assert_str_eq(area.path, "/mnt/a b\\c\td");
	ck_assert_uint_eq(area.used_pages, 4194303);
	ck_assert_int_eq(area.priority, 32767);
	ck_assert(area.deleted);

	/* A backslash that escapes nothing stays. */
	ck_assert_int_eq(swaparea_parse("/a\\09 file 8 4 0", &area), 0);
	ck_assert_str_eq(area.path, "/a\\09");
}
END_TEST

START_TEST(test_parse_refusals)
{
	struct swaparea area = {.priority = 7};
	char line[2048];

	ck_assert_int_eq(
		swaparea_parse("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
			       &area),
		-EINVAL);
	ck_assert_int_eq(swaparea_parse("", &area), -EINVAL);
	ck_assert_int_eq(swaparea_parse("/dev/sda2 partition\t8388604", &area), -EINVAL);
	memset(line, 'x', 1024);
	strcpy(line + 1024, " file 8 4 0\n");
	ck_assert_int_eq(swaparea_parse(line, &area), -EINVAL);
	ck_assert_int_eq(area.priority, 7);
}
END_TEST

/* Block device nodes that nothing need be behind. */
static const char *make_node(const char *name, dev_t device)
{
	const char *path = in_directory(name);

	ck_assert_int_eq(mknod(path, S_IFBLK | 0600, device), 0);
	return path;
}

static const char *write_swaps(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static const char *write_swaps(const char *format, ...)
{
	static char text[32768];
	int used = snprintf(text, sizeof(text),
			    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
	va_end(args);
	return write_file("swaps", text, 0600);
}

START_TEST(test_find_by_device_number)
{
	struct swaparea area;
	const dev_t ours = makedev(240, 77), other = makedev(240, 78);

	make_node("ours", ours);
	make_node("a node", ours);
	make_node("other", other);
	/* Listed under another name than ours, with a blank in it. */
	const char *swaps = write_swaps("%s/other partition\t4000\t\t0\t\t5\n"
					"%s/a\\040node partition\t8000\t\t400\t\t3\n",
					directory, directory);

	ck_assert_int_eq(swaparea_find(ours, swaps, &area), 0);
	ck_assert_uint_eq(area.size_pages, 2000);
	ck_assert_uint_eq(area.used_pages, 100);
	ck_assert_int_eq(area.priority, 3);
	ck_assert_int_eq(swaparea_find(makedev(240, 79), swaps, &area), -ENOENT);
	/* The name alone does not make it ours. */
	swaps = write_swaps("%s/other partition\t4000\t\t0\t\t5\n", directory);
	ck_assert_int_eq(swaparea_find(ours, swaps, &area), -ENOENT);
	/* Nothing known is not "not listed". */
	ck_assert_int_eq(swaparea_find(ours, in_directory("missing"), &area), -EIO);
}
END_TEST

START_TEST(test_find_where_the_node_is_gone)
{
	struct swaparea area;
	/* /dev/loop0 need not exist, but the kernel knows the name of 7:0 if loop devices
	 * are there. */
	if (access("/sys/dev/block/7:0", F_OK) < 0)
		return;
	const char *swaps =
		write_swaps("/elsewhere/loop0\\040(deleted) partition\t4000\t\t0\t\t5\n");

	ck_assert_int_eq(swaparea_find(makedev(7, 0), swaps, &area), 0);
	ck_assert(area.deleted);
	swaps = write_swaps("/elsewhere/loop1\\040(deleted) partition\t4000\t\t0\t\t5\n");
	ck_assert_int_eq(swaparea_find(makedev(7, 0), swaps, &area), -ENOENT);
}
END_TEST

START_TEST(test_a_list_too_long_is_no_answer)
{
	static char line[20000];
	struct swaparea area;

	memset(line, 'x', sizeof(line) - 1);
	ck_assert_int_eq(
		swaparea_find(makedev(240, 77), write_swaps("%s\n", line), &area),
		-EOVERFLOW);
}
END_TEST

START_TEST(test_rivals)
{
	struct swaparea first = {.priority = 1};
	const dev_t ours = makedev(240, 77);

	make_node("ours", ours);
	ck_assert_int_eq(
		swaparea_rivals(ours, write_swaps("/dev/x partition 8 0 1\n"), &first),
		-ENOENT);
	/* Lower ones do not matter. */
	ck_assert_int_eq(swaparea_rivals(ours,
					 write_swaps("/dev/x partition 8 0 -2\n"
						     "%s/ours partition 8 0 100\n"
						     "/dev/y partition 8 0 99\n",
						     directory),
					 &first),
			 0);
	ck_assert_int_eq(first.priority, 1);
	ck_assert_int_eq(swaparea_rivals(ours,
					 write_swaps("/dev/x partition 8 0 100\n"
						     "%s/ours partition 8 0 100\n"
						     "/dev/y partition 8 0 200\n",
						     directory),
					 &first),
			 2);
	ck_assert_str_eq(first.path, "/dev/y");
	ck_assert_int_eq(first.priority, 200);
}
END_TEST

START_TEST(test_survey)
{
	struct swaparea_survey survey;
	const dev_t ours = makedev(240, 77);

	make_node("ours", ours);
	int fd = open(
		write_swaps("/dev/x partition 400 40 7\n%s/ours partition 40000 4 7\n"
			    "/dev/z file 40 0 1\n",
			    directory),
		O_RDONLY | O_CLOEXEC);

	/* Complete; twice, as a descriptor that is kept. */
	for (int again = 0; again < 2; again++) {
		ck_assert_int_eq(swaparea_survey(fd, 10110, ours, &survey), 0);
		ck_assert(survey.listed && !survey.leaving);
		ck_assert_uint_eq(survey.rivals, 1);
		ck_assert_str_eq(survey.first_rival.path, "/dev/x");
		ck_assert_uint_eq(survey.rival_free_pages, 90);
		ck_assert_uint_eq(survey.ours.used_pages, 1);
	}
	/* Ours is being swapped off: SwapTotal lacks its 9999 free slots, give or take.
	 */
	ck_assert_int_eq(swaparea_survey(fd, 10110 - 9990, ours, &survey), 0);
	ck_assert(survey.leaving);
	ck_assert_uint_eq(survey.rivals, 1);
	/* The rival is, and so is none any more. */
	ck_assert_int_eq(swaparea_survey(fd, 10110 - 90, ours, &survey), 0);
	ck_assert(!survey.leaving);
	ck_assert_uint_eq(survey.rivals, 0);
	ck_assert_uint_eq(survey.rival_free_pages, 0);
	/* A difference that is neither. */
	ck_assert_int_eq(swaparea_survey(fd, 10110 - 5000, ours, &survey), 0);
	ck_assert(!survey.leaving);
	ck_assert_uint_eq(survey.rivals, 1);
	close(fd);
}
END_TEST

START_TEST(test_zswap)
{
	ck_assert(!swaparea_zswap_enabled(in_directory("nowhere")));
	ck_assert_int_eq(mkdir(in_directory("sys"), 0700), 0);
	ck_assert_int_eq(mkdir(in_directory("sys/module"), 0700), 0);
	ck_assert_int_eq(mkdir(in_directory("sys/module/zswap"), 0700), 0);
	ck_assert_int_eq(mkdir(in_directory("sys/module/zswap/parameters"), 0700), 0);
	write_file("sys/module/zswap/parameters/enabled", "Y\n", 0600);
	ck_assert(swaparea_zswap_enabled(directory));
	write_file("sys/module/zswap/parameters/enabled", "N\n", 0600);
	ck_assert(!swaparea_zswap_enabled(directory));
}
END_TEST

/* ---- real swap ---- */

static void real_on(void)
{
	char message[256] = "";

	ck_assert_msg(swaparea_on(loop.path, LOOP_SWAP_PRIORITY, true, message,
				  sizeof(message)) == 0,
		      "%s", message);
}

static bool is_on(void)
{
	struct swaparea area;
	int err = swaparea_find(loop.device, NULL, &area);

	ck_assert(err == 0 || err == -ENOENT);
	return err == 0;
}

static int off_with(const char *program, char *message, size_t bytes)
{
	const struct swaparea_off off = {
		.path = loop.path, .device = loop.device, .program = program};

	return swaparea_off(&off, message, bytes);
}

/* After each test, whatever came of it. */
static void real_off(void)
{
	char message[256];

	off_with(NULL, message, sizeof(message));
	ck_assert(!is_on());
}

START_TEST(test_on_and_off)
{
	struct swaparea area;
	char message[256] = "";

	real_on();
	ck_assert_int_eq(swaparea_find(loop.device, NULL, &area), 0);
	ck_assert_int_eq(area.priority, LOOP_SWAP_PRIORITY);
	ck_assert_uint_eq(area.size_pages, AREA_BYTES / UZ_PAGE_SIZE - 1);
	ck_assert_str_eq(area.path, loop.path);
	/* Through another name of the device. */
	const char *link = in_directory("a link");

	ck_assert_int_eq(symlink(loop.path, link), 0);
	const struct swaparea_off off = {.path = link, .device = loop.device};

	ck_assert_msg(swaparea_off(&off, message, sizeof(message)) == 0, "%s", message);
	ck_assert(!is_on());
	/* Off already: nothing to do. */
	ck_assert_int_eq(off_with("/nonexistent", message, sizeof(message)), 0);
}
END_TEST

START_TEST(test_header_survives_off_and_on)
{
	static _Alignas(4096) char page[UZ_PAGE_SIZE];
	struct swaparea_header before, after;
	char message[256];
	int fd = open(loop.path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(pread(fd, page, sizeof(page), 0), sizeof(page));
	ck_assert_int_eq(swaparea_header_read(page, AREA_BYTES, &before), 0);
	for (int i = 0; i < 3; i++) {
		real_on();
		ck_assert_int_eq(off_with(NULL, message, sizeof(message)), 0);
	}
	ck_assert_int_eq(pread(fd, page, sizeof(page), 0), sizeof(page));
	ck_assert_int_eq(swaparea_header_read(page, AREA_BYTES, &after), 0);
	ck_assert_mem_eq(before.uuid, after.uuid, sizeof(before.uuid));
	ck_assert_str_eq(before.label, after.label);
	ck_assert_uint_eq(before.size_pages, after.size_pages);
	close(fd);
}
END_TEST

START_TEST(test_priorities)
{
	const int bad[] = {-2, 32768, 1 << 20};
	const int good[] = {0, 100, 32767};
	struct swaparea area;
	char message[256];

	for (size_t i = 0; i < UZ_ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(
			swaparea_on(loop.path, bad[i], false, message, sizeof(message)),
			-EINVAL);
		ck_assert_ptr_nonnull(strstr(message, "-1..32767"));
		ck_assert(!is_on());
	}
	for (size_t i = 0; i < UZ_ARRAY_SIZE(good); i++) {
		ck_assert_int_eq(
			swaparea_on(loop.path, good[i], false, message, sizeof(message)),
			0);
		ck_assert_int_eq(swaparea_find(loop.device, NULL, &area), 0);
		ck_assert_int_eq(area.priority, good[i]);
		real_off();
	}
	ck_assert_int_eq(swaparea_on(loop.path, -1, false, message, sizeof(message)), 0);
	ck_assert_int_eq(swaparea_find(loop.device, NULL, &area), 0);
	ck_assert_int_lt(area.priority, 0);
}
END_TEST

START_TEST(test_on_refusals)
{
	char message[256];

	ck_assert_int_eq(
		swaparea_on(in_directory("missing"), 1, false, message, sizeof(message)),
		-ENOENT);
	ck_assert_ptr_nonnull(strstr(message, "swapon"));
	ck_assert_int_eq(swaparea_on(write_file("file", "", 0600), 1, false, message,
				     sizeof(message)),
			 -ENOTBLK);
	real_on();
	ck_assert_int_eq(swaparea_on(loop.path, 1, false, message, sizeof(message)),
			 -EALREADY);
}
END_TEST

static void hold_open(void *argument)
{
	int fd = *(int *)argument;

	clock_sleep_ns(350 * UZ_NSEC_PER_MSEC);
	close(fd);
}

/* Like udev's probe: an exclusive opener that goes away after a while. */
START_TEST(test_busy_for_a_while)
{
	struct thread thread;
	int fd = open(loop.path, O_RDWR | O_EXCL | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(thread_start(&thread, "holder", hold_open, &fd, -1, 0), 0);
	uint64_t start_ns = clock_now_ns();

	real_on();
	ck_assert_uint_ge(clock_now_ns() - start_ns, 300 * UZ_NSEC_PER_MSEC);
	thread_join(&thread);
	ck_assert(is_on());
}
END_TEST

START_TEST(test_busy_for_ever)
{
	char message[256];
	int fd = open(loop.path, O_RDWR | O_EXCL | O_CLOEXEC);
	uint64_t start_ns = clock_now_ns();

	ck_assert_int_eq(swaparea_on(loop.path, 1, false, message, sizeof(message)),
			 -EBUSY);
	ck_assert_uint_lt(clock_now_ns() - start_ns, 5 * UZ_NSEC_PER_SEC);
	ck_assert_ptr_nonnull(strstr(message, "swapon"));
	close(fd);
}
END_TEST

/* A swapoff that is killed on its first `deaths` runs and then does its work. */
static const char *mortal_swapoff(int deaths)
{
	char script[1024];

	snprintf(script, sizeof(script),
		 "#!/bin/sh\n"
		 "echo x >>%s/runs\n"
		 "[ $(wc -l <%s/runs) -le %d ] && kill -KILL $$\n"
		 "exec /sbin/swapoff \"$@\"\n",
		 directory, directory, deaths);
	return write_file("mortal", script, 0700);
}

static int runs(void)
{
	struct stat st;

	return stat(in_directory("runs"), &st) == 0 ? (int)st.st_size / 2 : 0;
}

START_TEST(test_swapoff_killed_twice)
{
	char message[256] = "";

	real_on();
	ck_assert_msg(off_with(mortal_swapoff(2), message, sizeof(message)) == 0, "%s",
		      message);
	ck_assert_int_eq(runs(), 3);
	ck_assert(!is_on());
}
END_TEST

START_TEST(test_swapoff_killed_every_time)
{
	char message[256] = "";

	real_on();
	ck_assert_int_eq(off_with(mortal_swapoff(99), message, sizeof(message)), -EINTR);
	ck_assert_int_eq(runs(), SWAPAREA_OFF_ATTEMPTS);
	ck_assert_ptr_nonnull(strstr(message, "signal 9"));
	ck_assert_ptr_nonnull(strstr(message, "still on"));
	ck_assert(is_on());
}
END_TEST

START_TEST(test_swapoff_exit_status)
{
	char message[256];

	real_on();
	ck_assert_int_eq(off_with(write_file("nomem", "#!/bin/sh\nexit 2\n", 0700),
				  message, sizeof(message)),
			 -ENOMEM);
	ck_assert_ptr_nonnull(strstr(message, "exit status 2"));
	ck_assert_int_eq(off_with(write_file("fails", "#!/bin/sh\nexit 4\n", 0700),
				  message, sizeof(message)),
			 -EIO);
	ck_assert_ptr_nonnull(strstr(message, "exit status 4"));
	/* Success that is none. */
	ck_assert_int_eq(off_with("/bin/true", message, sizeof(message)), -EIO);
	ck_assert_int_eq(off_with(in_directory("missing"), message, sizeof(message)),
			 -ENOENT);
	ck_assert(is_on());
	/* Failure that is none: what counts is the kernel's list. */
	ck_assert_int_eq(
		off_with(write_file("odd", "#!/bin/sh\n/sbin/swapoff \"$@\"\nexit 4\n",
				    0700),
			 message, sizeof(message)),
		0);
}
END_TEST

START_TEST(test_swapoff_of_a_moved_path)
{
	char message[256];
	const char *path = in_directory("ours");
	struct swaparea_off off = {.path = path, .device = loop.device};

	/* The link that we know leads elsewhere now: the other device must not be
	 * touched. */
	make_node("ours", makedev(240, 77));
	real_on();
	ck_assert_msg(swaparea_off(&off, message, sizeof(message)) == 0, "%s", message);
	ck_assert(!is_on());
	/* No path at all leads to the device. */
	make_node("listed", makedev(240, 78));
	off.swaps_path = write_swaps("/elsewhere/%s\\040(deleted) partition 8 0 1\n",
				     loop.path + 5);
	ck_assert_int_eq(swaparea_off(&off, message, sizeof(message)), -ENODEV);
	/* The list cannot be read: not off. */
	off.swaps_path = in_directory("missing");
	ck_assert_int_eq(swaparea_off(&off, message, sizeof(message)), -EIO);
}
END_TEST

static struct {
	int calls;
	uint64_t first_bytes, last_bytes;
} seen;

static void note_progress(void *context, uint64_t remaining_bytes)
{
	ck_assert_ptr_eq(context, &seen);
	if (seen.calls++ == 0)
		seen.first_bytes = remaining_bytes;
	seen.last_bytes = remaining_bytes;
}

START_TEST(test_progress_and_data)
{
	const size_t bytes = 16 * UZ_MIB;
	char message[256] = "";
	/* Not zeros, which newer kernels do not write. */
	uint64_t *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct swaparea area;
	struct swaparea_off off = {
		.path = loop.path,
		.device = loop.device,
		.program = write_file(
			"slow", "#!/bin/sh\nsleep 1\nexec /sbin/swapoff \"$@\"\n", 0700),
		.progress = note_progress,
		.context = &seen,
	};

	real_on();
	ck_assert(loop_swap_alone(&loop));
	for (size_t i = 0; i < bytes / 8; i++)
		data[i] = i * 0x9e3779b97f4a7c15u;
	ck_assert_int_eq(madvise(data, bytes, 21 /* MADV_PAGEOUT */), 0);
	ck_assert_int_eq(swaparea_find(loop.device, NULL, &area), 0);
	ck_assert_uint_ge(area.used_pages, 1024);
	ck_assert_msg(swaparea_off(&off, message, sizeof(message)) == 0, "%s", message);
	ck_assert_int_ge(seen.calls, 3);
	ck_assert_int_le(seen.calls, 12);
	ck_assert_uint_eq(seen.first_bytes, area.used_pages * UZ_PAGE_SIZE);
	size_t wrong = 0;

	for (size_t i = 0; i < bytes / 8; i++)
		wrong += data[i] != i * 0x9e3779b97f4a7c15u;
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

static void make_directory(void)
{
	ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void remove_directory(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	ck_assert_int_eq(system(command), 0);
}

int main(void)
{
	Suite *suite = suite_create("swaparea");
	TCase *pure = tcase_create("pure"), *real = tcase_create("real");
	int skipped = 0;

	tcase_add_checked_fixture(pure, make_directory, remove_directory);
	tcase_add_test(pure, test_header_round_trip);
	tcase_add_test(pure, test_header_layout);
	tcase_add_test(pure, test_header_refusals);
	tcase_add_test(pure, test_header_read_of_others);
	tcase_add_test(pure, test_parse);
	tcase_add_test(pure, test_parse_refusals);
	tcase_add_test(pure, test_find_where_the_node_is_gone);
	tcase_add_test(pure, test_a_list_too_long_is_no_answer);
	tcase_add_test(pure, test_zswap);
	suite_add_tcase(suite, pure);
	if (geteuid() == 0) {
		tcase_add_test(pure, test_find_by_device_number);
		tcase_add_test(pure, test_rivals);
		tcase_add_test(pure, test_survey);
	}
	if (loop_swap_new(&loop, AREA_BYTES) == 0) {
		tcase_set_timeout(real, 60);
		tcase_add_checked_fixture(real, make_directory, remove_directory);
		tcase_add_checked_fixture(real, NULL, real_off);
		tcase_add_test(real, test_on_and_off);
		tcase_add_test(real, test_header_survives_off_and_on);
		tcase_add_test(real, test_priorities);
		tcase_add_test(real, test_on_refusals);
		tcase_add_test(real, test_busy_for_a_while);
		tcase_add_test(real, test_busy_for_ever);
		tcase_add_test(real, test_swapoff_killed_twice);
		tcase_add_test(real, test_swapoff_killed_every_time);
		tcase_add_test(real, test_swapoff_exit_status);
		tcase_add_test(real, test_swapoff_of_a_moved_path);
		tcase_add_test(real, test_progress_and_data);
		suite_add_tcase(suite, real);
	} else {
		printf("SKIP: swapon and swapoff of a real device\n");
		skipped = 77;
	}
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	loop_swap_free(&loop);
	return failed > 0 ? EXIT_FAILURE : skipped;
}
