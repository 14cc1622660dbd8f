// SPDX-License-Identifier: MIT
/*
 * The measured program: works on more anonymous memory than its memory cgroup
 * allows, with the contents of corpus files, and checks every byte.
 *
 * One thread, so that nothing but swap stands between it and its memory. All
 * that it needs beside the region under test (corpora, table of sources,
 * latencies, code, stack) is populated and locked before it joins the cgroup:
 * neither charged to the limit nor ever swapped. A region page is compared with
 * the locked corpus page that it was copied from, so a page that comes back
 * wrong cannot hide behind a checksum.
 *
 * Prints one line of JSON. Exit status: 0, 1 cannot run, 2 usage, 3 contents wrong.
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "corpus.h"

#define EXIT_MISMATCH 3

#define PAGE_WORDS (UZ_PAGE_SIZE / sizeof(uint64_t))

/* Neighbours of one corpus that stay together when several are mixed. */
#define MIX_RUN_PAGES 16u

#define CORPORA_MAX 16u

/* No memory answers faster than a touch in 2 us on average; see touch_randomly(). */
#define TOUCHES_PER_SECOND_MAX 500000u

/* How long pages may take to get to the device before that counts as a failure. */
#define SETTLE_LIMIT_NS (120 * UZ_NSEC_PER_SEC)

#define PAGEMAP_SWAPPED (1ull << 62)

enum mode { MODE_FILL, MODE_SWAPIN, MODE_SEQIN, MODE_HOLD };

static const char *const mode_names[] = {
	[MODE_FILL] = "fill",
	[MODE_SWAPIN] = "swapin",
	[MODE_SEQIN] = "seqin",
	[MODE_HOLD] = "hold",
};

struct page {
	uint64_t words[PAGE_WORDS];
};

struct corpus {
	const struct page *pages;
	uint64_t count;
};

struct work {
	const char *cgroup;
	const char *device; /* name of the block device that is swapped to */
	struct corpus corpora[CORPORA_MAX];
	size_t corpora_count;
	uint64_t pages;		    /* of the region */
	struct page *region;	    /* anonymous, the memory under test */
	const struct page **source; /* [pages]: what region[i] must hold */
	uint64_t duration_ns;	    /* of swapin */
	unsigned int dirty_percent; /* of swapin's touches write */
	uint64_t seed;
	uint32_t *latency_ns; /* of swapin: one per major fault */
	uint64_t latency_capacity;
	int inflight_fd; /* /sys/block/DEVICE/inflight */
	int pagemap_fd;	 /* our own */
	int cpu_fd;	 /* /proc/stat */
};

/* What a phase cost: differences between two of these. */
struct usage {
	uint64_t time_ns;
	uint64_t cpu_busy_ns; /* all CPUs, all processes: the daemon's and kernel threads'
				 too */
	uint64_t major_faults;
	uint64_t minor_faults;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "pagework: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

/* ---- Reading /proc and /sys, without stdio: nothing here may allocate. */

/* Reads the file from its start into a static buffer, as text. The next call overwrites
 * it. */
static const char *read_text(int fd, const char *what)
{
	static char text[16384];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	if (length < 0)
		die(what, errno);
	text[length] = '\0';
	return text;
}

/*
 * Writes that the device has not acknowledged. Exact and cheap, unlike the
 * writeback counters of cgroups and /proc/vmstat, which lag by up to two seconds.
 */
static uint64_t writes_in_flight(const struct work *work)
{
	unsigned long long reads, writes;
	const char *text = read_text(work->inflight_fd, "inflight");

	if (sscanf(text, "%llu %llu", &reads, &writes) != 2)
		die("inflight", EBADMSG);
	return writes;
}

static uint64_t cpu_busy_ns(const struct work *work)
{
	unsigned long long user, nice, system, irq, softirq;
	const char *text = read_text(work->cpu_fd, "/proc/stat");

	if (sscanf(text, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &irq,
		   &softirq) != 5)
		die("/proc/stat", EBADMSG);
	return (user + nice + system + irq + softirq) *
	       (UZ_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void usage_read(const struct work *work, struct usage *usage)
{
	struct rusage self;

	usage->cpu_busy_ns = cpu_busy_ns(work);
	getrusage(RUSAGE_SELF, &self);
	usage->major_faults = (uint64_t)self.ru_majflt;
	usage->minor_faults = (uint64_t)self.ru_minflt;
	usage->time_ns = clock_now_ns();
}

static void usage_subtract(struct usage *usage, const struct usage *before)
{
	usage->time_ns -= before->time_ns;
	usage->cpu_busy_ns -= before->cpu_busy_ns;
	usage->major_faults -= before->major_faults;
	usage->minor_faults -= before->minor_faults;
}

/* Pages of the region whose contents are on the swap device only. */
static uint64_t count_swapped_pages(const struct work *work)
{
	static uint64_t entries[1024];
	uint64_t first = (uintptr_t)work->region / UZ_PAGE_SIZE;
	uint64_t swapped = 0;

	for (uint64_t done = 0; done < work->pages;) {
		uint64_t count = UZ_MIN(work->pages - done, (uint64_t)UZ_ARRAY_SIZE(entries));
		ssize_t got = pread(work->pagemap_fd, entries, count * sizeof(entries[0]),
				    (off_t)((first + done) * sizeof(entries[0])));

		if (got != (ssize_t)(count * sizeof(entries[0])))
			die("/proc/self/pagemap", got < 0 ? errno : EIO);
		for (uint64_t i = 0; i < count; i++)
			swapped += (entries[i] & PAGEMAP_SWAPPED) != 0;
		done += count;
	}
	return swapped;
}

/* ---- Setting up, outside the cgroup. */

static void corpus_map(struct corpus *corpus, const char *path)
{
	UZ_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path, errno);
	if (st.st_size < (off_t)(2 * UZ_PAGE_SIZE))
		die(path, EBADMSG);
	void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (file == MAP_FAILED)
		die(path, errno);
	const struct corpus_header *header = file;

	if (memcmp(header->magic, CORPUS_MAGIC, sizeof(header->magic)) != 0 ||
	    header->version != CORPUS_VERSION || header->page_size_bytes != UZ_PAGE_SIZE ||
	    (uint64_t)st.st_size != (1 + header->counts.pages) * UZ_PAGE_SIZE) {
		fprintf(stderr, "pagework: %s: not a corpus that pagedump wrote here\n", path);
		exit(1);
	}
	corpus->pages = (const struct page *)file + 1;
	corpus->count = header->counts.pages;
}

/*
 * Deals the corpora out in turn, a run of each, until all are used up; then
 * from their beginnings again, until every page of the region has a source.
 */
static void choose_sources(struct work *work)
{
	uint64_t next[CORPORA_MAX] = {0};
	uint64_t page = 0;

	while (page < work->pages) {
		uint64_t before = page;

		for (size_t c = 0; c < work->corpora_count; c++) {
			const struct corpus *corpus = &work->corpora[c];
			uint64_t end = UZ_MIN(next[c] + MIX_RUN_PAGES, corpus->count);

			while (next[c] < end && page < work->pages)
				work->source[page++] = &corpus->pages[next[c]++];
		}
		if (page == before)
			memset(next, 0, sizeof(next));
	}
}

/* Anonymous memory; locked and populated by the mlockall in prepare(). */
static void *allocate(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap", errno);
	return memory;
}

static int open_or_die(const char *directory, const char *name, int flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		die(path, errno);
	return fd;
}

static void prepare(struct work *work)
{
	pid_t parent = getppid();

	/* The benchmark must not leave a program behind that swaps on and on. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(1);

	if (work->pages == 0)
		for (size_t c = 0; c < work->corpora_count; c++)
			work->pages += work->corpora[c].count;
	work->source = allocate(work->pages * sizeof(work->source[0]));
	choose_sources(work);
	work->latency_capacity = work->duration_ns / UZ_NSEC_PER_SEC * TOUCHES_PER_SECOND_MAX;
	if (work->latency_capacity)
		work->latency_ns = allocate(work->latency_capacity * sizeof(work->latency_ns[0]));
	char block[256];

	snprintf(block, sizeof(block), "/sys/block/%s", work->device);
	work->inflight_fd = open_or_die(block, "inflight", O_RDONLY);
	work->pagemap_fd = open_or_die("/proc/self", "pagemap", O_RDONLY);
	work->cpu_fd = open_or_die("/proc", "stat", O_RDONLY);

	if (mlockall(MCL_CURRENT) < 0)
		die("mlockall (run this as root)", errno);

	UZ_AUTO_CLOSE int procs_fd = open_or_die(work->cgroup, "cgroup.procs", O_WRONLY);

	if (write(procs_fd, "0", 1) != 1)
		die("joining the cgroup", errno);
	/* Only now: charged to the cgroup, not locked, and with what the system does by
	 * default. */
	work->region = allocate(work->pages * UZ_PAGE_SIZE);
}

/* ---- Work. */

/* Waits until no page is on its way to the device. */
static void wait_for_writeback(const struct work *work)
{
	uint64_t deadline_ns = clock_now_ns() + SETTLE_LIMIT_NS;

	while (writes_in_flight(work) > 0) {
		if (clock_now_ns() > deadline_ns)
			die("waiting for writeback", ETIMEDOUT);
		clock_sleep_ns(UZ_NSEC_PER_MSEC / 5);
	}
}

static void fill(struct work *work)
{
	for (uint64_t i = 0; i < work->pages; i++)
		memcpy(&work->region[i], work->source[i], UZ_PAGE_SIZE);
	wait_for_writeback(work);
}

/* Says where a wrong page's contents may come from: the first question when a swap device
 * loses pages. */
static void explain_mismatch(const struct work *work, uint64_t index)
{
	static const struct page zero;
	const struct page *found = &work->region[index];
	size_t first = 0;

	while (found->words[first] == work->source[index]->words[first])
		first++;
	fprintf(stderr, "pagework: page %" PRIu64 " is wrong from byte %zu on: ", index,
		first * sizeof(uint64_t));
	if (memcmp(found, &zero, sizeof(zero)) == 0) {
		fputs("all zeros\n", stderr);
		return;
	}
	for (uint64_t i = 0; i < work->pages; i++) {
		if (memcmp(found, work->source[i], sizeof(*found)) == 0) {
			fprintf(stderr, "the contents of page %" PRIu64 "\n", i);
			return;
		}
	}
	fputs("contents of no other page\n", stderr);
}

/* Compares all pages. Ends the program when one is wrong. */
static void verify(const struct work *work)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < work->pages; i++) {
		if (memcmp(&work->region[i], work->source[i], UZ_PAGE_SIZE) == 0)
			continue;
		if (wrong++ < 8)
			explain_mismatch(work, i);
	}
	if (wrong) {
		fprintf(stderr, "pagework: CONTENTS WRONG: %" PRIu64 " of %" PRIu64 " pages\n",
			wrong, work->pages);
		exit(EXIT_MISMATCH);
	}
}

/* xorshift64*: good enough to spread touches, and the same touches for every device. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ull;
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)random_next(state) * limit) >> 64);
}

struct touches {
	uint64_t count;
	uint64_t latencies; /* entries of latency_ns in use */
};

static uint64_t major_faults(void)
{
	struct rusage self;

	getrusage(RUSAGE_THREAD, &self);
	return (uint64_t)self.ru_majflt;
}

/*
 * Touches one word of random pages for duration_ns. A touch that took a major
 * fault has its latency recorded. Ends early rather than dropping a latency.
 */
static void touch_randomly(struct work *work, struct touches *touches)
{
	uint64_t random = work->seed;
	uint64_t faults = major_faults();
	uint64_t start_ns = clock_now_ns();
	uint64_t now_ns = start_ns;

	while (now_ns - start_ns < work->duration_ns &&
	       touches->latencies < work->latency_capacity) {
		uint64_t index = random_below(&random, work->pages);
		volatile uint64_t *word = &work->region[index].words[index % PAGE_WORDS];
		uint64_t right = work->source[index]->words[index % PAGE_WORDS];
		bool dirty = random_below(&random, 100) < work->dirty_percent;
		uint64_t before_ns = clock_now_ns();
		uint64_t value = *word;

		if (dirty)
			*word = value; /* dirties the page and leaves its contents right
					*/
		now_ns = clock_now_ns();
		touches->count++;
		if (value != right) {
			fprintf(stderr, "pagework: CONTENTS WRONG while touching\n");
			explain_mismatch(work, index);
			exit(EXIT_MISMATCH);
		}
		uint64_t faults_now = major_faults();

		if (faults_now != faults) {
			uint64_t took_ns = now_ns - before_ns;

			faults = faults_now;
			work->latency_ns[touches->latencies++] =
				(uint32_t)UZ_MIN(took_ns, (uint64_t)UINT32_MAX);
		}
	}
}

/* Reads a word of every page from the first to the last. */
static void read_in_order(const struct work *work)
{
	for (uint64_t i = 0; i < work->pages; i++) {
		volatile const uint64_t *word = &work->region[i].words[i % PAGE_WORDS];

		if (*word != work->source[i]->words[i % PAGE_WORDS]) {
			fprintf(stderr, "pagework: CONTENTS WRONG while reading\n");
			explain_mismatch(work, i);
			exit(EXIT_MISMATCH);
		}
	}
}

/*
 * Pushes the whole region out to the device. Returns the pages that are there
 * in the end: all, unless the device refuses some.
 */
static uint64_t push_out(const struct work *work)
{
	uint64_t swapped = 0;

	/* Reclaim skips a page now and then (a batch held elsewhere, still dirty); not
	 * ten times. */
	for (int tries = 0; tries < 10 && swapped < work->pages; tries++) {
		if (madvise(work->region, work->pages * UZ_PAGE_SIZE, MADV_PAGEOUT) < 0)
			die("madvise(MADV_PAGEOUT)", errno);
		wait_for_writeback(work);
		swapped = count_swapped_pages(work);
	}
	return swapped;
}

/* ---- Output. */

static int compare_u32(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static void print_latencies(struct work *work, const struct touches *touches)
{
	/* Nearest rank, in parts of 100,000. */
	static const struct {
		const char *name;
		uint64_t rank;
	} percentiles[] = {
		{"p1", 1000},	{"p10", 10000}, {"p25", 25000}, {"p50", 50000},	  {"p75", 75000},
		{"p90", 90000}, {"p95", 95000}, {"p99", 99000}, {"p99.9", 99900}, {"max", 100000},
	};
	uint64_t count = touches->latencies;

	qsort(work->latency_ns, count, sizeof(work->latency_ns[0]), compare_u32);
	printf(", \"touches\": %" PRIu64 ", \"latencies\": %" PRIu64 ", \"latency_ns\": {",
	       touches->count, count);
	for (size_t i = 0; count && i < UZ_ARRAY_SIZE(percentiles); i++) {
		uint64_t rank = uz_div_round_up(count * percentiles[i].rank, 100000);

		printf("%s\"%s\": %" PRIu32, i ? ", " : "", percentiles[i].name,
		       work->latency_ns[UZ_MAX(rank, (uint64_t)1) - 1]);
	}
	printf("}");
}

static void print_usage(const char *phase, const struct usage *usage)
{
	printf(", \"%s\": {\"elapsed_ns\": %" PRIu64 ", \"cpu_busy_ns\": %" PRIu64
	       ", \"major_faults\": %" PRIu64 ", \"minor_faults\": %" PRIu64 "}",
	       phase, usage->time_ns, usage->cpu_busy_ns, usage->major_faults, usage->minor_faults);
}

/* Tells the benchmark that all is on the device, and waits for its line (or its end). */
static void hold(const struct work *work)
{
	char line[16];
	uint64_t swapped = push_out(work);

	printf("{\"held_pages\": %" PRIu64 ", \"swapped_pages\": %" PRIu64 "}\n", work->pages,
	       swapped);
	fflush(stdout);
	ssize_t length = read(STDIN_FILENO, line, sizeof(line));

	(void)length; /* a line, an end or an error: the benchmark has looked, or is gone
		       */
}

static void run(struct work *work, enum mode mode)
{
	struct usage before, filled, worked;
	struct touches touches = {0};

	usage_read(work, &before);
	fill(work);
	usage_read(work, &filled);
	usage_subtract(&filled, &before);
	uint64_t swapped = count_swapped_pages(work);

	usage_read(work, &before);
	if (mode == MODE_SWAPIN)
		touch_randomly(work, &touches);
	else if (mode == MODE_SEQIN)
		read_in_order(work);
	else if (mode == MODE_HOLD)
		hold(work);
	usage_read(work, &worked);
	usage_subtract(&worked, &before);

	verify(work);

	printf("{\"mode\": \"%s\", \"pages\": %" PRIu64 ", \"swapped_pages\": %" PRIu64
	       ", \"verified_pages\": %" PRIu64,
	       mode_names[mode], work->pages, swapped, work->pages);
	print_usage("fill", &filled);
	if (mode == MODE_SWAPIN || mode == MODE_SEQIN)
		print_usage("work", &worked);
	if (mode == MODE_SWAPIN)
		print_latencies(work, &touches);
	printf("}\n");
}

static void help(FILE *to)
{
	fputs("Usage: pagework fill|swapin|seqin|hold --cgroup DIR --device NAME "
	      "[OPTION...] CORPUS...\n"
	      "Joins the memory cgroup DIR, fills memory with the pages of the corpora, "
	      "works on\n"
	      "it, checks all contents, and prints one line of JSON.\n"
	      "\n"
	      "  fill    write every page; timed until nothing is on its way to the "
	      "device\n"
	      "  swapin  fill, then touch random pages for a time\n"
	      "  seqin   fill, then read every page in order\n"
	      "  hold    fill, push all out, print a line, wait for a line on standard "
	      "input\n"
	      "\n"
	      "  --cgroup DIR      a memory cgroup, its limit set\n"
	      "  --device NAME     the block device that is swapped to, as in "
	      "/sys/block\n"
	      "  --size-mib N      memory to fill (default: as much as the corpora "
	      "hold)\n"
	      "  --seconds N       how long swapin touches (default 5)\n"
	      "  --dirty PERCENT   how many of swapin's touches write (default 0)\n"
	      "  --seed N          of swapin's touches (default 1)\n",
	      to);
}

static uint64_t number_or_die(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (errno || end == text || *end || text[0] == '-' || value < least || value > most) {
		fprintf(stderr, "pagework: --%s %s: not a number from %" PRIu64 " to %" PRIu64 "\n",
			option, text, least, most);
		exit(2);
	}
	return value;
}

static enum mode mode_or_die(const char *name)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(mode_names); i++)
		if (strcmp(name, mode_names[i]) == 0)
			return (enum mode)i;
	fprintf(stderr, "pagework: %s: not one of fill, swapin, seqin, hold\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"cgroup", required_argument, NULL, 'c'},
		{"device", required_argument, NULL, 'b'},
		{"size-mib", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'},
		{"dirty", required_argument, NULL, 'd'},
		{"seed", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static struct work work = {.seed = 1};
	uint64_t seconds = 5;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			work.cgroup = optarg;
			break;
		case 'b':
			work.device = optarg;
			break;
		case 's':
			work.pages = number_or_die("size-mib", optarg, 1, 1ull << 24) *
				     (UZ_MIB / UZ_PAGE_SIZE);
			break;
		case 't':
			seconds = number_or_die("seconds", optarg, 1, 3600);
			break;
		case 'd':
			work.dirty_percent = (unsigned int)number_or_die("dirty", optarg, 0, 100);
			break;
		case 'r':
			work.seed = number_or_die("seed", optarg, 1, UINT64_MAX);
			break;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return 2;
		}
	}
	if (argc - optind < 2 || !work.cgroup || !work.device) {
		help(stderr);
		return 2;
	}
	enum mode mode = mode_or_die(argv[optind++]);

	if (argc - optind > (int)CORPORA_MAX) {
		fprintf(stderr, "pagework: at most %u corpora\n", CORPORA_MAX);
		return 2;
	}
	for (int i = optind; i < argc; i++)
		corpus_map(&work.corpora[work.corpora_count++], argv[i]);
	if (mode == MODE_SWAPIN)
		work.duration_ns = seconds * UZ_NSEC_PER_SEC;

	prepare(&work);
	run(&work, mode);
	return 0;
}
