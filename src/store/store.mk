# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	src/store/slot.h \
	src/store/store.c src/store/store.h \
	src/store/store_internal.h \
	src/store/store_memory.c \
	src/store/store_stats.c
libstore_a_CFLAGS = $(AM_CFLAGS) $(URCU_CFLAGS)

# What a program that uses the store links.
UZ_STORE_LIBS = libstore.a libarena.a libcodec.a libstats.a libbase.a $(ZSTD_LIBS) $(LZ4_LIBS) $(URCU_LIBS)
