/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/budget.h"

#include <limits.h>
#include <stdint.h>

static int clamp_to_int(int64_t n)
{
	return n > INT_MAX ? INT_MAX : (int)n;
}

void ha_budget_compute(struct ha_budget *b)
{
	int64_t cqe = ((int64_t)b->wr * b->recvs + b->wr) * 2 * b->channels;

	b->by_qp = clamp_to_int(b->max_qp / (2 * (int64_t)b->channels));
	b->by_cqe = clamp_to_int(b->max_cqe / cqe);
	b->max_comms = b->by_qp < b->by_cqe ? b->by_qp : b->by_cqe;
	if (b->max_comms > HA_BUDGET_MOST)
		b->max_comms = HA_BUDGET_MOST;
	if (b->max_comms < 1)
		b->max_comms = 1;
}
