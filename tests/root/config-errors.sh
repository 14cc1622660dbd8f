#!/bin/bash
# SPDX-License-Identifier: MIT
# Faulty configurations, through the real program: status 78, file, line and key named, nothing
# made. What each kind of fault says is tested in test_conf.

. "$(dirname "$0")/lib.sh"

before=$(ls "$uz_work")

refuse() { # WHAT EXPECTED-TEXT... ; configuration on standard input
	local what=$1 text status=0
	shift
	cat >"$uz_work/bad.conf"
	timeout 5 "$uz_bin/uzswapd" --config "$uz_work/bad.conf" --runtime-dir "$uz_work/run" \
		>"$uz_work/output" 2>&1 </dev/null || status=$?
	[ $status -eq 78 ] || fail "$what: status $status: $(cat "$uz_work/output")"
	for text in "$@"; do
		grep -qF -- "$text" "$uz_work/output" || fail "$what: no '$text' in: $(cat "$uz_work/output")"
	done
	[ ! -e "$uz_work/run" ] || fail "$what: a runtime directory was made"
}

refuse "unknown codec" "bad.conf:2:" "Codec" "lz4" "zstd" <<-END
	[Device a]
	Codec=lzma
END
refuse "limit in MB" "bad.conf:2:" "6144" "6144M" <<-END
	[Device a]
	MemoryLimit=6144
END
refuse "priority" "bad.conf:2:" "Priority" "-1" "32767" <<-END
	[Device a]
	Priority=32768
END
refuse "comment behind a value" "bad.conf:2:" <<-END
	[Device a]
	Size=64M # comment
END
refuse "key outside of a section" "bad.conf:1:" <<-END
	Size=64M
END
refuse "size too small" "bad.conf:2:" "40960" <<-END
	[Device a]
	Size=8K
END
refuse "two faults at once" "bad.conf:2:" "bad.conf:3:" <<-END
	[Device a]
	Size=huge
	Codec=lzma
END

status=0
"$uz_bin/uzswapd" --config "$uz_work/none.conf" --runtime-dir "$uz_work/run" >"$uz_work/output" 2>&1 ||
	status=$?
[ $status -eq 78 ] || fail "a missing --config file: status $status: $(cat "$uz_work/output")"
grep -qF none.conf "$uz_work/output" || fail "a missing file is not named"

# --check-config is strict, and touches nothing.
printf '[Device a]\nMemoryLimt=64M\n' >"$uz_work/typo.conf"
status=0
"$uz_bin/uzswapd" --check-config --config "$uz_work/typo.conf" >"$uz_work/output" 2>&1 || status=$?
[ $status -eq 78 ] || fail "--check-config of an unknown key: status $status"
grep -qF "'MemoryLimit'" "$uz_work/output" || fail "no suggestion: $(cat "$uz_work/output")"
example=$(dirname "$0")/../../contrib/uzswapd.conf.example
"$uz_bin/uzswapd" --check-config --config "$example" >"$uz_work/output" 2>&1 ||
	fail "the example is refused: $(cat "$uz_work/output")"
grep -q '^MemoryLimit=' "$uz_work/output" || fail "--check-config does not show the values"

# An unknown key is a warning for the daemon: an older one must start with a newer file.
start_daemon <<-END
	[Device a]
	Size=64M
	MemoryLimit=32M
	SwapOn=no
	FutureKey=1
END
expect_log FutureKey

# Options.
for arguments in "--runtime-dir relative" "--no-such-option" "surplus"; do
	status=0
	# shellcheck disable=SC2086 # words on purpose
	"$uz_bin/uzswapd" $arguments >"$uz_work/output" 2>&1 </dev/null || status=$?
	[ $status -eq 2 ] || fail "uzswapd $arguments: status $status"
done
pass
