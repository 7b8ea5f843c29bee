#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One node of a job: the same line on every node.
#   NNODES=2 HEAD=n1 NPROC=8 examples/torchrun/run.sh train.py --epochs 3
set -euo pipefail
# shellcheck disable=SC1090,SC1091
. "${HAWSER_ENV:-/etc/hawser/env.sh}"
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
ulimit -n "$(ulimit -Hn)"
# What would go wrong later is said now, once per node; an error ends the job before it holds GPUs.
"${HA:-ha}" doctor
exec torchrun --nnodes "${NNODES:-1}" --nproc_per_node "${NPROC:-8}" \
	--rdzv_backend c10d --rdzv_endpoint "${HEAD:-localhost}:${PORT:-29400}" --rdzv_id "${JOB:-hawser}" "$@"
