/* SPDX-License-Identifier: MIT */
/* Same-filled pages: one 8-byte word repeated over the whole page. */
#ifndef UZ_CODEC_FILL_H
#define UZ_CODEC_FILL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/units.h"

/*
 * Tells whether `page` (8-byte aligned) is same-filled, and with what. Ordinary
 * pages differ within the first words or in the last one, so that is looked at first.
 */
static inline bool fill_detect(const void *page, uint64_t *ret_word)
{
	const uint64_t *words = page;
	const unsigned count = UZ_PAGE_SIZE / sizeof(uint64_t);
	const uint64_t word = words[0];

	if (words[count - 1] != word)
		return false;
	for (unsigned i = 1; i < count - 1; i++)
		if (words[i] != word)
			return false;
	*ret_word = word;
	return true;
}

static inline void fill_page(void *page, uint64_t word)
{
	uint64_t *words = page;

	if (word == 0) {
		memset(page, 0, UZ_PAGE_SIZE);
		return;
	}
	for (unsigned i = 0; i < UZ_PAGE_SIZE / sizeof(uint64_t); i++)
		words[i] = word;
}

#endif
