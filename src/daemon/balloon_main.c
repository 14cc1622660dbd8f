// SPDX-License-Identifier: MIT
/*
 * uzswap-balloon MAX-PAGES: the helper that takes swap slots out of the kernel's
 * hands. It fills pages with zeros and pages them out; kernels since 6.12 note a
 * zero page in a bitmap and write nothing, older ones write pages that the store
 * keeps in a slot word. What it costs is one page table page for 512 slots.
 *
 * A process of its own, since the daemon's memory is locked, and since the OOM
 * killer or a swapoff may hit it. One thread. It ends when the daemon closes its
 * socket (standard input), and ignores the signals that a service manager sends
 * to a whole group: whether slots are still held is for the daemon to say.
 *
 * Invariant: pages [0, held) of the balloon are out, all others are not there.
 * Pages go out in the order of their addresses, so a chunk that fails is cut
 * off at its first page that stayed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "daemon/balloon_protocol.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define CHUNK_PAGES	1024u /* 4 MiB: what is resident for a moment */
#define CHUNK_MIN_PAGES 64u   /* and where memory is short */
#define CHUNK_SHARE	16u   /* of what is free, in between */

/* A page in another CPU's list of new pages cannot go out until that is drained. */
#define PAGEOUT_ATTEMPTS 4
#define PAGEOUT_PAUSE_NS (1 * UZ_NSEC_PER_MSEC)

/* Time spent on one order before a report. */
#define ORDER_NS (50 * UZ_NSEC_PER_MSEC)

/* /proc/PID/pagemap, see the kernel's Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_SWAPPED (1ull << 62)

#define SAMPLES 16u

#define RESERVATION (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

struct balloon {
	char *base;
	uint64_t max_pages;
	uint64_t held_pages;	 /* are out */
	uint64_t writable_pages; /* may be touched; the rest is an empty reservation */
	int pagemap_fd;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UZ_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static char *page_at(const struct balloon *balloon, uint64_t page)
{
	return balloon->base + page * UZ_PAGE_SIZE;
}

/* ---- surroundings ---- */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return written;
}

/*
 * Where the control groups that limit memory are mounted: version 1's if there
 * is one (then version 2 does not have the memory controller), else version 2's.
 */
static bool find_memory_hierarchy(char mount[PATH_MAX])
{
	char line[PATH_MAX + 512], here[PATH_MAX], type[32], options[256];
	bool found = false;
	FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && fgets(line, sizeof(line), file)) {
		/* ID, parent, device, root, mount point ... - type, source, options:
		 * proc(5) */
		const char *tail = strstr(line, " - ");

		if (!tail || sscanf(line, "%*s %*s %*s %*s %4095s", here) != 1 ||
		    sscanf(tail, " - %31s %*s %255s", type, options) != 2)
			continue;
		bool v1 = strcmp(type, "cgroup") == 0 && strstr(options, "memory");

		if (v1 || (strcmp(type, "cgroup2") == 0 && !found)) {
			strcpy(mount, here);
			found = true;
		}
		if (v1)
			break;
	}
	if (file)
		fclose(file);
	return found;
}

/*
 * Moves to the root, as far as it can be seen: the helper's pages are not the
 * service's, and a swap limit on the service (MemorySwapMax=0 is ours) would
 * keep them from going out. Returns whether it is there.
 */
static bool leave_memory_cgroup(void)
{
	char mount[PATH_MAX], procs[PATH_MAX + 16];

	if (!find_memory_hierarchy(mount))
		return true;
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", mount);
	return write_text(procs, "0");
}

static bool protect_from_oom_killer(void)
{
	char adj[16] = "";

	write_text("/proc/self/oom_score_adj", "-1000");
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, adj, sizeof(adj) - 1) < 0)
		adj[0] = '\0';
	close(fd);
	return strtol(adj, NULL, 10) == -1000;
}

static uint32_t settle(void)
{
	uint32_t flags = 0;

	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* Inherited through exec; it would make page faults here loop where they should
	 * reclaim. */
	prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
	/* Small pages: what is resident stays small, and slots need not be contiguous. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (!leave_memory_cgroup())
		flags |= BALLOON_IN_CGROUP;
	if (!protect_from_oom_killer())
		flags |= BALLOON_OOM_VICTIM;
	/* 2 MiB of program, and nothing of the balloon: it must work on a starved
	 * machine. */
	mlockall(MCL_CURRENT);
	return flags;
}

/* ---- the balloon ---- */

/* How many of `count` pages from `first` on are out, up to the first one that is not. */
static uint64_t count_out(const struct balloon *balloon, uint64_t first, uint64_t count)
{
	static uint64_t map[CHUNK_PAGES];
	off_t offset = (off_t)((uintptr_t)page_at(balloon, first) / UZ_PAGE_SIZE *
			       sizeof(map[0]));
	ssize_t got = pread(balloon->pagemap_fd, map, count * sizeof(map[0]), offset);
	uint64_t out = 0;

	while (got > 0 && out < (uint64_t)got / sizeof(map[0]) &&
	       (map[out] & PAGEMAP_SWAPPED))
		out++;
	return out;
}

/*
 * Gives up all pages from `page` on. A fresh mapping also returns what strict
 * overcommit has charged; should the kernel have no memory for that, dropping
 * the pages needs none.
 */
static void drop_from(struct balloon *balloon, uint64_t page)
{
	if (page >= balloon->writable_pages)
		return;
	char *start = page_at(balloon, page);
	size_t bytes = (balloon->writable_pages - page) * UZ_PAGE_SIZE;

	if (mmap(start, bytes, PROT_NONE, RESERVATION | MAP_FIXED, -1, 0) == MAP_FAILED)
		madvise(start, bytes, MADV_DONTNEED);
	else
		balloon->writable_pages = page;
}

/* Sends `count` zero pages out, behind the held ones. Returns 0 or -errno. */
static int inflate(struct balloon *balloon, uint64_t count)
{
	const struct timespec pause = {.tv_nsec = PAGEOUT_PAUSE_NS};
	uint64_t first = balloon->held_pages, out = 0;
	int err = 0;

	if (mprotect(page_at(balloon, first), count * UZ_PAGE_SIZE,
		     PROT_READ | PROT_WRITE) < 0)
		return -errno;
	balloon->writable_pages = UZ_MAX(balloon->writable_pages, first + count);
	/* A write fault gives a page full of zeros; nothing need be cleared. */
	for (uint64_t page = first; page < first + count; page++)
		*(volatile char *)page_at(balloon, page) = 0;
	for (int attempt = 0; attempt < PAGEOUT_ATTEMPTS && out < count; attempt++) {
		if (attempt > 0)
			nanosleep(&pause, NULL);
		err = madvise(page_at(balloon, first), count * UZ_PAGE_SIZE,
			      MADV_PAGEOUT);
		if (err < 0) {
			err = -errno;
			break;
		}
		out = count_out(balloon, first, count);
	}
	balloon->held_pages += out;
	if (out == count)
		return 0;
	drop_from(balloon, balloon->held_pages);
	return err < 0 ? err : -ENOSPC;
}

static uint64_t chunk_pages(void)
{
	struct sysinfo info;
	uint64_t free_pages = 0;

	if (sysinfo(&info) == 0)
		free_pages = (uint64_t)info.freeram * info.mem_unit / UZ_PAGE_SIZE;
	return UZ_MAX(CHUNK_MIN_PAGES, UZ_MIN(CHUNK_PAGES, free_pages / CHUNK_SHARE));
}

/*
 * Whether pages have come back by themselves. swapoff goes through a process's
 * addresses in rising order, so the first sample is the first to tell.
 */
static bool is_ousted(const struct balloon *balloon)
{
	for (uint64_t i = 0; i < SAMPLES && balloon->held_pages > 0; i++)
		if (count_out(balloon, balloon->held_pages * i / SAMPLES, 1) == 0)
			return true;
	return false;
}

static struct balloon_report carry_out(struct balloon *balloon, uint64_t target_pages,
				       uint32_t flags)
{
	struct balloon_report report = {.flags = flags};
	uint64_t deadline_ns = now_ns() + ORDER_NS;

	target_pages = UZ_MIN(target_pages, balloon->max_pages);
	if (is_ousted(balloon)) {
		report.flags |= BALLOON_OUSTED;
		target_pages = 0;
	}
	if (balloon->held_pages > target_pages) {
		drop_from(balloon, target_pages);
		balloon->held_pages = target_pages;
	}
	while (balloon->held_pages < target_pages && report.error == 0 &&
	       now_ns() < deadline_ns)
		report.error =
			inflate(balloon, UZ_MIN(chunk_pages(),
						target_pages - balloon->held_pages));
	report.held_pages = balloon->held_pages;
	return report;
}

static int reserve(struct balloon *balloon)
{
	void *base = mmap(NULL, balloon->max_pages * UZ_PAGE_SIZE, PROT_NONE, RESERVATION,
			  -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	balloon->base = base;
	balloon->pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	return balloon->pagemap_fd < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	struct balloon balloon = {0};
	struct balloon_order order;
	char *end = NULL;

	if (argc == 2)
		balloon.max_pages = strtoull(argv[1], &end, 10);
	if (!end || *end || balloon.max_pages == 0 ||
	    balloon.max_pages > SIZE_MAX / UZ_PAGE_SIZE) {
		fprintf(stderr, "uzswap-balloon is started by uzswapd and is of no use "
				"by hand\n");
		return 2;
	}
	uint32_t flags = settle();
	int err = reserve(&balloon);

	if (err < 0) {
		fprintf(stderr, "uzswap-balloon: %s\n", strerror(-err));
		return 1;
	}
	for (;;) {
		ssize_t got = recv(STDIN_FILENO, &order, sizeof(order), 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got != sizeof(order))
			return 0;
		struct balloon_report report =
			carry_out(&balloon, order.target_pages, flags);

		if (send(STDIN_FILENO, &report, sizeof(report), MSG_NOSIGNAL) < 0)
			return 0;
	}
}
