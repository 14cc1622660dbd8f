#!/bin/bash
# SPDX-License-Identifier: MIT
# Two daemons: in one runtime directory the second is refused, in another it runs beside.

. "$(dirname "$0")/lib.sh"

configuration() {
	printf '[Device %s]\nSize=64M\nMemoryLimit=32M\nSwapOn=no\n' "$1"
}

start_daemon run < <(configuration one)
first_pid=$uz_pid
first_run=$uz_run

output=$("$uz_bin/uzswapd" --config "$uz_work/run.conf" --runtime-dir "$uz_run" 2>&1 </dev/null)
status=$?
[ $status -eq 1 ] || fail "the second one in $uz_run ended with $status: $output"
[[ $output == *"another uzswapd (process $first_pid)"* ]] || fail "the refusal does not say who runs: $output"
is_alive || fail "the first one has not survived the second"
[ -b "$uz_run/dev/one" ] || fail "the first one's link is gone"

start_daemon run2 < <(configuration one)
[ "$(readlink -f "$uz_run/dev/one")" != "$(readlink -f "$first_run/dev/one")" ] ||
	fail "both have the same device"
second_block=$(uz_block one)
head -c 4096 /dev/urandom >"$uz_work/page"
dd if="$uz_work/page" of="$second_block" bs=4k seek=5 oflag=direct status=none
dd if="$first_run/dev/one" bs=4k skip=5 count=1 iflag=direct status=none | cmp -s - "$uz_work/page" &&
	fail "a page written to one is read from the other"
stop_daemon

uz_run=$first_run
uz_pid=$first_pid
is_alive || fail "the first one has not survived the end of the second"
pass
