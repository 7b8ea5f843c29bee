/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drain.h - small sends that were complete when they were posted (HA_NCCL_COPY_MAX) are
 * acknowledged before what carries them goes
 *
 * Whoever waits lets the driver fail over if need be. It gives up after the time that a failover
 * needs: HA_NCCL_RTO_MS, and a second. A connection that has had no path for so long is not waited
 * for any more, so that many that are closed one after the other do not take that time each.
 */
#ifndef HA_PLUGIN_DRAIN_H
#define HA_PLUGIN_DRAIN_H

struct ha_send;

/* By the owner, who closes. What is given up is an event, LOST, unless the connection had one. */
void ha_drain_send(struct ha_send *s);

#endif
