/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - when the driver looks at a connection again */
#ifndef HA_CHANNEL_SCHEDULE_H
#define HA_CHANNEL_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_bundle;

/* Times are ns of the context's clock; UINT64_MAX: never. */
struct ha_schedule {
	uint64_t due; /* when the driver must make a step */
	/*
	 * when it must at least see whether the rails move, which is a step only when one does not
	 * (heartbeat.c)
	 */
	uint64_t look_due;
	/* what is not urgent waits for it until then; 0: nothing of it is urgent */
	uint64_t urgent_until;
	bool calm; /* nothing but looks was to be done when the last step ended */
};

/* When the driver looks at any of a context's. Under ctx->drive, but for `called`. */
struct ha_round {
	uint64_t due;         /* when the first of them is; UINT64_MAX: none */
	uint64_t calm_at;     /* what is not urgent waits until then */
	unsigned connections; /* as of the last round */
	bool urgent;        /* a rail is being fenced, or what it carried is not on its way again */
	atomic_bool called; /* an owner has asked for the driver since */
};

/*
 * What many connections of a process add to a time within which one is done, ns. All may have lost
 * the same NIC, and one thread serves them: some 25 us an end, several times that on a busy
 * machine.
 */
#define HA_CROWD_FROM 64
#define HA_CROWD_EACH_NS (100 * UINT64_C(1000))
static inline uint64_t ha_crowd_ns(unsigned connections)
{
	return connections > HA_CROWD_FROM ? (connections - HA_CROWD_FROM) * HA_CROWD_EACH_NS : 0;
}

/* Look again at `at` (ns of the context's clock) at the latest. The bundle is taken (guard.h). */
void ha_due(struct ha_bundle *b, uint64_t at);
/* Look in the next round, or in this one if it has not come so far. Under ctx->drive. */
void ha_due_now(struct ha_bundle *b);
/* There is work for the driver. Owner or driver. */
void ha_bundle_drive_soon(struct ha_bundle *b);

#endif
