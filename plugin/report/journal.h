/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h - what happens to connections and rails: reported once, seen in three places
 *
 * ha_journal_event() writes one line to the log, one JSON line to the file HA_NCCL_EVENTS, and
 * counts on the status page (include/hawser/status.h) that `ha status` reads. Events are cold: a
 * system call or two each, a lock of our own. Nothing of this is on the path of a message.
 *
 * ha_journal_event(b->ctx, &(struct ha_event){
 * .kind = HA_EVENT_FAILED_OVER, .cause = HA_CAUSE_PORT_DOWN, .bundle = b, .rail = r,
 * .requests = 12, .bytes = 3 << 20, .stall_ns = now - since, .registration_ns = spent });
 */
#ifndef HA_PLUGIN_JOURNAL_H
#define HA_PLUGIN_JOURNAL_H

#include "include/hawser/event.h"

#include <stdint.h>

struct ha_bundle;
struct ha_ctx;
struct ha_device;
struct ha_rail;

/*
 * What happened. Leave out what does not apply. From `rail` come its number, device, peer's device,
 * epoch and (on the page) state and weight, so change the rail first, then report. PROTECTED,
 * NOT_PROTECTED and LOST mark the connection on the page; FAILED_OVER adds to its sums.
 */
struct ha_event {
	enum ha_event_kind kind;
	enum ha_event_cause cause;
	const struct ha_bundle *bundle; /* the connection; NULL: it is about a device */
	const struct ha_rail *rail;     /* one of the bundle's */
	const struct ha_device *device; /* NULL: the rail's */
	uint64_t requests, bytes;       /* replayed */
	uint64_t stall_ns;              /* time without progress */
	uint64_t registration_ns;       /* of it, spent in registering buffers on the survivors */
	/* for people: details and advice, one line without newline; NULL: the cause's name */
	const char *text;
};

/* Any thread that may look at the bundle: its owner, or the driver. Never fails, never waits but
 * for its own lock and the write to the file. A context that has no journal yet only logs. */
void ha_journal_event(struct ha_ctx *ctx, const struct ha_event *event);
/* The same with a formatted text (1000 bytes at most). */
void ha_journal_eventf(struct ha_ctx *ctx, const struct ha_event *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

/*
 * Many events may come at once, when what they report is urgent: between these two they are only
 * noted, with their times, and reported when the driver has released them. But a LOST, with all
 * that came before it, at once. hold: any thread. release: part of a round, under ctx->drive.
 */
void ha_journal_hold(struct ha_ctx *ctx);
void ha_journal_release(struct ha_ctx *ctx);

/* Events of this kind so far. Any thread. */
uint64_t ha_journal_count(struct ha_ctx *ctx, enum ha_event_kind kind);

/* The file and the page, as the configuration wants them; once the devices are known. What cannot
 * be had is a line. */
void ha_journal_open(struct ha_ctx *ctx);
void ha_journal_close(struct ha_ctx *ctx);

/* All that is held is reported now: what it is about will be no more. Any thread. */
void ha_journal_flush(struct ha_ctx *ctx);

/* A connection (all that had a CONNECTED event) leaves. Under ctx->drive. */
void ha_journal_forget(struct ha_bundle *b);
/* Part of a round: take over the connections' totals when it is time to (once a second, or after an
 * event). Returns when it is next, ns on the context's clock; UINT64_MAX = not before something
 * happens. Under ctx->drive. */
uint64_t ha_journal_round(struct ha_ctx *ctx, uint64_t now);

#endif
