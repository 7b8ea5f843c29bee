/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/status_view.h"

#include <errno.h>
#include <jansson.h>

/* Numbers of the page are unsigned, JSON's here signed: what nobody counts up to is capped. */
static void put_number(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key,
			    json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

static void put_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, json_string(text));
}

static json_t *device_json(const struct ha_status_device *d)
{
	json_t *o = json_object();

	put_text(o, "name", d->name);
	put_text(o, "port", ha_status_port_text(d->port));
	put_number(o, "connections", d->connections);
	put_number(o, "rails_up", d->rails_up);
	put_number(o, "rails_down", d->rails_down);
	put_number(o, "failovers", d->failovers);
	put_number(o, "events", d->events);
	return o;
}

static json_t *rail_json(const struct ha_status_page *page, const struct ha_status_rail *r)
{
	json_t *o = json_object();

	put_text(o, "device", r->device < HA_STATUS_DEVICES ? page->device[r->device].name : "");
	put_text(o, "peer_device", r->peer);
	put_text(o, "state", ha_status_rail_text(r->state));
	put_number(o, "weight", r->weight);
	put_number(o, "epoch", r->epoch);
	put_number(o, "failures", r->failures);
	return o;
}

static json_t *connection_json(const struct ha_status_page *page,
			       const struct ha_status_connection *c)
{
	json_t *o = json_object(), *rails = json_array();

	put_text(o, "name", c->name);
	put_text(o, "side", c->sends ? "send" : "receive");
	json_object_set_new(o, "protected",
			    c->protection == HA_PROTECTION_UNKNOWN
				    ? json_null()
				    : json_boolean(c->protection == HA_PROTECTION_YES));
	put_text(o, "protected_against", ha_status_against_text(c->against));
	put_text(o, "cause", ha_event_cause_text(c->protection_cause));
	json_object_set_new(o, "lost", json_boolean(c->lost));
	put_number(o, "since_ns", c->since_wall);
	put_number(o, "messages", c->messages);
	put_number(o, "gate_bytes", c->gate);
	put_number(o, "failovers", c->failovers);
	put_number(o, "replayed_requests", c->replayed_requests);
	put_number(o, "replayed_bytes", c->replayed_bytes);
	put_number(o, "stall_last_ns", c->stall_last);
	put_number(o, "stall_worst_ns", c->stall_worst);
	for (unsigned i = 0; i < c->nrails; i++)
		json_array_append_new(rails, rail_json(page, &c->rail[i]));
	json_object_set_new(o, "rails", rails);
	return o;
}

static json_t *event_json(const struct ha_status_event *e)
{
	json_t *o = json_object();

	put_number(o, "number", e->number);
	put_number(o, "time_ns", e->wall);
	put_number(o, "monotonic_ns", e->mono);
	put_text(o, "event", ha_event_kind_text(e->kind));
	put_text(o, "cause", ha_event_cause_text(e->cause));
	put_text(o, "connection", e->connection);
	put_text(o, "device", e->device);
	json_object_set_new(o, "rail", e->rail < 0 ? json_null() : json_integer(e->rail));
	put_text(o, "peer_device", e->peer_device);
	put_number(o, "epoch", e->epoch);
	put_number(o, "requests", e->requests);
	put_number(o, "bytes", e->bytes);
	put_number(o, "stall_ns", e->stall);
	put_number(o, "registration_ns", e->registration);
	put_text(o, "text", e->text);
	return o;
}

static json_t *totals_json(const struct ha_status_totals *t)
{
	json_t *o = json_object(), *events = json_object();

	put_number(o, "connections", t->connections);
	put_number(o, "unlisted", t->unlisted);
	put_number(o, "lines_lost", t->lines_lost);
	put_number(o, "kept_out", t->kept_out);
	for (unsigned i = 0; i < HA_EVENT_KIND_COUNT; i++)
		put_number(events, ha_event_kind_text(i), t->events[i]);
	json_object_set_new(o, "events", events);
	return o;
}

static const char *find_state(const struct ha_status_found *f)
{
	if (f->ended)
		return "ended";
	if (f->silent)
		return "silent";
	return f->foreign ? "foreign" : "running";
}

static json_t *process_json(const struct ha_status_found *f)
{
	const struct ha_status_page *page = f->page;
	json_t *o = json_object(), *devices = json_array(), *connections = json_array(),
	       *events = json_array();
	int order[HA_STATUS_EVENTS], n = ha_status_events(page, order);

	put_text(o, "host", page->header.host);
	put_number(o, "pid", page->header.pid);
	put_text(o, "program", page->header.program);
	put_text(o, "hawser", page->header.hawser);
	put_text(o, "plugin", page->header.plugin);
	put_number(o, "started_ns", page->header.started_wall);
	put_text(o, "state", find_state(f));
	json_object_set_new(o, "totals", totals_json(&page->totals));
	for (int i = 0; i < HA_STATUS_DEVICES; i++)
		if (page->device[i].seq && *page->device[i].name)
			json_array_append_new(devices, device_json(&page->device[i]));
	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++)
		if (page->connection[i].seq && page->connection[i].used)
			json_array_append_new(connections,
					      connection_json(page, &page->connection[i]));
	for (int i = 0; i < n; i++)
		json_array_append_new(events, event_json(&page->event[order[i]]));
	json_object_set_new(o, "devices", devices);
	json_object_set_new(o, "connections", connections);
	json_object_set_new(o, "events", events);
	return o;
}

int ha_status_print_json(const struct ha_status_found *found, size_t n, FILE *out)
{
	json_t *all = json_object(), *processes = json_array(), *refused = json_array();
	int err;

	for (size_t i = 0; i < n; i++) {
		json_t *o;

		if (found[i].page) {
			json_array_append_new(processes, process_json(&found[i]));
			continue;
		}
		o = json_object();
		put_text(o, "page", found[i].name);
		put_text(o, "why", found[i].why);
		json_array_append_new(refused, o);
	}
	json_object_set_new(all, "processes", processes);
	json_object_set_new(all, "refused", refused);
	err = json_dumpf(all, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ? -ENOMEM : 0;
	fputc('\n', out);
	json_decref(all);
	return err;
}
