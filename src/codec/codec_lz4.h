/* SPDX-License-Identifier: MIT */
/* LZ4 blocks without a frame. The level is the library's acceleration factor. */
#ifndef UZ_CODEC_CODEC_LZ4_H
#define UZ_CODEC_CODEC_LZ4_H

#include <stddef.h>

#define CODEC_LZ4_LEVEL_MIN	1
#define CODEC_LZ4_LEVEL_MAX	65537 /* LZ4_ACCELERATION_MAX in lz4.c */
#define CODEC_LZ4_LEVEL_DEFAULT 1

size_t codec_lz4_state_bytes(void);

/* `state`: codec_lz4_state_bytes() bytes, 8-byte aligned. Results as codec_compress. */
int codec_lz4_compress(void *state, int level, const void *page, void *out, size_t capacity);

/* Needs no context: it runs on the caller's stack. Results as codec_decompress. */
int codec_lz4_decompress(const void *object, size_t length, void *page);

#endif
