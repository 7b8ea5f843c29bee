/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "tools/perf/bench.h"
#include "tools/perf/fault.h"
#include "tools/perf/options.h"
#include "tools/perf/rendezvous.h"
#include "tools/perf/report.h"

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
	json_object_set_new(object, "cpu_us_per_msg", json_real(f->cpu_us_per_msg));
	json_object_set_new(object, "messages", json_integer((json_int_t)f->messages));
	if (f->test_calls)
		json_object_set_new(object, "test", json_pack("{s:I, s:f, s:f, s:f, s:f}", "calls", (json_int_t)f->test_calls, "p50_us",
							      f->test_p50_us, "p99_us", f->test_p99_us, "p999_us", f->test_p999_us,
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

static double over(double b, double a)
{
	return a > 0 ? b / a : 0;
}

static json_t *ratio_object(const struct ha_figures *a, const struct ha_figures *b)
{
	if (!a->valid || !b->valid)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "time", over(b->time_us, a->time_us), "algbw",
			 over(b->algbw, a->algbw), "busbw", over(b->busbw, a->busbw), "p50", over(b->p50_us, a->p50_us),
			 "p99", over(b->p99_us, a->p99_us), "cpu", over(b->cpu_us_per_msg, a->cpu_us_per_msg));
}

/* The plugin's out-of-place figures in the object itself, the rest in objects of their own. */
static json_t *row_object(const struct ha_bench *bench, const struct ha_row *row)
{
	const struct ha_figures *out = row->figures[HA_OUT_OF_PLACE], *in = row->figures[HA_IN_PLACE];
	json_t *object = json_object(), *versus;

	json_object_set_new(object, "size", json_integer((json_int_t)row->bytes));
	json_object_set_new(object, "count", json_integer((json_int_t)row->count));
	json_object_set_new(object, "type", json_string(row->type->name));
	json_object_set_new(object, "redop", json_string(row->redop < 0 ? "none" : ha_redop_names[row->redop]));
	json_object_set_new(object, "root", json_integer(row->root));
	json_object_set_new(object, "protocol", json_string(row->protocol == HA_LL ? "ll" : "simple"));
	figures_put(object, &out[0]);
	json_object_set_new(object, "in_place", figures_object(&in[0]));
	if (bench->meshes_count > 1) {
		versus = figures_object(&out[1]);
		json_object_set_new(versus, "in_place", figures_object(&in[1]));
		json_object_set_new(object, "vs", versus);
		json_object_set_new(object, "ratio", ratio_object(&out[0], &out[1]));
		json_object_set_new(object, "in_place_ratio", ratio_object(&in[0], &in[1]));
	}
	return object;
}

static json_t *plugin_object(const struct ha_mesh *mesh)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "name", mesh->plugin.name, "path", mesh->plugin.path,
			 "net_version", mesh->plugin.abi->version, "devices", mesh->plugin.devices, "max_recvs",
			 mesh->props.max_recvs, "max_comms", mesh->props.max_comms);
}

static json_t *ranks_array(const struct ha_bench *bench, const struct ha_rank_info *ranks)
{
	json_t *array = json_array();

	for (int i = 0; i < bench->place->ranks; i++)
		json_array_append_new(array, json_pack("{s:i, s:s, s:i, s:i, s:s, s:i}", "rank", i, "host",
						       ranks[i].host, "pid", ranks[i].pid, "dev", ranks[i].dev,
						       "device", ranks[i].device, "speed_mbps", ranks[i].speed));
	return array;
}

static void config_put(json_t *object, const struct ha_bench *bench)
{
	const struct ha_options *o = bench->options;

	json_object_set_new(object, "iters", json_integer(o->iters));
	json_object_set_new(object, "warmup_iters", json_integer(o->warmup));
	json_object_set_new(object, "check_iters", json_integer(o->checks));
	json_object_set_new(object, "duration_s",
			    o->duration_ns ? json_real((double)o->duration_ns / 1e9) : json_null());
	json_object_set_new(object, "check_all", json_boolean(o->check_all));
	json_object_set_new(object, "channels", json_integer(o->channels));
	json_object_set_new(object, "channels_per_connection", json_integer(bench->meshes[0].group));
	json_object_set_new(object, "steps", json_integer(o->steps));
	json_object_set_new(object, "shuffle", json_boolean(o->shuffle));
	json_object_set_new(object, "seed", json_integer((json_int_t)o->seed));
	json_object_set_new(object, "input", o->input ? json_string(o->input) : json_null());
}

int ha_report_json(const struct ha_bench *bench, const struct ha_rank_info *ranks, const struct ha_row *rows,
		   size_t count)
{
	const struct ha_options *o = bench->options;
	json_t *object = json_object(), *results = json_array();
	int err;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(results, row_object(bench, &rows[i]));
	json_object_set_new(object, "program", json_string("ha perf"));
	json_object_set_new(object, "version", json_string(HAWSER_VERSION));
	json_object_set_new(object, "operation", json_string(o->operation->name));
	json_object_set_new(object, "launcher", json_string(bench->place->launcher));
	json_object_set_new(object, "ranks", ranks_array(bench, ranks));
	json_object_set_new(object, "plugin", plugin_object(&bench->meshes[0]));
	if (bench->meshes_count > 1)
		json_object_set_new(object, "vs", plugin_object(&bench->meshes[1]));
	config_put(object, bench);
	json_object_set_new(object, "results", results);
	json_object_set_new(object, "wrong", json_integer((json_int_t)ha_report_wrong(bench, rows, count)));
	json_object_set_new(object, "avg_busbw", json_real(ha_report_busbw(rows, count, 0)));
	if (bench->meshes_count > 1)
		json_object_set_new(object, "ratio",
				    json_pack("{s:f, s:f, s:f}", "time", ha_report_ratio(rows, count, 1), "busbw",
					      ha_report_ratio(rows, count, 0), "vs_avg_busbw",
					      ha_report_busbw(rows, count, 1)));
	if (o->json_file) {
		err = json_dump_file(object, o->json_file, JSON_INDENT(2));
	} else {
		err = json_dumpf(object, stdout, JSON_INDENT(2));
		printf("\n");
		fflush(stdout);
	}
	json_decref(object);
	return err ? ha_fault(-EIO, "cannot write %s: %s", o->json_file ? o->json_file : "the JSON object",
			      strerror(errno))
		   : 0;
}
