#!/bin/bash
# SPDX-License-Identifier: MIT
# A pool that was full and is emptied ends within 16 MiB of where it started, as the kernel counts.

. "$(dirname "$0")/lib.sh"

mib=$((1 << 20))

# What the process' memory is, whatever it says itself.
resident() {
	awk '$1 == "VmRSS:" { print $2 * 1024 }' "/proc/$uz_pid/status"
}

start_daemon <<-END
	[Device m]
	Size=512M
	MemoryLimit=256M
	SwapOn=no
END
block=$(uz_block m)
start=$(uz_figure memory_used_bytes)
start_resident=$(resident)

for round in 1 2; do
	# Pages of all sizes.
	python3 -c '
import os, random, sys
for _ in range(200 * 256):
    noise = os.urandom(random.randrange(200, 4096))
    sys.stdout.buffer.write(noise.ljust(4096, b"."))
' | dd of="$block" bs=1M iflag=fullblock oflag=direct status=none || fail "filling"
	used=$(uz_figure memory_used_bytes)
	note "round $round: $((start / mib)) MiB at the start, $((used / mib)) MiB full, $((start_resident / mib)) and $(($(resident) / mib)) MiB resident"
	[ "$used" -gt $((start + 80 * mib)) ] || fail "the pool has not been filled: $used bytes"
	# First every second run of 17 pages: all spans are left half full.
	python3 -c '
import fcntl, os, struct, sys
device = os.open(sys.argv[1], os.O_RDWR)
for page in range(0, 200 * 256 - 17, 34):
    fcntl.ioctl(device, 0x1277, struct.pack("QQ", page * 4096, 17 * 4096))
' "$block" || fail "discarding"
	blkdiscard "$block" || fail "emptying"
	back() {
		[ "$(uz_figure memory_used_bytes)" -le $((start + 16 * mib)) ] &&
			[ "$(resident)" -le $((start_resident + 16 * mib)) ]
	}
	wait_for 15 back || fail "emptied, it still uses $(uz_figure memory_used_bytes) bytes, $(resident) resident"
done
expect_sums
pass
