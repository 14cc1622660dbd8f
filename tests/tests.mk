# SPDX-License-Identifier: MIT
# Unit tests (Check). Root tests are scripts, run by contrib/run-tests.
if WITH_CHECK
check_PROGRAMS += tests/test_base tests/test_codec tests/test_arena tests/test_store
TESTS += tests/test_base tests/test_codec tests/test_arena tests/test_store


tests_test_base_SOURCES = tests/test_base.c
tests_test_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_base_LDADD = libstats.a libbase.a $(CHECK_LIBS)

tests_test_codec_SOURCES = tests/test_codec.c
tests_test_codec_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_codec_LDADD = libcodec.a libbase.a $(ZSTD_LIBS) $(LZ4_LIBS) $(CHECK_LIBS)

tests_test_arena_SOURCES = tests/test_arena.c
tests_test_arena_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_arena_LDADD = libarena.a libbase.a $(CHECK_LIBS)

tests_test_store_SOURCES = tests/test_store.c tests/pages.h
tests_test_store_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_store_LDADD = $(UZ_STORE_LIBS) $(CHECK_LIBS)
endif
