/* SPDX-License-Identifier: MIT */
/*
 * What the daemon and its balloon helper say to each other, over a socketpair of
 * SOCK_SEQPACKET that is the helper's standard input: one order, one report,
 * in turn. An order is worked on for a bounded time, so a report may name fewer
 * pages than were ordered; the daemon then repeats the order.
 */
#ifndef UZ_DAEMON_BALLOON_PROTOCOL_H
#define UZ_DAEMON_BALLOON_PROTOCOL_H

#include <stdint.h>

struct balloon_order {
	uint64_t target_pages;
};

struct balloon_report {
	uint64_t held_pages; /* pages of the balloon that are out, each in a swap slot */
	int32_t error;	     /* 0, or why pages did not go out: -ENOSPC, -ENOMEM ... */
	uint32_t flags;
};

/* The helper could not leave its memory cgroup, whose limit may keep pages from going
 * out. */
#define BALLOON_IN_CGROUP 1u
/* oom_score_adj is not -1000: the OOM killer may take the helper for what it holds. */
#define BALLOON_OOM_VICTIM 2u
/* Pages were back in memory that nobody had called back: a swapoff; all has been given
 * up. */
#define BALLOON_OUSTED 4u

#endif
