#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# TaskProlog= of slurm.conf: what it prints as "export NAME=value" is set in each task.
# shellcheck disable=SC1090,SC1091
. "${HAWSER_ENV:-/etc/hawser/env.sh}" || exit 0
env | sed -n 's/^\(NCCL_NET_PLUGIN\|NCCL_NET\|NCCL_IB_HCA\|NCCL_SOCKET_IFNAME\|HA_NCCL_[A-Z_]*\)=/export \1=/p'
