/* SPDX-License-Identifier: MIT */
/*
 * The one table of statistics. A new number is one line here and one line where
 * it is filled in; the socket, uzswapctl, Prometheus and the manual page follow.
 *
 * Names follow Prometheus: base units (bytes, seconds), `_total` for counters.
 * The metric is exported as "uzswap_" NAME with the label device="NAME".
 */
#ifndef UZ_STATS_STATS_H
#define UZ_STATS_STATS_H

#include <stdint.h>

enum stats_type {
	STATS_COUNTER, /* only grows while the daemon lives */
	STATS_GAUGE,
};

enum stats_unit {
	STATS_UNIT_NONE,  /* a count of events or requests */
	STATS_UNIT_PAGES, /* of 4096 bytes */
	STATS_UNIT_BYTES,
	STATS_UNIT_NS, /* exported to Prometheus in seconds; NAME then ends in _seconds
			  there */
};

/* X(identifier, name, type, unit, help) */
#define STATS_FOR_EACH(X)                                                                      \
	X(SIZE, "size_bytes", GAUGE, BYTES, "Size of the block device.")                       \
	X(PAGES_EMPTY, "empty_pages", GAUGE, PAGES, "Slots that hold no page.")                \
	X(PAGES_SAME, "same_filled_pages", GAUGE, PAGES,                                       \
	  "Pages of one repeated 8-byte word, which cost their slot word only.")               \
	X(PAGES_COMPRESSED, "compressed_pages", GAUGE, PAGES, "Pages kept compressed.")        \
	X(PAGES_INCOMPRESSIBLE, "incompressible_pages", GAUGE, PAGES,                          \
	  "Pages that did not compress and are kept as they are.")                             \
	X(STORED, "stored_bytes", GAUGE, BYTES,                                                \
	  "Uncompressed size of all pages held: same-filled, compressed and "                  \
	  "incompressible.")                                                                   \
	X(COMPRESSED, "compressed_bytes", GAUGE, BYTES,                                        \
	  "Length of all objects: compressed and incompressible pages, without "               \
	  "overhead.")                                                                         \
	X(MEMORY_USED, "memory_used_bytes", GAUGE, BYTES,                                      \
	  "Memory that the store occupies in all: objects, slot table, overhead and "          \
	  "reserve.")                                                                          \
	X(MEMORY_PEAK, "memory_peak_bytes", GAUGE, BYTES, "Highest memory_used_bytes so far.") \
	X(MEMORY_LIMIT, "memory_limit_bytes", GAUGE, BYTES, "MemoryLimit= in force.")          \
	X(MEMORY_RESERVE, "memory_reserve_bytes", GAUGE, BYTES,                                \
	  "Part of memory_used_bytes that is populated and free, ready for new pages.")        \
	X(MEMORY_TABLE, "memory_table_bytes", GAUGE, BYTES,                                    \
	  "Part of memory_used_bytes taken by the slot table and bookkeeping.")                \
	X(ROOM, "room_pages", GAUGE, PAGES,                                                    \
	  "Pages that can still be stored at the measured ratio, with the safety "             \
	  "margin.")                                                                           \
	X(BALLOON, "balloon_pages", GAUGE, PAGES,                                              \
	  "Slots that the slot balloon holds so that the kernel sees honest free "             \
	  "space.")                                                                            \
	X(READS, "reads_total", COUNTER, NONE, "Read requests.")                               \
	X(WRITES, "writes_total", COUNTER, NONE, "Write requests.")                            \
	X(DISCARDS, "discards_total", COUNTER, NONE, "Discard requests.")                      \
	X(FLUSHES, "flushes_total", COUNTER, NONE, "Flush requests.")                          \
	X(PAGES_READ, "read_pages_total", COUNTER, PAGES, "Pages read.")                       \
	X(PAGES_WRITTEN, "written_pages_total", COUNTER, PAGES, "Pages written.")              \
	X(PAGES_DISCARDED, "discarded_pages_total", COUNTER, PAGES,                            \
	  "Pages that a discard request freed.")                                               \
	X(READ_ERRORS, "read_errors_total", COUNTER, NONE,                                     \
	  "Read requests answered with an error.")                                             \
	X(WRITE_ERRORS, "write_errors_total", COUNTER, NONE,                                   \
	  "Write requests answered with an error other than no space.")                        \
	X(WRITE_NO_SPACE, "write_no_space_total", COUNTER, NONE,                               \
	  "Write requests answered with ENOSPC because the pool was full.")                    \
	X(STORE_WAITS, "store_waits_total", COUNTER, NONE,                                     \
	  "Times that a write waited for memory to be populated or freed.")                    \
	X(STORE_WAIT_TIME, "store_wait", COUNTER, NS, "Time that writes waited for memory.")   \
	X(STORE_WAIT_LONGEST, "store_wait_longest", GAUGE, NS, "Longest such wait.")           \
	X(SWAP_USED, "swap_used_bytes", GAUGE, BYTES,                                          \
	  "What /proc/swaps shows as used, balloon included; 0 when not swapped on.")

enum stats_id {
#define STATS_ENUM(id, name, type, unit, help) STATS_##id,
	STATS_FOR_EACH (STATS_ENUM)
#undef STATS_ENUM
		STATS_COUNT,
};

struct stats_metric {
	const char *name;
	enum stats_type type;
	enum stats_unit unit;
	const char *help;
};

extern const struct stats_metric stats_table[STATS_COUNT];

/* A consistent set of values: the pages' states add up to the slots, nothing is negative.
 */
struct stats_values {
	uint64_t value[STATS_COUNT];
};

#endif
