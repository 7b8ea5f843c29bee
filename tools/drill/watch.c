/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/soft_job.h"
#include "tools/status_read.h"

#define RATE_SAMPLES 3 /* fewer say nothing about a rate */

int64_t watch_now(void)
{
	return (int64_t)ha_clock_now(&ha_clock_live);
}

void watch_open(struct watch *w, const char *dir, const char *sysfs, pid_t job)
{
	*w = (struct watch) { .dir = dir, .sysfs = sysfs, .job = job };
}

void watch_close(struct watch *w)
{
	free(w->events);
	free(w->samples);
}

/* Room for one more element. */
static int grow_array(void **array, size_t *room, size_t count, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (count < *room)
		return 0;
	grown = realloc(*array, more * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = more;
	return 0;
}

/* ---- status pages ---- */

static struct watch_process *find_process(struct watch *w, pid_t pid)
{
	for (unsigned i = 0; i < w->processes; i++)
		if (w->process[i].pid == pid)
			return &w->process[i];
	if (w->processes == WATCH_PROCESSES)
		return NULL;
	w->process[w->processes] = (struct watch_process) { .pid = pid };
	return &w->process[w->processes++];
}

static int take_events(struct watch *w, struct watch_process *p, const struct ha_status_page *page)
{
	int order[HA_STATUS_EVENTS], n;
	uint64_t missed;

	n = ha_status_events_from(page, p->next_event, !p->seen, order, &missed);
	if (p->next_event)
		w->missed += missed;
	for (int i = 0; i < n; i++) {
		const struct ha_status_event *e = &page->event[order[i]];

		p->next_event = e->number + 1;
		if (grow_array((void **)&w->events, &w->events_room, w->events_count,
			       sizeof(*w->events)))
			return -ENOMEM;
		w->events[w->events_count++] = (struct watch_event) { p->pid, *e };
	}
	return 0;
}

/* The loss of a NIC is survived at both ends; not only at one, as with all paths on one NIC. */
static bool is_protected(const struct ha_status_connection *c)
{
	return c->protection == HA_PROTECTION_YES && c->against != HA_AGAINST_NIC_HERE &&
	       c->against != HA_AGAINST_NIC_THERE;
}

static void take_connections(struct watch *w, const struct ha_status_page *page)
{
	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &page->connection[i];

		if (!c->seq || !c->used)
			continue;
		w->connections++;
		w->messages += c->messages;
		w->lost += c->lost != 0;
		if (c->lost || is_protected(c))
			continue;
		w->unprotected++;
		w->cause = c->protection == HA_PROTECTION_YES ? HA_CAUSE_RAIL_LOST
							      : c->protection_cause;
	}
}

static bool has_device(const struct watch *w, pid_t pid, const char *name)
{
	for (unsigned i = 0; i < w->devices; i++)
		if (w->device[i].pid == pid && !strcmp(w->device[i].name, name))
			return true;
	return false;
}

/* A process has a page for each plugin that it has loaded, with the same NICs. */
static void take_devices(struct watch *w, pid_t pid, const struct ha_status_page *page)
{
	for (int i = 0; i < HA_STATUS_DEVICES && w->devices < WATCH_DEVICES; i++) {
		const struct ha_status_device *d = &page->device[i];
		struct ha_port_bytes *mine = &w->device[w->devices];

		if (!d->seq || !*d->name || has_device(w, pid, d->name))
			continue;
		*mine = (struct ha_port_bytes) { .pid = pid };
		memcpy(mine->name, d->name, sizeof(mine->name));
		w->devices++;
	}
}

static int take_page(struct watch *w, const struct ha_status_found *f)
{
	pid_t pid = (pid_t)f->page->header.pid;
	struct watch_process *p = find_process(w, pid);

	if (!p)
		return -E2BIG;
	p->seen = !f->ended;
	take_connections(w, f->page);
	take_devices(w, pid, f->page);
	return take_events(w, p, f->page);
}

/* A process of the job; one that has ended is known from an earlier look. */
static bool is_of_job(const struct watch *w, const struct ha_status_found *f)
{
	pid_t pid = f->page ? (pid_t)f->page->header.pid : 0;

	if (!f->page || f->foreign)
		return false;
	for (unsigned i = 0; i < w->processes; i++)
		if (w->process[i].pid == pid)
			return true;
	return !f->ended && (ha_soft_job_of(pid) == w->job || pid == w->job);
}

static int look_at_pages(struct watch *w)
{
	struct ha_status_found *found;
	size_t n;
	int err = ha_status_scan(w->dir, &found, &n);

	if (err)
		return err;
	w->connections = w->unprotected = w->lost = w->cause = w->gone = w->devices = 0;
	w->messages = 0;
	for (unsigned i = 0; i < w->processes; i++)
		w->process[i].seen = false;
	for (size_t i = 0; i < n && !err; i++)
		if (is_of_job(w, &found[i]))
			err = take_page(w, &found[i]);
	ha_status_scan_free(found, n);
	for (unsigned i = 0; i < w->processes; i++)
		w->gone += !w->process[i].seen;
	if (w->unprotected > w->most_unprotected)
		w->most_unprotected = w->unprotected;
	return err;
}

/* ---- bytes ---- */

static uint64_t count_arrived(const struct watch *w)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < w->devices; i++)
		bytes += w->device[i].shared ? 0 : w->device[i].received;
	return bytes;
}

int watch_look(struct watch *w)
{
	int err = look_at_pages(w);

	if (err)
		return err;
	if (grow_array((void **)&w->samples, &w->samples_room, w->samples_count,
		       sizeof(*w->samples)))
		return -ENOMEM;
	ha_port_bytes_read(w->device, w->devices, w->sysfs);
	w->samples[w->samples_count++] = (struct watch_sample) { watch_now(), count_arrived(w) };
	return 0;
}

/* ---- what the samples say ---- */

double watch_rate(const struct watch *w, int64_t from, int64_t to)
{
	const struct watch_sample *first = NULL, *last = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < w->samples_count; i++) {
		const struct watch_sample *s = &w->samples[i];

		if (s->at < from || s->at > to)
			continue;
		first = first ? first : s;
		last = s;
		n++;
	}
	if (n < RATE_SAMPLES || last->at <= first->at || last->bytes < first->bytes)
		return -1;
	return (double)(last->bytes - first->bytes) * 1e9 / (double)(last->at - first->at);
}
