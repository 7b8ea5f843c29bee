/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/job/fault.h"
#include "tools/job/figures.h"
#include "tools/job/options.h"
#include "tools/job/row_json.h"

/* The figures' fields into an object that may already have others. */
static void figures_put(json_t *object, const struct ha_figures *f)
{
	json_object_set_new(object, "time_us", json_real(f->time_us));
	json_object_set_new(object, "algbw", json_real(f->algbw));
	json_object_set_new(object, "busbw", json_real(f->busbw));
	json_object_set_new(object, "wrong", json_integer((json_int_t)f->wrong));
	json_object_set_new(object, "iters", json_integer((json_int_t)f->iterations));
	json_object_set_new(object, "verified_iters", json_integer((json_int_t)f->verified));
	json_object_set_new(object, "p50_us", json_real(f->p50_us));
	json_object_set_new(object, "p99_us", json_real(f->p99_us));
	json_object_set_new(object, "max_us", json_real(f->max_us));
	json_object_set_new(object, "cpu_us_per_msg",
			    f->messages ? json_real(f->cpu_us_per_msg) : json_null());
	json_object_set_new(object, "cpu_us_per_iter", json_real(f->cpu_us_per_iter));
	json_object_set_new(object, "messages",
			    f->messages ? json_integer((json_int_t)f->messages) : json_null());
	if (f->test_calls)
		json_object_set_new(object, "test",
				    json_pack("{s:I, s:f, s:f, s:f, s:f}", "calls",
					      (json_int_t)f->test_calls, "p50_us", f->test_p50_us,
					      "p99_us", f->test_p99_us, "p999_us", f->test_p999_us,
					      "max_us", f->test_max_us));
}

static json_t *figures_object(const struct ha_figures *f)
{
	json_t *object;

	if (!f->valid)
		return json_null();
	object = json_object();
	figures_put(object, f);
	return object;
}

static double ratio_of(double b, double a)
{
	return a > 0 ? b / a : 0;
}

static json_t *ratio_object(const struct ha_figures *a, const struct ha_figures *b)
{
	if (!a->valid || !b->valid)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "time", ratio_of(b->time_us, a->time_us),
			 "algbw", ratio_of(b->algbw, a->algbw), "busbw",
			 ratio_of(b->busbw, a->busbw), "p50", ratio_of(b->p50_us, a->p50_us), "p99",
			 ratio_of(b->p99_us, a->p99_us), "cpu",
			 ratio_of(b->cpu_us_per_iter, a->cpu_us_per_iter));
}

/* The first side's out-of-place figures in the object itself, the rest in objects of their own. */
static json_t *row_object(const struct ha_row *row, int sides)
{
	const struct ha_figures *out = row->figures[HA_OUT_OF_PLACE],
				*in = row->figures[HA_IN_PLACE];
	json_t *object = json_object(), *versus;

	json_object_set_new(object, "size", json_integer((json_int_t)row->bytes));
	json_object_set_new(object, "count", json_integer((json_int_t)row->count));
	json_object_set_new(object, "type", json_string(row->type->name));
	json_object_set_new(object, "redop",
			    json_string(row->redop < 0 ? "none" : ha_redop_names[row->redop]));
	json_object_set_new(object, "root", json_integer(row->root));
	json_object_set_new(object, "protocol",
			    row->protocol ? json_string(row->protocol) : json_null());
	figures_put(object, &out[0]);
	json_object_set_new(object, "in_place", figures_object(&in[0]));
	if (sides > 1) {
		versus = figures_object(&out[1]);
		json_object_set_new(versus, "in_place", figures_object(&in[1]));
		json_object_set_new(object, "vs", versus);
		json_object_set_new(object, "ratio", ratio_object(&out[0], &out[1]));
		json_object_set_new(object, "in_place_ratio", ratio_object(&in[0], &in[1]));
	}
	return object;
}

void ha_rows_put(json_t *object, const struct ha_rows *rows, int sides)
{
	json_t *results = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(results, row_object(&rows->rows[i], sides));
	json_object_set_new(object, "results", results);
	json_object_set_new(object, "wrong", json_integer((json_int_t)ha_rows_wrong(rows)));
	json_object_set_new(object, "avg_busbw", json_real(ha_rows_busbw(rows, 0)));
	if (sides > 1)
		json_object_set_new(object, "ratio",
				    json_pack("{s:f, s:f, s:f}", "time", ha_rows_ratio(rows, true),
					      "busbw", ha_rows_ratio(rows, false), "vs_avg_busbw",
					      ha_rows_busbw(rows, 1)));
}

void ha_run_options_put(json_t *object, const struct ha_run_options *run)
{
	json_t *duration =
		run->duration_ns ? json_real((double)run->duration_ns / 1e9) : json_null();

	json_object_set_new(object, "iters", json_integer(run->iters));
	json_object_set_new(object, "warmup_iters", json_integer(run->warmup));
	json_object_set_new(object, "check_iters", json_integer(run->checks));
	json_object_set_new(object, "duration_s", duration);
	json_object_set_new(object, "check_all", json_boolean(run->check_all));
	json_object_set_new(object, "seed", json_integer((json_int_t)run->seed));
}

int ha_json_write(json_t *object, const struct ha_run_options *run)
{
	int err;

	if (run->json_file) {
		err = json_dump_file(object, run->json_file, JSON_INDENT(2));
	} else {
		err = json_dumpf(object, stdout, JSON_INDENT(2));
		printf("\n");
		fflush(stdout);
	}
	json_decref(object);
	if (err)
		return ha_fault(-EIO, "cannot write %s: %s",
				run->json_file ? run->json_file : "the JSON object",
				strerror(errno));
	return 0;
}
