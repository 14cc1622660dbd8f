# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Packages and builds, for quickstart and run-tests. To be sourced by bash.

uz_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# What is needed where there is no apt: tools, then pkg-config names as in configure.ac.
uz_tools=(cc make autoreconf automake pkg-config python3 swapon losetup)
uz_modules=('fuse3 >= 3.14' 'libzstd >= 1.5.0' 'liblz4 >= 1.9.3' 'json-c >= 0.16' 'inih >= 53'
	'liburcu-memb >= 0.13' 'libsystemd >= 246' 'check >= 0.15')

uz_say() {
	printf '%s\n' "$*" >&2
}

uz_die() {
	uz_say "${0##*/}: $*"
	exit 1
}

# --- packages ---------------------------------------------------------------

uz_is_installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The first of "A|B|C" that the distribution has.
uz_first_known() {
	local name
	for name in ${1//|/ }; do
		# The candidate of a name that nothing provides is "(none)", or there is no output.
		if apt-cache policy "$name" 2>/dev/null | grep -q '^  Candidate: [^(]'; then
			echo "$name"
			return
		fi
	done
}

uz_missing_packages() { # KIND...
	local kind names name found
	while read -r kind names; do
		[[ " $* " == *" $kind "* ]] || continue
		found=no
		for name in ${names//|/ }; do
			uz_is_installed "$name" && found=yes
		done
		[ $found = yes ] || echo "$names"
	done <"$uz_top/contrib/packages"
}

# Lists, on a distribution without apt, what cannot be found. Never fails: configure decides.
uz_name_missing() {
	local tool module missing=()
	for tool in "${uz_tools[@]}"; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	for module in "${uz_modules[@]}"; do
		pkg-config --exists "$module" 2>/dev/null || missing+=("development files of $module")
	done
	[ ${#missing[@]} -eq 0 ] && return
	uz_say "This distribution has no apt. Please install:"
	printf '  %s\n' "${missing[@]}" >&2
}

uz_install() { # KIND...
	local missing=() wanted=() names name
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		uz_name_missing
		return
	fi
	mapfile -t missing < <(uz_missing_packages "$@")
	[ ${#missing[@]} -eq 0 ] && return
	if [ "$(id -u)" -ne 0 ]; then
		uz_say "Not root, so not installed: ${missing[*]}"
		return
	fi
	uz_say "Installing: ${missing[*]}"
	local log
	log=$(mktemp)
	apt-get -q update </dev/null >"$log" 2>&1 || true
	for names in "${missing[@]}"; do
		name=$(uz_first_known "$names")
		if [ -n "$name" ]; then
			wanted+=("$name")
		else
			uz_say "This distribution has no package $names; going on without."
		fi
	done
	if [ ${#wanted[@]} -gt 0 ] && ! DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		--no-install-recommends install "${wanted[@]}" </dev/null >>"$log" 2>&1; then
		tail -n 20 "$log" >&2
		uz_say "apt-get could not install all of: ${wanted[*]}"
		uz_say "Going on with what is there."
	fi
	rm -f "$log"
}

# --- builds -----------------------------------------------------------------

# Runs a command as the owner of the sources, so that `sudo` leaves no files of root in a
# user's checkout.
uz_as_owner() {
	local owner group
	owner=$(stat -c %u "$uz_top")
	group=$(stat -c %g "$uz_top")
	if [ "$(id -u)" -eq 0 ] && [ "$owner" -ne 0 ]; then
		setpriv --reuid="$owner" --regid="$group" --clear-groups -- "$@"
	else
		"$@"
	fi
}

# Sets uz_builddir (absolute, made if need be) and uz_builddir_is_temporary.
uz_choose_builddir() { # [DIRECTORY]
	uz_builddir_is_temporary=no
	uz_builddir=${1:-$uz_top/build}
	if uz_as_owner mkdir -p "$uz_builddir" 2>/dev/null || mkdir -p "$uz_builddir" 2>/dev/null; then
		uz_builddir=$(cd "$uz_builddir" && pwd)
		return
	fi
	[ $# -eq 0 ] || uz_die "$1: cannot be made"
	uz_builddir=$(mktemp -d "${TMPDIR:-/tmp}/uzswap-build.XXXXXX")
	uz_builddir_is_temporary=yes
}

# Sets uz_source: the sources with an up-to-date configure. Where that cannot be written, or
# where somebody has configured in the tree (make does not build elsewhere then), it is a copy.
uz_prepare_source() {
	uz_source=$uz_top
	if [ -e "$uz_top/config.status" ] || ! uz_as_owner test -w "$uz_top"; then
		uz_source=$uz_builddir/source
		mkdir -p "$uz_source"
		(cd "$uz_top" && tar -c --exclude=./.git --exclude=./build --exclude=./config.status \
			--exclude=./Makefile --exclude=./config.h --exclude='*.o' --exclude='*.a' .) |
			tar -x -C "$uz_source" --no-same-owner
	fi
	local log=$uz_builddir/autoreconf.log
	if [ ! -x "$uz_source/configure" ] || [ ! -f "$uz_source/Makefile.in" ] ||
		[ "$uz_source/configure.ac" -nt "$uz_source/configure" ]; then
		if ! (cd "$uz_source" && uz_as_owner autoreconf -fi) >"$log" 2>&1; then
			cat "$log" >&2
			uz_die "autoreconf failed"
		fi
	fi
}

# Configures DIRECTORY, again only when the arguments or configure have changed, and runs make.
# Output goes to standard output.
uz_build() { # DIRECTORY "CONFIGURE ARGUMENTS" [MAKE ARGUMENT...]
	local directory=$1 arguments=$2
	shift 2
	uz_as_owner mkdir -p "$directory" || return
	if [ "$(cat "$directory/.configured" 2>/dev/null)" != "$arguments" ] ||
		[ "$uz_source/configure" -nt "$directory/.configured" ]; then
		# eval: the arguments contain quoted blanks, as in CFLAGS='-O1 -g'.
		(cd "$directory" && eval "uz_as_owner \"\$uz_source/configure\" $arguments") || return
		uz_as_owner tee "$directory/.configured" <<<"$arguments" >/dev/null
	fi
	uz_as_owner make -C "$directory" -j "$(nproc)" "$@"
}
