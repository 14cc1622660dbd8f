/* SPDX-License-Identifier: MIT */
/*
 * The slot balloon keeps the kernel's count of free swap slots honest: free
 * slots = pages that the store can still take. A device that advertises slots
 * but fails writes sends the kernel into an endless reclaim; with SwapFree true
 * it kills the program that asked for too much, as it should.
 *
 * The slots are taken by a helper process (balloon_main.c). The balloon works
 * only while the kernel allocates from our device, that is, while no area with
 * the same or a higher priority has room.
 */
#ifndef UZ_DAEMON_BALLOON_H
#define UZ_DAEMON_BALLOON_H

#include <stdint.h>
#include <sys/types.h>

struct balloon_config {
	dev_t device;		 /* the swap area's block device */
	const char *helper_path; /* of the program uzswap-balloon; copied */
	/* Pages that can still be stored: store_room_pages(). Called by the balloon's
	 * thread. */
	uint64_t (*room_pages)(void *context);
	void *context;
};

enum balloon_state {
	BALLOON_OFF,	 /* not started */
	BALLOON_NO_SWAP, /* the device is not swapped on */
	BALLOON_ACTIVE,
	BALLOON_RIVAL,	 /* would take another area's slots: holds what it has and may
			    shrink */
	BALLOON_SWAPOFF, /* somebody is swapping the device off: has given up all */
	BALLOON_RESTART, /* the helper has ended or cannot be started: waits */
	BALLOON_STUCK,	 /* pages do not go out, for example because of a memory cgroup's
			    limit */
};

/* One line for `status`; a constant. */
const char *balloon_state_text(enum balloon_state state);

struct balloon_stats {
	enum balloon_state state;
	uint64_t held_pages;   /* slots taken */
	uint64_t target_pages; /* slots that it is after */
	uint64_t restarts; /* times that the helper ended unasked and was started again */
	int in_cgroup;	   /* the helper could not leave its memory cgroup */
	int oom_victim;	   /* its oom_score_adj is not -1000 */
};

struct balloon;

/*
 * Starts the thread "uzswap:balloon", which starts the helper when the device is
 * swapped on and there is something to hold. Returns 0 or -errno. The process
 * must not reap children that are not its own (no waitpid(-1)).
 */
int balloon_start(struct balloon **ret_balloon, const struct balloon_config *config);

/*
 * Gives up all slots and ends helper and thread; when it returns they are free.
 * Call it before swapoff, which would otherwise read the balloon into memory.
 * NULL is fine.
 */
void balloon_stop(struct balloon *balloon);

/* Any thread. NULL is fine: BALLOON_OFF. */
void balloon_stats(const struct balloon *balloon, struct balloon_stats *ret_stats);

/* What the size of the balloon is decided from. */
struct balloon_view {
	uint64_t size_pages; /* slots of the device */
	uint64_t free_pages; /* slots that the kernel takes for free */
	uint64_t held_pages; /* slots that the balloon has */
	uint64_t room_pages; /* pages that the store can take */
};

/*
 * The size that the balloon should have next. Wanted is free + held - room.
 * Inflates at once; deflates
 * by half the excess, and only when that is more than 3 % of the device, or at
 * once when the kernel sees less than half of what there is. Pure.
 */
uint64_t balloon_target(const struct balloon_view *view);

#endif
