#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_perf.sh HA ADDING_BACKEND: `ha ina-perf` finds nothing wrong where nothing is, goes on in another group, and finds one wrong bit
set -u
ha=$1 backend=$2
folder=$(mktemp -d)
export NETCCL_BACKEND=$folder/ina.sock
trap 'exec 9>&-; wait; rm -rf "$folder"' EXIT

start() { # options: a backend that ends when descriptor 9 is closed
	mkfifo "$folder/in"
	"$backend" --socket "$NETCCL_BACKEND" "$@" <"$folder/in" >"$folder/ready" &
	exec 9>"$folder/in"
	rm "$folder/in"
	for _ in $(seq 3000); do
		[ -s "$folder/ready" ] && return
		sleep 0.02
	done
	fail "the backend does not start"
}
stop() {
	exec 9>&-
	wait
}
fail() {
	echo "$1"
	[ ! -e "$folder/out" ] || cat "$folder/out" "$folder/err"
	exit 1
}
perf() { # status, text that must be there, arguments
	local want=$1 text=$2
	shift 2
	timeout 800 "$ha" ina-perf "$@" >"$folder/out" 2>"$folder/err"
	local is=$?
	[ $is = "$want" ] || fail "ha ina-perf $*: status $is, expected $want"
	grep -q -- "$text" "$folder/out" "$folder/err" || fail "ha ina-perf $*: does not say '$text'"
}

start
for type in float32 int32 bytes; do
	perf 0 'wrong: 0 elements on all ranks; groups: 1$' all --ranks 4 -b 4K -e 64K -n 2 -t $type
done
perf 0 '^barrier .* N/A  *N/A$' all --ranks 2 -b 4K -e 4K -n 2 --root 1
grep -qE '^reduce .* N/A +N/A$' "$folder/out" || fail "rank 0 has no result of a reduce to rank 1"
grep -qE '^all_reduce .* 0 +[0-9.]+$' "$folder/out" || fail "an all-reduce is verified"
perf 0 'wrong: 0' all_reduce --ranks 2 -b 5M -e 5M -n 1
stop
perf 0 '^not verified; groups: 1$' all --loopback -b 4K -e 4K -n 2
grep -E '^[a-z_]+ +float32 ' "$folder/out" | grep -qvE ' N/A +N/A$' && fail "a row of --loopback that counts"
start --cancel-at 30
perf 0 'wrong: 0 elements on all ranks; groups: 3$' all_reduce --ranks 3 -b 4K -e 64K -n 10 --again 3
perf 3 'as the test wants it' all_reduce --ranks 3 -b 4K -e 64K -n 10
stop
for type in float32 int32; do
	start --spoil-at 10
	perf 1 'elements are wrong' all_reduce --ranks 2 -b 4K -e 64K -n 3 -t $type
	stop
done

# each rank by itself: one is killed and started again where it was, all are told to end, and say what they had
start
by_hand() { # rank, options
	local rank=$1
	shift
	"$ha" ina-perf all_reduce -b 4K -e 4K -n 100000 --ranks 2 --rank "$rank" --ticket "$folder/ticket" --members 127.0.0.1,127.0.0.1 --again 9 --timeout 100 --each \
		"$@" >>"$folder/rank$rank" 2>>"$folder/err" &
}
until_more() { # rank: steps that it had
	local had
	had=$(grep -c '^step' "$folder/rank$1")
	for _ in $(seq 5000); do
		[ "$(grep -c '^step' "$folder/rank$1")" -gt $((had + 5)) ] && return
		sleep 0.02
	done
	cp "$folder/rank$1" "$folder/out"
	fail "rank $1 does not go on"
}
by_hand 0
zero=$!
by_hand 1
one=$!
until_more 0
kill -9 $one
wait $one 2>/dev/null
had=$(grep -c '^step .* s$' "$folder/rank1")
by_hand 1 --incarnation 1 --first "$had"
one=$!
until_more 0
until_more 1
kill $zero $one
wait $zero || fail "rank 0 did not end in order: $?"
wait $one || fail "rank 1 did not end in order: $?"
for rank in 0 1; do
	grep -q '^group 1$' "$folder/rank$rank" || fail "rank $rank was not in another group"
	grep '^step .* s$' "$folder/rank$rank" | grep -qv ' 0 wrong, ' && fail "rank $rank has wrong elements"
	grep -o '^step [0-9]*' "$folder/rank$rank" | awk '$2 != n && $2 != n - 1 && $2 != n + 1 { exit 1 } { n = $2 + 1 }' || fail "rank $rank left out steps"
done
stop

perf 3 'start ha-backend' all_reduce
perf 2 'for one rank' --incarnation 1
perf 2 'none of the steps' --rank 0 --ticket x --members 10.0.0.1,10.0.0.2 -n 3 -b 4K -e 4K --first 4
perf 2 'takes a number of bytes from 4 to 1G' -b 3x
perf 2 'one word too many' all all
perf 2 'none of those' sum
perf 2 'as many addresses' --rank 0 --ticket x --members 10.0.0.1
echo ok
