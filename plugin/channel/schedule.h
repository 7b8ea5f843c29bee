/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - when the driver looks at a connection again */
#ifndef HA_CHANNEL_SCHEDULE_H
#define HA_CHANNEL_SCHEDULE_H

#include <stdint.h>

struct ha_bundle;

/* Look again at `at` (ns of the context's clock) at the latest. The bundle is taken (guard.h). */
void ha_due(struct ha_bundle *b, uint64_t at);
/* Look in the next round, or in this one if it has not come so far. Under ctx->drive. */
void ha_due_now(struct ha_bundle *b);
/* There is work for the driver. Owner or driver. */
void ha_bundle_drive_soon(struct ha_bundle *b);

#endif
