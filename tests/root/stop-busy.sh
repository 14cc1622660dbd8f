#!/bin/bash
# SPDX-License-Identifier: MIT
# A swapoff that cannot succeed: the daemon says so and goes on serving, however often it is told
# to end. One that is killed is started again. Only `stop --abandon` ends without.

. "$(dirname "$0")/lib.sh"

take_swap_lock
mkdir "$uz_work/bin"
real=$(command -v swapoff)
# Does what the file says: fail as swapoff does without memory, or be killed so many times.
cat >"$uz_work/bin/swapoff" <<-END
	#!/bin/bash
	mode=\$(cat "$uz_work/mode")
	case \$mode in
	fail) echo "swapoff: \$1: swapoff failed: Cannot allocate memory" >&2; exit 2 ;;
	kill*) echo "\${mode/kill*/\$([ "\${mode#kill}" -gt 1 ] && echo kill\$((\${mode#kill} - 1)) || echo go)}" >"$uz_work/mode"
		kill -KILL \$\$ ;;
	esac
	exec $real "\$@"
END
chmod +x "$uz_work/bin/swapoff"
before_cleaning() {
	echo go >"$uz_work/mode"
}
echo fail >"$uz_work/mode"

configuration() {
	printf '[Device b]\nSize=128M\nMemoryLimit=96M\n'
	priority
}

start_daemon run env PATH="$uz_work/bin:$PATH" < <(configuration)
block=$(uz_block b)
need_top_priority "$block"
uz_cgroup_new 24M || skip "no memory cgroup can be made here"
mkfifo "$uz_work/to-hog"
uz_in_cgroup "$memhog" --size 80M fill wait check wait check <"$uz_work/to-hog" >"$uz_work/hog" 2>&1 &
hog=$!
exec {to_hog}>"$uz_work/to-hog"
waits() { # TIMES
	[ "$(grep -c '^waiting' "$uz_work/hog")" -ge "$1" ]
}
wait_for 30 waits 1 || fail "$(cat "$uz_work/hog")"

refusals() { # TIMES
	[ "$(grep -c 'not stopping: swap is still on' "$uz_log")" -ge "$1" ]
}
kill -TERM "$uz_pid"
wait_for 10 refusals 1 || fail "it does not say that it cannot stop"
grep -q "not enough memory" "$uz_log" || fail "it does not say why"
sleep 0.5
is_alive || fail "it ended on SIGTERM while swap was on"
is_swapped_on "$block" || fail "$block is not swapped on"
kill -TERM "$uz_pid"
wait_for 10 refusals 2 || fail "it does not say it the second time"
kill -TERM "$uz_pid"
kill -INT "$uz_pid"
sleep 0.5
uz_ctl stop >"$uz_work/output" 2>&1 && fail "uzswapctl stop succeeded while swapoff cannot"
grep -q "still on" "$uz_work/output" || fail "uzswapctl stop does not say why: $(cat "$uz_work/output")"
is_alive || fail "it ended on the second SIGTERM"

# It still serves what it holds.
echo >&"$to_hog"
wait_for 60 waits 2 || fail "pages were lost: $(cat "$uz_work/hog")"
echo >&"$to_hog"
wait $hog || fail "pages were lost: $(cat "$uz_work/hog")"

# Killed twice, then let through: one SIGTERM is enough.
echo kill2 >"$uz_work/mode"
stop_daemon
[ "$(cat "$uz_work/mode")" = go ] || fail "swapoff was not started three times"
[ "$(grep -c 'starting it again' "$uz_log")" -eq 2 ] || fail "the log does not have two more attempts"

# Abandoned: status 4, at once, with swap on. Of the lowest priority, so that nobody's pages are
# lost, and empty.
echo fail >"$uz_work/mode"
start_daemon run2 env PATH="$uz_work/bin:$PATH" <<-END
	[Device b]
	Size=64M
	MemoryLimit=32M
	Priority=0
	HonestFree=no
END
block=$(uz_block b)
uz_ctl stop --abandon || fail "uzswapctl stop --abandon"
uz_wait_gone "$uz_pid" 10 || fail "it does not end when told to abandon"
wait "$uz_pid"
status=$?
[ $status -eq 4 ] || fail "abandoned, it ended with status $status"
expect_log "are lost"
is_swapped_on "$block" || fail "swap is off after --abandon"
swapoff "$block" || fail "swapoff of the empty, abandoned device"
pass
