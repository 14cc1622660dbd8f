/* SPDX-License-Identifier: MIT */
/*
 * Codecs: one page in, at most one page out. Compress and decompress contexts
 * are different objects: the first is large and belongs to a compressing
 * thread, the second is small (or nothing, for lz4) and belongs to a reading
 * thread, so that neither ever waits for the other. All of a context's memory
 * is allocated by its _new function; the calls on pages allocate nothing.
 */
#ifndef UZ_CODEC_CODEC_H
#define UZ_CODEC_CODEC_H

#include <stddef.h>
#include <stdint.h>

/*
 * The numbers stand in slot words, so they never change meaning. RAW is not a
 * codec that a device can choose; it tags an incompressible page kept as it is.
 */
enum codec_id {
	CODEC_RAW = 0,
	CODEC_LZ4 = 1,
	CODEC_ZSTD = 2,
	CODEC_COUNT,
};

/* What a device's Codec= and Level= may say. */
struct codec_info {
	enum codec_id id;
	const char *name; /* as in the configuration */
	int level_min, level_max, level_default;
	const char *level_meaning; /* for messages: "acceleration", "compression level" */
};

/* NULL for an unknown name or id, and for RAW. */
const struct codec_info *codec_info_by_name(const char *name);
const struct codec_info *codec_info_by_id(enum codec_id id);

/* "lz4, zstd": for messages that name the allowed values. */
const char *codec_names(void);

struct codec_compressor;
struct codec_decompressor;

/*
 * A context that compresses with any codec. Owned by one thread at a time.
 * Returns 0, or -ENOMEM.
 */
int codec_compressor_new(struct codec_compressor **ret_compressor);
void codec_compressor_free(struct codec_compressor *compressor);

/*
 * Compresses one page of UZ_PAGE_SIZE bytes to `out`, which has room for
 * `capacity` bytes. Returns the length (> 0), 0 when the result would be longer
 * than `capacity` (incompressible), or -EIO when the library fails otherwise.
 * `level` must lie within the codec's range.
 */
int codec_compress(struct codec_compressor *compressor, enum codec_id id, int level,
		   const void *page, void *out, size_t capacity);

/* A context that decompresses any codec. Owned by one thread. Returns 0 or -ENOMEM. */
int codec_decompressor_new(struct codec_decompressor **ret_decompressor);
void codec_decompressor_free(struct codec_decompressor *decompressor);

/*
 * Restores one page of UZ_PAGE_SIZE bytes from `length` bytes at `object`.
 * Returns 0, or -EIO when the object does not decode to exactly one page;
 * `page` then holds undefined bytes, which the caller must not hand out.
 */
int codec_decompress(struct codec_decompressor *decompressor, enum codec_id id, const void *object,
		     size_t length, void *page);

#endif
