#!/bin/bash
# SPDX-License-Identifier: MIT
# The daemon is stopped for three seconds under load, as at a switch of the root, or frozen:
# every request is answered afterwards, none is lost.

. "$(dirname "$0")/lib.sh"

take_swap_lock
start_daemon <<-END
	[Device s]
	Size=256M
	MemoryLimit=160M
	$(priority)
END
need_top_priority "$(uz_block s)"
uz_cgroup_new 24M || skip "no memory cgroup can be made here"
uz_in_cgroup "$memhog" --size 128M --progress fill check rewrite random rewrite check \
	>"$uz_work/hog" 2>&1 </dev/null &
hog=$!
stops=0
while kill -0 $hog 2>/dev/null; do
	kill -STOP "$uz_pid"
	sleep $((stops < 2 ? 3 : 0))
	written=$(wc -l <"$uz_work/hog")
	kill -CONT "$uz_pid"
	stops=$((stops + 1))
	sleep 0.5
	# SIGHUP must not end it.
	kill -HUP "$uz_pid"
done
wait $hog || fail "$(tail -n 5 "$uz_work/hog")"
note "$stops stops"
[ $stops -ge 2 ] || fail "the load ended before the second stop"
is_alive || fail "the daemon is gone"
read -r longest < <(uz_figure READ-MAX)
expect_log SIGHUP
expect_no_errors
expect_sums
pass
