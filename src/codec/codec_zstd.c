// SPDX-License-Identifier: MIT
/*
 * Zstandard with static contexts. The static-linking-only API is part of every
 * libzstd.so since 1.3; only its signatures may change between versions, which
 * the compiler would notice.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "codec/codec_zstd.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/units.h"

struct codec_zstd_compressor {
	ZSTD_CCtx *context; /* inside workspace */
	int level;	    /* that the context is set to */
	void *workspace;
};

struct codec_zstd_decompressor {
	ZSTD_DCtx *context; /* inside workspace */
	void *workspace;
};

static size_t workspace_bytes(void)
{
	size_t largest = 0;

	for (int level = CODEC_ZSTD_LEVEL_MIN; level <= CODEC_ZSTD_LEVEL_MAX; level++) {
		ZSTD_compressionParameters params = ZSTD_getCParams(level, UZ_PAGE_SIZE, 0);
		size_t bytes = ZSTD_estimateCCtxSize_usingCParams(params);

		if (bytes > largest)
			largest = bytes;
	}
	return largest;
}

static int set_level(struct codec_zstd_compressor *compressor, int level)
{
	size_t err = ZSTD_CCtx_setParameter(compressor->context, ZSTD_c_compressionLevel, level);

	if (ZSTD_isError(err))
		return -EIO;
	compressor->level = level;
	return 0;
}

static int set_frame_format(ZSTD_CCtx *context)
{
	size_t err = ZSTD_CCtx_setParameter(context, ZSTD_c_format, ZSTD_f_zstd1_magicless);

	if (!ZSTD_isError(err))
		err = ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
	if (!ZSTD_isError(err))
		err = ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0);
	if (!ZSTD_isError(err))
		err = ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0);
	return ZSTD_isError(err) ? -EIO : 0;
}

int codec_zstd_compressor_new(struct codec_zstd_compressor **ret_compressor)
{
	struct codec_zstd_compressor *compressor = calloc(1, sizeof(*compressor));
	size_t bytes = workspace_bytes();

	if (!compressor)
		return -ENOMEM;
	compressor->workspace = aligned_alloc(UZ_CACHE_LINE, uz_round_up(bytes, UZ_CACHE_LINE));
	if (compressor->workspace)
		compressor->context = ZSTD_initStaticCCtx(compressor->workspace, bytes);
	if (!compressor->context || set_frame_format(compressor->context) < 0 ||
	    set_level(compressor, CODEC_ZSTD_LEVEL_DEFAULT) < 0) {
		codec_zstd_compressor_free(compressor);
		return -ENOMEM;
	}
	*ret_compressor = compressor;
	return 0;
}

void codec_zstd_compressor_free(struct codec_zstd_compressor *compressor)
{
	if (!compressor)
		return;
	free(compressor->workspace); /* a static context is never freed by itself */
	free(compressor);
}

int codec_zstd_compress(struct codec_zstd_compressor *compressor, int level, const void *page,
			void *out, size_t capacity)
{
	if (compressor->level != level && set_level(compressor, level) < 0)
		return -EIO;
	size_t length = ZSTD_compress2(compressor->context, out, capacity, page, UZ_PAGE_SIZE);

	if (!ZSTD_isError(length))
		return (int)length;
	return ZSTD_getErrorCode(length) == ZSTD_error_dstSize_tooSmall ? 0 : -EIO;
}

int codec_zstd_decompressor_new(struct codec_zstd_decompressor **ret_decompressor)
{
	struct codec_zstd_decompressor *decompressor = calloc(1, sizeof(*decompressor));
	size_t bytes = ZSTD_estimateDCtxSize();

	if (!decompressor)
		return -ENOMEM;
	decompressor->workspace = aligned_alloc(UZ_CACHE_LINE, uz_round_up(bytes, UZ_CACHE_LINE));
	if (decompressor->workspace)
		decompressor->context = ZSTD_initStaticDCtx(decompressor->workspace, bytes);
	if (!decompressor->context ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(decompressor->context, ZSTD_d_format,
						ZSTD_f_zstd1_magicless))) {
		codec_zstd_decompressor_free(decompressor);
		return -ENOMEM;
	}
	*ret_decompressor = decompressor;
	return 0;
}

void codec_zstd_decompressor_free(struct codec_zstd_decompressor *decompressor)
{
	if (!decompressor)
		return;
	free(decompressor->workspace);
	free(decompressor);
}

int codec_zstd_decompress(struct codec_zstd_decompressor *decompressor, const void *object,
			  size_t length, void *page)
{
	size_t restored =
		ZSTD_decompressDCtx(decompressor->context, page, UZ_PAGE_SIZE, object, length);

	return restored == UZ_PAGE_SIZE ? 0 : -EIO;
}
