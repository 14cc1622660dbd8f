// SPDX-License-Identifier: MIT
/* Log-linear histogram. See the header for who writes what. */
#include "stats/histogram.h"

static unsigned bucket_of(uint64_t value)
{
	if (value < (1u << HISTOGRAM_SUB_BITS))
		return (unsigned)value;
	if (value >> HISTOGRAM_MAX_BITS)
		return HISTOGRAM_BUCKETS - 1;
	unsigned top = 63u - (unsigned)__builtin_clzll(value);
	unsigned shift = top - HISTOGRAM_SUB_BITS;
	unsigned sub = (unsigned)(value >> shift) & ((1u << HISTOGRAM_SUB_BITS) - 1);

	return ((shift + 1) << HISTOGRAM_SUB_BITS) + sub;
}

/* Highest value that falls into the bucket. */
static uint64_t bucket_top(unsigned bucket)
{
	if (bucket < (1u << HISTOGRAM_SUB_BITS))
		return bucket;
	unsigned shift = (bucket >> HISTOGRAM_SUB_BITS) - 1;
	uint64_t sub = bucket & ((1u << HISTOGRAM_SUB_BITS) - 1);

	return (((1ull << HISTOGRAM_SUB_BITS) + sub + 1) << shift) - 1;
}

/* One writer, so load and store do not race; relaxed because each number stands alone. */
static void bump(_Atomic uint64_t *counter, uint64_t by)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
			      memory_order_relaxed);
}

void histogram_record(struct histogram *histogram, uint64_t value_ns)
{
	bump(&histogram->count[bucket_of(value_ns)], 1);
	bump(&histogram->sum_ns, value_ns);
	if (value_ns > atomic_load_explicit(&histogram->max_ns, memory_order_relaxed))
		atomic_store_explicit(&histogram->max_ns, value_ns, memory_order_relaxed);
}

void histogram_add_to(const struct histogram *histogram, struct histogram_snapshot *snapshot)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t count = atomic_load_explicit(&histogram->count[i], memory_order_relaxed);

		snapshot->count[i] += count;
		snapshot->total += count;
	}
	snapshot->sum_ns += atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
	uint64_t max = atomic_load_explicit(&histogram->max_ns, memory_order_relaxed);

	if (max > snapshot->max_ns)
		snapshot->max_ns = max;
}

uint64_t histogram_quantile_ns(const struct histogram_snapshot *snapshot, unsigned permyriad)
{
	if (snapshot->total == 0)
		return 0;
	uint64_t rank = (snapshot->total * permyriad + 9999) / 10000;
	uint64_t seen = 0;

	if (rank == 0)
		rank = 1;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += snapshot->count[i];
		if (seen >= rank) {
			uint64_t top = bucket_top(i);

			return top < snapshot->max_ns ? top : snapshot->max_ns;
		}
	}
	return snapshot->max_ns;
}

uint64_t histogram_count_below(const struct histogram_snapshot *snapshot, uint64_t bound_ns)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && bucket_top(i) <= bound_ns; i++)
		seen += snapshot->count[i];
	return seen;
}
