#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every kind of fault by itself, so that none hides behind another. Arguments: the ha program, how many seeds of each.
set -u
failed=0
for fault in $("$1" sim --list | sed '/^$/,$d' | cut -d' ' -f1); do
	printf '%-18s' "$fault"
	"$1" sim --faults "$fault" --start 1 --seeds "$2" -j 2 || failed=1
done
exit $failed
