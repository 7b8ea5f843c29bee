#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two builds in one job. One that speaks a later protocol and this one's too: the job runs, and its NICs may fail. One that speaks only
# the later: the job ends at once, on every rank, and each log says to install one version.
# Usage: test_two_versions.sh HA PLUGIN LATER STRICT SOFT
set -euo pipefail
ha=$1 plugin=$2 later=$3 strict=$4
export HA_NCCL_VERBS=$5 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT NCCL_NET_PLUGIN 2>/dev/null || true
command -v mpirun.openmpi >/dev/null || { echo "skipped: no mpirun.openmpi"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOFTROCE_CONTROL=$work/control NCCL_DEBUG=INFO
mkdir -m 700 "$work/control"

fail() {
	echo "$1" >&2
	tail -20 "$work/out" >&2
	exit 1
}

run() { # FIRST SECOND ARGUMENT...: two ranks, each with its plugin
	local first=$1 second=$2
	shift 2
	mpirun.openmpi -np 1 "$ha" perf sendrecv --plugin "$first" "$@" : -np 1 "$ha" perf sendrecv --plugin "$second" "$@" \
		>"$work/out" 2>&1
}

if cmp -s "$plugin" "$later" || cmp -s "$later" "$strict"; then
	fail "these are not different builds"
fi

# A NIC is cut as soon as there is a standby. On a busy machine the job may have ended by then: another, longer one.
cut_seen() { # SECONDS
	local job
	run "$plugin" "$later" -b 64K -e 64K --duration "$1s" &
	job=$!
	while kill -0 $job 2>/dev/null; do
		if grep -qs 'protected: .* standby' "$work/out"; then
			"$ha" cut soft0 >/dev/null 2>&1 || true
			break
		fi
		sleep 0.05
	done
	wait $job || fail "this version and a later one that speaks its protocol"
	grep -q '^# Out of bounds values : 0 OK' "$work/out" || fail "wrong elements between two versions"
	grep -q 'failed over: ' "$work/out"
}
cut_seen 3 || cut_seen 12 || cut_seen 60 || fail "no failover between two versions"

for pair in "$plugin $strict" "$strict $plugin"; do
	# shellcheck disable=SC2086
	! run $pair -b 64K -e 64K -n 10 || fail "a job of two versions without a common protocol has run"
	grep -q 'cannot connect with this handle: .*install one version everywhere' "$work/out" || fail "no line says why"
done
echo "two versions with a common protocol run together; two without end with a line that says so"
