/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as one JSON object. Times in ms, from the moment that is named; bandwidths in bytes/s.
 */
#include <errno.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/version.h"
#include "tools/drill/drill.h"

static json_t *milliseconds_json(int64_t ns)
{
	return json_real((double)ns / (double)HA_NS_PER_MS);
}

static json_t *rate_json(double bytes_per_s)
{
	return bytes_per_s < 0 ? json_null() : json_real(bytes_per_s);
}

static json_t *places_json(const struct fault *fault)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < fault->places; i++) {
		const struct fault_place *p = &fault->place[i];
		json_t *o = json_pack("{s:s, s:i}", "device", p->device, "pid", (int)p->pid);

		if (*p->netdev)
			json_object_set_new(o, "netdev", json_string(p->netdev));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *notice_json(const struct drill *d)
{
	const struct ha_status_event *e = &d->first.event;

	if (!d->noticed)
		return json_null();
	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:i}", "after_ms",
			 milliseconds_json((int64_t)e->mono - d->taken), "event",
			 ha_event_kind_text(e->kind), "cause", ha_event_cause_text(e->cause),
			 "device", e->device, "connection", e->connection, "pid",
			 (int)d->first.pid);
}

/* Negative: before it was put back, without it. null: never, or all the time. */
static json_t *again_json(const struct drill *d)
{
	return d->again && d->lapsed ? milliseconds_json(d->again - d->put_back) : json_null();
}

static json_t *drill_json(const struct drill_run *run, const struct drill *d)
{
	json_t *o = json_object();

	json_object_set_new(o, "target", json_string(d->target));
	json_object_set_new(o, "fault", json_string(fault_name(d->fault.kind)));
	json_object_set_new(o, "places", places_json(&d->fault));
	if (d->fault.kind == FAULT_DROP)
		json_object_set_new(o, "drop_percent", json_integer(d->fault.drop_ppm / 10000));
	if (d->fault.kind == FAULT_RATE)
		json_object_set_new(o, "rate_bytes_per_s",
				    json_integer((json_int_t)d->fault.bytes_per_ms * 1000));
	json_object_set_new(o, "verdict", json_string(drill_verdict_text(d->verdict)));
	json_object_set_new(o, "why", *d->why ? json_string(d->why) : json_null());
	if (d->verdict == DRILL_NOT_DONE)
		return o;
	json_object_set_new(o, "taken_ms", milliseconds_json(d->taken - run->zero));
	json_object_set_new(o, "put_back_ms", milliseconds_json(d->put_back - run->zero));
	json_object_set_new(o, "noticed", notice_json(d));
	json_object_set_new(o, "failovers", json_integer(d->failovers));
	json_object_set_new(o, "lost", json_integer(d->lost));
	json_object_set_new(o, "stall_ms", milliseconds_json((int64_t)d->stall));
	json_object_set_new(o, "requests_sent_again", json_integer((json_int_t)d->requests));
	json_object_set_new(o, "bytes_sent_again", json_integer((json_int_t)d->bytes));
	json_object_set_new(o, "bandwidth_before", rate_json(d->before));
	json_object_set_new(o, "bandwidth_left", rate_json(d->during));
	json_object_set_new(o, "unprotected", json_boolean(d->lapsed));
	json_object_set_new(o, "protected_again_ms", again_json(d));
	return o;
}

static json_t *job_json(const struct drill_run *run)
{
	json_t *o =
		json_pack("{s:s, s:i, s:b, s:I, s:i}", "name", run->job->name, "pid",
			  (int)run->job->pid, "own", run->job->own, "events_missed",
			  (json_int_t)run->watch.missed, "usually_unprotected", (int)run->usual);

	if (!run->job->own)
		return o;
	json_object_set_new(o, "ended_well", json_boolean(run->end.known && !run->end.status));
	json_object_set_new(o, "iterations", json_integer(run->end.iterations));
	json_object_set_new(o, "wrong", json_integer(run->end.wrong));
	return o;
}

/* [ms, bytes/s] between two looks each. */
static json_t *samples_json(const struct drill_run *run)
{
	const struct watch *w = &run->watch;
	json_t *list = json_array();

	for (size_t i = 1; i < w->samples_count; i++) {
		const struct watch_sample *s = &w->samples[i];
		double bytes = s->bytes > s[-1].bytes ? (double)(s->bytes - s[-1].bytes) : 0;

		json_array_append_new(
			list, json_pack("[o, o]", milliseconds_json(s->at - run->zero),
					json_real(bytes * 1e9 / (double)(s->at - s[-1].at))));
	}
	return list;
}

int drill_write_json(const struct drill_run *run, const char *path)
{
	json_t *all = json_object(), *list = json_array();
	int err;

	for (unsigned i = 0; i < run->count; i++)
		json_array_append_new(list, drill_json(run, &run->drills[i]));
	json_object_set_new(all, "hawser", json_string(ha_version));
	json_object_set_new(all, "job", job_json(run));
	json_object_set_new(all, "all_well", json_boolean(drill_all_well(run)));
	json_object_set_new(all, "drills", list);
	json_object_set_new(all, "arrived", samples_json(run));
	err = json_dump_file(all, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ? -EIO : 0;
	json_decref(all);
	return err;
}
