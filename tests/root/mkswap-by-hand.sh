#!/bin/bash
# SPDX-License-Identifier: MIT
# SwapOn=no: mkswap and swapon by hand on the stable path, as on any other device.

. "$(dirname "$0")/lib.sh"

take_swap_lock
top=$(uz_top_priority)
start_daemon <<-END
	[Device hand-made]
	Size=128M
	MemoryLimit=64M
	SwapOn=no
END
link=$uz_run/dev/hand-made
block=$(uz_block hand-made)
[ -b "$link" ] || fail "$link is not a block device"
! is_swapped_on "$block" || fail "swapped on in spite of SwapOn=no"
[ "$(uz_figure STATE)" = ready ] || fail "the state is $(uz_figure STATE)"

mkswap -L by-hand "$link" >"$uz_work/mkswap" 2>&1 || fail "mkswap: $(cat "$uz_work/mkswap")"
[ "$(blkid -p -s TYPE -o value "$link")" = swap ] || fail "blkid does not see swap"
[ "$(blkid -p -s LABEL -o value "$link")" = by-hand ] || fail "blkid does not see the label"
swapon --discard=pages -p "$top" "$link" || fail "swapon"
is_swapped_on "$block" || fail "/proc/swaps does not have $block"
[ "$(uz_figure STATE)" = active ] || fail "the state is $(uz_figure STATE)"
need_top_priority "$block"

uz_cgroup_new 32M || skip "no memory cgroup can be made here"
uz_in_cgroup "$memhog" --size 96M fill check >"$uz_work/hog" 2>&1 </dev/null ||
	fail "$(cat "$uz_work/hog")"
need_top_priority "$block" # still
[ "$(uz_figure written_pages_total)" -gt 10000 ] || fail "nothing was swapped out"
swapoff "$link" || fail "swapoff"

# mkswap over an old area: reading what is there must not fail (a compressed page, or a raw one).
for ((i = 0; i < 3; i++)); do
	mkswap "$link" >/dev/null 2>&1 || fail "mkswap again"
	swapon "$link" || fail "swapon again"
	swapoff "$link" || fail "swapoff again"
done

# uzswapctl works on an area that was made by hand.
uz_ctl swapon hand-made || fail "uzswapctl swapon"
is_swapped_on "$block" || fail "/proc/swaps does not have $block"
expect_no_errors
pass
