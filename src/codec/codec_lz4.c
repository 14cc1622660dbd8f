// SPDX-License-Identifier: MIT
/* LZ4. Stateless but for the caller's working memory. */
#include "codec/codec_lz4.h"

#include <errno.h>
#include <lz4.h>

#include "base/units.h"

size_t codec_lz4_state_bytes(void)
{
	return (size_t)LZ4_sizeofState();
}

int codec_lz4_compress(void *state, int level, const void *page, void *out, size_t capacity)
{
	/* 0 is the library's only failure, and its only cause here is too small an
	 * output. */
	return LZ4_compress_fast_extState(state, page, out, (int)UZ_PAGE_SIZE, (int)capacity,
					  level);
}

int codec_lz4_decompress(const void *object, size_t length, void *page)
{
	int restored = LZ4_decompress_safe(object, page, (int)length, (int)UZ_PAGE_SIZE);

	return restored == (int)UZ_PAGE_SIZE ? 0 : -EIO;
}
