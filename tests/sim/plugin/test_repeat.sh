#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same seed is the same run, packet for packet, in every process; other seeds are other runs.
# Argument: the ha program.
set -u
HA=$1
failed=0
traces=""
for seed in 2 3 5 8 13 21 34 55; do
	a=$("$HA" sim --seed $seed | tail -1)
	b=$("$HA" sim --seed $seed | tail -1)
	if [ "$a" != "$b" ]; then
		printf 'FAIL: seed %s\n  %s\n  %s\n' $seed "$a" "$b"
		failed=1
	fi
	traces+="${a##*trace }"$'\n'
done
[ "$(printf %s "$traces" | sort -u | wc -l)" = 8 ] || { echo "FAIL: different seeds give the same trace"; failed=1; }

# What shrinking prints is run again with what it printed, and finds the same.
out=$("$HA" sim --mutate corrupt --seeds 20 | grep -m1 'replay: ')
[ -n "$out" ] || { echo "FAIL: a corrupted byte is not found in 20 seeds"; exit 1; }
# shellcheck disable=SC2086
"$HA" ${out#*replay: ha } | grep -q '^seed [0-9]*: wrong byte' || { echo "FAIL: $out"; failed=1; }

# Called wrongly.
"$HA" sim --faults nonsense 2>/dev/null; [ $? = 2 ] || { echo "FAIL: an unknown fault is taken"; failed=1; }
"$HA" sim --list | grep -q '^kill ' || { echo "FAIL: --list"; failed=1; }
exit $failed
