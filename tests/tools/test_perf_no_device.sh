#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On a machine without a usable RDMA device the one line of `ha perf` says what to do, whatever NCCL_DEBUG is.
# Arguments: ha, hawser's plugin.
. "$(dirname "$0")/lib.sh"

# None of its name.
export HA_NCCL_VERBS=soft
NCCL_IB_HCA==none refused 1 'NCCL_IB_HCA==none leaves none of the 2 devices (soft0, soft1); correct or unset it' allreduce --ranks 2
NCCL_IB_HCA==none refused 1 'NCCL_IB_HCA==none leaves none' allreduce
# No library.
HA_NCCL_VERBS=$TMP/libibverbs.so.1 refused 1 "HA_NCCL_VERBS=$TMP/libibverbs.so.1: .*Use system, soft, or the path" allreduce --ranks 2
# No device at all.
SOFTROCE_DEVICES=ha_none0 perf allreduce --ranks 2
grep -q 'ha perf: .*the software NIC has no device: SOFTROCE_DEVICES must name' "$TMP/err" || fail "no advice about SOFTROCE_DEVICES"
if [ ! -e /sys/class/infiniband ] || [ -z "$(ls /sys/class/infiniband)" ]; then
	HA_NCCL_VERBS=system refused 1 'set HA_NCCL_VERBS=soft for the software NIC' allreduce --ranks 2
fi
# With NCCL_DEBUG the plugin says it itself, and ours still does.
NCCL_IB_HCA==none NCCL_DEBUG=WARN perf allreduce --ranks 2
[ "$(grep -c 'ha perf: .*leaves none of the 2 devices' "$TMP/err")" -eq 1 ] || fail "our line has no advice with NCCL_DEBUG=WARN"
grep -q 'NCCL WARN .*leaves none of the 2 devices' "$TMP/err" || fail "NCCL_DEBUG=WARN does not show the plugin's line"
finish
