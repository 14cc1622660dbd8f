/* SPDX-License-Identifier: MIT */
/*
 * Zstandard frames without magic number, content size or checksum (2 bytes of
 * header). Contexts live in memory of fixed size that is allocated once, large
 * enough for every level at 4 KiB of input, so that a change of level allocates nothing.
 */
#ifndef UZ_CODEC_CODEC_ZSTD_H
#define UZ_CODEC_CODEC_ZSTD_H

#include <stddef.h>

#define CODEC_ZSTD_LEVEL_MIN	 (-7)
#define CODEC_ZSTD_LEVEL_MAX	 22
#define CODEC_ZSTD_LEVEL_DEFAULT 3 /* as zstd itself and zram have it */

struct codec_zstd_compressor;
struct codec_zstd_decompressor;

int codec_zstd_compressor_new(struct codec_zstd_compressor **ret_compressor);
void codec_zstd_compressor_free(struct codec_zstd_compressor *compressor);
int codec_zstd_compress(struct codec_zstd_compressor *compressor, int level, const void *page,
			void *out, size_t capacity);

int codec_zstd_decompressor_new(struct codec_zstd_decompressor **ret_decompressor);
void codec_zstd_decompressor_free(struct codec_zstd_decompressor *decompressor);
int codec_zstd_decompress(struct codec_zstd_decompressor *decompressor, const void *object,
			  size_t length, void *page);

#endif
