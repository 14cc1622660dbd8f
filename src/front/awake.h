/* SPDX-License-Identifier: MIT */
/*
 * Keeps CPUs from halting between requests that follow closely. Waking a halted
 * CPU takes longer than serving a read (12 µs against 3 in a virtual machine),
 * and a swap-in wakes two. One thread a CPU, in the scheduling class
 * SCHED_IDLE, spins while reads keep coming: it runs only when nothing else
 * wants the CPU, and the scheduler takes its CPU for an idle one.
 */
#ifndef UZ_FRONT_AWAKE_H
#define UZ_FRONT_AWAKE_H

#include <stdbool.h>
#include <stdint.h>

struct awake;

/*
 * Starts the threads "uzswap:i0"… , one for each CPU that the process may use.
 * `linger_ns`: how long after the last request they spin. With more CPUs than
 * AWAKE_MAX_CPUS nothing is started: there is always an idle one nearby, and
 * spinning on all would be a waste. Returns 0, also then, or -errno.
 */
int awake_new(struct awake **ret_awake, uint64_t linger_ns);

#define AWAKE_MAX_CPUS 8

/* NULL is fine, for the next too. */
void awake_free(struct awake *awake);

/* A read arrived at `now_ns`. By one thread at a time. Allocates nothing, never waits. */
void awake_request(struct awake *awake, uint64_t now_ns);

#endif
