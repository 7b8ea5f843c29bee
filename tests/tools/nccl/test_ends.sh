#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Failures end a run with one line that names the call, the rank and what to do, and leave no process behind.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../interrupt.sh"

run=(all_reduce --ranks 3 -b 1K -e 1K -n 20)

TESTNCCL_FAULT=init:2 refused 1 'rank 2: ncclCommInitRankConfig on rank 2: unhandled system error \(2\); NCCL says: no network for the test; .*NCCL_DEBUG=WARN' "${run[@]}"
TESTNCCL_FAULT=call:1:7 refused 1 'ncclAllReduce on rank 1: internal error \(3\); NCCL says: the test wants this call to fail' "${run[@]}"
TESTNCCL_FAULT=async:1:9 refused 1 'ncclAllReduce on rank 1: remote process exited or there was a network error \(6\)' "${run[@]}"
TESTNCCL_FAULT=die:2:5 refused 1 'rank 2 was killed by signal 9' "${run[@]}"
TESTNCCL_FAULT=die:0:5 refused 1 'rank 0 was killed by signal 9' "${run[@]}"
TESTNCCL_FAULT=hang:1:6 refused 1 'nothing has moved for 6 s in ncclAllReduce' "${run[@]}" -T 6
TESTNCCL_FAULT=corrupt:1 nccl "${run[@]}"
[ $STATUS -eq 1 ] || fail "status $STATUS with wrong elements"
grep -qE '^# Out of bounds values : [1-9][0-9]* FAILED$' "$TMP/out" || fail "wrong elements in the footer"
# a rank that is killed from outside, in the middle of a run by duration
refused 1 'rank 1 was killed by signal 9' all_reduce --ranks 3 -b 1K -e 1K --duration 60s --at 0.3s 'kill -9 $HA_RANK_PID_1'
# ^C ends such a run early and in order
LD_LIBRARY_PATH=$STAND_INS env --default-signal=INT "$HA" nccl --nccl "$STAND_INS/libnccl.so.2" all_reduce --ranks 2 -b 1K -e 1K \
	--duration 600s >"$TMP/out" 2>"$TMP/err" &
interrupt $! 2
wait $! || fail "status after ^C"
grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "^C"
for pid in $(grep -oE 'Pid +[0-9]+' "$TMP/out" | grep -oE '[0-9]+'); do
	kill -0 "$pid" 2>/dev/null && fail "process $pid is left"
done
finish
