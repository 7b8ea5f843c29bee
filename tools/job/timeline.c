/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/job/timeline.h"

#define GAPS_ROOM 65536
#define BUCKETS_MOST (1u << 24)

int ha_timeline_open(struct ha_timeline *t, int64_t step, int64_t duration)
{
	/* a run that has to recover may take longer */
	size_t room = (size_t)(2 * duration / step) + 1000;

	*t = (struct ha_timeline) { .step = step,
				    .buckets_room = room < BUCKETS_MOST ? room : BUCKETS_MOST };
	t->buckets = calloc(t->buckets_room, sizeof(*t->buckets));
	t->gaps = calloc(GAPS_ROOM, sizeof(*t->gaps));
	return t->buckets && t->gaps
		       ? 0
		       : ha_fault(-ENOMEM, "no memory for a timeline of %zu buckets", room);
}

void ha_timeline_close(struct ha_timeline *t)
{
	free(t->buckets);
	free(t->gaps);
	*t = (struct ha_timeline) { 0 };
}

void ha_timeline_start(struct ha_timeline *t, int64_t zero)
{
	t->zero = t->last = zero;
	t->running = true;
}

static void gap_take(struct ha_timeline *t, int64_t now)
{
	struct ha_gap gap = { t->last - t->zero, now - t->last };

	if (gap.length > t->longest.length)
		t->longest = gap;
	if (gap.length < t->step)
		return;
	if (t->gaps_count < GAPS_ROOM)
		t->gaps[t->gaps_count++] = gap;
	else
		t->gaps_omitted++;
}

void ha_timeline_stop(struct ha_timeline *t)
{
	int64_t now = ha_monotonic_ns();

	gap_take(t, now);
	t->end = now;
	t->running = false;
}

void ha_timeline_progress(struct ha_timeline *t, size_t bytes)
{
	int64_t now;
	size_t at;

	if (!t || !t->running)
		return;
	now = ha_monotonic_ns();
	gap_take(t, now);
	t->last = now;
	at = now > t->zero ? (size_t)((now - t->zero) / t->step) : 0;
	if (at >= t->buckets_room)
		/* far beyond the duration: everything into the last one */
		at = t->buckets_room - 1;
	t->buckets[at] += bytes;
	if (at >= t->buckets_count)
		t->buckets_count = at + 1;
}

/* ---- all ranks ---- */

static int buckets_gather(struct ha_timelines *all, const struct ha_timeline *mine,
			  struct ha_rendezvous *rendezvous)
{
	size_t n = all->buckets_count, ranks = (size_t)all->ranks;
	/* mine has room for as many: all are opened alike */
	uint64_t *parts = calloc(ranks * n + 1, sizeof(*parts));
	int err = parts ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err && n)
		err = ha_rendezvous_gather(rendezvous, mine->buckets, n * sizeof(*parts), parts);
	for (size_t i = 0; i < ranks * n && !err && all->buckets; i++)
		all->buckets[i % n] += parts[i];
	free(parts);
	return err;
}

static int gaps_gather(struct ha_timelines *all, const struct ha_timeline *mine,
		       struct ha_rendezvous *rendezvous, bool here)
{
	size_t n = 0, ranks = (size_t)all->ranks;
	struct ha_gap *parts;
	int err = 0;

	for (size_t i = 0; i < ranks; i++)
		n = all->each[i].gaps_count > n ? all->each[i].gaps_count : n;
	parts = calloc(ranks * n + 1, sizeof(*parts));
	if (!parts)
		return ha_fault(-ENOMEM, "out of memory");
	if (n)
		err = ha_rendezvous_gather(rendezvous, mine->gaps, n * sizeof(*parts), parts);
	for (size_t i = 0; i < ranks && !err && here; i++) {
		all->each[i].gaps = calloc(n + 1, sizeof(*parts));
		if (!all->each[i].gaps)
			err = ha_fault(-ENOMEM, "out of memory");
		for (size_t k = 0; k < n && !err; k++)
			all->each[i].gaps[k] = parts[i * n + k];
	}
	free(parts);
	return err;
}

int ha_timelines_gather(struct ha_timelines *all, const struct ha_timeline *mine,
			struct ha_rendezvous *rendezvous, int rank, int ranks)
{
	int err;

	*all = (struct ha_timelines) { .ranks = ranks,
				       .each = calloc((size_t)ranks, sizeof(*all->each)) };
	if (!all->each)
		return ha_fault(-ENOMEM, "out of memory");
	err = ha_rendezvous_allgather(rendezvous, mine, sizeof(*mine), all->each);
	for (int i = 0; i < ranks; i++) {
		all->each[i].buckets = NULL; /* addresses of another process */
		all->each[i].gaps = NULL;
		if (all->each[i].buckets_count > all->buckets_count)
			all->buckets_count = all->each[i].buckets_count;
	}
	if (!rank)
		all->buckets = calloc(all->buckets_count + 1, sizeof(*all->buckets));
	if (!err && !rank && !all->buckets)
		err = ha_fault(-ENOMEM, "out of memory");
	if (!err)
		err = buckets_gather(all, mine, rendezvous);
	return err ? err : gaps_gather(all, mine, rendezvous, !rank);
}

void ha_timelines_release(struct ha_timelines *all)
{
	for (int i = 0; i < all->ranks && all->each; i++)
		free(all->each[i].gaps);
	free(all->each);
	free(all->buckets);
	*all = (struct ha_timelines) { 0 };
}
