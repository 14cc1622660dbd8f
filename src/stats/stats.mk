# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libstats.a
libstats_a_SOURCES = \
	src/stats/histogram.c src/stats/histogram.h \
	src/stats/stats.c src/stats/stats.h
libstats_a_CFLAGS = $(AM_CFLAGS)
