/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "tools/job/cues.h"
#include "tools/job/fault.h"
#include "tools/job/interrupt.h"
#include "tools/job/pace.h"
#include "tools/job/rendezvous.h"
#include "tools/job/timeline.h"

#define BATCH_NS 50000000 /* between two words of rank 0 */

/* How many iterations come next, as rank 0 sees it: enough for a batch, not beyond the end. */
static int64_t batch_next(const struct ha_pace *p, int64_t zero, int64_t done, int64_t took)
{
	int64_t left = p->duration_ns - (ha_monotonic_ns() - zero), n;

	if (left <= 0 || ha_interrupted())
		return 0;
	if (!done || took <= 0)
		return 1;
	n = (left < BATCH_NS ? left : BATCH_NS) / (took / done + 1);
	return n > 1 ? n : 1;
}

/* Rank 0's number, in all ranks. */
static int share_value(const struct ha_pace *p, int64_t *value)
{
	int64_t *all = calloc((size_t)p->place->ranks, sizeof(*all));
	int err = -ENOMEM;

	if (all)
		err = ha_rendezvous_allgather(p->rendezvous, value, sizeof(*value), all);
	else
		ha_fault(err, "out of memory");
	if (!err)
		*value = all[0];
	free(all);
	return err;
}

/* The start: at the same moment in all ranks where they have the same clock. */
static int start_together(const struct ha_pace *p, int64_t *zero)
{
	int err = ha_rendezvous_barrier(p->rendezvous);

	*zero = ha_monotonic_ns();
	if (!err)
		err = share_value(p, zero);
	if (!p->place->forked)
		*zero = ha_monotonic_ns();
	ha_interrupt_take(p->place);
	if (!p->place->rank)
		ha_cues_start(p->place->cues, *zero);
	ha_timeline_start(p->timeline, *zero);
	return err;
}

static int run_iteration(const struct ha_pace *p)
{
	struct timespec computation = { .tv_sec = p->compute_ns / HA_NS_PER_S,
					.tv_nsec = p->compute_ns % HA_NS_PER_S };

	if (p->compute_ns)
		nanosleep(&computation, NULL);
	return p->iterate(p->context);
}

int ha_pace_run(const struct ha_pace *p)
{
	int64_t zero, begin, n = 0, took = 0;
	int err = start_together(p, &zero);

	while (!err) {
		n = batch_next(p, zero, n, took);
		err = share_value(p, &n);
		if (err || !n)
			break;
		begin = ha_monotonic_ns();
		for (int64_t i = 0; i < n && !err; i++)
			err = run_iteration(p);
		took = ha_monotonic_ns() - begin;
	}
	ha_timeline_stop(p->timeline);
	return err;
}
