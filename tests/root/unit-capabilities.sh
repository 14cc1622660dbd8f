#!/bin/bash
# SPDX-License-Identifier: MIT
# The capabilities that systemd/uzswapd.service leaves to the daemon are enough for all that it does.

. "$(dirname "$0")/lib.sh"

take_swap_lock
unit=$uz_bin/systemd/uzswapd.service
[ -r "$unit" ] || skip "$unit is not built"
bounding=-all
for capability in $(sed -n 's/^CapabilityBoundingSet=//p' "$unit"); do
	name=${capability#CAP_}
	name=${name,,}
	# A container may lack some that the unit would give.
	setpriv --bounding-set "-all,+$name" true 2>/dev/null && bounding+=",+$name"
done
[ "$bounding" != -all ] || fail "$unit has no CapabilityBoundingSet="

start_daemon run setpriv --bounding-set "$bounding" --inh-caps=-all --no-new-privs -- <<-END
	[Daemon]
	StatsGroup=nogroup
	[Device u]
	Size=96M
	MemoryLimit=64M
	$(priority)
END
block=$(uz_block u)
need_top_priority "$block"
is_swapped_on "$block" || fail "not swapped on"
uz_cgroup_new 32M || skip "no memory cgroup can be made here"
uz_in_cgroup "$memhog" --size 64M fill check >"$uz_work/hog" 2>&1 </dev/null || fail "$(cat "$uz_work/hog")"
uz_ctl swapoff u || fail "swapoff"
uz_ctl swapon u || fail "swapon"
blkdiscard -o $((60 << 20)) -l 4096 "$block" 2>/dev/null
uz_ctl set u codec zstd || fail "set"
[ "$(cat /proc/sys/vm/watermark_boost_factor)" = 0 ] || fail "the sysctl was not set"
expect_no_errors
pass
