/* SPDX-License-Identifier: MIT */
/* Pages for tests, made from a seed: the same seed gives the same page. */
#ifndef UZ_TESTS_PAGES_H
#define UZ_TESTS_PAGES_H

#include <stdint.h>
#include <string.h>

#include "base/units.h"

static inline uint64_t test_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	x ^= x >> 33;
	return x;
}

/*
 * Of eight seeds: one is all zero, one is filled with a random word, one is noise, one is
 * a single byte away from same-filled, the others compress to various lengths.
 */
static inline void test_page_fill(void *page, uint64_t seed)
{
	uint64_t *words = page;
	uint64_t kind = test_mix(seed) % 8;
	unsigned noise;

	switch (kind) {
	case 0:
		memset(page, 0, UZ_PAGE_SIZE);
		return;
	case 1:
	case 2:
		for (unsigned i = 0; i < 512; i++)
			words[i] = test_mix(seed + 1);
		if (kind == 2)
			((unsigned char *)page)[test_mix(seed + 2) % UZ_PAGE_SIZE] ^= 1;
		return;
	case 3:
		noise = 512;
		break;
	default:
		noise = (unsigned)(test_mix(seed + 3) % 512);
		break;
	}
	for (unsigned i = 0; i < 512; i++)
		words[i] = i < noise ? test_mix(seed * 512 + i) : 0x0123456789abcdefull + i % 4;
}

#endif
