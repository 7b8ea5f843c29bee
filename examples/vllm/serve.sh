#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# vLLM over several nodes by its own multiprocessing backend: the same line on each node, RANK 0 on the one that serves requests.
#   RANK=0 NNODES=2 HEAD=10.0.0.1 examples/vllm/serve.sh /models/llama --tensor-parallel-size 8 --pipeline-parallel-size 2
# NCCL carries what goes between nodes: tensor parallelism over nodes, and the pipeline's stages.
# With Ray the variables must be set where `ray start` runs, on every node; its workers inherit them.
set -euo pipefail
# shellcheck disable=SC1090,SC1091
. "${HAWSER_ENV:-/etc/hawser/env.sh}"
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
ulimit -n "$(ulimit -Hn)"
"${HA:-ha}" doctor
headless=()
[ "${RANK:?RANK is the number of this node, from 0}" = 0 ] || headless=(--headless)
exec vllm serve "$@" --nnodes "${NNODES:-2}" --node-rank "$RANK" --master-addr "${HEAD:?HEAD is the address of node 0}" "${headless[@]}"
