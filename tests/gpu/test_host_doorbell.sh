#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How a host thread rings a NIC on AArch64, as clang compiles it: a barrier that devices take part in stands before the doorbell record and before the register,
# and one behind it. test_host_doorbell.sh CLANG SOURCE
set -euo pipefail
clang=$1 source=$2

"$clang" --target=aarch64-linux-gnu -fsyntax-only -x c /dev/null 2>/dev/null || {
	echo "this clang does not compile for AArch64"
	exit 77
}
# Freestanding: the headers that are needed are the compiler's own.
assembly=$("$clang" --target=aarch64-linux-gnu -std=gnu11 -O2 -ffreestanding "-I$source" -S -o - "$source/tests/gpu/doorbell.c")
order=$(awk '$1 == "dmb" || $1 == "dsb" { print $1, $2 } $1 ~ /^stl?r$/ { print "store", substr($2, 1, 1) }' <<<"$assembly" | paste -sd ';')
want='dmb oshst;store w;dmb oshst;store x;dsb st'
[ "$order" = "$want" ] && exit 0
printf '%s\nfound: %s\nwant:  %s\n' "$assembly" "$order" "$want"
exit 1
