#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One rank of many by the environment of torchrun, mpirun and srun, or by hand; ranks that never come or die.
. "$(dirname "$0")/lib.sh"
PORT=$((20000 + $$ % 55 * 40)) # up to 30 of them; tests/softroce/capture.py, foreign.sh and the kernel's own choices are above

# both NAME ENV0 ENV1: two processes with these settings make one run, reported by the first
both() {
	local name=$1
	env $3 "$HA" perf allreduce --plugin "$PLUGIN" -b 8 -e 64K -f 90 -n 2 -T 300 >"$TMP/out1" 2>"$TMP/err" &
	env $2 "$HA" perf allreduce --plugin "$PLUGIN" -b 8 -e 64K -f 90 -n 2 -T 300 >"$TMP/out" 2>>"$TMP/err" || fail "$name, rank 0"
	wait $! || fail "$name, rank 1"
	grep -q "2 ranks ($name)" "$TMP/out" || fail "$name is not in the header"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "$name: no clean footer"
	[ -s "$TMP/out1" ] && fail "$name: rank 1 printed a report too"
	PORT=$((PORT + 2))
}

at() { echo "MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT"; }
both torchrun "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 $(at)" "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 $(at)"
agent="TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=x"
both torchrun "RANK=0 WORLD_SIZE=2 $agent $(at)" "RANK=1 WORLD_SIZE=2 $agent $(at)"
ompi="OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=$PORT"
both "Open MPI's mpirun" "OMPI_COMM_WORLD_RANK=0 $ompi" "OMPI_COMM_WORLD_RANK=1 $ompi"
pmi="PMI_SIZE=2 MPI_LOCALNRANKS=2 PMI_JOBID=$PORT"
both "MPICH's mpirun" "PMI_RANK=0 $pmi" "PMI_RANK=1 $pmi"
slurm="SLURM_NTASKS=2 SLURM_JOB_ID=$PORT SLURM_JOB_NODELIST=localhost"
both srun "SLURM_PROCID=0 $slurm" "SLURM_PROCID=1 $slurm"

# by hand
"$HA" perf pingpong --plugin "$PLUGIN" -b 8 -e 8 --ranks 2 --rank 1 --rendezvous 127.0.0.1:$PORT &
perf pingpong -b 8 -e 8 --ranks 2 --rank 0 --rendezvous 127.0.0.1:$PORT
wait $! && [ $STATUS -eq 0 ] || fail "by hand"
PORT=$((PORT + 2))

# nobody says where rank 0 is
PMI_RANK=0 PMI_SIZE=2 refused 2 'give --rendezvous' pingpong
# rank 1 never comes; rank 0 is not there
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT refused 1 'rank 1 did not' pingpong -T 1
RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT refused 1 'does not answer' pingpong -T 1

# begun FILE: until the table's head is there, all ranks have met
begun() {
	for _ in $(seq 600); do
		grep -q algbw "$1" && return
		sleep 0.1
	done
	return 1
}

# a rank that ends: the other one reports it, within seconds (the limit is far from that and from the limit of a run that hangs)
for dead in 0 1; do
	alive=$((1 - dead))
	: >"$TMP/table$dead"
	RANK=$dead WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT \
		"$HA" perf allreduce --plugin "$PLUGIN" -n 100000000 >"$TMP/table$dead" 2>&1 &
	pid=$!
	: >"$TMP/out"
	table=$TMP/out
	[ $dead -eq 1 ] || table=$TMP/table0
	( begun "$table"; date +%s >"$TMP/killed"; kill -9 $pid ) &
	RANK=$alive WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT \
		refused 1 "rank $dead ended before the run did" allreduce -n 100000000
	[ $(($(date +%s) - $(cat "$TMP/killed"))) -le 120 ] || fail "it took long to notice that rank $dead died"
	wait $pid 2>/dev/null
	PORT=$((PORT + 2))
done

# the same with forked ranks: their parent says so
for dead in 1 3; do
	: >"$TMP/out"
	timeout 800 "$HA" perf allreduce --plugin "$PLUGIN" --ranks 3 -n 100000000 >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	begun "$TMP/out" || fail "three ranks do not begin"
	perf_pid=$(cut -d' ' -f1 /proc/$pid/task/$pid/children)
	kill -9 "$(cut -d' ' -f$dead "/proc/$perf_pid/task/$perf_pid/children")"
	wait $pid
	[ $? -eq 1 ] || fail "status after the death of forked rank $((dead - 1))"
	grep -q "^ha perf: rank $((dead - 1)) was killed by signal 9" "$TMP/err" || fail "no line about forked rank $((dead - 1))"
	[ "$(said)" -eq 1 ] || fail "more than one line about forked rank $((dead - 1))"
done
finish
