#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every operation, type and reduction, in place and out of place; several GPUs in a process; graphs; registered buffers; two
# transports in turns; a run by duration with commands.
. "$(dirname "$0")/lib.sh"

for op in all_reduce all_gather reduce_scatter broadcast reduce alltoall sendrecv gather scatter; do
	clean 4 $op --ranks 3 -b 8 -e 64K -f 16 -n 3 -w 1
	grep -q "^# ha nccl .*: $op, 3 ranks in 3 processes (fork)$" "$TMP/out" || fail "the head of $op"
done
clean 60 all_reduce --ranks 3 -b 4K -e 4K -n 2 -d all -o all
clean 60 reduce_scatter --ranks 4 -b 4K -e 4K -n 2 -d all -o all
clean 10 alltoall --ranks 2 -b 4K -e 4K -n 2 -d all
clean 2 reduce --ranks 3 -r 2 -b 1K -e 2K -n 2 -c 3 --check-all
clean 2 all_reduce --ranks 2 -g 2 -b 1K -e 2K -n 2
grep -q '4 ranks in 2 processes' "$TMP/out" && grep -q '#  Rank  3 Pid .* device  3 \[0000:04:00.0\]' "$TMP/out" ||
	fail "two GPUs in each process"
clean 1 sendrecv --ranks 2 -g 2 -b 1K -e 1K -n 2
clean 1 all_reduce --ranks 2 -b 1K -e 1K -n 1100 -z 1 # more iterations than are asked for at a time
clean 1 all_reduce --ranks 2 -b 1K -e 1K -n 5 -G 3
clean 1 all_reduce --ranks 2 -b 1K -e 1K -n 5 -R 1
# by duration it sends from buffers of its own, which must be registered as well: the two ends of a connection may not differ
clean 1 alltoall --ranks 2 -b 4K -e 4K --duration 300ms -R 1
clean 1 all_reduce --ranks 2 -g 2 -b 4K -e 4K --duration 300ms -R 1
refused 1 'does not know the registration of -R 2' all_reduce --ranks 2 -b 1K -e 1K -n 5 -R 2
clean 4 all_reduce --ranks 2 -b 1K -e 2K -n 10 --net hawser --vs ib --rounds 5
grep -q 'median of 5 rounds: time ' "$TMP/out" || fail "the rounds of two transports"
clean 1 all_reduce --ranks 2 -b 64K -e 64K --duration 600s --at 0.1s 'echo "rank 1 is $HA_RANK_PID_1"; kill -INT $HA_RANK_PID_0'
grep -qE '^rank 1 is [0-9]+$' "$TMP/err" || fail "a command of --at"
# the network: what was asked for is what NCCL took; else its log says it, where that goes to a file; else nobody does
grep -q '^# network: unknown: ' "$TMP/out" || fail "an unknown network"
clean 1 all_reduce --ranks 2 -b 8 -e 8 -n 2 --net socket
grep -q '^# network: Socket$' "$TMP/out" || fail "the network that was asked for"
NCCL_NET=ib clean 1 all_reduce --ranks 2 -b 8 -e 8 -n 2
grep -q '^# network: IB$' "$TMP/out" || fail "the network that NCCL_NET has asked for"
NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$TMP/log.%p clean 1 all_reduce --ranks 2 -b 8 -e 8 -n 2
grep -q '^# network: Test$' "$TMP/out" && grep -q "NCCL's log, rank 0: Using network Test" "$TMP/out" ||
	fail "the network from NCCL's log"
grep -q 'set here' "$TMP/out" && fail "something was set on a machine with a CUDA runtime"
finish
