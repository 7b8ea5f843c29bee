/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/drill.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define LOOK_NS ((int64_t)(20 * HA_NS_PER_MS))
#define CONNECT_NS ((int64_t)(60 * HA_NS_PER_S)) /* what a job may take to connect */
/* What the guard waits beyond the time that a fault is held. */
#define LATE_NS ((int64_t)(10 * HA_NS_PER_S))

static bool is_stopped(const struct drill_run *run)
{
	return *run->stop;
}

/* The job is not there any more, or not whole. */
static bool has_ended(struct drill_run *run)
{
	return run->watch.gone || !job_runs(run->job);
}

static void sleep_interval(void)
{
	nanosleep(&(struct timespec) { .tv_nsec = LOOK_NS }, NULL);
}

static bool is_protected(const struct drill_run *run)
{
	return run->watch.connections && run->watch.unprotected <= run->usual;
}

/* Looks until the job is protected; false: it ended, the time was up or the drill is stopped. */
static bool await_protected(struct drill_run *run, int64_t until)
{
	while (!is_stopped(run) && watch_now() < until) {
		if (watch_look(&run->watch) || has_ended(run))
			return false;
		if (is_protected(run))
			return true;
		sleep_interval();
	}
	return false;
}

static bool watch_until(struct drill_run *run, int64_t until)
{
	while (!is_stopped(run) && watch_now() < until) {
		if (watch_look(&run->watch) || has_ended(run))
			return false;
		sleep_interval();
	}
	return !is_stopped(run);
}

/* ---- before all ---- */

static int await_connections(struct drill_run *run)
{
	int64_t until = watch_now() + CONNECT_NS;
	unsigned processes = run->job->own ? (unsigned)run->options->ranks : 1;

	run->zero = watch_now();
	while (!is_stopped(run) && watch_now() < until) {
		int err = watch_look(&run->watch);

		if (err) {
			fprintf(stderr, "ha drill: the status pages in %s: %s\n", run->watch.dir,
				strerror(-err));
			return err;
		}
		if (run->watch.processes >= processes && run->watch.connections &&
		    run->watch.messages)
			return 0;
		if (!job_runs(run->job))
			return -ECHILD;
		sleep_interval();
	}
	return is_stopped(run) ? -EINTR : -ETIMEDOUT;
}

int drill_await_job(struct drill_run *run)
{
	int err = await_connections(run);

	if (err == -ETIMEDOUT)
		fprintf(stderr,
			"ha drill: the job has connected nothing by hawser within %d s; `ha "
			"status` "
			"shows what it has\n",
			(int)(CONNECT_NS / (int64_t)HA_NS_PER_S));
	if (err)
		return err;
	/* Some hosts have one NIC: what is not protected now need not be so later. */
	if (!await_protected(run, watch_now() + run->options->recovery_ns)) {
		if (is_stopped(run))
			return -EINTR;
		run->usual = run->watch.unprotected;
	}
	return 0;
}

/* ---- one drill ---- */

static void give_up(struct drill_run *run, struct drill *d, const char *why)
{
	d->verdict = DRILL_NOT_DONE;
	snprintf(d->why, sizeof(d->why), "%s", is_stopped(run) ? "interrupted" : why);
}

/* "soft0:1" or "soft0" is the device "soft0". */
static bool is_device(const char *name, const char *device)
{
	size_t length = strlen(device);

	return !strncmp(name, device, length) && (name[length] == ':' || !name[length]);
}

/* Bytes that the NICs of the fault have sent, on average. */
static double count_sent(const struct watch *w, const struct fault *fault)
{
	double bytes = 0;

	for (unsigned i = 0; i < w->devices; i++)
		for (unsigned k = 0; k < fault->places; k++)
			if ((uint32_t)w->device[i].pid == fault->place[k].pid &&
			    is_device(w->device[i].name, fault->place[k].device))
				bytes += (double)w->device[i].sent;
	return bytes / fault->places;
}

/* A tenth of what the NIC sent, where the caller names no rate; 1 MB/s at least. */
static void choose_rate(const struct drill_run *run, struct drill *d, double sent, int64_t time)
{
	double per_ms = time > 0 ? sent * 1e6 / (double)time / 10 : 0;

	d->fault.bytes_per_ms = run->options->rate_mbs * 1000;
	if (!run->options->rate_mbs)
		d->fault.bytes_per_ms = per_ms > 1000 ? (uint64_t)per_ms : 1000;
}

/* Whether the event says that something is wrong with a path. */
static bool is_notice(const struct ha_status_event *e)
{
	if (e->kind == HA_EVENT_SUSPECTED || e->kind == HA_EVENT_LOST)
		return true;
	return e->kind == HA_EVENT_DEVICE && e->cause != HA_CAUSE_PORT_UP;
}

static void count_event(struct drill *d, const struct watch_event *seen)
{
	const struct ha_status_event *e = &seen->event;
	int64_t at = (int64_t)e->mono;

	if (at < d->taken)
		return;
	if (is_notice(e) && (!d->noticed || e->mono < d->first.event.mono)) {
		d->noticed = true;
		d->first = *seen;
	}
	d->lost += e->kind == HA_EVENT_LOST;
	d->lapsed |= e->kind == HA_EVENT_NOT_PROTECTED;
	if (e->kind != HA_EVENT_FAILED_OVER)
		return;
	d->failovers++;
	d->requests += e->requests;
	d->bytes += e->bytes;
	if (e->stall > d->stall)
		d->stall = e->stall;
}

/* When the traffic had found its way: the last failover while it was taken away. */
static int64_t settled_at(const struct drill_run *run, const struct drill *d)
{
	int64_t at = d->taken;

	for (size_t i = 0; i < run->watch.events_count; i++) {
		const struct ha_status_event *e = &run->watch.events[i].event;

		if (e->kind == HA_EVENT_FAILED_OVER && (int64_t)e->mono > at &&
		    (int64_t)e->mono < d->put_back)
			at = (int64_t)e->mono;
	}
	return at;
}

/* The moment of the last `protected` since it was put back; else the look that saw it. */
static int64_t protected_at(const struct drill_run *run, const struct drill *d, int64_t seen)
{
	int64_t at = 0;

	for (size_t i = 0; i < run->watch.events_count; i++) {
		const struct ha_status_event *e = &run->watch.events[i].event;

		if (e->kind == HA_EVENT_PROTECTED && (int64_t)e->mono > d->taken &&
		    (int64_t)e->mono > at)
			at = (int64_t)e->mono;
	}
	return at ? at : seen;
}

/* Of a job that goes on. */
static void judge_protection(struct drill_run *run, struct drill *d, bool again)
{
	d->verdict = again ? DRILL_SURVIVED : DRILL_UNPROTECTED;
	if (!again)
		snprintf(d->why, sizeof(d->why), "%u connections not protected: %s",
			 run->watch.unprotected, ha_event_cause_text(run->watch.cause));
	if (!again && is_stopped(run))
		give_up(run, d, "");
	if (!d->undo_error)
		return;
	d->verdict = DRILL_NOT_PUT_BACK;
	snprintf(d->why, sizeof(d->why), "it could not be put back at first: %s",
		 strerror(-d->undo_error));
}

static void judge_drill(struct drill_run *run, struct drill *d, bool again)
{
	for (size_t i = 0; i < run->watch.events_count; i++)
		count_event(d, &run->watch.events[i]);
	d->during = watch_rate(&run->watch, settled_at(run, d), d->put_back);
	if (again)
		d->again = protected_at(run, d, watch_now());
	if (d->lost || has_ended(run)) {
		d->verdict = DRILL_LOST;
		snprintf(d->why, sizeof(d->why), "%s",
			 d->lost ? "a connection has ended with an error" : "the job has ended");
		return;
	}
	judge_protection(run, d, again);
}

/* Takes away, watches, puts back. False: it could not be taken away. */
static bool hold_fault(struct drill_run *run, struct drill *d)
{
	int err;

	d->taken = watch_now();
	err = guard_apply(&run->guard, &d->fault, d->taken + run->options->hold_ns + LATE_NS);
	if (err) {
		snprintf(d->why, sizeof(d->why), "cannot take it away: %s",
			 err == -EALREADY ? "what was taken away before could not be put back"
					  : strerror(-err));
		d->verdict = DRILL_NOT_DONE;
		d->taken = 0;
		return false;
	}
	run->watch.most_unprotected = 0;
	(void)watch_until(run, watch_now() + run->options->hold_ns);
	d->lapsed = run->watch.most_unprotected > run->usual;
	d->put_back = watch_now();
	d->undo_error = guard_undo(&run->guard);
	if (d->undo_error)
		fprintf(stderr, "ha drill: %s: cannot be put back: %s; it is tried again\n",
			d->target, strerror(-d->undo_error));
	return true;
}

void drill_do(struct drill_run *run, struct drill *d)
{
	int64_t begin;
	double sent;
	bool again;

	d->before = d->during = -1;
	if (!await_protected(run, watch_now() + run->options->recovery_ns)) {
		give_up(run, d,
			has_ended(run) ? "the job has ended"
				       : "the job is not protected after the drill before");
		return;
	}
	begin = watch_now();
	sent = count_sent(&run->watch, &d->fault);
	if (!watch_until(run, begin + run->options->before_ns)) {
		give_up(run, d, "the job has ended");
		return;
	}
	d->before = watch_rate(&run->watch, begin, watch_now());
	choose_rate(run, d, count_sent(&run->watch, &d->fault) - sent, watch_now() - begin);
	if (!hold_fault(run, d))
		return;
	again = await_protected(run, d->put_back + run->options->recovery_ns);
	judge_drill(run, d, again);
}
