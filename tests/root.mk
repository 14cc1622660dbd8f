# SPDX-License-Identifier: MIT
# Root tests: scripts that contrib/run-tests runs. memhog is the program that they swap out.
noinst_PROGRAMS += tests/memhog
tests_memhog_SOURCES = tests/memhog.c
tests_memhog_LDADD = libbase.a

EXTRA_DIST += \
	tests/root/alignment.sh \
	tests/root/alloc_count.c \
	tests/root/blockio.py \
	tests/root/config-errors.sh \
	tests/root/control-errors.sh \
	tests/root/discard.sh \
	tests/root/full-pool.sh \
	tests/root/honest-free.sh \
	tests/root/kill9.sh \
	tests/root/lib.sh \
	tests/root/limits.sh \
	tests/root/memlock.sh \
	tests/root/memory-back.sh \
	tests/root/mkswap-by-hand.sh \
	tests/root/no-alloc.sh \
	tests/root/notify.sh \
	tests/root/second-instance.sh \
	tests/root/signals.sh \
	tests/root/stop-busy.sh \
	tests/root/swap-cycles.sh \
	tests/root/swap-verify.sh \
	tests/root/unit-capabilities.sh
