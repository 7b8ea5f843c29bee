/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - what the context's status page says. Everything under the journal's lock. */
#ifndef HA_PLUGIN_STATUS_H
#define HA_PLUGIN_STATUS_H

#include "plugin/report/journal.h"
#include "plugin/report/status_file.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Our copies of the records: the page is written, never read. */
struct ha_status {
	struct ha_status_file file;
	struct ha_status_totals totals; /* counted also without a page */
	_Atomic uint32_t kept_out;      /* counted by owners, for the totals */
	struct ha_status_device device[HA_STATUS_DEVICES];
	struct ha_status_connection *connection; /* HA_STATUS_CONNECTIONS; NULL: no page */
	unsigned next_free;                      /* where the search for a free record begins */
};

/* Without HA_NCCL_STATUS_DIR, or under a clock that is not the live one (a simulation) and a
 * directory that nobody asked for, there is no page. */
void ha_status_open(struct ha_status *st, const struct ha_ctx *ctx);
void ha_status_close(struct ha_status *st);
/* The device that an event is about, or that its rail is on; NULL: neither. */
const struct ha_device *ha_event_device(const struct ha_event *event);
/* An event, and the same as a record. */
void ha_status_event(struct ha_status *st, const struct ha_event *event,
		     const struct ha_status_event *record);
void ha_status_forget(struct ha_status *st, struct ha_bundle *b);
/* A call found its connection in the driver's hands and says "not now". Any thread, no lock. */
void ha_status_kept_out(struct ha_ctx *ctx);
/* Totals of all connections and what the devices carry. Under ctx->drive. */
void ha_status_refresh(struct ha_status *st, const struct ha_ctx *ctx, uint64_t now);

#endif
