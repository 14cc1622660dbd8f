// SPDX-License-Identifier: MIT
/* Time. Callable from every thread; no state. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#include "base/units.h"

uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UZ_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

void clock_sleep_ns(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / UZ_NSEC_PER_SEC),
		.tv_nsec = (long)(ns % UZ_NSEC_PER_SEC),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}
