/* SPDX-License-Identifier: MIT */
/* Sizes and small arithmetic that every layer shares. */
#ifndef UZ_BASE_UNITS_H
#define UZ_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define UZ_PAGE_SHIFT 12u
#define UZ_PAGE_SIZE                                                                   \
	4096u /* a slot's size; the kernel's page size where we run (checked at start) \
	       */

#define UZ_KIB 1024ull
#define UZ_MIB (1024ull * UZ_KIB)
#define UZ_GIB (1024ull * UZ_MIB)

#define UZ_NSEC_PER_USEC 1000ull
#define UZ_NSEC_PER_MSEC 1000000ull
#define UZ_NSEC_PER_SEC	 1000000000ull

#define UZ_CACHE_LINE	 64
#define UZ_CACHE_ALIGNED __attribute__((aligned(UZ_CACHE_LINE)))

#define UZ_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define UZ_MIN(a, b)	 ((a) < (b) ? (a) : (b))
#define UZ_MAX(a, b)	 ((a) > (b) ? (a) : (b))

static inline uint64_t uz_div_round_up(uint64_t n, uint64_t d)
{
	return (n + d - 1) / d;
}

static inline uint64_t uz_round_up(uint64_t n, uint64_t multiple)
{
	return uz_div_round_up(n, multiple) * multiple;
}

#endif
