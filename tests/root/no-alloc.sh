#!/bin/bash
# SPDX-License-Identifier: MIT
# Time limit: 240 s
# After the start the I/O path allocates nothing: no malloc, no mmap, no brk in 200,000 mixed
# requests, on any thread that serves requests.

. "$(dirname "$0")/lib.sh"

need_program "${CC:=cc}"
requests=200000

"$CC" -O2 -shared -fPIC -D_GNU_SOURCE -Wno-nonnull -o "$uz_work/alloc_count.so" \
	"$(dirname "$0")/alloc_count.c" >"$uz_work/cc" 2>&1 || fail "$(cat "$uz_work/cc")"
truncate -s 64K "$uz_work/counts"

counts() { # arm | show
	python3 - "$uz_work/counts" "$1" <<-'END'
		import mmap, struct, sys
		with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as table:
		    if sys.argv[2] == "arm":
		        table[:8] = struct.pack("Q", 1)
		    for at in range(8, 8 + 128 * 48, 48):
		        tid, _, calls, name, last = struct.unpack_from("IIQ16s16s", table, at)
		        if tid:
		            print(*(text.rstrip(b"\0").split(b"\0")[0].decode() for text in (name, last)), calls)
	END
}

start_daemon run env LD_PRELOAD="$uz_work/alloc_count.so" ALLOC_COUNT_FILE="$uz_work/counts" <<-END
	[Device n]
	Size=160M
	MemoryLimit=192M
	SwapOn=no
END
block=$(uz_block n)

# The counting itself: the control thread allocates when it is asked, and that shows.
counts arm
uz_ctl status >/dev/null
counts show >"$uz_work/shown"
grep -q '^uzswap:ctl ' "$uz_work/shown" || fail "the counting does not work: $(cat "$uz_work/shown")"

served() {
	local reads writes discards
	read -r reads writes discards < <(uz_figure reads_total,writes_total,discards_total)
	echo $((reads + writes + discards))
}

before=$(served)
# Mostly small, and some of up to 256 KiB.
python3 "$(dirname "$0")/blockio.py" "$block" --requests $((requests + 1000)) --processes 4 --mib 128 \
	--largest 65536 || fail "the device differs from the model"
done=$(($(served) - before))
[ $done -ge $requests ] || fail "only $done requests were served"
counts show >"$uz_work/shown"
note "$done requests; allocations by others: $(grep -v '^uzswap:[rc][0-9]' "$uz_work/shown" | tr '\n' ';')"
# Control, reserve and collector may allocate: they can wait.
! grep -vE '^(uzswapd|uzswap:(mem|gc|ctl|ctlwork|balloon|relief|rearm)) ' "$uz_work/shown" ||
	fail "threads of the I/O path have allocated"
expect_no_errors
pass
