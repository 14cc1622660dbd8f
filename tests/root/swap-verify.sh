#!/bin/bash
# SPDX-License-Identifier: MIT
# Time limit: 300 s
# Real swap: several programs with more memory than they are allowed, each checking every byte,
# with 4 KiB pages and with huge ones, while others read the block device.

. "$(dirname "$0")/lib.sh"

hog_mib=56 # each
limit_mib=72 # all together
hogs=3

readers() { # BLOCK DEVICE
	while :; do
		dd if="$1" of=/dev/null bs=1M iflag=direct status=none || return
		dd if="$1" of=/dev/null bs=4k iflag=direct skip=$((RANDOM * 3)) count=2000 status=none || return
		sleep 0.3 # or they would take all of a small machine
	done
}

verify() { # CODEC HOG-OPTION...
	local codec=$1 i pids=() status block reads
	shift
	start_daemon "$codec$*" <<-END
		[Device v]
		Size=416M
		MemoryLimit=256M
		Codec=$codec
		$(priority)
	END
	block=$(uz_block v)
	need_top_priority "$block"
	uz_cgroup_new ${limit_mib}M "$codec$*" || skip "no memory cgroup can be made here"
	readers "$block" &
	reads=$!
	for ((i = 0; i < hogs; i++)); do
		uz_in_cgroup "$memhog" --size ${hog_mib}M --seed $i "$@" \
			fill check rewrite random drop check rewrite check \
			>"$uz_work/hog$i" 2>&1 </dev/null &
		pids+=($!)
	done
	for ((i = 0; i < hogs; i++)); do
		status=0
		wait "${pids[i]}" || status=$?
		if [ $status -ne 0 ]; then
			cat "$uz_work/hog$i"
			fail "$codec $*: program $i ended with status $status"
		fi
	done
	kill -0 $reads 2>/dev/null || fail "reading $block with dd failed"
	kill $reads
	wait $reads 2>/dev/null
	read -r written read_back < <(uz_figure written_pages_total,read_pages_total)
	note "$codec $*: $((written / 256)) MiB out, $((read_back / 256)) MiB in, all right"
	need_top_priority "$block" # still
	# That much does not fit, so it must have been swapped out, or nothing was tested.
	[ "$written" -gt $(((hogs * hog_mib - limit_mib) * 256)) ] ||
		fail "only $written pages were swapped out"
	[ "$(uz_cgroup_oom_kills)" = 0 ] || fail "a program was killed"
	expect_no_errors
	expect_sums
	stop_daemon
}

take_swap_lock
verify lz4
verify zstd
verify lz4 --huge
pass
