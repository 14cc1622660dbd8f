/* SPDX-License-Identifier: MIT */
/*
 * The relief valve. When a whole machine runs out of memory, the kernel's part
 * of a swap device in user space (the loop driver, FUSE, the block layer) needs
 * small allocations to write pages out, and it may neither swap nor kill for
 * them: they loop until memory comes, and memory comes only from writing pages
 * out. The valve breaks that circle. It holds a locked reserve and gives a
 * little of it back whenever free memory is at the min watermark, and takes it
 * back when there is memory again.
 */
#ifndef UZ_DAEMON_RELIEF_H
#define UZ_DAEMON_RELIEF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELIEF_RESERVE_DEFAULT_BYTES (32ull * 1024 * 1024)
#define RELIEF_CHUNK_BYTES	     (256u * 1024)

/*
 * Free memory as an ordinary kernel allocation sees it, in pages: summed over
 * the zones that it may use, each without what is held back there for others;
 * the watermarks include the kernel's temporary boost.
 */
struct relief_view {
	uint64_t free_pages;
	uint64_t min_pages;
	uint64_t high_pages;
};

/*
 * Reads the text of /proc/zoneinfo, in pieces of any size. Start with a zeroed
 * struct, feed, then finish. Allocates nothing.
 */
#define RELIEF_NODE_ZONES 8

struct relief_zone {
	uint64_t free_pages, min_pages, high_pages;
	uint64_t held_back_pages[RELIEF_NODE_ZONES]; /* by the zone that an allocation may
							reach up to */
};

struct relief_parser {
	char line[256];
	size_t line_used;
	unsigned node;
	bool in_zone;	/* between "pages free" and "protection" of a zone */
	int normal;	/* index + 1 of the node's zone "Normal" */
	unsigned zones; /* of this node, so far; those above Normal are not counted in */
	struct relief_zone zone[RELIEF_NODE_ZONES];
	unsigned zones_seen; /* in all nodes */
	struct relief_view sum;
};

void relief_parser_feed(struct relief_parser *parser, const char *text, size_t length);

/* Returns 0, or -EINVAL when no zone with watermarks was seen. */
int relief_parser_finish(struct relief_parser *parser, struct relief_view *ret_view);

/* What a look leads to. */
enum relief_action {
	RELIEF_NOTHING,
	RELIEF_GIVE, /* give one chunk back now */
	RELIEF_ARM,  /* have one chunk populated again */
};

struct relief_decision {
	enum relief_action action;
	uint64_t sleep_ns; /* until the next look */
};

/* What the decisions remember. Zeroed at start; the counts are the caller's to keep
 * right. */
struct relief_state {
	uint64_t chunks;       /* of the whole reserve */
	uint64_t armed_chunks; /* populated and locked */
	bool arming;	       /* a chunk is being populated */
	uint64_t last_free_pages;
	uint64_t last_sleep_ns;
	uint64_t calm_since_ns; /* free memory has been above high since; 0: it is not */
	uint64_t last_arm_ns;
};

/*
 * The valve's rules, as a pure function of what was seen. See relief.c for how
 * the interval is chosen.
 */
struct relief_decision relief_decide(struct relief_state *state,
				     const struct relief_view *view, uint64_t now_ns);

struct relief_config {
	uint64_t reserve_bytes; /* rounded up to 2 MiB; 0: RELIEF_RESERVE_DEFAULT_BYTES */
	const char *zoneinfo_path; /* NULL: /proc/zoneinfo */
	/* Free pages of the machine, cheaply: NULL for sysinfo(2). */
	uint64_t (*free_pages)(void);
};

struct relief_stats {
	uint64_t reserve_bytes; /* when fully armed */
	uint64_t armed_bytes;	/* ready to be given now */
	uint64_t given_bytes;	/* in all */
	uint64_t gives;		/* chunks given */
	uint64_t emptied; /* times that memory was short and nothing was left to give */
	uint64_t looks;
};

struct relief;

/*
 * Populates and locks the reserve and starts two threads: "uzswap:relief", which
 * looks and gives, and "uzswap:rearm", which populates. Call it in the mode of
 * protect_lock_all(). Returns 0; -EPERM or -ENOMEM when the reserve cannot be
 * locked; or -errno.
 */
int relief_start(struct relief **ret_relief, const struct relief_config *config);

/* Ends the threads and frees the reserve. NULL is fine. */
void relief_stop(struct relief *relief);

/* Any thread. */
void relief_stats(const struct relief *relief, struct relief_stats *ret_stats);

#endif
