/* SPDX-License-Identifier: MIT */
/* Time: CLOCK_MONOTONIC in nanoseconds. Decisions that hang on time take it as a parameter. */
#ifndef UZ_BASE_CLOCK_H
#define UZ_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. A vDSO call: no system call on the I/O path. */
uint64_t clock_now_ns(void);

/* Sleeps for `ns` nanoseconds; signals do not shorten it. */
void clock_sleep_ns(uint64_t ns);

#endif
