// SPDX-License-Identifier: MIT
/* The codecs behind one face. Contexts belong to one thread; nothing here is shared. */
#include "codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "codec/codec_lz4.h"
#include "codec/codec_zstd.h"

static const struct codec_info infos[] = {
	{CODEC_LZ4, "lz4", CODEC_LZ4_LEVEL_MIN, CODEC_LZ4_LEVEL_MAX, CODEC_LZ4_LEVEL_DEFAULT,
	 "acceleration"},
	{CODEC_ZSTD, "zstd", CODEC_ZSTD_LEVEL_MIN, CODEC_ZSTD_LEVEL_MAX, CODEC_ZSTD_LEVEL_DEFAULT,
	 "compression level"},
};

struct codec_compressor {
	void *lz4_state;
	struct codec_zstd_compressor *zstd;
};

struct codec_decompressor {
	struct codec_zstd_decompressor *zstd;
};

const struct codec_info *codec_info_by_name(const char *name)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(infos); i++)
		if (strcmp(infos[i].name, name) == 0)
			return &infos[i];
	return NULL;
}

const struct codec_info *codec_info_by_id(enum codec_id id)
{
	for (size_t i = 0; i < UZ_ARRAY_SIZE(infos); i++)
		if (infos[i].id == id)
			return &infos[i];
	return NULL;
}

const char *codec_names(void)
{
	return "lz4, zstd";
}

int codec_compressor_new(struct codec_compressor **ret_compressor)
{
	struct codec_compressor *compressor = calloc(1, sizeof(*compressor));

	if (!compressor)
		return -ENOMEM;
	compressor->lz4_state =
		aligned_alloc(UZ_CACHE_LINE, uz_round_up(codec_lz4_state_bytes(), UZ_CACHE_LINE));
	if (!compressor->lz4_state || codec_zstd_compressor_new(&compressor->zstd) < 0) {
		codec_compressor_free(compressor);
		return -ENOMEM;
	}
	*ret_compressor = compressor;
	return 0;
}

void codec_compressor_free(struct codec_compressor *compressor)
{
	if (!compressor)
		return;
	codec_zstd_compressor_free(compressor->zstd);
	free(compressor->lz4_state);
	free(compressor);
}

int codec_compress(struct codec_compressor *compressor, enum codec_id id, int level,
		   const void *page, void *out, size_t capacity)
{
	switch (id) {
	case CODEC_LZ4:
		return codec_lz4_compress(compressor->lz4_state, level, page, out, capacity);
	case CODEC_ZSTD:
		return codec_zstd_compress(compressor->zstd, level, page, out, capacity);
	case CODEC_RAW:
	case CODEC_COUNT:
		break;
	}
	return -EIO;
}

int codec_decompressor_new(struct codec_decompressor **ret_decompressor)
{
	struct codec_decompressor *decompressor = calloc(1, sizeof(*decompressor));

	if (!decompressor)
		return -ENOMEM;
	if (codec_zstd_decompressor_new(&decompressor->zstd) < 0) {
		codec_decompressor_free(decompressor);
		return -ENOMEM;
	}
	*ret_decompressor = decompressor;
	return 0;
}

void codec_decompressor_free(struct codec_decompressor *decompressor)
{
	if (!decompressor)
		return;
	codec_zstd_decompressor_free(decompressor->zstd);
	free(decompressor);
}

int codec_decompress(struct codec_decompressor *decompressor, enum codec_id id, const void *object,
		     size_t length, void *page)
{
	switch (id) {
	case CODEC_RAW:
		if (length != UZ_PAGE_SIZE)
			return -EIO;
		memcpy(page, object, UZ_PAGE_SIZE);
		return 0;
	case CODEC_LZ4:
		return codec_lz4_decompress(object, length, page);
	case CODEC_ZSTD:
		return codec_zstd_decompress(decompressor->zstd, object, length, page);
	case CODEC_COUNT:
		break;
	}
	return -EIO;
}
