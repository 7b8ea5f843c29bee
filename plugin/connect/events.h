/* SPDX-License-Identifier: BSD-3-Clause */
/* events.h - what the devices say out of turn (asynchronous events of verbs) */
#ifndef HA_PLUGIN_EVENTS_H
#define HA_PLUGIN_EVENTS_H

struct ha_ctx;
struct ha_nic;

/* Watch an open context. */
int ha_events_watch(struct ha_nic *nic);
/* Ask the devices whose contexts have no descriptor. Under ctx->drive. */
void ha_events_poll(struct ha_ctx *ctx);

#endif
