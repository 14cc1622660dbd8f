// SPDX-License-Identifier: MIT
/*
 * A program under memory pressure: fills anonymous memory with contents that it
 * can make again, and checks every byte when the pages have been swapped out and
 * in. Its arguments are steps, done in their order:
 *
 *   memhog --size 256M fill check rewrite check free wait
 *
 * One thread. Contents depend on the seed, the page's index and its generation
 * (how often it has been rewritten), so that an old page, another page or
 * another process' page is as wrong as a flipped bit. The generations are in
 * locked memory: they never come back from the device under test.
 *
 * Exit status: 0, 1 cannot run, 2 usage, 3 contents wrong.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define EXIT_CANNOT   1
#define EXIT_USAGE    2
#define EXIT_MISMATCH 3

#define PAGE_WORDS	(UZ_PAGE_SIZE / sizeof(uint64_t))
#define HUGE_BYTES	(2 * UZ_MIB)
#define PROGRESS_PAGES	4096u
#define RATE_PAGES	64u
#define MISMATCHES_MAX	5u
#define REWRITE_ONE_OF	4u
#define DROPPED_PERIOD	1024u /* `drop` gives 512 pages back, keeps 512, and so on */
#define DROPPED		UINT8_MAX /* a generation: the page must read as zeros */
#define GENERATIONS_MAX 200u

enum contents { CONTENTS_HEAP, CONTENTS_NOISE, CONTENTS_SAME };

struct hog {
	uint64_t seed;
	enum contents contents;
	bool huge_pages;
	bool progress;
	uint64_t rate_bytes; /* of fill, per second; 0: as fast as it gets */
	size_t pages;
	unsigned char *region;
	uint8_t *generation; /* [pages], locked */
	uint64_t verified_pages;
	uint64_t mismatches;
};

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	x ^= x >> 33;
	return x;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* --- contents ------------------------------------------------------------- */

static const char words[][8] = {
	"page   ", "swap   ", "memory ", "return ", "static ", "struct ", "kernel ", "device ",
	"name=  ", "value: ", "string ", "\t\"id\":  ", "http://", "/usr/li", "index, ", "  <div>",
};

/* Like an object of a heap: a few pointers into one mapping, small numbers, a string, slack. */
static size_t put_object(uint64_t *at, size_t room, uint64_t *state)
{
	uint64_t r = next(state);
	uint64_t heap = 0x00007f0000000000ull | (mix(*state >> 56) & 0xfff0000000ull);
	size_t length = UZ_MIN(4 + (r & 15), room), i = 0;
	size_t pointers = (r >> 8) & 3, strings = (r >> 12) & 3;

	for (; i < length && i < pointers; i++)
		at[i] = heap | (next(state) & 0xfffff0);
	if (i < length)
		at[i++] = next(state) & 0xff;
	for (size_t end = i + strings; i < length && i < end; i++)
		memcpy(&at[i], words[next(state) & 15], sizeof(*at));
	if (i < length && (r >> 20 & 7) == 0)
		at[i++] = next(state); /* a hash, a double */
	for (; i < length; i++)
		at[i] = 0;
	return length;
}

/* 1 page in 16 is zero, 1 is same-filled, 1 is noise; the rest is heap. */
static void make_page(const struct hog *hog, uint64_t *page, size_t index, uint8_t generation)
{
	uint64_t state = mix(mix(hog->seed + index) + generation) | 1;
	unsigned kind = (unsigned)(next(&state) >> 60);

	if (hog->contents == CONTENTS_NOISE)
		kind = 2;
	if (hog->contents == CONTENTS_SAME)
		kind = 1;
	switch (kind) {
	case 0:
		memset(page, 0, UZ_PAGE_SIZE);
		return;
	case 1:
		for (size_t i = 0; i < PAGE_WORDS; i++)
			page[i] = state;
		return;
	case 2:
		for (size_t i = 0; i < PAGE_WORDS; i++)
			page[i] = next(&state);
		return;
	default:
		for (size_t i = 0; i < PAGE_WORDS;)
			i += put_object(page + i, PAGE_WORDS - i, &state);
		page[0] = index; /* no two are the same */
		return;
	}
}

static uint64_t *page_at(const struct hog *hog, size_t index)
{
	return (uint64_t *)(void *)(hog->region + index * UZ_PAGE_SIZE);
}

static void write_page(struct hog *hog, size_t index, uint8_t generation)
{
	make_page(hog, page_at(hog, index), index, generation);
	hog->generation[index] = generation;
}

static void report_mismatch(const struct hog *hog, size_t index, const uint64_t *wanted)
{
	const uint64_t *got = page_at(hog, index);
	size_t at = 0;

	while (at < PAGE_WORDS - 1 && got[at] == wanted[at])
		at++;
	fprintf(stderr,
		"memhog: CONTENTS WRONG: page %zu, generation %u, from byte %zu on: "
		"%016" PRIx64 " instead of %016" PRIx64 "\n",
		index, hog->generation[index], at * sizeof(uint64_t), got[at], wanted[at]);
}

static void check_page(struct hog *hog, size_t index)
{
	static uint64_t wanted[PAGE_WORDS];

	if (hog->generation[index] == DROPPED)
		memset(wanted, 0, sizeof(wanted));
	else
		make_page(hog, wanted, index, hog->generation[index]);
	hog->verified_pages++;
	if (memcmp(page_at(hog, index), wanted, UZ_PAGE_SIZE) == 0)
		return;
	if (hog->mismatches++ < MISMATCHES_MAX)
		report_mismatch(hog, index, wanted);
}

/* --- steps ---------------------------------------------------------------- */

static void show_progress(const struct hog *hog, const char *step, size_t done)
{
	if (hog->progress && (done % PROGRESS_PAGES == 0 || done == hog->pages)) {
		printf("%s %zu %zu\n", step, done * UZ_PAGE_SIZE, hog->pages * UZ_PAGE_SIZE);
		fflush(stdout);
	}
}

/* Sleeps until writing `bytes` since `start_ns` is no faster than the rate. */
static void keep_rate(const struct hog *hog, uint64_t bytes, uint64_t start_ns)
{
	uint64_t due_ns = start_ns + bytes / UZ_KIB * UZ_NSEC_PER_SEC / (hog->rate_bytes / UZ_KIB);
	uint64_t now_ns = clock_now_ns();

	if (due_ns > now_ns)
		clock_sleep_ns(due_ns - now_ns);
}

static void fill(struct hog *hog)
{
	uint64_t start_ns = clock_now_ns();

	for (size_t i = 0; i < hog->pages; i++) {
		write_page(hog, i, 1);
		show_progress(hog, "fill", i + 1);
		if (hog->rate_bytes > 0 && i % RATE_PAGES == 0)
			keep_rate(hog, i * UZ_PAGE_SIZE, start_ns);
	}
}

static void check(struct hog *hog)
{
	for (size_t i = 0; i < hog->pages; i++) {
		check_page(hog, i);
		show_progress(hog, "check", i + 1);
	}
}

/* Reads as many pages as there are, in random order, some more than once. */
static void check_randomly(struct hog *hog)
{
	uint64_t state = mix(hog->seed + 1) | 1;

	for (size_t i = 0; i < hog->pages; i++) {
		check_page(hog, next(&state) % hog->pages);
		show_progress(hog, "random", i + 1);
	}
}

static void rewrite(struct hog *hog)
{
	uint64_t state = mix(hog->seed + hog->verified_pages) | 1;

	for (size_t i = 0; i < hog->pages / REWRITE_ONE_OF; i++) {
		size_t index = next(&state) % hog->pages;
		uint8_t generation = hog->generation[index];

		write_page(hog, index,
			   (uint8_t)(generation == DROPPED ? 1 : generation % GENERATIONS_MAX + 1));
	}
}

/* Half of the pages, in runs that do not fit the kernel's clusters of 512 slots. */
static void drop(struct hog *hog)
{
	for (size_t i = 0; i < hog->pages; i += DROPPED_PERIOD) {
		size_t count = UZ_MIN((size_t)DROPPED_PERIOD / 2, hog->pages - i);

		if (madvise(page_at(hog, i), count * UZ_PAGE_SIZE, MADV_DONTNEED) < 0) {
			perror("memhog: MADV_DONTNEED");
			exit(EXIT_CANNOT);
		}
		memset(hog->generation + i, DROPPED, count);
	}
}

static void page_out(struct hog *hog)
{
	/* Older kernels lack it; the memory limit does the same, more slowly. */
	madvise(hog->region, hog->pages * UZ_PAGE_SIZE, MADV_PAGEOUT);
}

static void give_back(struct hog *hog)
{
	if (madvise(hog->region, hog->pages * UZ_PAGE_SIZE, MADV_DONTNEED) < 0) {
		perror("memhog: MADV_DONTNEED");
		exit(EXIT_CANNOT);
	}
	memset(hog->generation, DROPPED, hog->pages);
}

/* Until a line, or the end, of standard input. */
static void wait_for_line(struct hog *hog)
{
	char line[64];

	(void)hog;
	printf("waiting\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(EXIT_CANNOT); /* whoever started us is gone */
}

static const struct step {
	const char *name;
	void (*run)(struct hog *hog);
	const char *help;
} steps[] = {
	{"fill", fill, "write every page, in order"},
	{"check", check, "check every page, in order"},
	{"random", check_randomly, "check as many pages in random order"},
	{"rewrite", rewrite, "write a quarter of the pages anew, in random order"},
	{"drop", drop, "give half of the pages back to the kernel; they must read as zeros"},
	{"pageout", page_out, "ask the kernel to swap all out"},
	{"free", give_back, "give all pages back"},
	{"wait", wait_for_line, "print 'waiting' and wait for a line on standard input"},
};

static const struct step *find_step(const char *name)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(steps); i++)
		if (strcmp(steps[i].name, name) == 0)
			return &steps[i];
	return NULL;
}

static void run_steps(struct hog *hog, char **names)
{
	for (; *names; names++) {
		uint64_t start_ns = clock_now_ns();

		find_step(*names)->run(hog);
		printf("done %s %.3f s, %" PRIu64 " wrong\n", *names,
		       (double)(clock_now_ns() - start_ns) / (double)UZ_NSEC_PER_SEC,
		       hog->mismatches);
		fflush(stdout);
	}
}

/* --- options -------------------------------------------------------------- */

static void print_usage(FILE *stream)
{
	fputs("memhog [--size SIZE] [--seed N] [--contents heap|noise|same] [--huge] [--progress]\n"
	      "       [--rate SIZE-PER-SECOND] STEP...\n\nSteps:\n",
	      stream);
	for (size_t i = 0; i < UZ_ARRAY_SIZE(steps); i++)
		fprintf(stream, "  %-8s %s\n", steps[i].name, steps[i].help);
}

static uint64_t parse_size(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	switch (*end) {
	case 'G':
		value *= UZ_GIB;
		break;
	case 'M':
		value *= UZ_MIB;
		break;
	case 'K':
		value *= UZ_KIB;
		break;
	case '\0':
		break;
	default:
		return 0;
	}
	return value;
}

/* Returns whether all is well. */
static bool parse_options(int argc, char **argv, struct hog *hog)
{
	static const struct option known[] = {
		{"size", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'},
		{"contents", required_argument, NULL, 'c'},
		{"rate", required_argument, NULL, 't'},
		{"huge", no_argument, NULL, 'h'},
		{"progress", no_argument, NULL, 'p'},
		{0},
	};
	int choice;

	while ((choice = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (choice) {
		case 's':
			hog->pages = parse_size(optarg) / UZ_PAGE_SIZE;
			break;
		case 'r':
			hog->seed = strtoull(optarg, NULL, 10) << 40;
			break;
		case 'c':
			if (strcmp(optarg, "heap") == 0)
				hog->contents = CONTENTS_HEAP;
			else if (strcmp(optarg, "noise") == 0)
				hog->contents = CONTENTS_NOISE;
			else if (strcmp(optarg, "same") == 0)
				hog->contents = CONTENTS_SAME;
			else
				return false;
			break;
		case 't':
			hog->rate_bytes = parse_size(optarg);
			if (hog->rate_bytes < UZ_MIB)
				return false;
			break;
		case 'h':
			hog->huge_pages = true;
			break;
		case 'p':
			hog->progress = true;
			break;
		default:
			return false;
		}
	}
	for (int i = optind; i < argc; i++)
		if (!find_step(argv[i]))
			return false;
	return hog->pages > 0 && optind < argc;
}

static void map_memory(struct hog *hog)
{
	size_t bytes = hog->pages * UZ_PAGE_SIZE;
	unsigned char *region = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (region == MAP_FAILED) {
		perror("memhog: mmap");
		exit(EXIT_CANNOT);
	}
	hog->region = (unsigned char *)uz_round_up((uintptr_t)region, HUGE_BYTES);
	madvise(hog->region, bytes, hog->huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	hog->generation = mmap(NULL, hog->pages, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (hog->generation == MAP_FAILED || mlock(hog->generation, hog->pages) < 0) {
		perror("memhog: locking the table of generations");
		exit(EXIT_CANNOT);
	}
	memset(hog->generation, DROPPED, hog->pages);
}

int main(int argc, char **argv)
{
	struct hog hog = {.pages = 64 * UZ_MIB / UZ_PAGE_SIZE};

	if (!parse_options(argc, argv, &hog)) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	map_memory(&hog);
	run_steps(&hog, argv + optind);
	printf("verified %" PRIu64 " pages, %" PRIu64 " wrong\n", hog.verified_pages,
	       hog.mismatches);
	return hog.mismatches > 0 ? EXIT_MISMATCH : EXIT_SUCCESS;
}
