/* SPDX-License-Identifier: MIT */
/* Time: CLOCK_MONOTONIC in nanoseconds, and a clock that tests can turn by hand. */
#ifndef UZ_BASE_CLOCK_H
#define UZ_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. A vDSO call: no system call on the I/O path. */
uint64_t clock_now_ns(void);

/* Sleeps for `ns` nanoseconds; signals do not shorten it. */
void clock_sleep_ns(uint64_t ns);

/* A source of time for code whose decisions depend on it (ageing, rate limits). */
struct uz_clock {
	uint64_t (*now_ns)(void *context);
	void *context;
};

/* The real clock. */
extern const struct uz_clock uz_clock_monotonic;

static inline uint64_t uz_clock_now_ns(const struct uz_clock *clock)
{
	return clock->now_ns(clock->context);
}

#endif
