/* SPDX-License-Identifier: MIT */
/*
 * Hardening: what keeps the daemon from waiting for memory that only it can
 * free, from being killed for the memory that it holds for others, and from
 * leaving other people's pages in a core file.
 *
 * Only locked memory is a condition for running (protect_check_lockable). Each
 * other protection that cannot be had is one warning and a line in `status`.
 */
#ifndef UZ_DAEMON_PROTECT_H
#define UZ_DAEMON_PROTECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protection {
	const char *name; /* "io-flusher", "oom-score", "no-core-dump", "heap",
			     "locked-memory" */
	bool missing;
	char reason[160]; /* why it is missing and what would help; "" when it is there */
};

/*
 * Everything that holds for the whole process: RLIMIT_MEMLOCK raised as far as
 * allowed, PR_SET_IO_FLUSHER for the calling thread and all that it creates,
 * oom_score_adj -1000, no core dumps, a heap that neither shrinks nor splits
 * into arenas. Call once, first thing in main, before any thread exists.
 * Writes one warning for each protection that is missing.
 */
void protect_apply(void);

/*
 * The table behind `status`; constant in length, lives for ever. "locked-memory"
 * counts as missing until protect_lock_all() has run. Written during start-up
 * only, so that any thread created afterwards may read it.
 */
size_t protect_list(const struct protection **ret_list);

/* What /proc/self/oom_score_adj says, not what was asked for. Returns 0 or -errno. */
int protect_oom_score_adj(int *ret_adj);

/*
 * Asks the kernel itself whether `needed_bytes` more can be locked, without
 * touching a page. Returns 0, or -EPERM with one line of text in `message` that
 * names the bytes needed and the bytes available.
 */
int protect_check_lockable(uint64_t needed_bytes, char *message, size_t message_bytes);

/*
 * The two modes of locking. Neither uses MCL_CURRENT, which would turn *every*
 * existing mapping into a fully populated one, the store included.
 *
 * protect_lock_on_fault(): mlockall(MCL_FUTURE | MCL_ONFAULT). Mappings made
 * from now on are locked page by page as they are touched; existing ones stay
 * as they are. Map the store in this mode: its pages count as used only when
 * they are, and none of them can ever be swapped.
 *
 * protect_lock_all(): mlockall(MCL_FUTURE), so that mappings made from now on
 * are populated and locked at once, and then the same for every private mapping
 * that exists already: code, data, heap, stacks, also those made in the mode
 * before. Shared mappings (the store) keep the mode that they were made in.
 * A private mapping above PROTECT_POPULATE_MAX_BYTES is taken for a sparse one
 * and locked on fault. May be called again after the daemon has grown.
 *
 * Both return 0 or -errno; on failure "locked-memory" says why. By the main
 * thread, while no other thread maps or unmaps memory.
 */
int protect_lock_on_fault(void);
int protect_lock_all(void);

#define PROTECT_POPULATE_MAX_BYTES (64ull * 1024 * 1024)

/*
 * PR_SET_IO_FLUSHER survives fork and exec. In a helper program it does harm:
 * swapoff and the balloon would loop in the allocator, where any other process
 * reclaims memory or is killed. So the thread that starts one drops the flag
 * for the moment: pass what _pause returns to _resume. No effect without the flag.
 */
bool protect_io_flusher_pause(void);
void protect_io_flusher_resume(bool paused);

#endif
