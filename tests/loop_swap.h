/* SPDX-License-Identifier: MIT */
/*
 * For tests: a loop device over a file on disk that can be swapped on. Only
 * tests that run as root get one. Tests that turn swap on exclude each other,
 * since all of them see the machine's one set of swap areas, and take a low
 * priority, so that they do not attract the pages of the rest of the machine.
 */
#ifndef UZ_TESTS_LOOP_SWAP_H
#define UZ_TESTS_LOOP_SWAP_H

#include <stdint.h>
#include <sys/types.h>

#define LOOP_SWAP_PRIORITY 1

struct loop_swap {
	char path[32]; /* "/dev/loop3"; empty when there is none */
	dev_t device;
	int loop_fd;
	int lock_fd;
};

/*
 * Makes one of `size_bytes`, with a swap header written by swaparea_header_write.
 * Returns 0, or -errno with a line on why not on standard output.
 */
int loop_swap_new(struct loop_swap *loop, uint64_t size_bytes);

/* For a second one, by a test that has one already and with it the lock. */
int loop_swap_new_unlocked(struct loop_swap *loop, uint64_t size_bytes);

/*
 * Waits until no other area of the machine competes with this one, which is
 * swapped on, for pages; half a minute at most. Returns 1, or 0 with a line on
 * standard output.
 */
int loop_swap_alone(const struct loop_swap *loop);

/* Swaps it off, if need be, and removes the device. */
void loop_swap_free(struct loop_swap *loop);

#endif
