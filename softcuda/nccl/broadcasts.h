/* SPDX-License-Identifier: BSD-3-Clause */
/* broadcasts.h - the lane of a batch of broadcasts (AllGatherV) */
#ifndef SOFTCUDA_NCCL_BROADCASTS_H
#define SOFTCUDA_NCCL_BROADCASTS_H

#include "softcuda/nccl/lane.h"

/* One lane for all works; their progress is kept in them. */
unsigned open_broadcasts(struct lane *lane, const struct lane_context *context,
			 enum protocol protocol, struct work_broadcast *works, unsigned count);

#endif
