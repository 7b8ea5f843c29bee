/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/speed.h"

#include <limits.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* By the number of the bit that is set. */
static const int lanes[] = { 1, 4, 8, 12, 2 };
static const int lane_mbps[] = {
	2500,   /* SDR */
	5000,   /* DDR */
	10000,  /* QDR */
	10000,  /* FDR10 */
	14000,  /* FDR */
	25000,  /* EDR */
	50000,  /* HDR */
	100000, /* NDR */
	200000, /* XDR */
};

static int by_bit(const int *table, unsigned n, unsigned bits)
{
	unsigned bit = bits ? (unsigned)__builtin_ctz(bits) : n;

	return bit < n ? table[bit] : 0;
}

int ha_speed_mbps(unsigned width, unsigned speed, unsigned speed_ex)
{
	return by_bit(lanes, COUNT(lanes), width) *
	       by_bit(lane_mbps, COUNT(lane_mbps), speed_ex ? speed_ex : speed);
}

int ha_speed_port(const struct ha_verbs_ops *verbs, struct ibv_context *context, uint8_t port,
		  const struct ha_port_attr *attr)
{
	uint64_t mbps = 0;

	if (verbs->query_port_speed(verbs, context, port, &mbps) == 0 && mbps > 0 &&
	    mbps <= INT_MAX)
		return (int)mbps;
	return ha_speed_mbps(attr->attr.active_width, attr->attr.active_speed,
			     attr->active_speed_ex);
}
