/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "tools/job/rendezvous.h"
#include "tools/job/table.h"
#include "tools/perf/bench.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"

static void plugin_print(const struct ha_bench *bench, int m)
{
	const struct ha_mesh *mesh = &bench->meshes[m];
	char label[4] = "";

	if (bench->meshes_count > 1)
		snprintf(label, sizeof(label), " %c", 'A' + m);
	printf("# plugin%s: %s, net v%d, %s, %d device%s, maxRecvs %d, maxComms %d\n", label,
	       mesh->plugin.name, mesh->plugin.abi->version, mesh->plugin.path,
	       mesh->plugin.devices, mesh->plugin.devices == 1 ? "" : "s", mesh->props.max_recvs,
	       mesh->props.max_comms);
}

void ha_report_header(const struct ha_bench *bench, const struct ha_rank_info *ranks)
{
	const struct perf_options *o = bench->options;

	printf("# ha perf %s: %d ranks (%s), %s\n", HAWSER_VERSION, bench->place->ranks,
	       bench->place->launcher, o->operation->name);
	for (int m = 0; m < bench->meshes_count; m++)
		plugin_print(bench, m);
	ha_table_settings(&o->run);
	printf(" channels: %d per connection: %d steps: %d\n", o->channels, bench->meshes[0].group,
	       o->steps);
	printf("#\n# Using devices\n");
	for (int i = 0; i < bench->place->ranks; i++)
		printf("#  Rank %2d Pid %6d on %s device %2d %s (%g Gbit/s)\n", i, ranks[i].pid,
		       ranks[i].host, ranks[i].dev, ranks[i].device, ranks[i].speed / 1000.0);
	printf("#\n");
	if (o->operation->half_trip)
		printf("# times are half of the round trip\n");
	printf("# p50, p99, max: of an iteration, out-of-place, over all ranks; cpu: CPU time of "
	       "all threads per "
	       "message sent\n");
	ha_table_columns(bench->meshes_count);
}

static void calls_print(const struct ha_bench *bench, const struct ha_row *row, int m)
{
	static const char *const meshes[] = { " A", " B" };
	const char *mesh = bench->meshes_count > 1 ? meshes[m] : "";

	for (int p = 0; p < HA_PLACEMENTS; p++) {
		const struct ha_figures *f = &row->figures[p][m];

		if (f->test_calls)
			printf("#%s test(), %s: %lu calls, p50 %.2f us, p99 %.2f us, p99.9 %.2f "
			       "us, max %.2f us\n",
			       mesh, p ? "in-place" : "out-of-place", f->test_calls, f->test_p50_us,
			       f->test_p99_us, f->test_p999_us, f->test_max_us);
	}
}

void ha_report_row(const struct ha_bench *bench, const struct ha_row *row)
{
	for (int m = 0; m < bench->meshes_count; m++)
		ha_table_row(row, m, bench->meshes_count);
	for (int m = 0; m < bench->meshes_count; m++)
		calls_print(bench, row, m);
	if (bench->meshes_count > 1)
		ha_table_ratios(row);
	fflush(stdout);
}
