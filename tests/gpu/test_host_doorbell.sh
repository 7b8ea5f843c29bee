#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How a host thread rings a NIC, as clang compiles it. AArch64: a barrier that devices take part in stands before the doorbell record and before the register,
# and one behind it. x86-64: the register gets a plain store (a locked exchange would read it, too), with fences for one that is write-combining.
# test_host_doorbell.sh CLANG SOURCE aarch64|x86_64
set -euo pipefail
clang=$1 source=$2 machine=$3

"$clang" "--target=$machine-linux-gnu" -fsyntax-only -x c /dev/null 2>/dev/null || {
	echo "this clang does not compile for $machine"
	exit 77
}
# Freestanding: the headers that are needed are the compiler's own.
assembly=$("$clang" "--target=$machine-linux-gnu" -std=gnu11 -O2 -ffreestanding "-I$source" -S -o - "$source/tests/gpu/doorbell.c")
case $machine in
aarch64)
	order=$(awk '$1 == "dmb" || $1 == "dsb" { print $1, $2 } $1 ~ /^stl?r$/ { print "store", substr($2, 1, 1) }' <<<"$assembly" | paste -sd ';')
	want='dmb oshst;store w;dmb oshst;store x;dsb st'
	;;
x86_64)
	order=$(awk '$1 ~ /fence|^xchg|^lock/ { print $1 } $1 ~ /^mov[lq]$/ && $NF ~ /\)$/ { print $1 }' <<<"$assembly" | paste -sd ';')
	want='movl;sfence;movq;sfence'
	;;
esac
[ "$order" = "$want" ] && exit 0
printf '%s\nfound: %s\nwant:  %s\n' "$assembly" "$order" "$want"
exit 1
