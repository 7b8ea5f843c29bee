/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tools/soft_job.h"
#include "tools/status_view.h"

const char *top_sort_name(enum top_sort sort)
{
	static const char *const names[] = { "messages", "failovers", "stall", "name" };

	return names[sort];
}

void top_lines_free(struct top_lines *lines)
{
	free(lines->line);
	*lines = (struct top_lines) { 0 };
}

__attribute__((format(printf, 3, 4))) static int add(struct top_lines *lines, enum top_look look,
						     const char *format, ...)
{
	struct top_line *grown;
	va_list args;

	if (lines->n == lines->room) {
		size_t room = lines->room ? 2 * lines->room : 64;

		grown = realloc(lines->line, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		lines->line = grown;
		lines->room = room;
	}
	lines->line[lines->n].look = look;
	va_start(args, format);
	vsnprintf(lines->line[lines->n].text, TOP_WIDTH, format, args);
	va_end(args);
	lines->n++;
	return 0;
}

/* "-" where there is no rate. */
static const char *rate_text(double rate, double unit, char text[16])
{
	snprintf(text, 16, rate < 0 ? "-" : "%.1f", rate / unit);
	return text;
}

static bool is_shown(const struct ha_status_found *f, const struct top_settings *s)
{
	return f->page && (!s->pid || (pid_t)f->page->header.pid == s->pid);
}

static bool is_open(const struct ha_status_connection *c)
{
	return c->seq && c->used;
}

/* ---- the head ---- */

struct sums {
	unsigned jobs, processes, ended, connections, unprotected, lost;
	uint64_t failovers;
	double messages;
	pid_t job[256];
};

static void count_job(struct sums *sums, pid_t pid)
{
	pid_t job = ha_soft_job_of(pid);

	for (unsigned i = 0; i < sums->jobs; i++)
		if (sums->job[i] == job)
			return;
	if (sums->jobs < 256)
		sums->job[sums->jobs++] = job;
}

static void count_process(struct sums *sums, const struct frame *f, const struct frame *before,
			  size_t p)
{
	const struct ha_status_page *page = f->found[p].page;

	sums->failovers += page->totals.events[HA_EVENT_FAILED_OVER];
	if (f->found[p].ended) {
		sums->ended++;
		return;
	}
	if (f->found[p].silent)
		return;
	sums->processes++;
	count_job(sums, f->found[p].pid);
	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &page->connection[i];
		double rate = is_open(c) ? frame_message_rate(f, before, p, i) : -1;

		if (!is_open(c))
			continue;
		sums->connections++;
		sums->lost += c->lost != 0;
		sums->unprotected += !c->lost && c->protection == HA_PROTECTION_NO;
		sums->messages += rate > 0 ? rate : 0;
	}
}

static int add_head(struct top_lines *lines, const struct frame *f, const struct frame *before,
		    const struct top_settings *s)
{
	struct sums sums = { 0 };
	time_t now = time(NULL);
	char clock[16] = "?";
	struct tm tm;
	int err;

	for (size_t p = 0; p < f->n; p++)
		if (is_shown(&f->found[p], s))
			count_process(&sums, f, before, p);
	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	err = add(lines, TOP_PLAIN,
		  "ha top - %s  jobs: %u  processes: %u, %u ended without closing", clock,
		  sums.jobs, sums.processes, sums.ended);
	if (!err)
		err = add(lines, sums.unprotected || sums.lost ? TOP_BAD : TOP_PLAIN,
			  "connections: %u ends, %u not protected, %u lost  failovers: %" PRIu64
			  "  messages/s: %.0f",
			  sums.connections, sums.unprotected, sums.lost, sums.failovers,
			  sums.messages);
	lines->head = lines->n;
	return err;
}

/* ---- ports ---- */

static const struct ha_status_device *find_device(const struct ha_status_page *page,
						  const char *name)
{
	for (int i = 0; i < HA_STATUS_DEVICES; i++)
		if (page->device[i].seq && !strcmp(page->device[i].name, name))
			return &page->device[i];
	return NULL;
}

static int add_port(struct top_lines *lines, const struct frame *f, const struct frame *before,
		    const struct ha_status_page *page, const struct ha_port_bytes *port)
{
	const struct ha_status_device *d = find_device(page, port->name);
	struct top_rates rates = frame_port_rates(f, before, port);
	char sent[16], received[16];

	if (!d)
		return 0;
	return add(lines, d->port == HA_PORT_UP || d->port == HA_PORT_UNKNOWN ? TOP_PLAIN : TOP_BAD,
		   "%8u %-16s %-8s %11s %11s %5u %5u %5u %9u", page->header.pid, d->name,
		   ha_status_port_text(d->port), rate_text(rates.sent, 1e6, sent),
		   rate_text(rates.received, 1e6, received), d->connections, d->rails_up,
		   d->rails_down, d->failovers);
}

static int add_ports(struct top_lines *lines, const struct frame *f, const struct frame *before,
		     const struct top_settings *s)
{
	int err = add(lines, TOP_TITLE, "%8s %-16s %-8s %11s %11s %5s %5s %5s %9s", "PID", "PORT",
		      "STATE", "SENT MB/s", "RECV MB/s", "CONN", "UP", "DOWN", "FAILOVERS");

	for (size_t p = 0; p < f->n && !err; p++) {
		const struct ha_status_page *page = f->found[p].page;

		if (!is_shown(&f->found[p], s))
			continue;
		for (unsigned i = 0; i < f->ports && !err; i++)
			if ((uint32_t)f->port[i].pid == page->header.pid)
				err = add_port(lines, f, before, page, &f->port[i]);
	}
	return err;
}

/* ---- connections ---- */

struct row {
	const struct ha_status_page *page;
	const struct ha_status_connection *c;
	double rate;
};

static double key_of(const struct row *row, enum top_sort sort)
{
	switch (sort) {
	case TOP_BY_FAILOVERS:
		return row->c->failovers;
	case TOP_BY_STALL:
		return (double)row->c->stall_worst;
	default:
		return row->rate;
	}
}

static int by_setting(const void *a, const void *b, void *context)
{
	const struct top_settings *s = context;
	const struct row *x = a, *y = b;
	int order;

	if (s->sort == TOP_BY_NAME)
		order = strcmp(x->c->name, y->c->name);
	else
		order = (key_of(x, s->sort) < key_of(y, s->sort)) -
			(key_of(x, s->sort) > key_of(y, s->sort));
	if (!order)
		order = (x->page->header.pid > y->page->header.pid) -
			(x->page->header.pid < y->page->header.pid);
	return s->reverse ? -order : order;
}

/* "soft0:1>soft1:1 up 1024, soft1:1>soft0:1 down": each rail with its state, and its weight in
 * parts per 1024. */
static void rails_text(const struct row *row, char *text, size_t size)
{
	size_t used = 0;

	*text = 0;
	for (unsigned i = 0; i < row->c->nrails && used < size; i++) {
		const struct ha_status_rail *r = &row->c->rail[i];
		const char *device =
			r->device < HA_STATUS_DEVICES ? row->page->device[r->device].name : "?";

		if (r->state == HA_STATUS_RAIL_NONE)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s>%s %s", used ? ", " : "",
					 device, r->peer, ha_status_rail_text(r->state));
		if (r->weight && used < size)
			used += (size_t)snprintf(text + used, size - used, " %u", r->weight);
	}
}

static const char *protection_text(const struct ha_status_connection *c)
{
	const char *against = ha_status_against_text(c->against);

	if (c->lost)
		return "LOST";
	return c->protection == HA_PROTECTION_YES && *against
		       ? against
		       : ha_status_protection_text(c->protection);
}

static int add_connection(struct top_lines *lines, const struct row *row)
{
	const struct ha_status_connection *c = row->c;
	char rate[16], rails[160];

	rails_text(row, rails, sizeof(rails));
	return add(lines, c->lost || c->protection == HA_PROTECTION_NO ? TOP_BAD : TOP_PLAIN,
		   "%8u %-9s %10s %5u %9.1f %-38s %s", row->page->header.pid, protection_text(c),
		   rate_text(row->rate, 1, rate), c->failovers, (double)c->stall_worst / 1e6,
		   c->name, rails);
}

static size_t collect_connections(struct row *rows, const struct frame *f,
				  const struct frame *before, const struct top_settings *s)
{
	size_t n = 0;

	for (size_t p = 0; p < f->n; p++) {
		const struct ha_status_page *page = f->found[p].page;

		if (!is_shown(&f->found[p], s) || !ha_status_runs(&f->found[p]))
			continue;
		for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
			double rate;

			if (!is_open(&page->connection[i]))
				continue;
			rate = frame_message_rate(f, before, p, i);
			if (s->idle || rate > 0)
				rows[n++] = (struct row) { page, &page->connection[i], rate };
		}
	}
	return n;
}

static int add_connections(struct top_lines *lines, const struct frame *f,
			   const struct frame *before, const struct top_settings *s)
{
	struct row *rows = malloc(f->n * HA_STATUS_CONNECTIONS * sizeof(*rows) + 1);
	struct top_settings sorted = *s;
	size_t n;
	int err;

	if (!rows)
		return -ENOMEM;
	n = collect_connections(rows, f, before, s);
	qsort_r(rows, n, sizeof(*rows), by_setting, &sorted);
	err = add(lines, TOP_TITLE, "%8s %-9s %10s %5s %9s %-38s %s", "PID", "PROTECTED", "MSG/s",
		  "FAIL", "STALL ms", "CONNECTION", "RAILS: state, weight of 1024");
	for (size_t i = 0; i < n && !err; i++)
		err = add_connection(lines, &rows[i]);
	free(rows);
	return err;
}

/* ---- events ---- */

static enum top_look look_of(const struct ha_status_event *e)
{
	if (e->kind == HA_EVENT_LOST || e->kind == HA_EVENT_NOT_PROTECTED ||
	    e->kind == HA_EVENT_SUSPECTED)
		return TOP_BAD;
	return e->kind == HA_EVENT_PROTECTED || e->kind == HA_EVENT_CONNECTED ? TOP_CALM
									      : TOP_PLAIN;
}

static int add_event(struct top_lines *lines, const struct ha_status_page *page,
		     const struct ha_status_event *e)
{
	time_t seconds = (time_t)(e->wall / HA_NS_PER_S);
	char clock[16] = "?", cost[96] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (e->kind == HA_EVENT_FAILED_OVER)
		snprintf(cost, sizeof(cost), ", stalled %.1f ms, %" PRIu64 " bytes again",
			 (double)e->stall / 1e6, e->bytes);
	return add(lines, look_of(e), "%s.%03u %8u %-13s %-13s %s%s", clock,
		   (unsigned)(e->wall % HA_NS_PER_S / HA_NS_PER_MS), page->header.pid,
		   ha_event_kind_text(e->kind), e->cause ? ha_event_cause_text(e->cause) : "",
		   *e->connection ? e->connection : e->device, cost);
}

struct seen {
	const struct ha_status_page *page;
	const struct ha_status_event *event;
};

static int newest_first(const void *a, const void *b)
{
	const struct ha_status_event *x = ((const struct seen *)a)->event;
	const struct ha_status_event *y = ((const struct seen *)b)->event;

	return (x->wall < y->wall) - (x->wall > y->wall);
}

/* The last ones of each process; `seen` has room for most_events of each. */
static size_t collect_events(struct seen *seen, const struct frame *f, const struct top_settings *s)
{
	size_t all = 0;

	for (size_t p = 0; p < f->n; p++) {
		const struct ha_status_page *page = f->found[p].page;
		int order[HA_STATUS_EVENTS], n;

		if (!is_shown(&f->found[p], s))
			continue;
		n = ha_status_events(page, order);
		for (int i = n > s->most_events ? n - s->most_events : 0; i < n; i++)
			seen[all++] = (struct seen) { page, &page->event[order[i]] };
	}
	return all;
}

static int add_events(struct top_lines *lines, const struct frame *f, const struct top_settings *s)
{
	struct seen *seen = malloc(f->n * (size_t)s->most_events * sizeof(*seen) + 1);
	size_t n;
	int err;

	if (!seen)
		return -ENOMEM;
	n = collect_events(seen, f, s);
	qsort(seen, n, sizeof(*seen), newest_first);
	err = add(lines, TOP_TITLE, "%-12s %8s %-13s %-13s %s", "EVENT AT", "PID", "WHAT", "CAUSE",
		  "WHERE");
	for (size_t i = 0; i < n && !err; i++)
		err = add_event(lines, seen[i].page, seen[i].event);
	free(seen);
	return err;
}

int top_lines_make(struct top_lines *lines, const struct frame *f, const struct frame *before,
		   const struct top_settings *s)
{
	int err;

	lines->n = 0;
	err = add_head(lines, f, before, s);
	if (!err)
		err = add(lines, TOP_PLAIN, "%s", "");
	if (!err)
		err = add_ports(lines, f, before, s);
	if (!err && s->connections)
		err = add(lines, TOP_PLAIN, "%s", "");
	if (!err && s->connections)
		err = add_connections(lines, f, before, s);
	if (!err && s->events)
		err = add(lines, TOP_PLAIN, "%s", "");
	return !err && s->events ? add_events(lines, f, s) : err;
}
