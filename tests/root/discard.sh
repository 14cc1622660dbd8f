#!/bin/bash
# SPDX-License-Identifier: MIT
# Discards free at once, exactly what they say, and fast.

. "$(dirname "$0")/lib.sh"

mib=$((1 << 20))

start_daemon <<-END
	[Device d]
	Size=128M
	MemoryLimit=160M
	SwapOn=no
END
block=$(uz_block d)

stored() {
	uz_figure stored_bytes
}

expect_stored() { # BYTES WHAT
	local now
	now=$(stored)
	[ "$now" = "$1" ] || fail "$2: $now bytes are stored, not $1"
}

# 100 MiB of noise: each page costs its size, so that what is freed shows.
head -c $((100 * mib)) /dev/urandom >"$uz_work/noise"
dd if="$uz_work/noise" of="$block" bs=1M oflag=direct status=none || fail "filling"
expect_stored $((100 * mib)) "after filling"
full=$(uz_figure memory_used_bytes)

expect_zeros() { # FIRST-PAGE PAGES
	dd if="$block" bs=4k skip="$1" count="$2" iflag=direct status=none |
		cmp -n $(($2 * 4096)) - /dev/zero || fail "pages $1+$2 are not zero after their discard"
}

expect_noise() { # FIRST-PAGE PAGES
	cmp -n $(($2 * 4096)) <(dd if="$block" bs=4k skip="$1" count="$2" iflag=direct status=none) \
		<(dd if="$uz_work/noise" bs=4k skip="$1" count="$2" status=none) ||
		fail "pages $1+$2 changed by a discard beside them"
}

blkdiscard -o $((1000 * 4096)) -l 4096 "$block" || fail "discard of a page"
expect_stored $((100 * mib - 4096)) "after the discard of a page"
expect_zeros 1000 1
expect_noise 999 1
expect_noise 1001 1

blkdiscard -o $((10 * mib)) -l $((2 * mib)) "$block" || fail "discard of 2 MiB"
expect_stored $((98 * mib - 4096)) "after the discard of 2 MiB"
expect_zeros 2560 512
expect_noise 2559 1
expect_noise 3072 1

# An odd range, and one with nothing in it.
blkdiscard -o $((20 * mib + 12288)) -l $((3 * mib + 4096)) "$block" || fail "discard of an odd range"
expect_stored $((95 * mib - 8192)) "after the discard of an odd range"
expect_zeros $((20 * 256 + 3)) $((3 * 256 + 1))
expect_noise $((20 * 256 + 2)) 1
expect_noise $((23 * 256 + 4)) 1
blkdiscard -o $((110 * mib)) -l $((4 * mib)) "$block" || fail "discard of empty slots"
expect_stored $((95 * mib - 8192)) "after the discard of empty slots"

# Writing again what was discarded.
dd if="$uz_work/noise" of="$block" bs=4k skip=1000 seek=1000 count=1 oflag=direct status=none
expect_noise 1000 1
expect_sums

start_us=${EPOCHREALTIME/./}
blkdiscard "$block" || fail "discard of the whole device"
took_ms=$(((${EPOCHREALTIME/./} - start_us) / 1000))
note "the whole device, 95 MiB of it used: $took_ms ms"
[ $took_ms -lt 2000 ] || fail "the discard of the whole device took $took_ms ms"
expect_stored 0 "after the discard of the whole device"
expect_zeros 0 32768

# Memory goes back to the kernel in the background.
gone() {
	[ "$(uz_figure memory_used_bytes)" -lt $((16 * mib)) ]
}
wait_for 10 gone || fail "$(uz_figure memory_used_bytes) of $full bytes of memory are still used"
expect_no_errors
pass
