/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/bench.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"
#include "tools/perf/rendezvous.h"

uint64_t ha_report_wrong(const struct ha_bench *bench, const struct ha_row *rows, size_t count)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < count; i++)
		for (int p = 0; p < HA_PLACEMENTS; p++)
			for (int m = 0; m < bench->meshes_count; m++)
				wrong += rows[i].figures[p][m].wrong;
	return wrong;
}

double ha_report_busbw(const struct ha_row *rows, size_t count, int mesh)
{
	double sum = 0;
	int n = 0;

	for (size_t i = 0; i < count; i++) {
		for (int p = 0; p < HA_PLACEMENTS; p++) {
			if (!rows[i].figures[p][mesh].valid)
				continue;
			sum += rows[i].figures[p][mesh].busbw;
			n++;
		}
	}
	return n ? sum / n : 0;
}

double ha_report_ratio(const struct ha_row *rows, size_t count, int time)
{
	double sum = 0;
	int n = 0;

	for (size_t i = 0; i < count; i++) {
		for (int p = 0; p < HA_PLACEMENTS; p++) {
			const struct ha_figures *a = &rows[i].figures[p][0], *b = &rows[i].figures[p][1];
			double x = time ? a->time_us : a->busbw, y = time ? b->time_us : b->busbw;

			if (!a->valid || !b->valid || x <= 0 || y <= 0)
				continue;
			sum += log(y / x);
			n++;
		}
	}
	return n ? exp(sum / n) : 0;
}

/* A number in so many columns, with as many decimals as fit. */
static const char *number(double value, int width, char *text)
{
	if (snprintf(text, 32, "%*.2f", width, value) <= width || snprintf(text, 32, "%*.1f", width, value) <= width ||
	    snprintf(text, 32, "%*.0f", width, value) <= width)
		return text;
	snprintf(text, 32, "%*.1e", width, value);
	return text;
}

static void plugin_print(const struct ha_bench *bench, int m)
{
	const struct ha_mesh *mesh = &bench->meshes[m];
	char label[4] = "";

	if (bench->meshes_count > 1)
		snprintf(label, sizeof(label), " %c", 'A' + m);
	printf("# plugin%s: %s, net v%d, %s, %d device%s, maxRecvs %d, maxComms %d\n", label, mesh->plugin.name,
	       mesh->plugin.abi->version, mesh->plugin.path, mesh->plugin.devices, mesh->plugin.devices == 1 ? "" : "s",
	       mesh->props.max_recvs, mesh->props.max_comms);
}

static const char *also_verified(const struct ha_options *o)
{
	if (!o->duration_ns)
		return o->check_all ? " and every iteration" : "";
	return o->check_every == 1 ? " and every iteration" : o->check_every ? " and many iterations" : "";
}

void ha_report_header(const struct ha_bench *bench, const struct ha_rank_info *ranks)
{
	const struct ha_options *o = bench->options;
	const char *indent = bench->meshes_count > 1 ? "  " : "";

	printf("# ha perf %s: %d ranks (%s), %s\n", HAWSER_VERSION, bench->place->ranks, bench->place->launcher,
	       o->operation->name);
	for (int m = 0; m < bench->meshes_count; m++)
		plugin_print(bench, m);
	printf("# minBytes %zu maxBytes %zu step: ", o->min_bytes, o->max_bytes);
	if (o->step_bytes)
		printf("%zu(bytes)", o->step_bytes);
	else
		printf("%g(factor)", o->step_factor);
	printf(" warmup iters: %d ", o->warmup);
	if (o->duration_ns)
		printf("duration: %g s", (double)o->duration_ns / 1e9);
	else
		printf("iters: %d", o->iters);
	printf(" validation: %d%s channels: %d per connection: %d steps: %d\n", o->checks, also_verified(o),
	       o->channels, bench->meshes[0].group, o->steps);
	printf("#\n# Using devices\n");
	for (int i = 0; i < bench->place->ranks; i++)
		printf("#  Rank %2d Pid %6d on %s device %2d %s (%g Gbit/s)\n", i, ranks[i].pid, ranks[i].host,
		       ranks[i].dev, ranks[i].device, ranks[i].speed / 1000.0);
	printf("#\n");
	if (o->operation->half_trip)
		printf("# times are half of the round trip\n");
	printf("# p50, p99, max: of an iteration, out-of-place, over all ranks; cpu: CPU time of all threads per "
	       "message sent\n");
	printf("#%s %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place\n", indent, "", "",
	       "", "", "");
	printf("#%s %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s  %8s  %8s  %8s  %7s\n", indent,
	       "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
	       "#wrong", "p50", "p99", "max", "cpu");
	printf("#%s %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s  %8s  %8s  %8s  %7s\n", indent,
	       "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
	       "(us)", "(us)", "(us)");
	fflush(stdout);
}

static void figures_print(const struct ha_figures *f)
{
	char a[32], b[32], c[32], wrong[24];

	if (!f->valid) {
		printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
		return;
	}
	if (f->verified)
		snprintf(wrong, sizeof(wrong), "%lu", f->wrong);
	else
		snprintf(wrong, sizeof(wrong), "N/A");
	printf("  %s  %s  %s  %6s", number(f->time_us, 7, a), number(f->algbw, 6, b), number(f->busbw, 6, c), wrong);
}

static void row_print(const struct ha_bench *bench, const struct ha_row *row, int m)
{
	const struct ha_figures *f = &row->figures[HA_OUT_OF_PLACE][m];
	char a[32], b[32], c[32], d[32], root[16];

	snprintf(root, sizeof(root), "%d", row->root);
	printf(" %s %10zu  %12zu  %8s  %6s  %6s", bench->meshes_count > 1 ? (m ? "B " : "A ") : "", row->bytes,
	       row->count, row->type->name, row->redop < 0 ? "none" : ha_redop_names[row->redop], root);
	figures_print(f);
	figures_print(&row->figures[HA_IN_PLACE][m]);
	printf("  %s  %s  %s  %s\n", number(f->p50_us, 8, a), number(f->p99_us, 8, b), number(f->max_us, 8, c),
	       number(f->cpu_us_per_msg, 7, d));
}

static void calls_print(const struct ha_bench *bench, const struct ha_row *row, int m)
{
	for (int p = 0; p < HA_PLACEMENTS; p++) {
		const struct ha_figures *f = &row->figures[p][m];

		if (f->test_calls)
			printf("#%s test(), %s: %lu calls, p50 %.2f us, p99 %.2f us, p99.9 %.2f us, max %.2f us\n",
			       bench->meshes_count > 1 ? (m ? " B" : " A") : "", p ? "in-place" : "out-of-place", f->test_calls,
			       f->test_p50_us, f->test_p99_us, f->test_p999_us, f->test_max_us);
	}
}

static double over(double b, double a)
{
	return a > 0 ? b / a : 0;
}

static void ratios_print(const struct ha_row *row)
{
	printf("  B/A ");
	for (int p = 0; p < HA_PLACEMENTS; p++) {
		const struct ha_figures *a = &row->figures[p][0], *b = &row->figures[p][1];

		if (!a->valid)
			continue;
		printf("%s time %.3f  busbw %.3f  p50 %.3f  p99 %.3f  cpu %.3f",
		       p ? "  | in-place:" : "out-of-place:", over(b->time_us, a->time_us), over(b->busbw, a->busbw),
		       over(b->p50_us, a->p50_us), over(b->p99_us, a->p99_us),
		       over(b->cpu_us_per_msg, a->cpu_us_per_msg));
	}
	printf("\n");
}

void ha_report_row(const struct ha_bench *bench, const struct ha_row *row)
{
	for (int m = 0; m < bench->meshes_count; m++)
		row_print(bench, row, m);
	for (int m = 0; m < bench->meshes_count; m++)
		calls_print(bench, row, m);
	if (bench->meshes_count > 1)
		ratios_print(row);
	fflush(stdout);
}

void ha_report_footer(const struct ha_bench *bench, const struct ha_row *rows, size_t count)
{
	uint64_t wrong = ha_report_wrong(bench, rows, count);
	bool verified = bench->options->checks || bench->options->check_all || bench->options->duration_ns;

	printf("# %-20s : %lu %s\n", "Out of bounds values", wrong,
	       wrong	  ? "FAILED"
	       : verified ? "OK"
			  : "(nothing was verified)");
	for (int m = 0; m < bench->meshes_count; m++)
		printf("# %-20s : %g%s\n", "Avg bus bandwidth", ha_report_busbw(rows, count, m),
		       bench->meshes_count < 2 ? ""
		       : m		       ? " (B)"
					       : " (A)");
	if (bench->meshes_count > 1)
		printf("# %-20s : time %.3f, busbw %.3f (B/A, geometric mean over all lines)\n", "Ratios",
		       ha_report_ratio(rows, count, 1), ha_report_ratio(rows, count, 0));
	printf("#\n");
	fflush(stdout);
}
