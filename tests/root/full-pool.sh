#!/bin/bash
# SPDX-License-Identifier: MIT
# A program needs twice what the pool and its RAM can hold: it is killed soon after the pool is
# full, without a storm in the log and without minutes in reclaim. Others keep their pages.

. "$(dirname "$0")/lib.sh"

take_swap_lock
need_no_other_swap
start_daemon <<-END
	[Device f]
	Size=768M
	MemoryLimit=64M
	$(priority)
END
block=$(uz_block f)
need_top_priority "$block"

# The bystander: in a group of its own, with pages on the device.
uz_cgroup_new 24M bystander || skip "no memory cgroup can be made here"
mkfifo "$uz_work/to-bystander"
uz_in_cgroup "$memhog" --size 64M --seed 7 fill wait check <"$uz_work/to-bystander" \
	>"$uz_work/bystander" 2>&1 &
bystander=$!
exec {to_bystander}>"$uz_work/to-bystander"
wait_for 30 grep -q waiting "$uz_work/bystander" || fail "$(cat "$uz_work/bystander")"

# The greedy one: 96 MiB of RAM, and noise, of which the pool takes no 64 MiB.
uz_cgroup_new 96M greedy
lines_before=$(dmesg | wc -l)
first_full=
uz_in_cgroup "$memhog" --size 512M --contents noise fill >"$uz_work/greedy" 2>&1 </dev/null &
greedy=$!
# The kernel's figure of its system time is gone with it, so it is sampled.
system_ticks=0
full_us=
while kill -0 $greedy 2>/dev/null; do
	ticks=$({ sed 's/.*) //' "/proc/$(uz_cgroup_pid)/stat" | awk '{ print $13 }'; } 2>/dev/null)
	[ -z "$ticks" ] || system_ticks=$ticks
	read -r used limit refused < <(uz_figure memory_used_bytes,memory_limit_bytes,write_no_space_total)
	if [ -z "$full_us" ] && { [ "${refused:-0}" -gt 0 ] || [ "${used:-0}" -ge $((limit * 97 / 100)) ]; }; then
		full_us=${EPOCHREALTIME/./}
	fi
	if [ -n "$full_us" ] && [ $((${EPOCHREALTIME/./} - full_us)) -gt 20000000 ]; then
		uz_ctl status
		cat /proc/swaps
		fail "20 s after the pool was full the program still runs, after $system_ticks ticks of system time"
	fi
	sleep 0.05
done
end_us=${EPOCHREALTIME/./}
wait $greedy
status=$?
[ $status -eq 137 ] || fail "the program ended with status $status: $(cat "$uz_work/greedy")"
seconds_ms=$(((end_us - ${full_us:-$end_us}) / 1000))
system_ms=$((system_ticks * 1000 / $(getconf CLK_TCK)))
note "killed $seconds_ms ms after the pool was full; $system_ms ms of system time in all"
note "$(uz_figure write_no_space_total) writes refused, honest free: $(uz_figure balloon_pages) bytes in the balloon"
[ $seconds_ms -le 5000 ] || fail "it took $seconds_ms ms from the full pool to the kill"
[ $system_ms -le 6000 ] || fail "$system_ms ms of system time"

# Lines about our device: errors of reads and writes.
lines=$(dmesg | tail -n +$((lines_before + 1)) | grep -cE "${block##*/}|swap-device \($(stat -c %t "$block" | sed 's/^/0x/'):" || true)
[ "$lines" -le 5 ] || fail "$lines lines about the device in the kernel's log"
is_alive || fail "the daemon is gone"
[ "$(cat "$uz_work"/*.log | grep -c 'writes refused')" -le 3 ] || fail "a storm in the daemon's log"

echo >&"$to_bystander"
wait $bystander || fail "the bystander: $(cat "$uz_work/bystander")"
[ "$(uz_figure read_errors_total)" = 0 ] || fail "reads failed"
expect_sums
pass
