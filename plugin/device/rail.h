/* SPDX-License-Identifier: BSD-3-Clause */
/* rail.h - one path of a bundle: completion queue and queue pair, from nothing to ready and back */
#ifndef HA_CORE_RAIL_H
#define HA_CORE_RAIL_H

#include "plugin/transfer/bundle.h"

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
/* Nobody will ask any more, nor be told. If it is under way, the queue pair is not ours from here
 * on. Under ctx->drive. */
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
