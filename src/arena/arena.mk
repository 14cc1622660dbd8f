# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libarena.a
libarena_a_SOURCES = \
	src/arena/arena.c src/arena/arena.h \
	src/arena/region.c src/arena/region.h \
	src/arena/runs.c src/arena/runs.h \
	src/arena/sizeclass.c src/arena/sizeclass.h
libarena_a_CFLAGS = $(AM_CFLAGS)
