#!/bin/bash
# SPDX-License-Identifier: MIT
# Requests of every alignment and size up to 1 MiB against a plain array; what is not a multiple
# of 4096 bytes is refused by the block layer and does no harm.

. "$(dirname "$0")/lib.sh"

start_daemon <<-END
	[Device a]
	Size=128M
	MemoryLimit=128M
	SwapOn=no
END
block=$(uz_block a)

[ "$(blockdev --getss "$block")" = 4096 ] || fail "logical blocks are not 4096 bytes"
[ "$(blockdev --getpbsz "$block")" = 4096 ] || fail "physical blocks are not 4096 bytes"
[ "$(blockdev --getsize64 "$block")" = $((128 << 20)) ] || fail "the size is wrong"
[ "$(cat "/sys/block/${block##*/}/queue/discard_granularity")" = 4096 ] ||
	fail "the discard granularity is not 4096"

python3 "$(dirname "$0")/blockio.py" "$block" --requests 6000 --processes 3 --mib 96 ||
	fail "the device differs from the model"

# The last page and what is beyond.
last=$(((128 << 20) / 4096 - 1))
head -c 4096 /dev/urandom >"$uz_work/page"
dd if="$uz_work/page" of="$block" bs=4k seek=$last oflag=direct status=none || fail "last page: write"
dd if="$block" bs=4k skip=$last iflag=direct status=none | cmp - "$uz_work/page" || fail "last page: read"
! dd if="$uz_work/page" of="$block" bs=4k seek=$((last + 1)) oflag=direct status=none 2>/dev/null ||
	fail "a write beyond the end succeeded"

# 512 bytes, directly: EINVAL. Through the page cache: read, modified and written as a page.
! dd if="$uz_work/page" of="$block" bs=512 count=1 seek=9 oflag=direct status=none 2>/dev/null ||
	fail "512 bytes were written directly"
! dd if="$block" of=/dev/null bs=512 count=1 skip=9 iflag=direct status=none 2>/dev/null ||
	fail "512 bytes were read directly"
dd if="$uz_work/page" of="$block" bs=512 count=1 seek=$((last * 8 + 3)) conv=fsync,notrunc status=none ||
	fail "512 bytes through the page cache"
{
	head -c 1536 "$uz_work/page"
	head -c 512 "$uz_work/page"
	tail -c +2049 "$uz_work/page"
} >"$uz_work/wanted"
dd if="$block" bs=4k skip=$last iflag=direct status=none | cmp - "$uz_work/wanted" ||
	fail "512 bytes written through the page cache are wrong"
expect_no_errors
expect_sums
pass
