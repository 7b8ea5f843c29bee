#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One plugin for every distribution since RHEL 8 and Ubuntu 20.04: it needs no symbol that is younger than glibc 2.28, and no
# library but the C library's own. Argument: the plugin.
set -euo pipefail
export LC_ALL=C
plugin=$1 floor=2.28

fail() { echo "$1" >&2; exit 1; }

is_younger() { # version
	[ "$(printf '%s\n' "$1" "$floor" | sort -V | tail -1)" != "$floor" ]
}

needed=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ -n "$needed" ] || fail "readelf shows nothing of $plugin"
for library in $needed; do
	case "$library" in
	libc.so.6 | libpthread.so.0 | libdl.so.2 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1) ;;
	*) fail "the plugin needs $library when it is loaded" ;;
	esac
done
for library in libpthread.so.0 libdl.so.2; do # before 2.34 the functions are there
	grep -qx "$library" <<<"$needed" || fail "the plugin does not name $library"
done

versions=$(readelf -V -W "$plugin" | grep -oE 'Name: GLIBC_[0-9.]+' | sed 's/.*GLIBC_//' | sort -Vu)
[ -n "$versions" ] || fail "no version of glibc is needed at all?"
for version in $versions; do
	! is_younger "$version" || fail "younger than glibc $floor: $(nm -D "$plugin" | grep -F "@GLIBC_$version" | xargs)"
done
other=$(readelf -V -W "$plugin" | grep -oE 'Name: [A-Za-z_]+[0-9.]*' | grep -vE 'Name: GLIBC_[0-9]' || true)
[ -z "$other" ] || fail "versions of something else: $other"
echo "glibc $(tail -1 <<<"$versions") and later; needs $(xargs <<<"$needed")"
