#!/bin/bash
# SPDX-License-Identifier: MIT
# Too little lockable memory: refused before READY, in one line with both numbers.

. "$(dirname "$0")/lib.sh"

need_program setpriv prlimit python3

start_limited() { # BYTES
	# Without the two capabilities that could raise the limit or ignore it.
	uz_daemon_start run prlimit --memlock="$1" setpriv --bounding-set -ipc_lock,-sys_resource \
		--inh-caps -ipc_lock,-sys_resource -- <<-END
			[Device m]
			Size=64M
			MemoryLimit=32M
			SwapOn=no
		END
}

hard=$(prlimit --memlock --noheadings --raw -o HARD)
[ "$hard" != unlimited ] || hard=$((1 << 40))
for limit in 65536 $((hard < 16 << 20 ? hard : 16 << 20)); do
	: >"${uz_log:-/dev/null}"
	start_limited $limit && fail "started with $limit bytes of lockable memory"
	wait "$uz_pid"
	status=$?
	[ $status -eq 1 ] || fail "ended with status $status, not 1"
	expect_log "LimitMEMLOCK=infinity"
	[ "$(grep -c 'cannot lock memory' "$uz_log")" -eq 1 ] || fail "not one line on memory"
	numbers=$(sed -n 's/.*cannot lock memory: \([0-9]*\) bytes needed, \([0-9]*\) available.*/\1 \2/p' "$uz_log")
	read -r needed available <<<"$numbers"
	[ "${needed:-0}" -gt $((32 << 20)) ] || fail "it names no need above the limit of the store: $numbers"
	[ "${available:-$limit}" -le "$limit" ] || fail "it names more than there is: $numbers"
	note "limit $limit: needed $needed, available $available"
	[ ! -e "$uz_run/control" ] || fail "a socket is left"
	! ls "$uz_run"/dev/* 2>/dev/null || fail "a link is left"
done

# Enough, without the capability: works. Raising the limit needs the other capability.
if [ "$hard" -lt $((1 << 30)) ] && ! prlimit --memlock=$((1 << 30)) true 2>/dev/null; then
	note "not tried with enough: the limit of this shell cannot be raised"
	pass
fi
: >"$uz_log"
start_limited $((1 << 30)) || fail "refused with 1 GiB of lockable memory"
[ "$(awk '$1 == "VmSwap:" { print $2 }' "/proc/$uz_pid/status")" = 0 ] || fail "swapped"
pass
