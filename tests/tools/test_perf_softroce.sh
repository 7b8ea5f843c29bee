#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hawser's own plugin over the software NIC: every operation, versions old and new, grouped and shuffled; a killed rank.
. "$(dirname "$0")/lib.sh"
export HA_NCCL_VERBS=soft
# a subnet pair of its own: other tests may run at the same time
export SOFTROCE_DEVICES="${SOFTROCE_DEVICES:-127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24}"

for op in pingpong sendrecv allreduce allgather reducescatter broadcast reduce alltoall; do
	clean 0 $op --ranks 2 -b 8 -e 600K -f 40 -n 2
done
for version in 6 9 11; do
	clean 0 alltoall --net-version $version --ranks 3 --channels 4 --shuffle --flush -b 24 -e 300K -f 100 -n 2
done
clean 0 allreduce --ranks 4 --channels 3 --group 3 --dev all --shuffle -b 8 -e 2M -f 60 -n 2 --check-all
HA_NCCL_POLICY=adaptive clean 0 allreduce --ranks 2 --dev 0+1 --channels 2 -b 64K -e 8M -f 8 -n 6 --check-all
clean 0 allreduce --ranks 2 --vs "$PLUGIN" --vs-net-version 9 -b 8 -e 8K -f 10 -n 4

: >"$TMP/out"
timeout 800 "$HA" perf allreduce --plugin "$PLUGIN" --ranks 3 -n 100000000 >"$TMP/out" 2>"$TMP/err" &
pid=$!
for _ in $(seq 600); do
	grep -q 'algbw' "$TMP/out" && break
	sleep 0.1
done
perf_pid=$(cut -d' ' -f1 /proc/$pid/task/$pid/children)
kill -9 "$(cut -d' ' -f2 "/proc/$perf_pid/task/$perf_pid/children")"
wait $pid
[ $? -eq 1 ] || fail "status after the death of a rank"
grep -q '^ha perf: rank 1 was killed by signal 9' "$TMP/err" || fail "no line about the dead rank"
[ "$(said)" -eq 1 ] || fail "more than one line about the dead rank"
finish
