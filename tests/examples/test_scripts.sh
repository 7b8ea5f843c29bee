#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The scripts for Slurm and vLLM: the prolog lets a good node through and stops a bad one, the task prolog prints the environment, the
# batch script runs under an srun that is only mpirun, vLLM's gets what it is given.
. "$(dirname "$0")/lib.sh"
command -v mpirun.openmpi >/dev/null || { echo "skipped: no mpirun.openmpi"; exit 77; }
examples=$root/examples
unset HA_NCCL_STATUS_DIR SOFTROCE_CONTROL # ctest's own folders, which the task prolog would pass on

"$examples/slurm/prolog.sh" >"$work/out" 2>&1 || fail "the prolog stops a node that is in order"
echo 'export NCCL_NET_PLUGIN=nowhere NCCL_NET=HA' >"$work/wrong.sh"
! HAWSER_ENV=$work/wrong.sh "$examples/slurm/prolog.sh" >"$work/out" 2>&1 || fail "the prolog lets a node through where NCCL finds no plugin"
grep -q '^error ' "$work/out" || fail "the prolog does not say what is wrong"
HA=$work/no-ha "$examples/slurm/prolog.sh" >"$work/out" 2>&1 || fail "the prolog stops a node without hawser"

NCCL_IB_HCA=mlx5_1 PRIVATE=1 "$examples/slurm/task_prolog.sh" >"$work/out"
[ "$(sort "$work/out" | grep -v HA_NCCL_VERBS)" = "$(printf 'export NCCL_%s\n' IB_HCA=mlx5_1 NET=HA NET_PLUGIN=ha)" ] || fail "task prolog"

mkdir "$work/bin"
cat >"$work/bin/srun" <<'END'
#!/bin/sh
while :; do
	case "$1" in
	--ntasks=*) n=${1#*=}; shift ;;
	--*) shift ;;
	*) break ;;
	esac
done
exec mpirun.openmpi -np "$n" "$@"
END
cat >"$work/bin/vllm" <<'END'
#!/bin/sh
echo "$NCCL_NET_PLUGIN $NCCL_NET: $*"
END
chmod +x "$work/bin/srun" "$work/bin/vllm"
export PATH=$work/bin:$PATH
SLURM_NTASKS=2 SLURM_NNODES=1 CHECK_COMMAND='perf allreduce -b 64K -e 64K -n 20' \
	"$examples/slurm/job.sbatch" "$HA" perf pingpong -b 8 -e 8 -n 20 >"$work/out" 2>&1 || fail "the batch script"
[ "$(grep -c '^# Out of bounds values : 0 OK' "$work/out")" = 2 ] || fail "not two clean runs in the batch script"
grep -q 'plugin: HA, ' "$work/out" || fail "another plugin than hawser's"
! HAWSER_ENV=$work/wrong.sh SLURM_NTASKS=2 SLURM_NNODES=1 "$examples/slurm/job.sbatch" touch "$work/ran" >"$work/out" 2>&1 || fail "the batch script goes on without a plugin"
[ ! -e "$work/ran" ] || fail "the program has begun though a node is bad"

RANK=1 HEAD=10.0.0.1 "$examples/vllm/serve.sh" model --tensor-parallel-size 8 >"$work/out" 2>&1 || fail "vLLM's script"
grep -qx 'ha HA: serve model --tensor-parallel-size 8 --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 --headless' "$work/out" || fail "vLLM's arguments"
echo "prolog, task prolog, batch script and vLLM's script do as they say"
