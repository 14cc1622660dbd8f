# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libconf.a
libconf_a_SOURCES = \
	src/conf/conf.h \
	src/conf/conf_describe.c \
	src/conf/conf_files.c src/conf/conf_files.h \
	src/conf/conf_keys.c src/conf/conf_keys.h \
	src/conf/conf_lines.c src/conf/conf_lines.h \
	src/conf/conf_load.c \
	src/conf/conf_report.c src/conf/conf_report.h \
	src/conf/conf_size.c src/conf/conf_size.h \
	src/conf/conf_text.c src/conf/conf_text.h \
	src/conf/conf_value.c src/conf/conf_value.h
libconf_a_CFLAGS = $(AM_CFLAGS) $(INIH_CFLAGS)

dist_man_MANS += man/uzswapd.conf.5
EXTRA_DIST += contrib/uzswapd.conf.example

conf_test_libs = libconf.a libcodec.a libbase.a $(INIH_LIBS) $(ZSTD_LIBS) $(LZ4_LIBS)

if WITH_CHECK
check_PROGRAMS += tests/test_conf tests/test_conf_files
TESTS += tests/test_conf tests/test_conf_files
tests_test_conf_SOURCES = tests/test_conf.c tests/conf_findings.h
tests_test_conf_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_conf_LDADD = $(conf_test_libs) $(CHECK_LIBS)
tests_test_conf_files_SOURCES = tests/test_conf_files.c tests/conf_findings.h
tests_test_conf_files_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_conf_files_LDADD = $(conf_test_libs) $(CHECK_LIBS)
endif

if WITH_FUZZERS
noinst_PROGRAMS += tests/fuzz_conf
tests_fuzz_conf_SOURCES = tests/fuzz_conf.c
tests_fuzz_conf_CFLAGS = $(AM_CFLAGS)
tests_fuzz_conf_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
tests_fuzz_conf_LDADD = $(conf_test_libs)
endif
