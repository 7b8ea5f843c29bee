#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_run.sh SOFTCUDA_RUN PROGRAM LIBRARIES: what softcuda-run finds, sets, refuses and says.
set -eu
run=$1 program=$2 libraries=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset LD_LIBRARY_PATH SOFTCUDA_NCCL SOFTCUDA_DEVICES CUDA_VISIBLE_DEVICES

fail() {
	echo "test_run: $*" >&2
	exit 1
}

! "$program" >/dev/null 2>&1 || fail "the program finds a CUDA runtime by itself: this test shows nothing"
SOFTCUDA_DEVICES=3 "$run" "$program" >"$folder/out" || fail "the program does not start"
grep -q '^3 devices' "$folder/out" || fail "it says $(cat "$folder/out")"
status=0
"$run" -- "$program" a b >/dev/null || status=$?
[ $status = 3 ] || fail "arguments or exit status are lost: $status"

"$run" --version | grep -qE '^softcuda-run: hawser [0-9.]+( \(g[0-9a-f]+\+?\))?$' || fail "it says $("$run" --version)"

# Which NCCL: the newest, or the one that was asked for.
newest=0
for library in $(ls -d "$libraries"/nccl-*/libnccl.so.2 2>/dev/null | sort -V); do
	newest=$(basename "$(dirname "$library")" | sed 's/^nccl-//')
	number=$(echo "$newest" | awk -F. '{ print $1 * 10000 + $2 * 100 + $3 }')
	SOFTCUDA_NCCL=$newest "$run" "$program" | grep "NCCL $number\$" >/dev/null || fail "SOFTCUDA_NCCL=$newest is not taken"
	"$run" "$program" | grep "NCCL $number\$" >/dev/null && last=yes || last=no
done
[ "$newest" = 0 ] || [ "$last" = yes ] || fail "without SOFTCUDA_NCCL it is not $newest that is taken"

refuses() { # expected text, command...
	expected=$1
	shift
	status=0
	"$@" >"$folder/out" 2>"$folder/err" || status=$?
	[ $status != 0 ] || fail "$* is not refused"
	grep -q "$expected" "$folder/err" || fail "$* says: $(cat "$folder/err")"
	[ "$(wc -l <"$folder/err")" = 1 ] || fail "$* takes more than a line: $(cat "$folder/err")"
}
SOFTCUDA_NCCL=1.2.3 refuses 'SOFTCUDA_NCCL=1.2.3 is not there; there are:' "$run" "$program"
refuses 'unknown option --nonsense' "$run" --nonsense
cp "$run" "$folder/softcuda-run"
refuses 'build or install hawser first' "$folder/softcuda-run" "$program"
"$run" --help | grep -q '^usage: softcuda-run PROGRAM' || fail "--help does not help"
! "$run" >/dev/null 2>&1 || fail "no program is no error"
