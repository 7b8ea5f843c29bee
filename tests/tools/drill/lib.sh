# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of `ha drill`. Argument of every test: the ha program.
set -euo pipefail
HA=$1
TMP=$(mktemp -d)
JOB= OTHER= DRILL=
export TMPDIR=$TMP SOFTROCE_CONTROL=$TMP/control HA_NCCL_STATUS_DIR=$TMP/status
mkdir -m 700 "$SOFTROCE_CONTROL"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT NCCL_DEBUG NCCL_NET_PLUGIN NCCL_IB_HCA SOFTROCE_DEVICES

tidy() {
	for pid in $DRILL $JOB $OTHER; do
		kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$TMP"
}
trap tidy EXIT

fail() {
	echo "FAIL: $*"
	tail -n 20 "$TMP"/*.out "$TMP"/*.err 2>/dev/null
	exit 1
}

# await WHAT COMMAND...: until it succeeds; only a hang reaches the limit.
await() {
	local what=$1 i
	shift
	for i in $(seq 2400); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	fail "never came: $what"
}

# A job in the background, JOB is its number.
start_job() {
	HA_NCCL_VERBS=soft "$HA" perf allreduce --ranks 2 -b 64K -e 64K --duration 600s --compute 10ms >"$TMP/job.out" 2>"$TMP/job.err" &
	JOB=$!
	await_protected
}

await_protected() {
	await "protected connections" sh -c "'$HA' status | grep -q ' nic  '"
}

# No NIC of the job is cut, loses or is limited.
is_whole() {
	! "$HA" soft | grep -qE ', cut|drops|limit|: down'
}
is_cut() {
	"$HA" soft | grep -q ', cut'
}
