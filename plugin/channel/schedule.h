/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - when the driver looks at a connection again */
#ifndef HA_CHANNEL_SCHEDULE_H
#define HA_CHANNEL_SCHEDULE_H

#include "plugin/channel/order.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct ha_bundle;
struct ha_ctx;

/* Where a connection is, for the driver. */
enum ha_place {
	HA_PLACE_NONE, /* not launched, or retired: no round looks at it */
	HA_PLACE_WAITS,
	HA_PLACE_SEEN, /* this round has come to it */
};

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
	/* when its owner, who was inside, is asked again */
	uint64_t again_at;
	struct ha_order_node order; /* HA_PLACE_WAITS: by the soonest of these times, or sooner */
	bool calm;                  /* nothing but looks was to be done when the last step ended */
	bool slow;                  /* in ha_round.slow */
	bool tidies;                /* in ha_round.tidy */
	uint8_t place;              /* enum ha_place */
	struct ha_bundle *bundle;
	TAILQ_ENTRY(ha_schedule) seen_entry, slow_entry, tidy_entry;
};

TAILQ_HEAD(ha_schedules, ha_schedule);

/* When the driver looks at any of a context's. Under ctx->drive, but for `called`. */
struct ha_round {
	uint64_t due;                /* when the first of them is; UINT64_MAX: none */
	uint64_t calm_at;            /* what is not urgent waits until then */
	unsigned connections;        /* that are launched */
	struct ha_order_node *first; /* of those that wait */
	struct ha_schedules seen;    /* by this round */
	struct ha_schedules slow;    /* something slow may be to be done */
	struct ha_schedules tidy;    /* rails have objects of incarnations that are over */
	uint64_t tidy_at;            /* none of them goes before; UINT64_MAX: never */
	/* of those for which something is urgent: how many, and until when at most */
	unsigned urgent_ends;
	uint64_t urgent_until;
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

void ha_round_init(struct ha_round *round);

/* Rounds look at it from here on, at once, and until it leaves. Under ctx->drive. */
void ha_schedule_join(struct ha_bundle *b);
void ha_schedule_leave(struct ha_bundle *b);
/* The next that waits and whose time has come, if there is one: the round has seen it then. */
struct ha_bundle *ha_schedule_take(struct ha_ctx *ctx, uint64_t now);
/* An owner has asked for it: its time has come. */
void ha_schedule_called(struct ha_bundle *b);
/* All that were seen wait again; when the first's time comes, UINT64_MAX: never. */
uint64_t ha_schedule_end(struct ha_ctx *ctx);
/* What is not urgent waits for it until then, 0: nothing of it is urgent. */
void ha_schedule_urgent(struct ha_bundle *b, uint64_t until);
/* A rail has objects that go at `at`. */
void ha_schedule_tidy(struct ha_bundle *b, uint64_t at);

/* Look again at `at` (ns of the context's clock) at the latest. The bundle is taken (guard.h). */
void ha_due(struct ha_bundle *b, uint64_t at);
/* Look in the next round, or in this one if it has not come so far. Under ctx->drive. */
void ha_due_now(struct ha_bundle *b);
/* There is work for the driver. Owner or driver. */
void ha_bundle_drive_soon(struct ha_bundle *b);

#endif
