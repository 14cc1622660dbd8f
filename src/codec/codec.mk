# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libcodec.a
libcodec_a_SOURCES = \
	src/codec/codec.c src/codec/codec.h \
	src/codec/codec_lz4.c src/codec/codec_lz4.h \
	src/codec/codec_zstd.c src/codec/codec_zstd.h \
	src/codec/fill.h
libcodec_a_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS) $(LZ4_CFLAGS)
