/* SPDX-License-Identifier: MIT */
/*
 * The store's memory: one shared mapping that is never swapped. Pages in it are
 * populated and given back on purpose, never by a fault on the I/O path.
 */
#ifndef UZ_ARENA_REGION_H
#define UZ_ARENA_REGION_H

#include <stddef.h>
#include <stdint.h>

enum region_pinning {
	REGION_NOSWAP_TMPFS, /* file on a private tmpfs mounted noswap (Linux >= 6.4):
			      * unswappable in any state, also when no process maps it */
	REGION_LOCKED_MEMFD, /* memfd, locked as it is populated: unswappable while this
				process lives */
};

struct region {
	int fd;
	unsigned char *base;
	uint64_t size_bytes; /* of address space; memory is populated piecemeal */
	enum region_pinning pinning;
};

/* `size_bytes`: a multiple of the page size. Returns 0 or -errno; nothing is populated
 * yet. */
int region_init(struct region *region, uint64_t size_bytes);
void region_done(struct region *region);

/*
 * Allocates the pages of [offset, offset + length) and maps them, zeroed if
 * they were not there. May sleep in reclaim: background threads only.
 * Returns 0, or -ENOMEM/-EFAULT from madvise(2).
 */
int region_populate(struct region *region, uint64_t offset_bytes, uint64_t length_bytes);

/* Gives the pages back to the kernel; reading them afterwards would fault in zeros. */
int region_punch(struct region *region, uint64_t offset_bytes, uint64_t length_bytes);

/* What the kernel has allocated for it, page tables not included. */
uint64_t region_resident_bytes(const struct region *region);

const char *region_pinning_name(enum region_pinning pinning);

#endif
