# SPDX-License-Identifier: MIT
# Unit tests of the pieces that face the system. They need root for most of what
# they do; test_balloon finds the helper in the build directory.
if WITH_CHECK
UZ_SYS_TESTS = tests/test_protect tests/test_swaparea tests/test_sysctl \
	tests/test_relief tests/test_balloon
check_PROGRAMS += $(UZ_SYS_TESTS)
TESTS += $(UZ_SYS_TESTS)

UZ_SYS_LIBS = libdaemon.a libbase.a $(CHECK_LIBS)

tests_test_protect_SOURCES = tests/test_protect.c
tests_test_protect_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_protect_LDADD = $(UZ_SYS_LIBS)

tests_test_swaparea_SOURCES = tests/test_swaparea.c tests/loop_swap.c tests/loop_swap.h
tests_test_swaparea_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_swaparea_LDADD = $(UZ_SYS_LIBS)

tests_test_sysctl_SOURCES = tests/test_sysctl.c
tests_test_sysctl_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_sysctl_LDADD = $(UZ_SYS_LIBS)

tests_test_relief_SOURCES = tests/test_relief.c
tests_test_relief_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_relief_LDADD = $(UZ_SYS_LIBS)

tests_test_balloon_SOURCES = tests/test_balloon.c tests/loop_swap.c tests/loop_swap.h
tests_test_balloon_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_test_balloon_LDADD = $(UZ_SYS_LIBS)
endif
