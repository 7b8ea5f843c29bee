/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.h - the lanes of a send and a receive */
#ifndef SOFTCUDA_NCCL_P2P_H
#define SOFTCUDA_NCCL_P2P_H

#include "softcuda/nccl/lane.h"

#define P2P_WORKS_PER_BATCH 8
#define P2P_LANES (2 * P2P_WORKS_PER_BATCH)

/*
 * Up to two lanes, none where this channel has no part in the work. A copy to oneself is made at
 * once.
 */
unsigned open_p2p(struct lane *lanes, const struct lane_context *context,
		  const struct work_p2p *work);

#endif
