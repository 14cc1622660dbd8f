# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libfront.a
libfront_a_SOURCES = \
	src/front/front.h \
	src/front/front_fuse.c \
	src/front/front_inproc.c src/front/front_inproc.h \
	src/front/fuse_receive.c src/front/fuse_receive.h \
	src/front/loopdev.c src/front/loopdev.h \
	src/front/workers.c src/front/workers.h
libfront_a_CFLAGS = $(AM_CFLAGS) $(FUSE_CFLAGS)
