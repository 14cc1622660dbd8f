/* SPDX-License-Identifier: MIT */
/*
 * Latency histogram: log-linear buckets, eight to a power of two, so that any
 * quantile is right to within 12.5 %. One writer a histogram, any readers.
 */
#ifndef UZ_STATS_HISTOGRAM_H
#define UZ_STATS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 3u
#define HISTOGRAM_MAX_BITS 40u /* 2^40 ns is 18 minutes; longer ones count in the last bucket */
#define HISTOGRAM_BUCKETS  ((HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	/* Each written by the owning thread alone (relaxed load + store), read by
	 * anybody. */
	_Atomic uint64_t count[HISTOGRAM_BUCKETS];
	_Atomic uint64_t sum_ns;
	_Atomic uint64_t max_ns;
};

/* A plain sum of several histograms. */
struct histogram_snapshot {
	uint64_t count[HISTOGRAM_BUCKETS];
	uint64_t total; /* number of values */
	uint64_t sum_ns;
	uint64_t max_ns;
};

/* The owning thread only. */
void histogram_record(struct histogram *histogram, uint64_t value_ns);

/* Adds what `histogram` holds now. */
void histogram_add_to(const struct histogram *histogram, struct histogram_snapshot *snapshot);

/*
 * The value below which `permyriad` of 10000 values lie (5000: median, 9900:
 * p99), as its bucket's upper bound but never above max_ns; 0 when empty.
 */
uint64_t histogram_quantile_ns(const struct histogram_snapshot *snapshot, unsigned permyriad);

/* Number of values that are at most `bound_ns`, to the bucket's accuracy (for Prometheus
 * buckets). */
uint64_t histogram_count_below(const struct histogram_snapshot *snapshot, uint64_t bound_ns);

#endif
