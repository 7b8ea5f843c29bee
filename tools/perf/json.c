/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>

#include "tools/job/rendezvous.h"
#include "tools/job/row_json.h"
#include "tools/perf/bench.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"

static json_t *plugin_object(const struct ha_mesh *mesh)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "name", mesh->plugin.name, "path",
			 mesh->plugin.path, "net_version", mesh->plugin.abi->version, "devices",
			 mesh->plugin.devices, "max_recvs", mesh->props.max_recvs, "max_comms",
			 mesh->props.max_comms);
}

static json_t *ranks_array(const struct ha_bench *bench, const struct ha_rank_info *ranks)
{
	json_t *array = json_array();

	for (int i = 0; i < bench->place->ranks; i++)
		json_array_append_new(
			array, json_pack("{s:i, s:s, s:i, s:i, s:s, s:i}", "rank", i, "host",
					 ranks[i].host, "pid", ranks[i].pid, "dev", ranks[i].dev,
					 "device", ranks[i].device, "speed_mbps", ranks[i].speed));
	return array;
}

int ha_report_json(const struct ha_bench *bench, const struct ha_rank_info *ranks,
		   const struct ha_rows *rows)
{
	const struct perf_options *o = bench->options;
	json_t *object = json_object();

	json_object_set_new(object, "program", json_string(o->run.launch.program));
	json_object_set_new(object, "version", json_string(HAWSER_VERSION));
	json_object_set_new(object, "operation", json_string(o->operation->name));
	json_object_set_new(object, "launcher", json_string(bench->place->launcher));
	json_object_set_new(object, "ranks", ranks_array(bench, ranks));
	json_object_set_new(object, "plugin", plugin_object(&bench->meshes[0]));
	if (bench->meshes_count > 1)
		json_object_set_new(object, "vs", plugin_object(&bench->meshes[1]));
	ha_run_options_put(object, &o->run);
	json_object_set_new(object, "channels", json_integer(o->channels));
	json_object_set_new(object, "channels_per_connection",
			    json_integer(bench->meshes[0].group));
	json_object_set_new(object, "steps", json_integer(o->steps));
	json_object_set_new(object, "shuffle", json_boolean(o->shuffle));
	json_object_set_new(object, "input", o->input ? json_string(o->input) : json_null());
	ha_rows_put(object, rows, bench->meshes_count);
	return ha_json_write(object, &o->run);
}
