#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_nccl_ib.sh - bench/nccl-ib links NCCL's own transport as a plugin that moves bytes over the software NIC
#
# Usage: test_nccl_ib.sh BUILD NCCL-IB HA SOFTROCE-RUN
set -eu

build=$1
nccl_ib=$2
ha=$3
softroce_run=$4

fail() {
	echo "test_nccl_ib: $*" >&2
	exit 1
}

[ -r "${XDG_CACHE_HOME:-$HOME/.cache}/hawser/nccl" ] || {
	echo "test_nccl_ib: NCCL's objects are not there; scripts/install-deps nccl fetches them" >&2
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plugin=$work/libnccl-net-ncclib.so
BUILD=$build "$nccl_ib" "$plugin" || fail "it does not link"
"$softroce_run" "$ha" perf pingpong --plugin "$plugin" --ranks 2 -b 8 -e 64K -f 8192 -n 20 >"$work/out" 2>&1 || {
	cat "$work/out"
	fail "nothing moves over it"
}
grep -q "^# plugin: IB, net v[0-9]*, $plugin," "$work/out" || {
	cat "$work/out"
	fail "it was another plugin that moved them"
}
