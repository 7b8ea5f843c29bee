#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian package: built, unpacked into a folder of its own, and the software NIC used from there.
# Usage: deb.sh SOURCE_DIR BUILD_DIR
set -uo pipefail
source=$1 build=$2
for need in dpkg-deb objdump ibv_devinfo; do
	command -v $need >/dev/null || { echo "skipped: $need is not installed"; exit 77; }
done
scratch=$(mktemp -d)
export SOFTROCE_CONTROL=$scratch/control SOFTROCE_DEVICES=left=127.119.0.0/24,127.119.1.0/24
mkdir -m 700 "$SOFTROCE_CONTROL"
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null; rm -rf "$scratch"' EXIT
fail() { echo "failed: $1"; exit 1; }

deb=$("$source/scripts/deb" "$build" "$scratch") || fail "scripts/deb"
dpkg-deb -x "$deb" "$scratch/root" || fail "unpack"
control=$(dpkg-deb -f "$deb")
for part in 'Package: softroce' 'Depends: .*libc6' 'Depends: .*libisal2' 'Architecture: '; do
	grep -q "$part" <<<"$control" || fail "no '$part' in the control file"
done
run=$scratch/root/usr/bin/softroce-run
out=$("$run" ibv_devinfo 2>&1) || fail "ibv_devinfo: $out"
grep -q '^hca_id:.*left' <<<"$out" && grep -q '^hca_id:.*soft1' <<<"$out" || fail "names in ibv_devinfo: $out"
grep -q 'state:.*PORT_ACTIVE' <<<"$out" || fail "$out"
env -u LD_LIBRARY_PATH "$run" ibv_asyncwatch -d left >"$scratch/watch" 2>&1 &
pid=$!
for _ in $(seq 1200); do
	grep -q 'async event FD' "$scratch/watch" && break
	sleep 0.05
done
out=$("$scratch/root/usr/bin/ha" soft)
grep -q '^left@127.119.0' <<<"$out" || fail "ha soft does not list it: $out"
if command -v man >/dev/null; then
	MANWIDTH=100 man -l --warnings "$scratch/root/usr/share/man/man1/softroce-run.1.gz" >"$scratch/man" 2>"$scratch/warnings" ||
		fail "the manual page"
	[ ! -s "$scratch/warnings" ] || fail "the manual page: $(cat "$scratch/warnings")"
fi
! command -v lintian >/dev/null || lintian --fail-on error "$deb" || fail "lintian"
echo "$(basename "$deb"): $(dpkg-deb -f "$deb" Depends)"
