/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/status_view.h"

#include "base/clock.h"
#include "rdma/topo/port_errors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *ha_status_port_text(unsigned port)
{
	static const char *const texts[] = { "unknown", "up", "down", "failed" };

	return port < 4 ? texts[port] : "unknown";
}

const char *ha_status_rail_text(unsigned state)
{
	static const char *const texts[] = { "none", "init", "up", "down" };

	return state < 4 ? texts[state] : "unknown";
}

const char *ha_status_protection_text(unsigned protection)
{
	static const char *const texts[] = { "-", "yes", "no" };

	return protection < 3 ? texts[protection] : "-";
}

const char *ha_status_against_text(unsigned against)
{
	static const char *const texts[] = { "", "nic here", "nic there", "nic", "switch" };

	return against < 5 ? texts[against] : "";
}

/* What a connection is protected against; "yes" where the page does not say. */
static const char *protection_text(const struct ha_status_connection *c)
{
	const char *against = ha_status_against_text(c->against);

	return c->protection == HA_PROTECTION_YES && *against
		       ? against
		       : ha_status_protection_text(c->protection);
}

static const char *device_name(const struct ha_status_page *page, unsigned index)
{
	return index < HA_STATUS_DEVICES ? page->device[index].name : "?";
}

static const char *sysfs_root(void)
{
	const char *root = getenv("HA_NCCL_SYSFS_ROOT");

	return root ? root : "";
}

static void devices_print(const struct ha_status_page *page, FILE *out)
{
	fprintf(out, "  %-20s %-8s %11s %8s %10s %9s %8s\n", "device", "port", "connections",
		"rails up", "rails down", "failovers", "events");
	for (int i = 0; i < HA_STATUS_DEVICES; i++) {
		const struct ha_status_device *d = &page->device[i];

		if (d->seq && *d->name)
			fprintf(out, "  %-20s %-8s %11u %8u %10u %9u %8" PRIu64 "\n", d->name,
				ha_status_port_text(d->port), d->connections, d->rails_up,
				d->rails_down, d->failovers, d->events);
	}
	for (int i = 0; i < HA_STATUS_DEVICES; i++) {
		const struct ha_status_device *d = &page->device[i];
		char errors[128];

		if (d->seq && *ha_port_errors_text(sysfs_root(), d->name, errors, sizeof(errors)))
			fprintf(out, "  %s: %s since its counters were reset\n", d->name, errors);
	}
}

static void rails_print(const struct ha_status_page *page, const struct ha_status_connection *c,
			FILE *out)
{
	for (unsigned i = 0; i < c->nrails; i++) {
		const struct ha_status_rail *r = &c->rail[i];

		if (r->state == HA_STATUS_RAIL_NONE)
			continue; /* nobody needs it */
		fprintf(out, "    rail %u %s to %s: %s, weight %u, epoch %u", i,
			device_name(page, r->device), r->peer, ha_status_rail_text(r->state),
			r->weight, r->epoch);
		if (r->failures)
			fprintf(out, ", %u failures", r->failures);
		fputc('\n', out);
	}
}

static void connection_print(const struct ha_status_page *page,
			     const struct ha_status_connection *c, FILE *out)
{
	fprintf(out, "  %-48s %-9s %12" PRIu64, c->name, protection_text(c), c->messages);
	if (c->failovers)
		fprintf(out,
			"  %u failovers, %" PRIu64 " requests (%" PRIu64
			" bytes) replayed, longest pause %.3f ms",
			c->failovers, c->replayed_requests, c->replayed_bytes,
			(double)c->stall_worst / 1e6);
	if (c->protection == HA_PROTECTION_NO && c->protection_cause)
		fprintf(out, "  not protected: %s", ha_event_cause_text(c->protection_cause));
	if (c->gate)
		fprintf(out, "  below %u KiB over one rail", c->gate >> 10);
	fprintf(out, "%s\n", c->lost ? "  LOST" : "");
	rails_print(page, c, out);
}

static void connections_print(const struct ha_status_page *page, FILE *out)
{
	unsigned listed = 0;

	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &page->connection[i];

		if (!c->seq || !c->used)
			continue;
		if (!listed++)
			fprintf(out, "  %-48s %-9s %12s\n", "connection", "protected", "messages");
		connection_print(page, c, out);
	}
	if (!listed)
		fprintf(out, "  no connection is open\n");
	if (page->totals.unlisted)
		fprintf(out, "  and %u connections that the page has no room for\n",
			page->totals.unlisted);
	if (page->totals.kept_out)
		fprintf(out,
			"  %u call%s returned \"not now\" because the service thread held the "
			"connection\n",
			page->totals.kept_out, page->totals.kept_out == 1 ? "" : "s");
}

static void event_print(const struct ha_status_event *e, FILE *out)
{
	time_t seconds = (time_t)(e->wall / HA_NS_PER_S);
	char clock[16] = "?";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	fprintf(out, "  %s.%03u %-13s %s", clock, (unsigned)(e->wall % HA_NS_PER_S / HA_NS_PER_MS),
		ha_event_kind_text(e->kind), *e->connection ? e->connection : e->device);
	if (e->rail >= 0)
		fprintf(out, " rail %d (%s to %s, epoch %u)", e->rail, e->device, e->peer_device,
			e->epoch);
	if (e->cause)
		fprintf(out, " %s", ha_event_cause_text(e->cause));
	if (e->kind == HA_EVENT_FAILED_OVER || e->requests)
		fprintf(out,
			" %" PRIu64 " requests (%" PRIu64
			" bytes) replayed, %.3f ms without progress",
			e->requests, e->bytes, (double)e->stall / 1e6);
	fprintf(out, "%s%s\n", *e->text ? ": " : "", e->text);
}

static void events_print(const struct ha_status_page *page, int most, FILE *out)
{
	int order[HA_STATUS_EVENTS], n = ha_status_events(page, order);

	if (n && most)
		fprintf(out, "  last events\n");
	for (int i = n > most ? n - most : 0; i < n; i++)
		event_print(&page->event[order[i]], out);
	if (page->totals.events[HA_EVENT_FALSE_ALARM])
		fprintf(out, "  %" PRIu64 " false alarm%s of a silent path (HA_NCCL_SILENCE_MS)\n",
			page->totals.events[HA_EVENT_FALSE_ALARM],
			page->totals.events[HA_EVENT_FALSE_ALARM] == 1 ? "" : "s");
	if (page->totals.lines_lost)
		fprintf(out, "  %" PRIu64 " lines could not be written to HA_NCCL_EVENTS\n",
			page->totals.lines_lost);
}

static const char *describe_state(const struct ha_status_found *f)
{
	if (f->ended)
		return ", ENDED without closing";
	if (f->silent)
		return ", in another container, SILENT: it has ended or is stopped";
	return f->foreign ? ", in another container" : "";
}

static void process_print(const struct ha_status_found *f, int events, FILE *out)
{
	const struct ha_status_header *h = &f->page->header;
	time_t started = (time_t)(h->started_wall / HA_NS_PER_S);
	char since[32] = "?";
	struct tm tm;

	if (localtime_r(&started, &tm))
		strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(out, "%s[%u] %s, since %s, hawser %s%s%s%s\n", h->host, h->pid, h->program, since,
		h->hawser, *h->plugin ? " in " : "", h->plugin, describe_state(f));
	devices_print(f->page, out);
	connections_print(f->page, out);
	events_print(f->page, events, out);
}

void ha_status_print(const struct ha_status_found *found, size_t n, const char *dir, int events,
		     FILE *out)
{
	size_t shown = 0;

	for (size_t i = 0; i < n; i++) {
		if (shown++)
			fputc('\n', out);
		if (found[i].page)
			process_print(&found[i], events, out);
		else
			fprintf(out, "%s/%s is not shown: %s\n", dir, found[i].name, found[i].why);
	}
	if (!n)
		fprintf(out,
			"no process of this user has hawser open on this host (no page in %s)%s\n",
			dir,
			geteuid() ? ""
				  : "; root sees another user's with --dir /dev/shm/hawser-UID");
}
