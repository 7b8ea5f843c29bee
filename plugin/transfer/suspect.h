/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * suspect.h - a rail or a connection is to end: what the one who saw why does at once; the driver
 * does the rest (failover/)
 *
 * Owner (inside) or driver (bundle taken).
 */
#ifndef HA_TRANSFER_SUSPECT_H
#define HA_TRANSFER_SUSPECT_H

#include "include/hawser/event.h"
#include "plugin/bundle.h"
#include "plugin/report/closing.h"

/* The only function that changes a rail's state. */
void ha_rail_enter(struct ha_rail *r, enum ha_rail_state state);
/* This incarnation of the rail is over: nothing new is posted on it from here on. The first cause
 * counts. */
void ha_rail_suspect(struct ha_bundle *b, struct ha_rail *r, enum ha_event_cause cause,
		     const char *fmt, ...) __attribute__((format(printf, 4, 5), cold));
/* The connection ends with err (negative) as soon as every rail is fenced. The first one counts. */
void ha_bundle_abort(struct ha_bundle *b, int err, enum ha_event_cause cause, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));
/* A work request of rail r failed (wc), or posting on it did (wc NULL, err negative). */
void ha_rail_failed(struct ha_bundle *b, struct ha_rail *r, const struct ibv_wc *wc, int err);

/* What fails now may be how the peer, or the program here, ends the connection: a buffer was given
 * back, or a request was refused, lately. */
static inline bool ha_buffers_given_back(const struct ha_bundle *b, uint64_t now)
{
	return ha_closing_since(&b->registered.given_back_at, now);
}
static inline bool ha_bundle_closing(const struct ha_bundle *b, uint64_t now)
{
	return ha_closing_since(&b->refused->at, now);
}

#endif
