# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	src/base/clock.c src/base/clock.h \
	src/base/cleanup.h \
	src/base/log.c src/base/log.h \
	src/base/lock.c src/base/lock.h \
	src/base/thread.c src/base/thread.h \
	src/base/sanitize.h \
	src/base/spawn.c src/base/spawn.h \
	src/base/units.h
libbase_a_CFLAGS = $(AM_CFLAGS)
