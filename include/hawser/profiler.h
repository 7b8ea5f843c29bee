/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profiler.h - what the plugin reports to NCCL's profiler (net interface v10 and later)
 *
 * Queue pairs are reported as NCCL's own IB transport does it: plugin id NCCL_PROFILER_NET_TYPE_IB,
 * version 1, with a ncclProfilerNetIbDescr_v1_t, which a profiler that knows NCCL's knows too.
 * Failovers have the id below: one event for each request whose path was lost, from the moment when
 * that was seen to the moment when another path carried it, or nothing was left to carry. The
 * numbers and the struct never change; a later version has another id.
 */
#ifndef HAWSER_PROFILER_H
#define HAWSER_PROFILER_H

#include <stdint.h>

#define HA_PROFILER_IB_ID 0x10001 /* NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER */
#define HA_PROFILER_FAILOVER_ID 0x48410001 /* "HA", version 1 */

enum { HA_PROFILE_QP = 1, HA_PROFILE_FAILOVER = 1 };

/* As ncclProfilerNetIbDescr_v1_t. */
struct ha_profiler_qp {
	uint8_t type; /* HA_PROFILE_QP */
	uint8_t pad[7];
	int32_t device;
	int32_t pad2;
	uint64_t wr_id;
	int32_t opcode; /* enum ibv_wr_opcode */
	int32_t qp_num;
	uint64_t length;
};

/* At the start of the event `to_` is 0; at its end (an update, then the stop) all is known. */
struct ha_profiler_failover {
	uint8_t type; /* HA_PROFILE_FAILOVER */
	uint8_t is_send;
	uint8_t settled; /* at the end: the peer had it all, so that no other path carries it */
	uint8_t pad;
	int32_t from_device, to_device; /* ports, as the plugin counts them */
	uint32_t from_qp, to_qp;
	uint64_t bytes;
};

#endif
