# SPDX-License-Identifier: MIT
noinst_PROGRAMS += bench/pagedump bench/pagework

bench_pagedump_SOURCES = bench/pagedump.c bench/corpus.h
bench_pagework_SOURCES = bench/pagework.c bench/corpus.h
bench_pagework_LDADD = libbase.a

# Not in TESTS: those run in parallel and make swap devices of their own, which it refuses to run beside.
.PHONY: check-bench
check-bench: $(noinst_PROGRAMS)
	$(srcdir)/bench/selftest

EXTRA_DIST += bench/run bench/selftest \
	bench/lib/__init__.py bench/lib/cgroup.py bench/lib/corpora.py bench/lib/machine.py \
	bench/lib/peers.py bench/lib/plot.py bench/lib/report.py bench/lib/scenarios.py \
	bench/lib/system.py bench/lib/undo.py bench/lib/uzswapd.py \
	bench/workloads/Load.java bench/workloads/generate_c.py bench/workloads/load.js \
	bench/workloads/load.py
