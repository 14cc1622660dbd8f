// SPDX-License-Identifier: MIT
/*
 * Writes the anonymous pages of a running process to a corpus file: what a
 * benchmark of swap should swap, rather than noise or repeated patterns.
 *
 * One thread. The process is stopped while it is read, so that the two passes
 * (count, then write) see the same pages; it is continued afterwards unless it
 * was stopped before. Pages that it never populated are skipped by way of
 * /proc/PID/pagemap: reading them would populate them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "corpus.h"

/* Pages read at once, and the unit of thinning: neighbours stay together, since swap
 * writes runs. */
#define RUN_PAGES 64u

#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)

struct dump {
	int mem_fd;
	int pagemap_fd;
	bool keep_same;
	FILE *out;	       /* NULL while counting */
	uint64_t kept_pages;   /* found so far in this pass, before thinning */
	uint64_t total_pages;  /* of the counting pass */
	uint64_t wanted_pages; /* <= total_pages */
	struct corpus_header header;
};

/* Whether the page is one 8-byte word over and over: what zram and uzswap keep without
 * memory. */
static bool page_is_same_filled(const uint64_t *page)
{
	return memcmp(page, page + 1, UZ_PAGE_SIZE - sizeof(*page)) == 0;
}

/*
 * Spreads wanted_pages evenly over total_pages in whole runs: run r is taken
 * when the wanted share, counted in runs, passes an integer at r.
 */
static bool dump_wants(const struct dump *dump, uint64_t index)
{
	uint64_t run = index / RUN_PAGES;
	uint64_t runs = uz_div_round_up(dump->total_pages, RUN_PAGES);
	uint64_t wanted_runs = dump->wanted_pages / RUN_PAGES;

	if (dump->wanted_pages == dump->total_pages)
		return true;
	return (run + 1) * wanted_runs / runs != run * wanted_runs / runs;
}

static int dump_page(struct dump *dump, const uint64_t *page)
{
	struct corpus_counts *counts = &dump->header.counts;

	counts->seen_pages++;
	if (page_is_same_filled(page)) {
		if (page[0] == 0) {
			counts->zero_pages++;
			return 0;
		}
		if (!dump->keep_same) {
			counts->same_filled_pages++;
			return 0;
		}
	}
	uint64_t index = dump->kept_pages++;

	if (!dump->out)
		return 0;
	if (!dump_wants(dump, index)) {
		counts->thinned_pages++;
		return 0;
	}
	counts->pages++;
	return fwrite(page, UZ_PAGE_SIZE, 1, dump->out) == 1 ? 0 : -EIO;
}

static int dump_run(struct dump *dump, uint64_t address, size_t pages)
{
	static uint64_t contents[RUN_PAGES][UZ_PAGE_SIZE / sizeof(uint64_t)];
	uint64_t map[RUN_PAGES];
	ssize_t got = pread(dump->pagemap_fd, map, pages * sizeof(map[0]),
			    (off_t)(address / UZ_PAGE_SIZE * sizeof(map[0])));

	if (got != (ssize_t)(pages * sizeof(map[0])))
		return 0; /* [vsyscall] and the like have no page map */

	for (size_t i = 0; i < pages;) {
		size_t end = i;

		while (end < pages && map[end] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED))
			end++;
		if (end == i) {
			i++;
			continue;
		}
		got = pread(dump->mem_fd, contents, (end - i) * UZ_PAGE_SIZE,
			    (off_t)(address + i * UZ_PAGE_SIZE));
		size_t read_pages = got > 0 ? (size_t)got / UZ_PAGE_SIZE : 0;

		for (size_t n = 0; n < read_pages; n++) {
			int r = dump_page(dump, contents[n]);

			if (r < 0)
				return r;
		}
		i += read_pages;
		if (i < end) { /* the page at i cannot be read: step over it */
			dump->header.counts.seen_pages++;
			dump->header.counts.unreadable_pages++;
			i++;
		}
	}
	return 0;
}

/* One pass over the private, anonymous, readable and writable mappings. */
static int dump_pass(struct dump *dump, pid_t pid)
{
	UZ_AUTO_FCLOSE FILE *maps = NULL;
	UZ_AUTO_FREE char *line = NULL;
	char path[64];
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;

	dump->kept_pages = 0;
	dump->header.counts = (struct corpus_counts){0};
	while (getline(&line, &size, maps) > 0) {
		uint64_t start, end, inode;
		char perms[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64, &start, &end,
			   perms, &inode) != 4)
			return -EBADMSG;
		if (perms[0] != 'r' || perms[1] != 'w' || perms[3] != 'p' || inode != 0)
			continue;
		for (uint64_t address = start; address < end; address += RUN_PAGES * UZ_PAGE_SIZE) {
			uint64_t left = (end - address) / UZ_PAGE_SIZE;
			int r = dump_run(dump, address, UZ_MIN(left, (uint64_t)RUN_PAGES));

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* The state letter of /proc/PID/stat, or -errno. */
static int process_state(pid_t pid)
{
	UZ_AUTO_FCLOSE FILE *stat = NULL;
	char path[64], line[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "re");
	if (!stat)
		return -errno;
	if (!fgets(line, sizeof(line), stat))
		return -ESRCH;
	/* The command name may hold anything, parentheses too; the last one closes it. */
	const char *close = strrchr(line, ')');

	return close && close[1] == ' ' ? close[2] : -EBADMSG;
}

/* Stops the process and waits until it is. Sets *ret_was_stopped. */
static int process_stop(pid_t pid, bool *ret_was_stopped)
{
	int state = process_state(pid);

	if (state < 0)
		return state;
	*ret_was_stopped = state == 'T' || state == 't';
	if (*ret_was_stopped)
		return 0;
	if (kill(pid, SIGSTOP) < 0)
		return -errno;
	for (int tries = 0; tries < 2000; tries++) {
		state = process_state(pid);
		if (state < 0)
			return state;
		if (state == 'T')
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	kill(pid, SIGCONT);
	return -ETIMEDOUT;
}

static int dump_write(struct dump *dump, pid_t pid, const char *path, uint64_t max_pages)
{
	static const char padding[UZ_PAGE_SIZE - sizeof(struct corpus_header)];
	int r = dump_pass(dump, pid);

	if (r < 0)
		return r;
	dump->total_pages = dump->kept_pages;
	dump->wanted_pages = dump->total_pages;
	if (max_pages && max_pages < dump->total_pages)
		dump->wanted_pages = max_pages;

	dump->out = fopen(path, "wbe");
	if (!dump->out)
		return -errno;
	/* The header is written twice: a place holder first, the counts at the end. */
	bool good = fwrite(&dump->header, sizeof(dump->header), 1, dump->out) == 1 &&
		    fwrite(padding, sizeof(padding), 1, dump->out) == 1;

	r = good ? dump_pass(dump, pid) : -EIO;
	if (r == 0 && (fseek(dump->out, 0, SEEK_SET) < 0 ||
		       fwrite(&dump->header, sizeof(dump->header), 1, dump->out) != 1))
		r = -EIO;
	if (fclose(dump->out) != 0 && r == 0)
		r = -errno;
	dump->out = NULL;
	return r;
}

/* Writes through a temporary name, so that a corpus is there whole or not at all. */
static int dump_process(struct dump *dump, pid_t pid, const char *path, uint64_t max_pages)
{
	UZ_AUTO_CLOSE int mem_fd = -1;
	UZ_AUTO_CLOSE int pagemap_fd = -1;
	char name[64], temporary[4096];
	bool was_stopped;

	if (snprintf(temporary, sizeof(temporary), "%s.partial", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	dump->mem_fd = mem_fd = open(name, O_RDONLY | O_CLOEXEC);
	if (mem_fd < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)pid);
	dump->pagemap_fd = pagemap_fd = open(name, O_RDONLY | O_CLOEXEC);
	if (pagemap_fd < 0)
		return -errno;

	int r = process_stop(pid, &was_stopped);

	if (r < 0)
		return r;
	r = dump_write(dump, pid, temporary, max_pages);
	if (!was_stopped)
		kill(pid, SIGCONT);
	if (r == 0 && dump->header.counts.pages == 0)
		r = -ENODATA;
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

static void help(FILE *to)
{
	fputs("Usage: pagedump [--name NAME] [--max-mib N] [--keep-same] PID FILE\n"
	      "Writes the anonymous pages of process PID to the corpus FILE and prints "
	      "the counts\n"
	      "as one line of JSON. Zero pages are dropped always, same-filled pages "
	      "unless\n"
	      "--keep-same; --max-mib thins the rest out evenly.\n",
	      to);
}

static bool parse_u64(const char *text, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (errno || end == text || *end || text[0] == '-')
		return false;
	*ret_value = value;
	return true;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'},
		{"max-mib", required_argument, NULL, 'm'},
		{"keep-same", no_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct dump dump = {.header = {.version = CORPUS_VERSION, .page_size_bytes = UZ_PAGE_SIZE}};
	const char *name = "unnamed";
	uint64_t max_mib = 0, pid;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			name = optarg;
			break;
		case 'm':
			if (!parse_u64(optarg, &max_mib) || max_mib == 0) {
				fprintf(stderr, "pagedump: --max-mib %s: not a number of MiB\n",
					optarg);
				return 2;
			}
			break;
		case 's':
			dump.keep_same = true;
			break;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return 2;
		}
	}
	if (argc - optind != 2 || !parse_u64(argv[optind], &pid) || pid == 0 || pid > INT32_MAX) {
		help(stderr);
		return 2;
	}
	/* A name goes into file names and JSON: keep to what needs no quoting in either.
	 */
	if (strlen(name) >= sizeof(dump.header.name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.+") != strlen(name)) {
		fprintf(stderr, "pagedump: --name %s: use at most %zu of a-z 0-9 - _ . +\n", name,
			sizeof(dump.header.name) - 1);
		return 2;
	}
	memcpy(dump.header.magic, CORPUS_MAGIC, sizeof(dump.header.magic));
	strcpy(dump.header.name, name);

	const char *path = argv[optind + 1];
	int r = dump_process(&dump, (pid_t)pid, path, max_mib * (UZ_MIB / UZ_PAGE_SIZE));

	if (r < 0) {
		fprintf(stderr, "pagedump: process %" PRIu64 " to %s: %s\n", pid, path,
			r == -ENODATA ? "it has no page worth keeping" : strerror(-r));
		return 1;
	}
	const struct corpus_counts *counts = &dump.header.counts;

	printf("{\"name\": \"%s\", \"pages\": %" PRIu64 ", \"seen_pages\": %" PRIu64
	       ", \"zero_pages\": %" PRIu64 ", \"same_filled_pages\": %" PRIu64
	       ", \"unreadable_pages\": %" PRIu64 ", \"thinned_pages\": %" PRIu64 "}\n",
	       name, counts->pages, counts->seen_pages, counts->zero_pages,
	       counts->same_filled_pages, counts->unreadable_pages, counts->thinned_pages);
	return 0;
}
