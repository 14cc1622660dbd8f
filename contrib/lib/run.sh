# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# An uzswapd out of a build directory, and memory cgroups to put programs under pressure:
# for quickstart and the root tests. To be sourced by bash.
#
# All that is made on the machine is written down in a work directory, so that uz_clean can
# take it back for a script that was killed, too:
#   pid        the script that owns the directory
#   daemons    process numbers of daemons
#   blocks     their block devices
#   cgroups    directories of cgroups
#   run, run2  runtime directories of the daemons

uz_work_prefix=/tmp/uzswap-

# --- before anything is made --------------------------------------------------

# Prints why this machine cannot run uzswapd, or nothing.
uz_why_not() {
	local program
	if [ "$(id -u)" -ne 0 ]; then
		echo "not root"
		return
	fi
	for program in mkswap swapon swapoff losetup setpriv; do
		if ! command -v $program >/dev/null; then
			echo "$program is not installed"
			return
		fi
	done
	[ -c /dev/fuse ] || modprobe fuse 2>/dev/null || true
	if [ ! -c /dev/fuse ] || ! grep -qw fuse /proc/filesystems; then
		echo "the kernel has no FUSE (/dev/fuse)"
		return
	fi
	[ -c /dev/loop-control ] || modprobe loop 2>/dev/null || true
	if [ ! -c /dev/loop-control ]; then
		echo "the kernel has no loop devices (/dev/loop-control)"
		return
	fi
	if [ ! -r /proc/swaps ]; then
		echo "the kernel has no swap (/proc/swaps)"
		return
	fi
}

# A priority above all other swap areas, as far as that is possible.
uz_top_priority() {
	awk 'NR > 1 && $5 >= top { top = $5 + 1 } END { if (top < 30000) top = 30000
		print (top > 32767) ? 32767 : top }' /proc/swaps
}

# --- work directory -----------------------------------------------------------

uz_work_new() { # NAME
	uz_work=$(mktemp -d "$uz_work_prefix$1.XXXXXX")
	echo $$ >"$uz_work/pid"
	: >"$uz_work/daemons"
	: >"$uz_work/blocks"
	: >"$uz_work/cgroups"
}

uz_is_daemon_of() { # PID WORK
	[[ "$({ tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null)" == *"--runtime-dir $2/"* ]]
}

uz_wait_gone() { # PID SECONDS
	local i
	for ((i = 0; i < $2 * 10; i++)); do
		# A zombie is gone as well: its shell has not looked yet.
		case $(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) in
		'' | Z) return 0 ;;
		esac
		sleep 0.1
	done
	return 1
}

uz_clean_cgroup() { # DIRECTORY
	local i
	[ -d "$1" ] || return 0
	for ((i = 0; i < 100; i++)); do
		while read -r pid; do
			kill -KILL "$pid" 2>/dev/null
		done <"$1/cgroup.procs"
		rmdir "$1" 2>/dev/null && return 0
		sleep 0.1
	done
	uz_complain "$1 cannot be removed"
}

uz_complain() {
	printf 'cleaning up: %s\n' "$*" >&2
	uz_clean_status=1
}

# Never kills a daemon whose device may hold pages: our own programs are gone by now, so they
# would be somebody else's.
uz_clean_daemon() { # PID WORK
	local block i
	uz_is_daemon_of "$1" "$2" || return 0
	for i in 1 2 3; do
		kill -CONT "$1" 2>/dev/null
		kill -TERM "$1" 2>/dev/null
		# Not a bare return: in a trap that is the status from before the trap.
		uz_wait_gone "$1" 15 && return 0
	done
	while read -r block; do
		if uz_is_swapped_on "$block"; then
			uz_complain "uzswapd (process $1) cannot swap off $block, and stays"
			return 1
		fi
	done <"$2/blocks"
	uz_complain "uzswapd (process $1) does not end; killing it"
	kill -KILL "$1" 2>/dev/null
	uz_wait_gone "$1" 5
}

# By name: in a mount namespace that is gone the kernel would show /loop3 for /dev/loop3.
uz_is_swapped_on() { # BLOCK DEVICE
	grep -q "^\(/dev\)\?/${1##*/}[\\ ]" /proc/swaps
}

# Whether the loop device's label is that of a daemon with a runtime directory in WORK: uzswap:NAME@HASH,
# the FNV-1a hash of the directory (front_fuse_label in src/front/front_fuse.c).
uz_is_loop_of() { # DEVICE WORK
	python3 - "$1" "$2" 2>/dev/null <<-'END'
		import fcntl, glob, os, sys
		LOOP_GET_STATUS64 = 0x4C05
		device = os.open(sys.argv[1], os.O_RDONLY)
		info = fcntl.ioctl(device, LOOP_GET_STATUS64, bytes(232))
		label = info[56:120].rstrip(b"\0").decode()
		hashes = []
		for directory in glob.glob(sys.argv[2] + "/*/"):
		    value = 0xCBF29CE484222325
		    for byte in os.fsencode(directory.rstrip("/")):
		        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
		    hashes.append("%016x" % value)
		sys.exit(0 if label.startswith("uzswap:") and label.split("@")[-1] in hashes else 1)
	END
}

# A loop device of a daemon that was killed; never one that has another owner.
uz_clean_block() { # DEVICE WORK
	[ -b "$1" ] || return 0
	uz_is_loop_of "$1" "$2" || return 0
	if uz_is_swapped_on "$1"; then
		swapoff "$1" || uz_complain "swapoff $1 failed"
	fi
	losetup --detach "$1" 2>/dev/null || true
}

# Takes everything back. Returns 1 when something had to be forced, or is left.
uz_clean() { # WORK
	local work=$1 line
	uz_clean_status=0
	[ -d "$work" ] || return 0
	while read -r line; do uz_clean_cgroup "$line"; done <"$work/cgroups"
	# The directory stays with a daemon that stays: the next script tries again.
	while read -r line; do uz_clean_daemon "$line" "$work" || return 1; done <"$work/daemons"
	while read -r line; do uz_clean_block "$line" "$work"; done <"$work/blocks"
	if grep -q " $work/" /proc/self/mounts; then
		uz_complain "something is mounted in $work"
	else
		rm -rf --one-file-system "$work"
	fi
	return $uz_clean_status
}

# Cleans up after scripts that were killed.
uz_clean_dead() {
	local work pid
	for work in "$uz_work_prefix"*.??????; do
		[ -f "$work/daemons" ] && [ -O "$work" ] || continue
		pid=$(cat "$work/pid")
		if [ ! -d "/proc/$pid" ]; then
			printf 'cleaning up %s, left by a script that was killed\n' "$work" >&2
			uz_clean "$work"
		fi
	done
}

# --- daemon -------------------------------------------------------------------

# Starts a daemon with the configuration on standard input and waits until it serves.
# $uz_bin: the build directory. Sets uz_pid, uz_run, uz_log; fails when the daemon ends.
uz_daemon_start() { # [RUNTIME DIRECTORY'S NAME [COMMAND THAT STARTS IT...]]
	local name=${1:-run} i line
	shift $(($# > 0))
	uz_run=$uz_work/$name
	uz_log=$uz_work/$name.log
	cat >"$uz_work/$name.conf"
	UZSWAP_BALLOON=$uz_bin/uzswap-balloon "$@" "$uz_bin/uzswapd" \
		--config "$uz_work/$name.conf" --runtime-dir "$uz_run" </dev/null >>"$uz_log" 2>&1 &
	uz_pid=$!
	echo $uz_pid >>"$uz_work/daemons"
	for ((i = 0; i < 600; i++)); do
		[ -d /proc/$uz_pid ] || return 1
		if [ -S "$uz_run/control" ] && uz_ctl list >/dev/null 2>&1; then
			for line in "$uz_run"/dev/*; do
				readlink -f "$line" >>"$uz_work/blocks"
			done
			return 0
		fi
		sleep 0.05
	done
	return 1
}

uz_ctl() {
	"$uz_bin/uzswapctl" --runtime-dir "$uz_run" "$@"
}

# Exact figures of the first device: `uz_figure stored_bytes`; '-' when there is no data.
uz_figure() { # COLUMN[,COLUMN...]
	uz_ctl list -bn -o "$1" | head -n 1
}

uz_block() { # DEVICE NAME
	readlink -f "$uz_run/dev/$1"
}

# --- cgroup -------------------------------------------------------------------

# Sets uz_cgroup_version and uz_cgroup_parent, where limited groups can be made; 1 if nowhere.
uz_cgroup_find() {
	local point path
	point=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,memory,/ { print $2; exit }' /proc/self/mounts)
	if [ -n "$point" ]; then
		uz_cgroup_version=1
		path=$(awk -F: '("," $2 ",") ~ /,memory,/ { print $3; exit }' /proc/self/cgroup)
		# In a container the mount shows only a part of the tree.
		[ -d "$point$path" ] || path=/
		uz_cgroup_parent=$point${path%/}
		[ -w "$uz_cgroup_parent/cgroup.procs" ]
		return
	fi
	point=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	grep -qw memory "$point/cgroup.controllers" 2>/dev/null || return 1
	uz_cgroup_version=2
	path=$(awk -F: '$1 == 0 { print $3; exit }' /proc/self/cgroup)
	[ -d "$point$path" ] || path=/
	path=${path%/}
	# A group with processes can have no limited children, but one of its ancestors may have.
	while [ -n "$path" ] && ! grep -qw memory "$point$path/cgroup.subtree_control"; do
		path=${path%/*}
	done
	uz_cgroup_parent=$point$path
	grep -qw memory "$uz_cgroup_parent/cgroup.subtree_control" ||
		echo +memory 2>/dev/null >"$uz_cgroup_parent/cgroup.subtree_control"
}

# Sets uz_cgroup. Swap in it is not limited.
uz_cgroup_new() { # LIMIT [NAME]
	uz_cgroup_find || return
	uz_cgroup=$uz_cgroup_parent/${uz_work##*/}-${2:-hog}
	echo "$uz_cgroup" >>"$uz_work/cgroups"
	mkdir "$uz_cgroup" || return
	uz_cgroup_limit "$1"
}

uz_cgroup_limit() { # LIMIT
	if [ $uz_cgroup_version = 1 ]; then
		echo "$1" >"$uz_cgroup/memory.limit_in_bytes"
	else
		echo "$1" >"$uz_cgroup/memory.max"
	fi
}

uz_cgroup_used() {
	if [ $uz_cgroup_version = 1 ]; then
		cat "$uz_cgroup/memory.usage_in_bytes"
	else
		cat "$uz_cgroup/memory.current"
	fi
}

uz_cgroup_oom_kills() {
	if [ $uz_cgroup_version = 1 ]; then
		awk '$1 == "oom_kill" { print $2 }' "$uz_cgroup/memory.oom_control"
	else
		awk '$1 == "oom_kill" { print $2 }' "$uz_cgroup/memory.events"
	fi
}

# The first process in the group.
uz_cgroup_pid() {
	head -n 1 "$uz_cgroup/cgroup.procs"
}

# Runs a command in the group. For one in the background: `uz_in_cgroup ... &`; $! is then a shell
# that waits for it.
uz_in_cgroup() {
	(
		echo $BASHPID >"$uz_cgroup/cgroup.procs" || exit
		exec "$@"
	)
}
