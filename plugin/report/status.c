/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/report/status.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNLISTED UINT16_MAX /* in ha_bundle.status: counted, but the table was full */

static_assert(HA_STATUS_CONNECTIONS < UNLISTED && HA_STATUS_RAILS == HA_MAX_RAILS,
	      "the page's bounds");

/*
 * Owners change these words without any atomics, since they are the data path's. Each is an aligned
 * word that one store changes; which of two neighbouring moments we see does not matter. Hence
 * volatile, and no thread sanitizer.
 */
#define PEEK(word) (*(const volatile __typeof__(word) *)&(word))

static uint32_t rail_state(unsigned state)
{
	switch (state) {
	case HA_RAIL_NONE:
		return HA_STATUS_RAIL_NONE;
	case HA_RAIL_JOIN:
	case HA_RAIL_PROBE:
		return HA_STATUS_RAIL_INIT;
	case HA_RAIL_UP:
		return HA_STATUS_RAIL_UP;
	default:
		return HA_STATUS_RAIL_DOWN;
	}
}

/* Of the spares the first, and those that are in use. */
static inline __attribute__((no_sanitize("thread"), always_inline)) bool is_shown(
	const struct ha_bundle *b, unsigned i)
{
	return i < PEEK(b->nrails) &&
	       (i <= PEEK(b->balance.ndata) || PEEK(b->rail[i].state) != HA_RAIL_DOWN ||
		PEEK(b->rail[i].proven));
}

static __attribute__((no_sanitize("thread"), noinline)) void peek_connection(
	const struct ha_bundle *b, struct ha_status_connection *c)
{
	c->messages = b->is_send ? PEEK(((const struct ha_send *)b)->head)
				 : PEEK(((const struct ha_recv *)b)->done);
	c->nrails = 0;
	c->against = PEEK(b->against);
	if (PEEK(b->balance.gate.on) && PEEK(b->balance.stripe_min) != UINT64_MAX)
		c->gate = PEEK(b->balance.gate.bytes) ? PEEK(b->balance.gate.bytes) : HA_GATE_FIRST;
	else
		c->gate = 0;
	for (unsigned i = 0; i < HA_STATUS_RAILS; i++) {
		const struct ha_rail *r = &b->rail[i];
		const struct ha_device *dev = PEEK(r->dev);

		c->rail[i].state =
			is_shown(b, i) ? rail_state(PEEK(r->state)) : HA_STATUS_RAIL_NONE;
		if (is_shown(b, i))
			c->nrails = i + 1;
		c->rail[i].weight = PEEK(b->balance.weight[i]);
		c->rail[i].epoch = PEEK(r->epoch);
		c->rail[i].device =
			dev && dev->index < HA_STATUS_DEVICES ? (uint16_t)dev->index : UINT16_MAX;
		for (size_t k = 0; k < sizeof(c->rail[i].peer) - 1; k++)
			c->rail[i].peer[k] = PEEK(r->setup.peer.name[k]);
	}
}

/* ---- the table of connections ---- */

static void put_connection(struct ha_status *st, unsigned at)
{
	ha_status_put(&st->file.page->connection[at], &st->connection[at],
		      sizeof(st->connection[at]));
}

static void put_totals(struct ha_status *st)
{
	if (st->file.page)
		ha_status_put(&st->file.page->totals, &st->totals, sizeof(st->totals));
}

/* The bundle's record, or NULL. */
static struct ha_status_connection *record_of(const struct ha_status *st, const struct ha_bundle *b)
{
	return st->connection && b->status && b->status != UNLISTED ? &st->connection[b->status - 1]
								    : NULL;
}

static void list_connection(struct ha_status *st, struct ha_bundle *b, uint64_t since)
{
	for (unsigned k = 0; k < HA_STATUS_CONNECTIONS; k++) {
		unsigned at = (st->next_free + k) % HA_STATUS_CONNECTIONS;
		struct ha_status_connection *c = &st->connection[at];

		if (c->used)
			continue;
		memset(c, 0, sizeof(*c));
		c->used = 1;
		c->sends = b->is_send;
		c->since_wall = since;
		snprintf(c->name, sizeof(c->name), "%s", b->name);
		b->status = (uint16_t)(at + 1);
		st->next_free = at + 1;
		return;
	}
	b->status = UNLISTED;
}

void ha_status_forget(struct ha_status *st, struct ha_bundle *b)
{
	struct ha_status_connection *c = record_of(st, b);

	if (b->status) {
		st->totals.connections--;
		st->totals.unlisted -= b->status == UNLISTED;
	}
	if (c) {
		peek_connection(b, c);
		c->used = 0;
		put_connection(st, b->status - 1u);
	}
	put_totals(st);
	b->status = 0;
}

/* ---- events ---- */

static void on_connection(struct ha_status *st, const struct ha_event *e,
			  const struct ha_status_event *record)
{
	struct ha_status_connection *c = record_of(st, e->bundle);

	if (!c)
		return;
	switch (e->kind) {
	case HA_EVENT_PROTECTED:
	case HA_EVENT_NOT_PROTECTED:
		c->protection =
			e->kind == HA_EVENT_PROTECTED ? HA_PROTECTION_YES : HA_PROTECTION_NO;
		c->protection_cause = e->cause;
		break;
	case HA_EVENT_FAILED_OVER:
		c->failovers++;
		c->replayed_requests += e->requests;
		c->replayed_bytes += e->bytes;
		c->stall_last = e->stall_ns;
		c->stall_worst = e->stall_ns > c->stall_worst ? e->stall_ns : c->stall_worst;
		break;
	case HA_EVENT_SUSPECTED:
		if (record->rail >= 0)
			c->rail[record->rail].failures++;
		break;
	case HA_EVENT_LOST:
		c->lost = 1;
		break;
	default:
		break;
	}
	peek_connection(e->bundle, c);
	put_connection(st, e->bundle->status - 1u);
}

/* The driver alone reports this, so nobody changes the port meanwhile. By the name that the system
 * has for it now: there its counters are. */
static void take_back(struct ha_status_device *d, const struct ha_device *dev)
{
	snprintf(d->name, sizeof(d->name), "%.*s:%d", HA_STATUS_NAME - 12, dev->topo->system_name,
		 dev->topo->port);
	d->port = dev->topo->up ? HA_PORT_UP : HA_PORT_DOWN;
}

static void on_device(struct ha_status *st, const struct ha_device *dev, const struct ha_event *e)
{
	struct ha_status_device *d =
		dev->index < HA_STATUS_DEVICES ? &st->device[dev->index] : NULL;

	if (!d || (e->kind != HA_EVENT_DEVICE && e->kind != HA_EVENT_FAILED_OVER))
		return;
	d->events += e->kind == HA_EVENT_DEVICE;
	d->failovers += e->kind == HA_EVENT_FAILED_OVER;
	if (e->kind == HA_EVENT_DEVICE && e->cause == HA_CAUSE_DEVICE_BACK)
		take_back(d, dev);
	else if (e->cause == HA_CAUSE_DEVICE_FAILED)
		d->port = HA_PORT_FAILED;
	else if (e->kind == HA_EVENT_DEVICE && d->port != HA_PORT_FAILED &&
		 e->cause == HA_CAUSE_PORT_DOWN)
		d->port = HA_PORT_DOWN;
	else if (e->kind == HA_EVENT_DEVICE && d->port != HA_PORT_FAILED &&
		 e->cause == HA_CAUSE_PORT_UP)
		d->port = HA_PORT_UP;
	if (st->file.page)
		ha_status_put(&st->file.page->device[dev->index], d, sizeof(*d));
}

const struct ha_device *ha_event_device(const struct ha_event *event)
{
	if (event->device)
		return event->device;
	return event->rail ? event->rail->dev : NULL;
}

void ha_status_event(struct ha_status *st, const struct ha_event *e,
		     const struct ha_status_event *record)
{
	const struct ha_device *dev = ha_event_device(e);

	st->totals.events[e->kind]++;
	if (e->kind == HA_EVENT_CONNECTED && e->bundle && !e->bundle->status) {
		/* The one word of a bundle that is the journal's. */
		struct ha_bundle *b = (struct ha_bundle *)(uintptr_t)e->bundle;

		st->totals.connections++;
		if (st->connection)
			list_connection(st, b, record->wall);
		else
			b->status = UNLISTED;
		st->totals.unlisted += b->status == UNLISTED;
	}
	if (e->bundle)
		on_connection(st, e, record);
	if (dev)
		on_device(st, dev, e);
	if (st->file.page)
		ha_status_put(&st->file.page->event[record->number % HA_STATUS_EVENTS], record,
			      sizeof(*record));
	put_totals(st);
}

/* ---- once in a while ---- */

static void count_rails(struct ha_status *st, const struct ha_status_connection *c)
{
	uint32_t seen = 0;

	for (unsigned i = 0; i < c->nrails && i < HA_STATUS_RAILS; i++) {
		unsigned dev = c->rail[i].device;

		if (dev >= HA_STATUS_DEVICES)
			continue;
		st->device[dev].connections += !(seen >> dev & 1);
		seen |= 1u << dev;
		st->device[dev].rails_up += c->rail[i].state == HA_STATUS_RAIL_UP;
		st->device[dev].rails_down += c->rail[i].state == HA_STATUS_RAIL_DOWN;
	}
}

void ha_status_refresh(struct ha_status *st, const struct ha_ctx *ctx, uint64_t now)
{
	const struct ha_bundle *b;

	for (unsigned i = 0; i < HA_STATUS_DEVICES; i++)
		st->device[i].connections = st->device[i].rails_up = st->device[i].rails_down = 0;
	LIST_FOREACH(b, &ctx->bundles, entry) {
		struct ha_status_connection *c = record_of(st, b), unlisted;

		peek_connection(b, c ? c : &unlisted);
		count_rails(st, c ? c : &unlisted);
		if (c)
			put_connection(st, b->status - 1u);
	}
	for (int i = 0; i < ctx->ndevices && i < HA_STATUS_DEVICES; i++)
		ha_status_put(&st->file.page->device[i], &st->device[i], sizeof(st->device[i]));
	st->totals.kept_out = atomic_load_explicit(&st->kept_out, memory_order_relaxed);
	st->totals.updated_mono = now;
	put_totals(st);
}

/* ---- set-up and end ---- */

static bool is_wanted(const struct ha_ctx *ctx)
{
	const struct ha_config *config = &ctx->config;

	return *config->status_dir && strcmp(config->status_dir, "none") &&
	       (ctx->clock == &ha_clock_live || ha_config_is_set(config, HA_CFG_status_dir));
}

static void name_devices(struct ha_status *st, const struct ha_ctx *ctx)
{
	for (int i = 0; i < ctx->ndevices && i < HA_STATUS_DEVICES; i++) {
		struct ha_status_device *d = &st->device[i];

		snprintf(d->name, sizeof(d->name), "%.*s", HA_STATUS_NAME - 1,
			 ctx->devices[i].name);
		d->port = ctx->devices[i].topo->port_attr.state == IBV_PORT_ACTIVE ? HA_PORT_UP
										   : HA_PORT_DOWN;
	}
}

static uint64_t wall_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * HA_NS_PER_S + (uint64_t)ts.tv_nsec;
}

void ha_status_open(struct ha_status *st, const struct ha_ctx *ctx)
{
	char dir[HA_CONFIG_TEXT_MAX];
	int err;

	memset(st, 0, sizeof(*st));
	name_devices(st, ctx);
	if (!is_wanted(ctx))
		return;
	if (!ha_process_expand(ctx->config.status_dir, dir, sizeof(dir)))
		err = -ENAMETOOLONG;
	else
		err = ha_status_file_open(&st->file, dir, wall_now(), ha_clock_now(&ha_clock_live));
	if (!err) {
		st->connection = calloc(HA_STATUS_CONNECTIONS, sizeof(*st->connection));
		if (st->connection) {
			ha_status_refresh(st, ctx, ha_clock_now(ctx->clock));
			return;
		}
		ha_status_file_close(&st->file);
		err = -ENOMEM;
	}
	HA_INFO(NULL,
		"no page for `ha status` in %s: %s; HA_NCCL_STATUS_DIR names another directory, "
		"none = no page",
		dir,
		err == -EPERM ? "it is another user's, or others may write to it" : strerror(-err));
}

void ha_status_close(struct ha_status *st)
{
	ha_status_file_close(&st->file);
	free(st->connection);
	st->connection = NULL;
}
