#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Slurm itself, two nodes on this machine: the prolog drains a node that is not in order and lets it back, the task prolog sets the
# environment, the batch script runs, `ha doctor --fabric` measures between the nodes under srun. As root.
if [ "${2:-}" != inside ]; then
	[ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
	for program in munged slurmctld slurmd srun; do
		PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "skipped: no $program: scripts/install-deps long"; exit 77; }
	done
	exec unshare --mount --net --uts --pid --fork --kill-child --mount-proc "$0" "$1" inside
fi
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/slurm_cluster.sh"
PATH=$PATH:/usr/sbin
examples=$root/examples

# What a site's prolog would find installed; Slurm gives it an environment without anything. The node that is not in order has an
# environment in which NCCL finds no plugin.
cat >"$work/prolog.sh" <<END
#!/bin/sh
export HA=$HA HAWSER_ENV=$work/env.\$(hostname).sh LD_LIBRARY_PATH=$LD_LIBRARY_PATH SOFTROCE_CONTROL=$SOFTROCE_CONTROL
exec $examples/slurm/prolog.sh >>$work/prolog.\$(hostname).log 2>&1
END
cat >"$work/task_prolog.sh" <<END
#!/bin/sh
HAWSER_ENV=$work/env.\$(hostname).sh exec $examples/slurm/task_prolog.sh
END
chmod +x "$work/prolog.sh" "$work/task_prolog.sh"
{
	cat "$HAWSER_ENV"
	echo 'export HA_NCCL_VERBS=soft NCCL_IB_HCA=soft'
} >"$work/env.n1.sh"
cp "$work/env.n1.sh" "$work/env.n2.sh"
echo 'export NCCL_NET_PLUGIN=nowhere' >>"$work/env.n2.sh"
unset HA_NCCL_VERBS
cluster_open "$work/prolog.sh" "$work/task_prolog.sh"

# submit OPTIONS...: a job of `hostname`, printed: its number
submit() {
	sbatch --parsable --output="$work/job.%j" "$@" --wrap hostname
}
ended() { # JOB STATE
	[ "$(scontrol -o show job "$1" | sed 's/.* JobState=\([A-Z]*\) .*/\1/')" = "$2" ]
}
over() {
	! ended "$1" PENDING && ! ended "$1" RUNNING && ! ended "$1" COMPLETING
}

# The prolog: n1 runs a job; n2 does not, and is drained with the reason in its log; the job waits.
job=$(submit -w n1)
await ended "$job" COMPLETED && grep -qx n1 "$work/job.$job" || fail "no job on the node that is in order"
job=$(submit -w n2 --requeue)
await node_is n2 drained || fail "the node that is not in order is $(sinfo -h -n n2 -o %T)"
grep -q '^error .*nowhere' "$work/prolog.n2.log" || fail "the prolog does not say what is wrong: $(cat "$work/prolog.n2.log")"
[ ! -e "$work/job.$job" ] || fail "a job has run on the node that is not in order"
cp "$work/env.n1.sh" "$work/env.n2.sh"
scontrol update NodeName=n2 State=RESUME
scontrol release "$job"
scontrol update JobId="$job" StartTime=now # it would wait for two minutes
await ended "$job" COMPLETED && grep -qx n2 "$work/job.$job" || fail "the job does not run when the node is mended"

# The task prolog: the job's own environment has none of it.
srun -N2 -n2 sh -c 'echo $(hostname) $NCCL_NET_PLUGIN $NCCL_NET $NCCL_IB_HCA $HA_NCCL_VERBS' >"$work/out" || fail "srun"
[ "$(sort "$work/out")" = "$(printf 'n%d ha HA soft soft\n' 1 2)" ] || fail "the task prolog has not set the environment"

# The batch script as it is, but for the number of tasks on a node, and what it checks NCCL with.
export HAWSER_ENV=$work/env.n1.sh CHECK_COMMAND='perf allreduce -b 64K -e 64K -n 20'
job=$(sbatch --parsable --ntasks-per-node=2 --gpus-per-node=2 --output="$work/out" "$examples/slurm/job.sbatch" \
	"$HA" perf pingpong -b 8 -e 8 -n 20)
await over "$job" && ended "$job" COMPLETED || fail "the batch script"
[ "$(grep -c '^# Out of bounds values : 0 OK' "$work/out")" = 2 ] || fail "not two clean runs in the batch script"
[ "$(grep -c '# ha perf .*: 4 ranks (.*srun)' "$work/out")" = 2 ] || fail "not four ranks of srun"
for node in n1 n2; do
	grep -q "^$node, hawser" "$work/out" || fail "ha doctor has not run on $node"
done

# The fabric, as its manual says: a rank on each node, and more, of which one on each node measures.
# A process that waits long for its processor is no broken cable.
export HA_NCCL_FORCE_IB_TIMEOUT=18
srun -N2 --ntasks-per-node=1 "$HA" doctor --fabric --slow 1 --time 20ms --json >"$work/json" 2>"$work/out" || fail "ha doctor --fabric"
python3 - "$work/json" <<'END' || fail "the report of --fabric: $(cat "$work/json")"
import json, sys
report = json.load(open(sys.argv[1]))
ports = ["%(host)s %(port)s" % port for port in report["ports"]]
assert report["hosts"] == 2 and ports == ["n1 soft0:1", "n1 soft1:1", "n2 soft0:1", "n2 soft1:1"], ports
assert len(report["paths"]) == 8, report["paths"]
for path in report["paths"]:
    assert path["state"] == "reached" and path["failover"] == "survived", path
END
echo "prolog, task prolog, batch script and ha doctor --fabric under Slurm $(srun --version | cut -d' ' -f2)"
