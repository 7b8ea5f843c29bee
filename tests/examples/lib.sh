# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of examples/. Argument of each: the build folder.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
work=$(mktemp -d)
pids=()
cleanup() {
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT NCCL_DEBUG NCCL_NET NCCL_NET_PLUGIN NCCL_IB_HCA 2>/dev/null || true
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$work/control HA=$build/ha HAWSER_ENV=$root/plugin/nccl/env.sh
export LD_LIBRARY_PATH=$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
mkdir -m 700 "$work/control"
fail() {
	echo "$1" >&2
	tail -20 "$work/out" >&2 2>/dev/null || true
	exit 1
}
