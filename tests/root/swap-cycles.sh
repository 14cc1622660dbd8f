#!/bin/bash
# SPDX-License-Identifier: MIT
# Time limit: 240 s
# Swap on and off a hundred times, with data in between: by uzswapctl, and by hand, as
# `swapoff -a` and `swapon -a` do. The area stays the same one, and nothing piles up.

. "$(dirname "$0")/lib.sh"

take_swap_lock
start_daemon <<-END
	[Device c]
	Size=128M
	MemoryLimit=80M
	$(priority)
END
block=$(uz_block c)
need_top_priority "$block"
link=$uz_run/dev/c
uz_cgroup_new 32M || skip "no memory cgroup can be made here"

uuid() {
	blkid -p -s UUID -o value "$block"
}

# The header, and with it at most what other processes have swapped out since.
nearly_empty() {
	[ "$(uz_figure stored_bytes)" -le $((8 * 4096)) ]
}

use() {
	uz_in_cgroup "$memhog" --size 64M --seed "$1" fill check >"$uz_work/hog" 2>&1 </dev/null ||
		fail "cycle $1: $(cat "$uz_work/hog")"
}

first_uuid=$(uuid)
[ -n "$first_uuid" ] || fail "blkid finds no UUID"
for ((i = 1; i <= 50; i++)); do
	[ $((i % 10)) -ne 0 ] || use $i
	uz_ctl swapoff c || fail "cycle $i: swapoff"
	! is_swapped_on "$block" || fail "cycle $i: swapped on after swapoff"
	nearly_empty || fail "cycle $i: $(uz_figure stored_bytes) bytes are stored after swapoff"
	[ "$(uz_figure STATE)" = ready ] || fail "cycle $i: the state is $(uz_figure STATE)"
	uz_ctl swapon c || fail "cycle $i: swapon"
	is_swapped_on "$block" || fail "cycle $i: not swapped on after swapon"
done
[ "$(uuid)" = "$first_uuid" ] || fail "the UUID has changed"
for ((i = 51; i <= 100; i++)); do
	[ $((i % 10)) -ne 0 ] || use $i
	swapoff "$link" || fail "cycle $i: swapoff by hand"
	wait_for 5 nearly_empty || fail "cycle $i: $(uz_figure stored_bytes) bytes are stored after swapoff by hand"
	[ "$(uz_figure STATE)" = ready ] || fail "cycle $i: the state is $(uz_figure STATE)"
	swapon --discard=pages -p "$(uz_top_priority)" "$link" || fail "cycle $i: swapon by hand"
	[ "$(uz_figure STATE)" = active ] || fail "cycle $i: the state is $(uz_figure STATE)"
done
[ "$(uuid)" = "$first_uuid" ] || fail "the UUID has changed by hand"
use 101
is_alive || fail "the daemon is gone"
expect_no_errors
expect_sums
pass
