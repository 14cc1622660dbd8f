# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libctl.a
libctl_a_SOURCES = \
	src/ctl/ctl.h \
	src/ctl/ctl_format.c src/ctl/ctl_format.h \
	src/ctl/ctl_interface.c src/ctl/ctl_interface.h \
	src/ctl/ctl_json.h \
	src/ctl/ctl_methods.c src/ctl/ctl_methods.h \
	src/ctl/ctl_server.c \
	src/ctl/ctl_socket.c src/ctl/ctl_socket.h \
	src/ctl/ctl_worker.c src/ctl/ctl_worker.h \
	src/ctl/varlink.c src/ctl/varlink.h
libctl_a_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)

UZ_CTL_LIBS = libctl.a libstats.a libbase.a $(JSON_LIBS)

bin_PROGRAMS += uzswapctl
uzswapctl_SOURCES = \
	src/ctl/uzswapctl.c src/ctl/uzswapctl.h \
	src/ctl/uzswapctl_client.c src/ctl/uzswapctl_client.h \
	src/ctl/uzswapctl_list.c src/ctl/uzswapctl_list.h \
	src/ctl/uzswapctl_print.c src/ctl/uzswapctl_print.h \
	src/ctl/uzswapctl_status.c
uzswapctl_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
uzswapctl_LDADD = $(UZ_CTL_LIBS)

dist_man_MANS += man/uzswapctl.8

UZ_CTL_FAKE = tests/ctl_fake.c tests/ctl_fake.h

if WITH_CHECK
check_PROGRAMS += tests/test_ctl
TESTS += tests/test_ctl
tests_test_ctl_SOURCES = \
	$(UZ_CTL_FAKE) \
	tests/prometheus.c tests/prometheus.h \
	tests/test_ctl.c tests/test_ctl.h \
	tests/test_ctl_clients.c \
	tests/test_ctl_format.c \
	tests/test_ctl_server.c \
	tests/test_ctl_tool.c
tests_test_ctl_CPPFLAGS = $(AM_CPPFLAGS) -DUZ_TOP_SRCDIR='"$(abs_top_srcdir)"'
tests_test_ctl_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS) $(CHECK_CFLAGS)
tests_test_ctl_LDADD = $(UZ_CTL_LIBS) $(CHECK_LIBS)
endif

if WITH_FUZZERS
noinst_PROGRAMS += tests/fuzz_ctl
tests_fuzz_ctl_SOURCES = tests/fuzz_ctl.c $(UZ_CTL_FAKE)
tests_fuzz_ctl_CFLAGS = $(AM_CFLAGS) $(JSON_CFLAGS)
tests_fuzz_ctl_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_ctl_LDADD = $(UZ_CTL_LIBS)
endif
