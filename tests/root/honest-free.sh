#!/bin/bash
# SPDX-License-Identifier: MIT
# Time limit: 180 s
# What the kernel thinks is free on the device is, within a tenth, what can still be stored, at
# all times while it fills. (Our own line in /proc/swaps: the machine may have other swap.)

. "$(dirname "$0")/lib.sh"

mib=$((1 << 20))
take_swap_lock

try() { # CONTENTS MEMORY-LIMIT SIZE EXPECTED-RATIO
	local contents=$1 hog samples=0 worst=0 block size used room free whole off
	start_daemon "$contents" <<-END
		[Device h]
		Size=512M
		MemoryLimit=$2
		HonestFree=yes
		ExpectedRatio=$4
		$(priority)
	END
	block=$(uz_block h)
	need_top_priority "$block"
	settled() {
		[ "$(uz_figure balloon_pages)" -gt $((100 * mib)) ]
	}
	wait_for 15 settled || fail "the balloon does not fill: $(uz_ctl status | grep honest)"
	sleep 1
	uz_cgroup_new 32M "$contents" || skip "no memory cgroup can be made here"
	# Slowly, as the balloon looks four times a second.
	uz_in_cgroup "$memhog" --size "$3" --contents "$contents" --rate 40M fill \
		>"$uz_work/hog" 2>&1 </dev/null &
	hog=$!
	local deadline=$((SECONDS + 60))
	while kill -0 $hog 2>/dev/null; do
		if [ $SECONDS -gt $deadline ]; then
			uz_ctl status
			cat /proc/swaps
			fail "$contents: a full pool, and the program still runs"
		fi
		read -r size used < <(awk -v d="$block" '$1 == d { print $3 * 1024, $4 * 1024 }' /proc/swaps)
		room=$(uz_figure room_pages)
		[ -n "${size:-}" ] && [ "$room" != "" ] || break
		free=$((size - used))
		# Compared with what the whole pool would hold: near its end nothing is left to compare with.
		whole=$((used - $(uz_figure balloon_pages) + room))
		off=$(((free - room) * 100 / whole))
		[ ${off#-} -le $worst ] || worst=${off#-}
		samples=$((samples + 1))
		sleep 0.2
	done
	wait $hog || true # it fits, or it is killed at the end
	note "$contents: $samples samples, at most $worst % off; free at the end $((free / mib)) MiB, room $((room / mib)) MiB"
	[ $samples -ge 10 ] || fail "$contents: only $samples samples"
	[ $worst -le 10 ] || fail "$contents: free swap was off by $worst %"
	[ "$(uz_figure read_errors_total)" = 0 ] || fail "reads failed"
	stop_daemon 60
}

# The expectation is about right, as it should be: before the first pages nothing else is known.
try heap 64M 256M 3
try noise 64M 128M 1
pass
