#!/bin/bash
# SPDX-License-Identifier: MIT
# What the daemon is under load: locked, never swapped, named threads, no core dumps.

. "$(dirname "$0")/lib.sh"

take_swap_lock
start_daemon <<-END
	[Device l]
	Size=256M
	MemoryLimit=160M
	$(priority)
END
need_top_priority "$(uz_block l)"
uz_cgroup_new 24M || skip "no memory cgroup can be made here"
uz_in_cgroup "$memhog" --size 160M fill check rewrite check >"$uz_work/hog" 2>&1 </dev/null &
hog=$!

status_of() { # FIELD
	awk -v field="$1:" '$1 == field { print $2 }' "/proc/$uz_pid/status"
}

samples=0
while kill -0 $hog 2>/dev/null; do
	[ "$(status_of VmSwap)" = 0 ] || fail "VmSwap is $(status_of VmSwap) kB"
	samples=$((samples + 1))
	sleep 0.1
done
wait $hog || fail "$(cat "$uz_work/hog")"
[ $samples -gt 3 ] || fail "only $samples samples under load"
[ "$(status_of VmLck)" -ge $((160 * 1024)) ] || fail "VmLck is $(status_of VmLck) kB, less than the store"

swapped_mappings=$(awk '$1 == "Swap:" && $2 > 0' "/proc/$uz_pid/smaps" | wc -l)
[ "$swapped_mappings" -eq 0 ] || fail "$swapped_mappings mappings have swapped pages"

for task in /proc/"$uz_pid"/task/*; do
	name=$(cat "$task/comm")
	[[ $name == uzswap:* || $name == uzswapd ]] || fail "a thread is named $name"
done
[ "$(cat /proc/"$uz_pid"/task/*/comm | grep -c '^uzswapd$')" -eq 1 ] || fail "several unnamed threads"

# prctl(PR_SET_DUMPABLE, 0) shows in the owner of what only the process itself may see, for a
# process of root in the limit alone.
[ "$(awk '/^Max core file size/ { print $5, $6 }' "/proc/$uz_pid/limits")" = "0 0" ] ||
	fail "core dumps are possible"

# Nobody else gets at pages: directories and socket are root's, the mount is not to be seen.
[ "$(stat -c '%a %u' "$uz_run")" = "700 0" ] || fail "$uz_run is open to others"
[ "$(stat -c '%a %u' "$uz_run/control")" = "600 0" ] || fail "the socket is open to others"
! grep -q "$uz_run/" /proc/self/mounts || fail "the FUSE mount is visible"
expect_no_errors
pass
