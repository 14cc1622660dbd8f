#!/bin/bash
# SPDX-License-Identifier: MIT
# After kill -9: what is left and unused is cleaned up by the next start; what is in use is
# refused with a line that says what to do.

. "$(dirname "$0")/lib.sh"

killed() {
	kill -KILL "$uz_pid"
	wait "$uz_pid" 2>/dev/null
	uz_wait_gone "$uz_pid" 10 || fail "uzswapd does not die"
}

off() {
	printf '[Device k]\nSize=64M\nMemoryLimit=32M\nSwapOn=no\n'
}

take_swap_lock

# Not swapped on: whatever is left, the next one starts, and its device is new.
start_daemon run < <(off)
dd if=/dev/urandom of="$(uz_block k)" bs=4k seek=3 count=4 oflag=direct status=none
killed
start_daemon run < <(off)
[ "$(dd if="$(uz_block k)" bs=4k skip=3 count=4 iflag=direct status=none | tr -d '\0' | wc -c)" = 0 ] ||
	fail "a new daemon has old pages"
stop_daemon

# Killed while the device is open: unbound once it is closed.
start_daemon run < <(off)
exec {open}<"$(uz_block k)"
killed
exec {open}<&-
start_daemon run < <(off)
stop_daemon

# Swapped on, with nothing in it: refused until swapoff. The lowest priority, so that nothing
# comes into it meanwhile.
on() {
	printf '[Device k]\nSize=64M\nMemoryLimit=32M\nPriority=0\nHonestFree=no\n'
}
start_daemon run < <(on)
block=$(uz_block k)
killed
is_swapped_on "$block" || fail "swap went off by itself"
: >"$uz_log"
uz_daemon_start run < <(on) && fail "started beside the swap area of a killed daemon"
wait "$uz_pid"
status=$?
[ $status -eq 1 ] || fail "the refusal has status $status"
expect_log "$block is still swapped on from a daemon that was killed"
expect_log "swapoff $block"
[ "$(wc -l <"$uz_log")" -le 4 ] || fail "the refusal is too long"
is_swapped_on "$block" || fail "the refused daemon has swapped off"
swapoff "$block" || fail "swapoff of the dead device"
start_daemon run < <(on)
is_alive || fail "it does not start after swapoff"
pass
