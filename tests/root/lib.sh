# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the root tests share: a work directory that is cleaned however the test ends, a daemon
# in it, and assertions. Each test sources this first:
#
#   . "$(dirname "$0")/lib.sh"
#   start_daemon <<-END
#   	[Device a]
#   END
#   ...
#   pass
#
# Environment: UZ_BUILDDIR (default: the current directory), where uzswapd was built.
# Exit status: 0, 1 failed, 77 skipped; the last line says why.

set -u
test_name=$(basename "$0" .sh)
uz_bin=${UZ_BUILDDIR:-$PWD}
# shellcheck source=contrib/lib/run.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../contrib/lib/run.sh"

memhog=$uz_bin/tests/memhog

skip() {
	echo "SKIP: $*"
	exit 77
}

fail() {
	echo "FAIL: $*"
	if [ -n "${uz_log:-}" ] && [ -s "$uz_log" ]; then
		echo "--- the daemon's last lines:"
		tail -n 15 "$uz_log"
	fi
	exit 1
}

note() {
	printf '  %s\n' "$*"
}

# Every test ends so: one that ends otherwise, by `set -u` for example, has failed.
pass() {
	finish_daemons
	passed=yes
	exit 0
}

passed=no

# A test that has put something in the daemon's way defines it anew.
before_cleaning() {
	:
}

at_exit() {
	local status=$?
	trap - EXIT INT TERM HUP
	# Pipelines and subshells inherit nothing of this; only the test's own shell cleans.
	if [ -n "${swap_lock_pid:-}" ]; then
		kill "$swap_lock_pid" 2>/dev/null
	fi
	before_cleaning
	if [ -n "${uz_work:-}" ]; then
		uz_clean "$uz_work" || status=${status/#0/1}
	fi
	if [ "$status" -eq 0 ] && [ $passed = no ]; then
		echo "FAIL: the test ended before its end"
		status=1
	fi
	exit "$status"
}

trap at_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Tests that turn swap on take turns with each other and with the unit tests that do
# (tests/loop_swap.c has the same lock): they all see one /proc/swaps and one free memory.
take_swap_lock() {
	local ready
	coproc swap_lock {
		exec python3 -c '
import socket, sys, time
lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
for attempt in range(6000):
    try:
        lock.bind(b"\0uzswap-test-swap".ljust(108, b"\0"))
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("another test of swap does not end")
print("locked", flush=True)
sys.stdin.read()
'
	}
	# shellcheck disable=SC2154 # set by coproc
	swap_lock_pid=$swap_lock_PID
	read -r ready <&"${swap_lock[0]}" && [ "$ready" = locked ] ||
		fail "the lock of the swap tests cannot be had"
}

need_program() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
}

# --- daemon -------------------------------------------------------------------

# Starts a daemon with the configuration on standard input; see uz_daemon_start.
start_daemon() {
	uz_daemon_start "$@" || fail "uzswapd does not start"
}

# A [Device] section's first lines: priority above all others, so that pages come to us.
priority() {
	echo "Priority=$(uz_top_priority)"
}

# Ends a daemon by SIGTERM; it must exit with status 0 and leave nothing behind.
stop_daemon() { # [SECONDS]
	local status=0 block
	block=$(readlink -f "$uz_run"/dev/* | head -n 1)
	kill -TERM "$uz_pid" || fail "uzswapd is gone before its end"
	uz_wait_gone "$uz_pid" "${1:-30}" || fail "uzswapd does not end on SIGTERM"
	wait "$uz_pid" || status=$?
	[ $status -eq 0 ] || fail "uzswapd ended with status $status on SIGTERM"
	expect_nothing_left "$block"
}

expect_nothing_left() { # BLOCK DEVICE
	! is_swapped_on "$1" || fail "$1 is still swapped on"
	! uz_is_loop_of "$1" "${uz_run%/*}" || fail "$1 is still bound"
	[ ! -e "$uz_run/control" ] || fail "the control socket is still there"
	[ -z "$(ls -A "$uz_run/dev" 2>/dev/null)" ] || fail "links are left in $uz_run/dev"
	! grep -q " $uz_run/" /proc/self/mounts || fail "a mount is left"
}

finish_daemons() {
	local pid
	while read -r pid; do
		if uz_is_daemon_of "$pid" "$uz_work"; then
			uz_pid=$pid
			uz_run=$(tr '\0' '\n' <"/proc/$pid/cmdline" | tail -n 1)
			stop_daemon 60
		fi
	done <"$uz_work/daemons"
}

is_alive() {
	uz_is_daemon_of "$uz_pid" "$uz_work" && uz_ctl list >/dev/null
}

is_swapped_on() { # BLOCK DEVICE
	uz_is_swapped_on "$1"
}

# Used bytes of one device, from /proc/swaps.
swap_used_bytes() { # BLOCK DEVICE
	awk -v device="$1" '$1 == device { print $4 * 1024 }' /proc/swaps
}

# Free bytes of all other areas: what the kernel can still use when ours is full.
other_free_bytes() { # BLOCK DEVICE
	awk -v device="$1" 'NR > 1 && $1 != device { free += ($3 - $4) * 1024 } END { printf "%d", free }' \
		/proc/swaps
}

# For tests of what happens when no swap is left.
need_no_other_swap() {
	local free
	free=$(other_free_bytes "${1:-none}")
	[ "$free" -lt $((16 << 20)) ] || skip "other swap has $((free >> 20)) MiB free"
}

# For tests that must have all pages go to their device. Not even a good priority helps when
# somebody has the highest.
need_top_priority() { # BLOCK DEVICE
	local ours
	ours=$(awk -v device="$1" '$1 == device { print $5 }' /proc/swaps)
	! awk -v device="$1" -v ours="$ours" 'NR > 1 && $1 != device && $5 >= ours { found = 1 }
		END { exit !found }' /proc/swaps || skip "another swap area has the highest priority"
}

expect_log() { # TEXT
	grep -qF -- "$1" "$uz_log" || fail "the log does not have: $1"
}

# What /sys/kernel/debug cannot lie about: nothing went wrong on the device.
expect_no_errors() {
	local read_errors write_errors
	read -r read_errors write_errors < <(uz_figure read_errors_total,write_errors_total)
	[ "$read_errors" = 0 ] || fail "$read_errors reads failed"
	[ "$write_errors" = 0 ] || fail "$write_errors writes failed"
}

# Empty, same-filled, compressed and incompressible pages are all pages, at any time.
expect_sums() {
	local size empty same compressed incompressible stored
	# list -b shows amounts of pages in bytes, too.
	read -r size empty same compressed incompressible stored < <(uz_figure \
		size_bytes,empty_pages,same_filled_pages,compressed_pages,incompressible_pages,stored_bytes)
	[ $((empty + same + compressed + incompressible)) -eq "$size" ] ||
		fail "pages do not add up: $empty + $same + $compressed + $incompressible of $size"
	[ $((same + compressed + incompressible)) -eq "$stored" ] ||
		fail "stored_bytes is $stored, not $same + $compressed + $incompressible"
}

# Waits until a command succeeds.
wait_for() { # SECONDS COMMAND...
	local i seconds=$1
	shift
	for ((i = 0; i < seconds * 20; i++)); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}

# --- start --------------------------------------------------------------------

reason=$(uz_why_not)
[ -z "$reason" ] || skip "$reason"
for program in uzswapd uzswapctl uzswap-balloon tests/memhog; do
	[ -x "$uz_bin/$program" ] || skip "$uz_bin/$program is not built"
done
uz_work_new "$test_name"
