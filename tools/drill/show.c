/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "tools/drill/drill.h"

#define SECONDS(ns) ((double)(ns) / (double)HA_NS_PER_S)

const char *drill_verdict_text(enum drill_verdict verdict)
{
	static const char *const texts[] = { "not done", "survived", "not protected again",
					     "not put back", "LOST" };

	return texts[verdict];
}

bool drill_all_well(const struct drill_run *run)
{
	for (unsigned i = 0; i < run->count; i++)
		if (run->drills[i].verdict != DRILL_SURVIVED)
			return false;
	return !run->job->own || (run->end.known && !run->end.status && !run->end.wrong);
}

void drill_print_head(const struct drill_run *run, FILE *out)
{
	const struct watch *w = &run->watch;

	fprintf(out, "ha drill, hawser %s: %s; %u processes here, %u ends of connections, ",
		ha_version, run->job->name, w->processes, w->connections);
	if (run->usual)
		fprintf(out, "%u of them without protection\n", run->usual);
	else
		fprintf(out, "all protected\n");
	fprintf(out, "%u drills, each for %g s\n", run->count, SECONDS(run->options->hold_ns));
}

static void print_notice(const struct drill *d, FILE *out)
{
	const struct ha_status_event *e = &d->first.event;

	if (!d->noticed) {
		fprintf(out, "  noticed          by nothing: no path failed\n");
		return;
	}
	fprintf(out, "  noticed          after %.1f ms: %s, %s%s%s, process %d\n",
		SECONDS((int64_t)e->mono - d->taken) * 1e3, ha_event_cause_text(e->cause),
		e->device, *e->connection ? " of " : "", e->connection, (int)d->first.pid);
}

static void print_bandwidth(const struct drill *d, FILE *out)
{
	if (d->before < 0 || d->during < 0) {
		fprintf(out, "  bandwidth left   not known: too few measurements\n");
		return;
	}
	fprintf(out, "  bandwidth left   %.0f of %.0f MB/s", d->during / 1e6, d->before / 1e6);
	if (d->before > 0)
		fprintf(out, ", %.0f %%", 100 * d->during / d->before);
	fputc('\n', out);
}

static void print_protection(const struct drill *d, FILE *out)
{
	fprintf(out, "  protected again  ");
	if (!d->again)
		fprintf(out, "NO: %s\n", d->why);
	else if (!d->lapsed)
		fprintf(out, "all the time\n");
	else if (d->again < d->put_back)
		fprintf(out, "%.2f s after it was taken, without it\n",
			SECONDS(d->again - d->taken));
	else
		fprintf(out, "%.2f s after it was put back\n", SECONDS(d->again - d->put_back));
}

static void print_title(const struct drill *d, FILE *out)
{
	fprintf(out, "\n%s: %s", d->target, fault_name(d->fault.kind));
	if (d->fault.kind == FAULT_DROP)
		fprintf(out, " %u %% of the packets", d->fault.drop_ppm / 10000);
	if (d->fault.kind == FAULT_RATE)
		fprintf(out, " to %.1f MB/s", (double)d->fault.bytes_per_ms / 1e3);
	fprintf(out, ": %s\n", drill_verdict_text(d->verdict));
}

void drill_print(const struct drill *d, FILE *out)
{
	print_title(d, out);
	if (d->verdict == DRILL_NOT_DONE) {
		fprintf(out, "  why              %s\n", d->why);
		return;
	}
	print_notice(d, out);
	fprintf(out, "  failed over      %u ends of connections, %u lost\n", d->failovers, d->lost);
	fprintf(out, "  stall            %.1f ms at most\n", SECONDS(d->stall) * 1e3);
	fprintf(out, "  sent again       %" PRIu64 " bytes in %" PRIu64 " requests\n", d->bytes,
		d->requests);
	print_bandwidth(d, out);
	if (d->undo_error)
		fprintf(out, "  put back         NOT at once: %s\n", strerror(-d->undo_error));
	print_protection(d, out);
	fflush(out);
}

static void print_job(const struct drill_run *run, FILE *out)
{
	const struct job_verdict *v = &run->end;

	if (!run->job->own)
		return;
	if (v->known)
		fprintf(out, "the job: %" PRId64 " iterations, %" PRId64 " elements wrong%s%s\n",
			v->iterations, v->wrong, v->status ? "; it FAILED: " : "", v->said);
	else
		fprintf(out, "the job FAILED: %s\n", *v->said ? v->said : "it left no report");
}

void drill_print_end(const struct drill_run *run, FILE *out)
{
	unsigned survived = 0;

	for (unsigned i = 0; i < run->count; i++)
		survived += run->drills[i].verdict == DRILL_SURVIVED;
	fputc('\n', out);
	print_job(run, out);
	if (run->watch.missed)
		fprintf(out,
			"%" PRIu64 " events were overwritten before they were read: there "
			"were more than the report says\n",
			run->watch.missed);
	fprintf(out, "%u of %u drills survived\n", survived, run->count);
}
