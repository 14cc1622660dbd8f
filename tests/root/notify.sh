#!/bin/bash
# SPDX-License-Identifier: MIT
# READY=1 comes when /proc/swaps lists the device and not before; STOPPING=1 at the end.

. "$(dirname "$0")/lib.sh"

take_swap_lock
# For each message: the message, and whether swap was on when it came.
python3 - "$uz_work" <<-'END' &
	import os, socket, sys, time
	work = sys.argv[1]
	listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	listener.bind(f"{work}/notify")
	listener.settimeout(60)
	with open(f"{work}/messages", "w", buffering=1) as out:
	    while True:
	        try:
	            message = listener.recv(4096).decode()
	        except socket.timeout:
	            break
	        block = os.path.realpath(f"{work}/run/dev/n")
	        with open("/proc/swaps") as swaps:
	            listed = any(line.split()[0] == block for line in swaps)
	        for line in message.splitlines():
	            print("on " if listed else "off", line, file=out)
END
listener=$!
wait_for 5 test -S "$uz_work/notify" || fail "the listener does not start"
NOTIFY_SOCKET=$uz_work/notify start_daemon <<-END
	[Device n]
	Size=64M
	MemoryLimit=32M
	Priority=0
END
wait_for 5 grep -q "READY=1" "$uz_work/messages" || skip "built without libsystemd"
grep -q "^on  READY=1" "$uz_work/messages" || fail "READY before swap was on: $(cat "$uz_work/messages")"
! grep -q "^off READY=1" "$uz_work/messages" || fail "READY before swap was on: $(cat "$uz_work/messages")"
! grep -q "STOPPING" "$uz_work/messages" || fail "STOPPING before the end"
# A status line that a person can read comes every now and then.
wait_for 5 grep -q "STATUS=.* MiB" "$uz_work/messages" || fail "no status: $(cat "$uz_work/messages")"
stop_daemon
wait_for 5 grep -q "STOPPING=1" "$uz_work/messages" || fail "no STOPPING: $(cat "$uz_work/messages")"
kill $listener
pass
