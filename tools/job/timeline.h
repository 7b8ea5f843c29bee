/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_TIMELINE_H
#define HAWSER_JOB_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ha_place;
struct ha_rendezvous;
struct ha_run_options;

/*
 * timeline - what arrived when, and when nothing moved
 *
 * The bytes of a rank's completed receives go into buckets of equal length. Every completed
 * request, also of a send or a flush, is progress; a gap is the time from one to the next. Gaps at
 * least as long as a bucket are kept one by one.
 * Times are CLOCK_MONOTONIC nanoseconds, those of buckets and gaps count from the start of the
 * measurement.
 */
struct ha_gap {
	int64_t at, length;
};

struct ha_timeline {
	int64_t zero, step, last, end; /* last: of the last progress */
	bool running;
	uint64_t *buckets;
	size_t buckets_count, buckets_room;
	struct ha_gap longest;
	struct ha_gap *gaps;
	size_t gaps_count;
	uint64_t gaps_omitted; /* beyond what there is room for */
};

/* Room for the expected duration is made now. 0 or -ENOMEM with the fault recorded. */
int ha_timeline_open(struct ha_timeline *timeline, int64_t step, int64_t duration);
void ha_timeline_close(struct ha_timeline *timeline);

void ha_timeline_start(struct ha_timeline *timeline, int64_t zero);
void ha_timeline_stop(struct ha_timeline *timeline);

/* A request completed, and with it so many bytes arrived. NULL: no timeline is wanted. */
void ha_timeline_progress(struct ha_timeline *timeline, size_t bytes);

/* All ranks' together; at rank 0 only. */
struct ha_timelines {
	int ranks;
	uint64_t *buckets; /* sums over the ranks */
	size_t buckets_count;
	struct ha_timeline *each; /* buckets NULL */
};

/* Collective. 0 or a negative errno with the fault recorded. */
int ha_timelines_gather(struct ha_timelines *all, const struct ha_timeline *mine,
			struct ha_rendezvous *rendezvous, int rank, int ranks);
void ha_timelines_release(struct ha_timelines *all);

/* What the file of --timeline says beside the timelines. */
struct ha_timeline_file {
	const struct ha_run_options *run;
	const struct ha_place *place;
	const char *operation;
	size_t bytes;
	uint64_t iterations, wrong;
	/* Adds what this program alone has to the object, a json_t; may be NULL. */
	void (*more)(void *context, void *object);
	void *context;
};

/*
 * Writes the timelines with the marks of the commands to run->timeline. 0 or -EIO with the fault
 * recorded.
 */
int ha_timelines_write(const struct ha_timelines *all, const struct ha_timeline_file *file);

#endif
