#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that torchrun, mpirun or srun start, told by their environment; and by hand.
. "$(dirname "$0")/lib.sh"

# together VARIABLES-OF-A-RANK ...: two ranks with these environments; rank 0's output in $TMP/out
together() {
	local name=$1 first=$2 second=$3 port ranks=()
	exec 3< <(exec "$(dirname "$0")/../../base/held_port.py")
	read -r port <&3
	for part in 0 1; do
		[ $part = 0 ] && environment=$first || environment=$second
		# shellcheck disable=SC2086
		env $environment MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" LD_LIBRARY_PATH="$STAND_INS" timeout 800 "$HA" nccl \
			--nccl "$STAND_INS/libnccl.so.2" all_reduce -b 1K -e 4K -n 3 >"$TMP/out.$part" 2>"$TMP/err.$part" &
		ranks+=($!)
	done
	wait "${ranks[0]}" && wait "${ranks[1]}" || fail "$name: $(cat "$TMP"/err.*)"
	exec 3<&-
	grep -q "2 ranks in 2 processes ($name)" "$TMP/out.0" || fail "the head with $name"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out.0" || fail "the footer with $name"
	[ ! -s "$TMP/out.1" ] || fail "rank 1 has printed something with $name"
}

together torchrun 'RANK=0 WORLD_SIZE=2 LOCAL_RANK=0' 'RANK=1 WORLD_SIZE=2 LOCAL_RANK=1'
together "Open MPI's mpirun" 'OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0' \
	'OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1'
together srun 'SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0' 'SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1'
together "MPICH's mpirun" 'PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0' 'PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1'
refused 2 '--at needs ranks that are forked here' all_reduce --rank 0 --ranks 2 --rendezvous 127.0.0.1:1 -b 8 -e 8 --duration 1s \
	--at 0 true
finish
