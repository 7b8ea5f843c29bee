/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.h - how many connections a device can carry
 *
 * NCCL asks for maxComms before it opens anything. A connection costs two queue pairs (a path and
 * its standby) per channel, and completions for the work requests it may have in flight: wr x recvs
 * on the sending side, because one grouped receive may take that many sends, and wr on the
 * receiving side. The scarcer of the two decides; 256 is the most that is reported.
 */
#ifndef HA_PLUGIN_BUDGET_H
#define HA_PLUGIN_BUDGET_H

#define HA_BUDGET_MOST 256

struct ha_budget {
	/* What a device has (struct ibv_device_attr) and what is expected
	 * (HA_NCCL_EXPECTED_CHANNELS, _WR_PER_CONN, _MAX_RECVS). */
	int max_qp, max_cqe, channels, wr, recvs;
	/* What follows from it. */
	int by_qp, by_cqe, max_comms; /* max_comms is at least 1 */
};

void ha_budget_compute(struct ha_budget *budget);

#endif
