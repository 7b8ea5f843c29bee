#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prolog= of slurm.conf, as root on each node before a job: would NCCL use hawser here, and is the host as it should be?
# An error of `ha doctor` ends it with 1: Slurm then drains the node and starts the job elsewhere. Warnings go to the log only.
set -uo pipefail
# shellcheck disable=SC1090,SC1091
. "${HAWSER_ENV:-/etc/hawser/env.sh}" || exit 0
command -v "${HA:-ha}" >/dev/null || exit 0 # a node without hawser is another check's affair
ulimit -l unlimited 2>/dev/null || true
report=$(timeout 60 "${HA:-ha}" doctor 2>&1)
status=$?
if [ $status = 124 ]; then
	report="ha doctor has not ended within 60 s"
fi
if [ $status != 0 ] || grep -q '^warning' <<<"$report"; then
	logger -t hawser-prolog "job ${SLURM_JOB_ID:-?}: $report" 2>/dev/null || true
	echo "$report" >&2
fi
[ $status = 0 ] || exit 1
