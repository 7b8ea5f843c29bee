/* SPDX-License-Identifier: BSD-3-Clause */
/* rail.h - one path of a bundle: completion queue and queue pair, from nothing to ready and back */
#ifndef HA_PLUGIN_RAIL_H
#define HA_PLUGIN_RAIL_H

#include "plugin/device/address.h"
#include "plugin/device/wire_end.h"
#include "rdma/verbs/ops.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_bundle;
struct ha_device;
struct ha_hookup;
struct ha_opening;

/*
 * A rail's states, in the order in which it passes through them. ha_rail_enter() knows which may
 * follow which.
 *
 *   NONE ──► UP ──► FENCING ──► FENCED ──► DOWN ──► JOIN ──► PROBE (sender) ──► UP
 *     └──► DOWN        ▲                    │         │        │
 *                      ├────────────────────┘         │        │
 *                      └──────────────────────────────┴────────┘
 *
 * DOWN ──► FENCING: the peer names an incarnation whose offer was lost; it is over before it began
 * here.
 *
 * FENCING goes on by fence.stage, DOWN and JOIN by `slow` (failover/control.h).
 */
enum ha_rail_state {
	HA_RAIL_NONE,    /* not there */
	HA_RAIL_UP,      /* carries data */
	HA_RAIL_DOWN,    /* this epoch is closed here */
	HA_RAIL_FENCING, /* nothing new is posted; what was posted is accounted for */
	HA_RAIL_FENCED, /* our memory is safe from this incarnation; what the peer has is awaited */
	HA_RAIL_JOIN,   /* sender: offered; receiver: answered, its queue pair takes data */
	HA_RAIL_PROBE,  /* sender: pings are out */
};

/* The work request behind all that was posted, in the order of its states. */
enum ha_marker {
	HA_MARKER_NONE, /* not posted yet */
	HA_MARKER_POSTED,
	HA_MARKER_BACK, /* it has come back, and so has all before it */
};

/* What was seen of the end of a path's incarnation. transfer/ writes it where work fails or comes
 * back, failover/ goes on from it. */
struct ha_rail_loss {
	uint8_t cause;         /* enum ha_event_cause: why this incarnation ends */
	uint8_t marker;        /* enum ha_marker */
	bool local;            /* the fault is at our own NIC */
	uint64_t suspected_at; /* ns */
	uint64_t lost_at;      /* when it was up for the last time */
};

/* How a path's last incarnation was connected. Set-up only: device/rail.c writes it, qp_num
 * failover/incarnation.c. */
struct ha_rail_setup {
	uint32_t psn;
	uint32_t qp_num; /* of the incarnation that was up last; its queue pair may be gone */
	struct ha_address self; /* our end's address in this incarnation */
	struct ibv_mr *ring_mr;
	struct ha_wire_rail peer;
	struct ha_wire_ece ece; /* ours: offered, then agreed on */
};

/* The loop-back queue pair of a receiver that must flush GPU memory; NULL: there is none. */
struct ha_rail_flush {
	struct ibv_qp *qp;
	struct ibv_cq *cq; /* stored last, with release */
};

/* One path: one queue pair and its completion queue. The first lines are what a message touches. */
struct ha_rail {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	const struct ha_verbs_hot *hot;
	struct ha_device *dev;
	/* Work requests ever posted, modulo 2^32, and of them, known to be out of the send queue.
	 * Changed by whoever is inside, by the functions of send_queue.h alone; heartbeat.c reads
	 * them from outside. */
	uint32_t sq_posted, sq_retired;
	uint32_t sq_depth;
	/* receiver with terms.unordered: sq_posted when the delivery count was last written */
	uint32_t count_mark;
	/* receives of the device's shared queue consumed and not yet given back, plus rq_base;
	 * heartbeat.c reads it from outside too */
	uint32_t rq_consumed;
	uint32_t ring_rkey; /* of the peer's ring memory, on this rail */
	uint32_t ring_lkey; /* of ours */
	uint32_t max_inline;
	uint32_t imm_whole; /* what the immediate says of a message that this rail carries alone */
	uint32_t max_msg;   /* bytes one work request may carry */
	/* bytes that may travel in one work request together with their immediate */
	uint32_t single_max;
	uint8_t index;
	uint8_t state; /* enum ha_rail_state */
	uint32_t epoch;
	uint64_t work_whole; /* ha_send_slot.work of a message that this rail carries alone */
	/* The one-buffer work request of this side (a send's data, a receive's CTS), filled once
	 * but for its variable fields. */
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	/* Below: set-up, and rq_base once per refill. */
	struct ibv_srq *srq; /* of the device, that the queue pair takes its receives from */
	/* HA_REFILL less the portion that is given back at once: HA_REFILL ends every portion */
	uint32_t rq_base;
	/* of dev, that its queue pairs and the buffers' keys are of; NULL: there are none. Changed
	 * by the driver, under registered.lock */
	struct ha_opening *opening;
	bool proven;    /* it has been up in some incarnation */
	bool connected; /* flush queue pairs may be made; under registered.lock */
	/* it is being connected (hookup.h): qp is not ours; NULL: it is */
	struct ha_hookup *hookup;
	struct ha_rail_setup setup;
	struct ha_rail_loss loss;
	struct ha_rail_flush flush;
};

/*
 * The queue pair for flushes is made by whoever registers GPU memory, or by the driver, while the
 * owner polls and flushes. Its completion queue appears last and complete: who has read it here may
 * use both. NULL: there is none.
 */
static inline struct ibv_cq *ha_rail_flush_cq(const struct ha_rail *r)
{
	return __atomic_load_n(&r->flush.cq, __ATOMIC_ACQUIRE);
}

/* Slow verbs all of them. A failure is one line in the log, and leaves the rail so that
 * ha_rail_close ends it. */

/* From here on it is on the device as it is opened now; what was made on it before is gone. NULL:
 * on none. */
void ha_rail_bind(struct ha_rail *r, struct ha_device *dev);
void ha_rail_unbind(struct ha_rail *r);
/* Registers the bundle's ring memory on the device, makes the queues; the queue pair is in INIT. */
/* Its port has another address than its queue pair was made for, where it leads nowhere. */
bool ha_rail_has_moved(const struct ha_rail *r);
int ha_rail_open(struct ha_bundle *b, struct ha_rail *r, struct ha_device *dev);
/*
 * To the peer's queue pair: ready to receive, ready to send. Only begins it; done(arg) follows in a
 * round, under ctx->drive, and ha_rail_connected says what came of it: -EAGAIN: nothing yet. 0: all
 * that the data path needs is there. Other errors are logged.
 */
int ha_rail_connect(struct ha_bundle *b, struct ha_rail *r, const struct ha_wire_rail *peer,
		    void (*done)(void *arg), void *arg);
int ha_rail_connected(struct ha_bundle *b, struct ha_rail *r);
/* Nobody will ask any more, nor be notified. If it is under way, the queue pair is not ours from
 * here on. Under ctx->drive. */
void ha_rail_unhook(struct ha_bundle *b, struct ha_rail *r);
/* In any state, also one that was never opened; if it is being connected, under ctx->drive. Gives
 * the receives back that it has consumed. */
void ha_rail_close(struct ha_bundle *b, struct ha_rail *r);
/* The same for an incarnation that failed, under ctx->drive: nothing of it reaches memory any more
 * when this returns, but what may take the kernel seconds is left to the reaper. */
void ha_rail_discard(struct ha_bundle *b, struct ha_rail *r);
/* The loop-back queue pair of a receiver that must flush GPU memory; nothing to do if there is
 * one. */
int ha_rail_prepare_flush(struct ha_bundle *b, struct ha_rail *r);

/* What the peer must know of our end. */
void ha_rail_describe(const struct ha_rail *r, struct ha_wire_qp *qp);
void ha_rail_describe_whole(const struct ha_rail *r, struct ha_wire_rail *rail);

/* The path MTU in bytes, once connected. */
int ha_rail_mtu_bytes(const struct ha_rail *r);

#endif
