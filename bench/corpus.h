/* SPDX-License-Identifier: MIT */
/*
 * A corpus file: anonymous pages of a real process, as pagedump wrote them.
 * One header page, then counts.pages pages of contents, nothing else; so a mapping
 * of the file has every page at a page boundary. Native byte order: a corpus
 * is made where it is used.
 */
#ifndef UZ_BENCH_CORPUS_H
#define UZ_BENCH_CORPUS_H

#include <stdint.h>

#define CORPUS_MAGIC   "uzcorpus"
#define CORPUS_VERSION 1u

struct corpus_counts {
	uint64_t pages; /* contents that follow the header */
	/* What the process had; the four below and `pages` add up to seen_pages. */
	uint64_t seen_pages;	    /* private, anonymous, readable, writable and populated */
	uint64_t zero_pages;	    /* dropped: the kernel itself keeps them off the device */
	uint64_t same_filled_pages; /* dropped unless --keep-same: one repeated 8-byte
				       word */
	uint64_t unreadable_pages;  /* dropped: device memory and the like */
	uint64_t thinned_pages;	    /* left out, evenly, to stay within --max-mib */
};

struct corpus_header {
	char magic[8]; /* CORPUS_MAGIC without its NUL */
	uint32_t version;
	uint32_t page_size_bytes;
	struct corpus_counts counts;
	char name[64]; /* NUL-terminated */
};

#endif
