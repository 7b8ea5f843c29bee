/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/failover/rto.h"

void ha_rto_init(struct ha_rto *rto, uint64_t base_ns)
{
	*rto = (struct ha_rto) { .rto_ns = base_ns, .base_ns = base_ns };
}

void ha_rto_failed(struct ha_rto *rto, uint64_t now)
{
	rto->failed = true;
	rto->failed_at = now;
}

static bool widen_rto(struct ha_rto *rto)
{
	uint64_t most = rto->base_ns > HA_RTO_MOST_NS ? rto->base_ns : HA_RTO_MOST_NS;
	uint64_t before = rto->rto_ns;

	if (before >= most)
		return false;
	rto->rto_ns = before + before / 2 < most ? before + before / 2 : most;
	return rto->rto_ns > before;
}

bool ha_rto_recovered(struct ha_rto *rto, uint64_t now)
{
	if (!rto->failed)
		return false;
	rto->failed = false;
	if (now - rto->failed_at >= HA_RTO_QUICK_NS) {
		rto->false_alarms = 0;
		return false;
	}
	if (++rto->false_alarms < HA_RTO_FALSE_ALARMS)
		return false;
	rto->false_alarms = 0;
	return widen_rto(rto);
}
