/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/congestion.h"

#include "base/clock.h"
#include "include/mpib_agent_iface.h"

#define LOSS 10 /* marks that one lost packet is worth */

static uint64_t compute_rate(uint64_t events, uint64_t span)
{
	return span ? (uint64_t)((double)events * (double)HA_NS_PER_S / (double)span) : 0;
}

void ha_congestion_update(struct ha_congestion *t, const struct ha_port *p)
{
	const uint64_t *d = p->delta;

	t->per_second = compute_rate(d[HA_PORT_ECN] + d[HA_PORT_CNP] + d[HA_PORT_PAUSES] +
					     LOSS * (d[HA_PORT_DISCARDS] + d[HA_PORT_RETRANSMITS]),
				     p->span);
	t->high = t->per_second >= HA_CONGESTION_HIGH ? t->high + 1 : 0;
	t->low = t->per_second <= HA_CONGESTION_LOW ? t->low + 1 : 0;
	if (t->high >= HA_CONGESTION_ON)
		t->congested = true;
	else if (t->low >= HA_CONGESTION_OFF)
		t->congested = false;
}

uint32_t ha_share_rest(const struct ha_share_ports *at)
{
	uint64_t sout = at->sout ? at->sout->mbps : 0, sup = at->sup ? at->sup->mbps : 0;

	return sout && sup && at->sup->up ? (uint32_t)(MPIB_HINT_MAX_BW * sup / (sup + sout)) : 0;
}

void ha_share_begin(struct ha_share *share, uint32_t value)
{
	share->wanted = share->written = value;
	share->known = true;
}

static uint32_t step_toward(uint32_t from, uint32_t to, uint32_t most)
{
	if (from < to)
		return to - from > most ? from + most : to;
	return from - to > most ? from - most : to;
}

static uint32_t want_by_congestion(uint32_t now, uint32_t rest, bool sout, bool sup)
{
	if (sout && sup)
		return now;
	if (sup)
		return now / 4 ? now - now / 4 : 0;
	if (sout) /* a share that is higher already, since SOUT had no link, stays */
		return now > HA_CONGESTION_MOST
			       ? now
			       : step_toward(now, HA_CONGESTION_MOST, HA_CONGESTION_SHIFT);
	return step_toward(now, rest, HA_CONGESTION_CREEP);
}

static bool is_congested(const struct ha_congestion *port)
{
	return port && port->congested;
}

/* A port that is down leaves all to the other one; with both down, as it was. */
static uint32_t want_by_ports(uint32_t wanted, uint32_t rest, const struct ha_share_ports *at)
{
	bool sout_up = !at->sout || at->sout->up, sup_up = at->sup && at->sup->up;

	if (!sup_up)
		return sout_up ? 0 : wanted;
	if (!sout_up)
		return MPIB_HINT_MAX_BW;
	return want_by_congestion(wanted, rest, is_congested(at->sout_congestion),
				  is_congested(at->sup_congestion));
}

uint32_t ha_share_step(struct ha_share *share, const struct ha_share_ports *at)
{
	uint32_t rest = ha_share_rest(at), difference;

	if (!share->known)
		ha_share_begin(share, rest);
	share->wanted = want_by_ports(share->wanted, rest, at);
	difference = share->wanted > share->written ? share->wanted - share->written
						    : share->written - share->wanted;
	if (difference >= HA_CONGESTION_STEP || share->wanted == rest || !share->wanted ||
	    share->wanted == MPIB_HINT_MAX_BW)
		share->written = share->wanted;
	return share->written;
}
