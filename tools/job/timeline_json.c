/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tools/job/cues.h"
#include "tools/job/fault.h"
#include "tools/job/options.h"
#include "tools/job/rendezvous.h"
#include "tools/job/timeline.h"

static json_t *integer_json(int64_t value)
{
	return json_integer((json_int_t)value);
}

/* One rank: its longest gap, and those of a bucket's length and more as [start, length]. */
static json_t *rank_object(const struct ha_timeline *t, int rank)
{
	json_t *object = json_object(), *gaps = json_array();

	for (size_t i = 0; i < t->gaps_count; i++)
		json_array_append_new(gaps, json_pack("[I, I]", (json_int_t)t->gaps[i].at,
						      (json_int_t)t->gaps[i].length));
	json_object_set_new(object, "rank", integer_json(rank));
	json_object_set_new(object, "end_ns", integer_json(t->end - t->zero));
	json_object_set_new(object, "longest_gap_ns", integer_json(t->longest.length));
	json_object_set_new(object, "longest_gap_at_ns", integer_json(t->longest.at));
	json_object_set_new(object, "gaps", gaps);
	json_object_set_new(object, "gaps_omitted", integer_json((int64_t)t->gaps_omitted));
	return object;
}

static json_t *moment_json(int64_t when, int64_t zero)
{
	return when ? integer_json(when - zero) : json_null();
}

static json_t *marks_array(const struct ha_timeline_file *file, int64_t zero)
{
	const struct ha_launch_options *o = &file->run->launch;
	json_t *array = json_array();

	for (int i = 0; i < o->cues_count; i++) {
		struct ha_cue_mark mark = ha_cues_mark(file->place->cues, i);
		json_t *object = json_object();

		json_object_set_new(object, "command", json_string(o->cues[i].command));
		json_object_set_new(object, "at_ns", integer_json(o->cues[i].at_ns));
		json_object_set_new(object, "begin_ns", moment_json(mark.begin, zero));
		json_object_set_new(object, "end_ns", moment_json(mark.end, zero));
		json_object_set_new(object, "status",
				    mark.end ? integer_json(mark.status) : json_null());
		json_array_append_new(array, object);
	}
	return array;
}

int ha_timelines_write(const struct ha_timelines *all, const struct ha_timeline_file *file)
{
	const struct ha_run_options *run = file->run;
	json_t *object = json_object(), *buckets = json_array(), *ranks = json_array();
	char program[64];
	int err;

	snprintf(program, sizeof(program), "%s timeline", run->launch.program);
	for (size_t i = 0; i < all->buckets_count; i++)
		json_array_append_new(buckets, integer_json((int64_t)all->buckets[i]));
	for (int i = 0; i < all->ranks; i++)
		json_array_append_new(ranks, rank_object(&all->each[i], i));
	json_object_set_new(object, "program", json_string(program));
	json_object_set_new(object, "version", json_string(HAWSER_VERSION));
	json_object_set_new(object, "operation", json_string(file->operation));
	json_object_set_new(object, "size", integer_json((int64_t)file->bytes));
	json_object_set_new(object, "duration_ns", integer_json(run->duration_ns));
	json_object_set_new(object, "zero_monotonic_ns", integer_json(all->each[0].zero));
	json_object_set_new(object, "step_ns", integer_json(run->step_ns));
	json_object_set_new(object, "iterations", integer_json((int64_t)file->iterations));
	json_object_set_new(object, "wrong", integer_json((int64_t)file->wrong));
	json_object_set_new(object, "marks", marks_array(file, all->each[0].zero));
	json_object_set_new(object, "ranks", ranks);
	json_object_set_new(object, "bytes", buckets);
	if (file->more)
		file->more(file->context, object);
	err = json_dump_file(object, run->timeline, JSON_COMPACT);
	json_decref(object);
	return err ? ha_fault(-EIO, "cannot write %s: %s", run->timeline, strerror(errno)) : 0;
}
