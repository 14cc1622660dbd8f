#!/bin/bash
# SPDX-License-Identifier: MIT
# The control socket of a real daemon: garbage, strangers, wrong names and values. Whatever comes,
# it goes on serving.

. "$(dirname "$0")/lib.sh"

need_program setpriv

start_daemon <<-END
	[Device e]
	Size=64M
	MemoryLimit=32M
	SwapOn=no
END
block=$(uz_block e)

refuse() { # STATUS TEXT ARGUMENT...
	local wanted=$1 text=$2 status=0
	shift 2
	uz_ctl "$@" >"$uz_work/output" 2>&1 </dev/null || status=$?
	[ $status -eq "$wanted" ] || fail "uzswapctl $*: status $status: $(cat "$uz_work/output")"
	grep -qF -- "$text" "$uz_work/output" || fail "uzswapctl $*: no '$text' in: $(cat "$uz_work/output")"
}

refuse 1 nosuch status nosuch
refuse 1 nosuch swapon nosuch
refuse 1 nosuch swapoff nosuch
refuse 1 nosuch set nosuch codec lz4
refuse 1 zstd set e codec lzma
refuse 1 allowed set e level 99999999
refuse 1 allowed set e memory-limit 1
refuse 1 allowed set e memory-limit 1P
refuse 1 "unknown name" set e memory-limit much
refuse 1 debug set log-level loud
refuse 2 uzswapctl nosuchverb
refuse 2 uzswapctl set

# What is possible, is.
uz_ctl set e codec zstd || fail "set codec"
uz_ctl set e level 5 || fail "set level"
[ "$(uz_figure CODEC,LEVEL | tr -s ' ')" = "zstd 5" ] || fail "codec and level are $(uz_figure CODEC,LEVEL)"
uz_ctl set e memory-limit 24M || fail "set memory-limit"
[ "$(uz_figure memory_limit_bytes)" = $((24 << 20)) ] || fail "the limit is $(uz_figure memory_limit_bytes)"

# Strangers do not even get to the socket; what is readable to all would be pages' statistics.
as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
}
as_nobody "$uz_bin/uzswapctl" --runtime-dir "$uz_run" status >/dev/null 2>&1 &&
	fail "nobody can read"
chmod 755 "$uz_work" "$uz_run"
chmod 666 "$uz_run/control"
as_nobody "$uz_bin/uzswapctl" --runtime-dir "$uz_run" status >"$uz_work/output" 2>&1 &&
	fail "nobody can read through an open socket: credentials are not checked"
as_nobody "$uz_bin/uzswapctl" --runtime-dir "$uz_run" stop >"$uz_work/output" 2>&1 &&
	fail "nobody can stop the daemon"
chmod 700 "$uz_run"
is_alive || fail "a stranger has ended the daemon"

# Garbage, half messages, messages without end, connections that say nothing.
python3 - "$uz_run/control" <<-'END' || fail "the socket does not behave"
	import os, socket, sys

	def connect():
	    connection = socket.socket(socket.AF_UNIX)
	    connection.settimeout(10)
	    connection.connect(sys.argv[1])
	    return connection

	idle = [connect() for _ in range(8)]
	for message in (b"\0", b"{}\0", b"[1]\0", b"{\0", b'{"method":1}\0', os.urandom(5000) + b"\0",
	                b'{"method":"io.uzswap.Control.Nothing"}\0', b'{"method":"a.b"}\0',
	                b'{"method":"io.uzswap.Control.Set","parameters":[]}\0', b"[" * 100000 + b"\0"):
	    with connect() as connection:
	        try:
	            connection.sendall(message)
	            reply = connection.recv(65536)
	        except (BrokenPipeError, ConnectionResetError):
	            reply = b""
	        # Either an error, or the connection is closed; never a success.
	        assert not reply or b'"error"' in reply, (message[:60], reply)
	# No NUL ever: must be cut off, not collected for ever.
	with connect() as connection:
	    sent = 0
	    try:
	        while sent < 64 << 20:
	            sent += connection.send(b"x" * 65536)
	        raise AssertionError("64 MiB without an end were taken")
	    except (BrokenPipeError, ConnectionResetError):
	        pass
	# Half a call, and gone.
	for _ in range(100):
	    with connect() as connection:
	        connection.sendall(b'{"method":"io.uzswap.Control.GetStatus"')
	# A call that does not read its answer.
	for _ in range(20):
	    connection = connect()
	    for _ in range(50):
	        try:
	            connection.sendall(b'{"method":"io.uzswap.Control.GetMetrics"}\0')
	        except (socket.timeout, BrokenPipeError, ConnectionResetError):
	            break
	    connection.close()
	for connection in idle:
	    connection.close()
END
is_alive || fail "the daemon has not survived garbage"
dd if="$block" of=/dev/null bs=1M count=8 iflag=direct status=none || fail "the device does not serve any more"
pass
