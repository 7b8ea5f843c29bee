/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * congestion.h - from the counters of a flow's two ports to SUP's share
 *
 * A port's congestion is a rate: marked packets, congestion notifications and pause frames count
 * once, discarded and repeated packets ten times. Hysteresis twice over: a port counts as congested
 * after HA_CONGESTION_ON looks in a row at or above HA_CONGESTION_HIGH per second, and as free
 * again after HA_CONGESTION_OFF looks in a row at or below HA_CONGESTION_LOW; and a hint is written
 * only when the wanted share has moved HA_CONGESTION_STEP away from it, or has reached an end.
 *
 * The share: rests at the ports' speeds' proportion. While only SUP is congested a quarter of SUP's
 * share moves to SOUT with each look; while only SOUT is, 1/16 of everything moves to SUP. While
 * both are it stays; while none is it creeps back to rest. A port without link has nothing at once,
 * and both without link leave the share as it was.
 *
 * The agent sees the counters of its own host alone: what the far end suffers shows here as
 * notifications and pauses.
 */
#ifndef HA_AGENT_CONGESTION_H
#define HA_AGENT_CONGESTION_H

#include "agent/ports.h"

#define HA_CONGESTION_HIGH 100 /* such counts per second */
#define HA_CONGESTION_LOW 10
#define HA_CONGESTION_ON 2 /* looks */
#define HA_CONGESTION_OFF 5
#define HA_CONGESTION_STEP 32  /* parts per 1024 */
#define HA_CONGESTION_CREEP 16 /* per look, back to rest */
#define HA_CONGESTION_SHIFT 64 /* per look, from SOUT to SUP */
#define HA_CONGESTION_MOST 960 /* a live SOUT keeps the rest */

/* One port's state; beside struct ha_port. */
struct ha_congestion {
	uint64_t per_second;
	unsigned high, low; /* looks in a row */
	bool congested;
};

/* After each look at the port. */
void ha_congestion_update(struct ha_congestion *t, const struct ha_port *port);

/* One flow's state. */
struct ha_share {
	uint32_t wanted;
	uint32_t written;
	bool known; /* wanted and written mean something */
};

struct ha_share_ports {
	const struct ha_port *sout, *sup; /* NULL: unknown */
	const struct ha_congestion *sout_congestion, *sup_congestion;
};

/* Where the share rests: 0 without a SUP that is known and up, or while a speed is unknown. */
uint32_t ha_share_rest(const struct ha_share_ports *at);
/* A look has been taken: the hint to write from now on. */
uint32_t ha_share_step(struct ha_share *share, const struct ha_share_ports *at);
/* Begin with what a former agent wrote, or at rest. */
void ha_share_begin(struct ha_share *share, uint32_t value);

#endif
