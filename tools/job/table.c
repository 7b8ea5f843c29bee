/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "tools/job/figures.h"
#include "tools/job/options.h"
#include "tools/job/table.h"

/* A number in so many columns, with as many decimals as fit. */
static const char *format_number(double value, int width, char *text)
{
	if (snprintf(text, 32, "%*.2f", width, value) <= width ||
	    snprintf(text, 32, "%*.1f", width, value) <= width ||
	    snprintf(text, 32, "%*.0f", width, value) <= width)
		return text;
	snprintf(text, 32, "%*.1e", width, value);
	return text;
}

static const char *also_verified(const struct ha_run_options *run)
{
	if (!run->duration_ns)
		return run->check_all ? " and every iteration" : "";
	if (run->check_every == 1)
		return " and every iteration";
	return run->check_every ? " and many iterations" : "";
}

void ha_table_settings(const struct ha_run_options *run)
{
	printf("# minBytes %zu maxBytes %zu step: ", run->min_bytes, run->max_bytes);
	if (run->step_bytes)
		printf("%zu(bytes)", run->step_bytes);
	else
		printf("%g(factor)", run->step_factor);
	printf(" warmup iters: %d ", run->warmup);
	if (run->duration_ns)
		printf("duration: %g s", (double)run->duration_ns / 1e9);
	else
		printf("iters: %d", run->iters);
	printf(" validation: %d%s", run->checks, also_verified(run));
}

void ha_table_columns(int sides)
{
	const char *indent = sides > 1 ? "  " : "";

	printf("#%s %10s  %12s  %8s  %6s  %6s           out-of-place                       "
	       "in-place\n",
	       indent, "", "", "", "", "");
	printf("#%s %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s  %8s  %8s  "
	       "%8s  %7s\n",
	       indent, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
	       "time", "algbw", "busbw", "#wrong", "p50", "p99", "max", "cpu");
	printf("#%s %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s  %8s  %8s  "
	       "%8s  %7s\n",
	       indent, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
	       "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(us)");
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
		snprintf(wrong, sizeof(wrong), "%" PRIu64, f->wrong);
	else
		snprintf(wrong, sizeof(wrong), "N/A");
	printf("  %s  %s  %s  %6s", format_number(f->time_us, 7, a), format_number(f->algbw, 6, b),
	       format_number(f->busbw, 6, c), wrong);
}

void ha_table_row(const struct ha_row *row, int side, int sides)
{
	const struct ha_figures *f = &row->figures[HA_OUT_OF_PLACE][side];
	double cpu = f->messages ? f->cpu_us_per_msg : f->cpu_us_per_iter;
	char a[32], b[32], c[32], d[32], label[8] = "";

	if (sides > 1)
		snprintf(label, sizeof(label), "%c ", 'A' + side);
	printf(" %s %10zu  %12zu  %8s  %6s  %6d", label, row->bytes, row->count, row->type->name,
	       row->redop < 0 ? "none" : ha_redop_names[row->redop], row->root);
	figures_print(f);
	figures_print(&row->figures[HA_IN_PLACE][side]);
	printf("  %s  %s  %s  %s\n", format_number(f->p50_us, 8, a), format_number(f->p99_us, 8, b),
	       format_number(f->max_us, 8, c), format_number(cpu, 7, d));
	fflush(stdout);
}

static double ratio_of(double b, double a)
{
	return a > 0 ? b / a : 0;
}

void ha_table_ratios(const struct ha_row *row)
{
	printf("  B/A ");
	for (int p = 0; p < HA_PLACEMENTS; p++) {
		const struct ha_figures *a = &row->figures[p][0], *b = &row->figures[p][1];

		if (!a->valid)
			continue;
		printf("%s time %.3f  busbw %.3f  p50 %.3f  p99 %.3f  cpu %.3f",
		       p ? "  | in-place:" : "out-of-place:", ratio_of(b->time_us, a->time_us),
		       ratio_of(b->busbw, a->busbw), ratio_of(b->p50_us, a->p50_us),
		       ratio_of(b->p99_us, a->p99_us),
		       ratio_of(b->cpu_us_per_iter, a->cpu_us_per_iter));
	}
	printf("\n");
	fflush(stdout);
}

static const char *judgement_text(const struct ha_run_options *run, uint64_t wrong)
{
	if (wrong)
		return "FAILED";
	return run->checks || run->check_all || run->duration_ns ? "OK" : "(nothing was verified)";
}

void ha_table_footer(const struct ha_run_options *run, const struct ha_rows *rows, int sides)
{
	static const char *const labels[HA_SIDES] = { " (A)", " (B)" };
	uint64_t wrong = ha_rows_wrong(rows);

	printf("# %-20s : %" PRIu64 " %s\n", "Out of bounds values", wrong,
	       judgement_text(run, wrong));
	for (int s = 0; s < sides; s++)
		printf("# %-20s : %g%s\n", "Avg bus bandwidth", ha_rows_busbw(rows, s),
		       sides > 1 ? labels[s] : "");
	if (sides > 1)
		printf("# %-20s : time %.3f, busbw %.3f (B/A, geometric mean over all lines)\n",
		       "Ratios", ha_rows_ratio(rows, true), ha_rows_ratio(rows, false));
	printf("#\n");
	fflush(stdout);
}
