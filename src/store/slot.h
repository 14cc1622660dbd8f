/* SPDX-License-Identifier: MIT */
/*
 * Slot words: 64 bits that say everything about a slot. They are part of the
 * store's layout: another process must be able to read them.
 *
 * A same-filled page's word is one of 2^64, so it cannot have a tag beside it.
 * Therefore the tag is seven bits *within* it: a slot word whose top seven bits
 * are zero describes a page that is not same-filled; any other is the page's
 * word itself, XORed with SLOT_FILL_KEY. The key makes the words that collide
 * with the tag (1 of 128) ones that nobody fills memory with; such a page is
 * simply compressed like any other. An empty slot is 0, as fresh memory is.
 *
 *   63        57 56  55 54   52 51       40 39 36 35                      0
 *  | 0000000    | 0 | 1 | codec | length - 1 |  0   | offset / 16           |  object
 */
#ifndef UZ_STORE_SLOT_H
#define UZ_STORE_SLOT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena/arena.h"
#include "arena/sizeclass.h"
#include "codec/codec.h"

struct slot_word {
	uint64_t bits;
};

#define SLOT_TAG_SHIFT	  57u
#define SLOT_FILL_KEY	  (0x92e5ull << 48) /* top seven bits 1001001; the rest is arbitrary */
#define SLOT_OBJECT_BIT	  (1ull << 55)
#define SLOT_CODEC_SHIFT  52u
#define SLOT_CODEC_MASK	  7ull
#define SLOT_LENGTH_SHIFT 40u
#define SLOT_LENGTH_MASK  0xfffull
#define SLOT_OFFSET_MASK  ((1ull << 36) - 1)

/* Address space that offsets can express: 1 TiB. */
#define SLOT_MAX_REGION_BYTES ((SLOT_OFFSET_MASK + 1) * SIZECLASS_GRANULE)

_Static_assert(CODEC_COUNT <= SLOT_CODEC_MASK + 1, "codecs must fit their bits");

static inline bool slot_is_empty(struct slot_word word)
{
	return word.bits == 0;
}

static inline bool slot_is_fill(struct slot_word word)
{
	return word.bits >> SLOT_TAG_SHIFT != 0;
}

static inline bool slot_is_object(struct slot_word word)
{
	return !slot_is_fill(word) && (word.bits & SLOT_OBJECT_BIT) != 0;
}

/* Returns false when this fill word collides with the tag. */
static inline bool slot_from_fill(uint64_t fill, struct slot_word *ret_word)
{
	struct slot_word word = {fill ^ SLOT_FILL_KEY};

	if (!slot_is_fill(word))
		return false;
	*ret_word = word;
	return true;
}

static inline uint64_t slot_fill(struct slot_word word)
{
	return word.bits ^ SLOT_FILL_KEY;
}

static inline struct slot_word slot_from_object(struct arena_object object, enum codec_id codec,
						uint32_t length_bytes)
{
	assert(object.offset_bytes % SIZECLASS_GRANULE == 0 &&
	       object.offset_bytes < SLOT_MAX_REGION_BYTES);
	return (struct slot_word){SLOT_OBJECT_BIT | (uint64_t)codec << SLOT_CODEC_SHIFT |
				  (uint64_t)(length_bytes - 1) << SLOT_LENGTH_SHIFT |
				  object.offset_bytes / SIZECLASS_GRANULE};
}

static inline struct arena_object slot_object(struct slot_word word)
{
	return (struct arena_object){(word.bits & SLOT_OFFSET_MASK) * SIZECLASS_GRANULE};
}

static inline enum codec_id slot_codec(struct slot_word word)
{
	return (enum codec_id)(word.bits >> SLOT_CODEC_SHIFT & SLOT_CODEC_MASK);
}

/* 1..4096. */
static inline uint32_t slot_length_bytes(struct slot_word word)
{
	return (uint32_t)(word.bits >> SLOT_LENGTH_SHIFT & SLOT_LENGTH_MASK) + 1;
}

#endif
