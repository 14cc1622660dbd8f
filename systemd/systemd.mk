# SPDX-License-Identifier: MIT
systemdsystemunit_DATA = systemd/uzswapd.service
EXTRA_DIST += systemd/uzswapd.service.in
CLEANFILES += systemd/uzswapd.service

systemd/uzswapd.service: $(srcdir)/systemd/uzswapd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	sed 's|@sbindir[@]|$(sbindir)|g' $(srcdir)/systemd/uzswapd.service.in >$@.new && mv $@.new $@
