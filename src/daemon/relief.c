// SPDX-License-Identifier: MIT
/*
 * The relief valve.
 *
 * Threads: "uzswap:relief" looks at free memory, decides and gives; it owns
 * all of the state. "uzswap:rearm" does one thing: it populates the chunk that
 * it was told to. They are two because populating memory may block in the
 * kernel's allocator, just when the first one has to be there to give.
 *
 * Invariant: after relief_start the giving thread allocates nothing, faults on
 * nothing, and waits for no lock that a thread waiting for memory can hold.
 *  - The reserve is a few locked mappings of memfds, and giving is a hole
 *    punched in one: that goes by way of the file and never takes the mmap
 *    lock, which another thread of the daemon may hold while it waits for
 *    memory (madvise(MADV_DONTNEED) and munlock do take it, and splitting a
 *    locked mapping even allocates).
 *  - Kernels may make a page fault exclude hole punching in the same file, so
 *    the reserve is split into segments, a file each, and nothing is given
 *    from the segment that is being populated.
 *  - /proc/zoneinfo is kept open: the kernel then keeps its buffer too.
 *  - Small pages only (MADV_NOHUGEPAGE): a hole in a huge page frees nothing
 *    until the page is split.
 *
 * How often it looks. What a late look costs is a stall as long as the sleep,
 * not a hang: the circle in the allocator is broken whenever the look comes.
 * So the interval balances stalls against waking an idle machine:
 *  - it is half the time in which allocations at PACE would use up all that is
 *    free above min: 2 ms at 16 MiB, 250 ms from 2 GiB on;
 *  - where free memory does not fall, it doubles from look to look up to
 *    QUIET_MAX_NS, since a page cache keeps free memory close to the
 *    watermarks for ever on a machine that does nothing.
 */
#include "daemon/relief.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

#define CHUNK_PAGES (RELIEF_CHUNK_BYTES / UZ_PAGE_SIZE)
#define SEGMENTS    8

#define LOOK_MIN_NS  (2 * UZ_NSEC_PER_MSEC)
#define LOOK_MAX_NS  (250 * UZ_NSEC_PER_MSEC)
#define QUIET_MAX_NS (100 * UZ_NSEC_PER_MSEC)
/* Below the high watermark kswapd is at work, or would be if it could: stay close. */
#define SHORT_MAX_NS (10 * UZ_NSEC_PER_MSEC)

/* Half of the 1 µs in which two CPUs, faulting 2 GB/s each, take a page. */
#define PACE_NS_PER_PAGE 500

/* Memory is back: above high for this long, and by more than arming takes at once. */
#define CALM_NS		(1000 * UZ_NSEC_PER_MSEC)
#define ARM_MARGIN	(4 * CHUNK_PAGES)
#define ARM_INTERVAL_NS (20 * UZ_NSEC_PER_MSEC)

/* Reading /proc/zoneinfo takes 45 us on 2 CPUs, and grows with CPUs and nodes: 2 % at
 * most. */
#define FULL_LOOK_SHARE 50

/* ---- /proc/zoneinfo ---- */

static void close_node(struct relief_parser *parser)
{
	/* Kernel allocations may use all zones up to Normal; Movable and Device are not
	 * theirs. */
	unsigned top =
		parser->normal > 0 ? (unsigned)parser->normal - 1 : parser->zones - 1;

	for (unsigned i = 0; i < parser->zones && i <= top; i++) {
		const struct relief_zone *zone = &parser->zone[i];
		uint64_t held_back = zone->held_back_pages[top];

		if (zone->high_pages == 0)
			continue;
		parser->zones_seen++;
		if (held_back == 0) {
			parser->sum.free_pages += zone->free_pages;
			parser->sum.min_pages += zone->min_pages;
			parser->sum.high_pages += zone->high_pages;
		} else if (zone->free_pages > held_back + zone->min_pages) {
			/* A zone kept for others counts with what it can spare, if
			 * anything. */
			parser->sum.free_pages +=
				zone->free_pages - held_back - zone->min_pages;
		}
	}
	parser->zones = 0;
	parser->normal = 0;
	parser->in_zone = false;
}

static void parse_protection(struct relief_zone *zone, const char *list)
{
	for (unsigned i = 0; i < RELIEF_NODE_ZONES && *list; i++) {
		char *end;

		zone->held_back_pages[i] = strtoull(list, &end, 10);
		if (end == list)
			return;
		list = end + strspn(end, ", )");
	}
}

static void parse_line(struct relief_parser *parser, const char *line)
{
	unsigned node;
	char name[16];

	if (sscanf(line, "Node %u, zone %15s", &node, name) == 2) {
		if (parser->zones == 0 || node != parser->node)
			close_node(parser);
		parser->node = node;
		parser->in_zone = parser->zones < RELIEF_NODE_ZONES;
		if (!parser->in_zone)
			return;
		memset(&parser->zone[parser->zones++], 0, sizeof(parser->zone[0]));
		if (strcmp(name, "Normal") == 0)
			parser->normal = (int)parser->zones;
		return;
	}
	if (!parser->in_zone)
		return;
	struct relief_zone *zone = &parser->zone[parser->zones - 1];

	line += strspn(line, " ");
	if (sscanf(line, "pages free %" SCNu64, &zone->free_pages) == 1 ||
	    sscanf(line, "min %" SCNu64, &zone->min_pages) == 1 ||
	    sscanf(line, "high %" SCNu64, &zone->high_pages) == 1)
		return;
	if (strncmp(line, "protection: (", 13) == 0) {
		parse_protection(zone, line + 13);
		/* The per-CPU lists follow, with a "high" of their own. */
		parser->in_zone = false;
	}
}

void relief_parser_feed(struct relief_parser *parser, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '\n') {
			/* The lines that matter are short. */
			if (parser->line_used < sizeof(parser->line) - 1)
				parser->line[parser->line_used++] = text[i];
			continue;
		}
		parser->line[parser->line_used] = '\0';
		parser->line_used = 0;
		parse_line(parser, parser->line);
	}
}

int relief_parser_finish(struct relief_parser *parser, struct relief_view *ret_view)
{
	if (parser->zones > 0)
		close_node(parser);
	if (parser->zones_seen == 0)
		return -EINVAL;
	*ret_view = parser->sum;
	return 0;
}

/* ---- decisions ---- */

static uint64_t next_sleep_ns(const struct relief_state *state,
			      const struct relief_view *view)
{
	uint64_t distance = view->free_pages > view->min_pages
				    ? view->free_pages - view->min_pages
				    : 0;
	uint64_t sleep_ns = distance > LOOK_MAX_NS / PACE_NS_PER_PAGE
				    ? LOOK_MAX_NS
				    : distance * PACE_NS_PER_PAGE;
	uint64_t limit_ns =
		view->free_pages > view->high_pages ? QUIET_MAX_NS : SHORT_MAX_NS;
	bool quiet = view->free_pages + distance / 16 >= state->last_free_pages;

	if (quiet && 2 * state->last_sleep_ns > sleep_ns)
		sleep_ns = UZ_MAX(sleep_ns, UZ_MIN(2 * state->last_sleep_ns, limit_ns));
	return UZ_MAX(sleep_ns, LOOK_MIN_NS);
}

static bool may_arm(const struct relief_state *state, uint64_t now_ns)
{
	return !state->arming && state->armed_chunks < state->chunks &&
	       now_ns - state->calm_since_ns >= CALM_NS &&
	       now_ns - state->last_arm_ns >= ARM_INTERVAL_NS;
}

struct relief_decision relief_decide(struct relief_state *state,
				     const struct relief_view *view, uint64_t now_ns)
{
	struct relief_decision decision = {.action = RELIEF_NOTHING};
	bool is_short = view->free_pages <= view->min_pages + CHUNK_PAGES;
	bool is_calm = view->free_pages > view->high_pages + ARM_MARGIN;

	decision.sleep_ns = is_short ? LOOK_MIN_NS : next_sleep_ns(state, view);
	if (!is_calm)
		state->calm_since_ns = 0;
	else if (state->calm_since_ns == 0)
		state->calm_since_ns = now_ns;

	if (is_short && state->armed_chunks > 0) {
		decision.action = RELIEF_GIVE;
	} else if (is_calm && may_arm(state, now_ns)) {
		decision.action = RELIEF_ARM;
		state->last_arm_ns = now_ns;
	}
	if (is_calm && state->armed_chunks < state->chunks)
		decision.sleep_ns = UZ_MIN(decision.sleep_ns, ARM_INTERVAL_NS);
	state->last_free_pages = view->free_pages;
	state->last_sleep_ns = decision.sleep_ns;
	return decision;
}

/* ---- the reserve ---- */

struct segment {
	int fd;
	char *base;
	unsigned armed; /* chunks [0, armed) are populated */
};

enum arm_result { ARM_RUNNING, ARM_DONE, ARM_FAILED };

struct relief {
	/* Of the giving thread alone. */
	struct relief_state state;
	struct segment segments[SEGMENTS];
	unsigned segment_chunks;
	int arming_segment;
	int zoneinfo_fd;
	uint64_t (*free_pages)(void);
	struct relief_view full_view; /* of the last full look */
	uint64_t free_at_full;	      /* what free_pages() said then */
	uint64_t next_full_ns;
	bool was_empty;

	/*
	 * The order to populate. The giving thread writes arm_at and result, then
	 * posts; the other one reads after its wait, and answers with a release
	 * store to result, which the giver's acquire load pairs with.
	 */
	sem_t order;
	char *arm_at;
	_Atomic int result;
	_Atomic bool ending;

	int stop_fd; /* readable: the giving thread ends */
	struct thread giver, armer;

	/* Written by the giving thread (relaxed), read by anybody. */
	_Atomic uint64_t armed_bytes, given_bytes, gives, emptied, looks;
};

static int punch(const struct segment *segment, unsigned chunk)
{
	return fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)chunk * RELIEF_CHUNK_BYTES, RELIEF_CHUNK_BYTES);
}

static int populate(char *start, size_t bytes)
{
	if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	for (size_t offset = 0; offset < bytes; offset += UZ_PAGE_SIZE)
		*(volatile char *)(start + offset) = 0;
	return 0;
}

static int new_memfd(void)
{
	int fd = memfd_create("uzswap-relief", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	/* EINVAL: a kernel without the flag */
	return fd < 0 && errno == EINVAL ? memfd_create("uzswap-relief", MFD_CLOEXEC)
					 : fd;
}

static int segment_open(struct segment *segment, size_t bytes)
{
	segment->fd = new_memfd();
	if (segment->fd < 0 || ftruncate(segment->fd, (off_t)bytes) < 0)
		return -errno;
	void *base =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	segment->base = base;
	/* Refused only where there are no huge pages to be afraid of. */
	madvise(base, bytes, MADV_NOHUGEPAGE);
	if (mlock(base, bytes) < 0)
		return -errno;
	return populate(base, bytes);
}

/* ---- threads ---- */

static uint64_t sysinfo_free_pages(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return 0;
	return (uint64_t)info.freeram * info.mem_unit / UZ_PAGE_SIZE;
}

static int read_zoneinfo(int fd, struct relief_view *ret_view)
{
	struct relief_parser parser = {0};
	char text[4096];
	off_t offset = 0;
	ssize_t got;

	while ((got = pread(fd, text, sizeof(text), offset)) > 0) {
		relief_parser_feed(&parser, text, (size_t)got);
		offset += got;
	}
	return got < 0 ? -errno : relief_parser_finish(&parser, ret_view);
}

/*
 * A full look reads the zones. In between, where that is too dear, the change of
 * the machine's free memory since then stands for the change in the zones.
 */
static struct relief_view look(struct relief *relief, uint64_t now_ns)
{
	struct relief_view view = relief->full_view;
	uint64_t free_now = relief->free_pages();

	atomic_fetch_add_explicit(&relief->looks, 1, memory_order_relaxed);
	if (now_ns < relief->next_full_ns) {
		if (free_now >= relief->free_at_full)
			view.free_pages += free_now - relief->free_at_full;
		else
			view.free_pages -=
				UZ_MIN(view.free_pages, relief->free_at_full - free_now);
		return view;
	}
	if (read_zoneinfo(relief->zoneinfo_fd, &view) == 0) {
		relief->full_view = view;
		relief->free_at_full = free_now;
	}
	relief->next_full_ns = now_ns + (clock_now_ns() - now_ns) * FULL_LOOK_SHARE;
	return view;
}

static void count_armed(struct relief *relief)
{
	atomic_store_explicit(&relief->armed_bytes,
			      relief->state.armed_chunks * RELIEF_CHUNK_BYTES,
			      memory_order_relaxed);
}

/* Gives one chunk, of the fullest segment that is not being populated. */
static void give(struct relief *relief)
{
	struct segment *fullest = NULL;

	for (int i = 0; i < SEGMENTS; i++) {
		struct segment *segment = &relief->segments[i];

		if (relief->state.arming && i == relief->arming_segment)
			continue;
		if (segment->armed > 0 && (!fullest || segment->armed > fullest->armed))
			fullest = segment;
	}
	if (!fullest || punch(fullest, fullest->armed - 1) < 0)
		return;
	fullest->armed--;
	relief->state.armed_chunks--;
	count_armed(relief);
	atomic_fetch_add_explicit(&relief->given_bytes, RELIEF_CHUNK_BYTES,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&relief->gives, 1, memory_order_relaxed);
}

/* Orders one chunk, for the emptiest segment. */
static void order_chunk(struct relief *relief)
{
	int emptiest = 0;

	for (int i = 1; i < SEGMENTS; i++)
		if (relief->segments[i].armed < relief->segments[emptiest].armed)
			emptiest = i;
	struct segment *segment = &relief->segments[emptiest];

	relief->state.arming = true;
	relief->arming_segment = emptiest;
	relief->arm_at = segment->base + (size_t)segment->armed * RELIEF_CHUNK_BYTES;
	atomic_store_explicit(&relief->result, ARM_RUNNING, memory_order_relaxed);
	sem_post(&relief->order);
}

/* Takes note of an order that has been carried out. */
static void collect_chunk(struct relief *relief)
{
	if (!relief->state.arming)
		return;
	int result = atomic_load_explicit(&relief->result, memory_order_acquire);

	if (result == ARM_RUNNING)
		return;
	relief->state.arming = false;
	if (result == ARM_FAILED) {
		relief->state.calm_since_ns = 0;
		return;
	}
	relief->segments[relief->arming_segment].armed++;
	relief->state.armed_chunks++;
	count_armed(relief);
}

static void note_empty(struct relief *relief, const struct relief_view *view)
{
	bool empty =
		relief->state.armed_chunks == 0 && view->free_pages <= view->min_pages;

	if (empty && !relief->was_empty)
		atomic_fetch_add_explicit(&relief->emptied, 1, memory_order_relaxed);
	relief->was_empty = empty;
}

static void run_giver(void *argument)
{
	struct relief *relief = argument;
	struct pollfd stop = {.fd = relief->stop_fd, .events = POLLIN};

	for (;;) {
		uint64_t now_ns = clock_now_ns();

		collect_chunk(relief);
		struct relief_view view = look(relief, now_ns);
		struct relief_decision decision =
			relief_decide(&relief->state, &view, now_ns);

		note_empty(relief, &view);
		if (decision.action == RELIEF_GIVE)
			give(relief);
		else if (decision.action == RELIEF_ARM)
			order_chunk(relief);
		struct timespec sleep = {.tv_nsec = (long)decision.sleep_ns};

		if (ppoll(&stop, 1, &sleep, NULL) > 0)
			return;
	}
}

static void run_armer(void *argument)
{
	struct relief *relief = argument;

	for (;;) {
		while (sem_wait(&relief->order) < 0)
			;
		if (atomic_load_explicit(&relief->ending, memory_order_acquire))
			return;
		int err = populate(relief->arm_at, RELIEF_CHUNK_BYTES);

		atomic_store_explicit(&relief->result, err < 0 ? ARM_FAILED : ARM_DONE,
				      memory_order_release);
	}
}

static int open_all(struct relief *relief, const struct relief_config *config)
{
	uint64_t wanted = config->reserve_bytes ? config->reserve_bytes
						: RELIEF_RESERVE_DEFAULT_BYTES;

	relief->segment_chunks = (unsigned)uz_div_round_up(
		wanted, (uint64_t)SEGMENTS * RELIEF_CHUNK_BYTES);
	relief->state.chunks = (uint64_t)relief->segment_chunks * SEGMENTS;
	relief->free_pages = config->free_pages ? config->free_pages : sysinfo_free_pages;
	relief->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (relief->stop_fd < 0)
		return -errno;
	relief->zoneinfo_fd =
		open(config->zoneinfo_path ? config->zoneinfo_path : "/proc/zoneinfo",
		     O_RDONLY | O_CLOEXEC);
	if (relief->zoneinfo_fd < 0)
		return -errno;
	int err = read_zoneinfo(relief->zoneinfo_fd, &relief->full_view);

	for (int i = 0; i < SEGMENTS && err == 0; i++) {
		err = segment_open(&relief->segments[i],
				   (size_t)relief->segment_chunks * RELIEF_CHUNK_BYTES);
		relief->segments[i].armed = relief->segment_chunks;
	}
	if (err < 0)
		return err;
	relief->state.armed_chunks = relief->state.chunks;
	count_armed(relief);
	return 0;
}

int relief_start(struct relief **ret_relief, const struct relief_config *config)
{
	struct relief *relief = calloc(1, sizeof(*relief));

	if (!relief)
		return -ENOMEM;
	for (int i = 0; i < SEGMENTS; i++)
		relief->segments[i].fd = -1;
	relief->zoneinfo_fd = -1;
	relief->stop_fd = -1;
	sem_init(&relief->order, 0, 0);
	int err = open_all(relief, config);

	if (err == 0)
		err = thread_start(&relief->armer, "uzswap:rearm", run_armer, relief, -1,
				   0);
	if (err == 0)
		err = thread_start(&relief->giver, "uzswap:relief", run_giver, relief, -1,
				   -20);
	if (err < 0) {
		relief_stop(relief);
		return err;
	}
	*ret_relief = relief;
	return 0;
}

void relief_stop(struct relief *relief)
{
	const uint64_t one = 1;

	if (!relief)
		return;
	/* The populating thread first: should it be waiting for memory, the other one
	 * still gives. */
	atomic_store_explicit(&relief->ending, true, memory_order_release);
	sem_post(&relief->order);
	thread_join(&relief->armer);
	if (relief->giver.started &&
	    write(relief->stop_fd, &one, sizeof(one)) == sizeof(one))
		thread_join(&relief->giver);
	for (int i = 0; i < SEGMENTS; i++) {
		struct segment *segment = &relief->segments[i];

		if (segment->base)
			munmap(segment->base,
			       (size_t)relief->segment_chunks * RELIEF_CHUNK_BYTES);
		if (segment->fd >= 0)
			close(segment->fd);
	}
	if (relief->zoneinfo_fd >= 0)
		close(relief->zoneinfo_fd);
	if (relief->stop_fd >= 0)
		close(relief->stop_fd);
	sem_destroy(&relief->order);
	free(relief);
}

void relief_stats(const struct relief *relief, struct relief_stats *ret_stats)
{
	/* Constant after start. */
	ret_stats->reserve_bytes = relief->state.chunks * RELIEF_CHUNK_BYTES;
	ret_stats->armed_bytes =
		atomic_load_explicit(&relief->armed_bytes, memory_order_relaxed);
	ret_stats->given_bytes =
		atomic_load_explicit(&relief->given_bytes, memory_order_relaxed);
	ret_stats->gives = atomic_load_explicit(&relief->gives, memory_order_relaxed);
	ret_stats->emptied = atomic_load_explicit(&relief->emptied, memory_order_relaxed);
	ret_stats->looks = atomic_load_explicit(&relief->looks, memory_order_relaxed);
}
