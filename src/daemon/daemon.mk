# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libdaemon.a
libdaemon_a_SOURCES = \
	src/daemon/balloon.c src/daemon/balloon.h src/daemon/balloon_protocol.h \
	src/daemon/protect.c src/daemon/protect.h \
	src/daemon/relief.c src/daemon/relief.h \
	src/daemon/swaparea.c src/daemon/swaparea.h \
	src/daemon/sysctl.c src/daemon/sysctl.h
libdaemon_a_CFLAGS = $(AM_CFLAGS)

sbin_PROGRAMS += uzswapd
uzswapd_SOURCES = \
	src/daemon/daemon.c src/daemon/daemon.h \
	src/daemon/daemon_ctl.c \
	src/daemon/device.c src/daemon/device.h \
	src/daemon/main.c \
	src/daemon/notify.c src/daemon/notify.h \
	src/daemon/runtime.c src/daemon/runtime.h
uzswapd_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
uzswapd_LDADD = libdaemon.a libctl.a libconf.a libfront.a $(UZ_STORE_LIBS) \
	$(FUSE_LIBS) $(JSON_LIBS) $(INIH_LIBS) $(SYSTEMD_LIBS)

pkglibexec_PROGRAMS += uzswap-balloon
uzswap_balloon_SOURCES = src/daemon/balloon_main.c src/daemon/balloon_protocol.h src/base/units.h
uzswap_balloon_CFLAGS = $(AM_CFLAGS)
