/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/job/fault.h"
#include "tools/job/figures.h"
#include "tools/job/options.h"
#include "tools/job/rendezvous.h"

int ha_rows_add(struct ha_rows *rows, const struct ha_row *row)
{
	if (rows->count == rows->room) {
		struct ha_row *more = realloc(rows->rows, (rows->room * 2 + 32) * sizeof(*more));

		if (!more)
			return ha_fault(-ENOMEM, "out of memory");
		rows->rows = more;
		rows->room = rows->room * 2 + 32;
	}
	rows->rows[rows->count++] = *row;
	return 0;
}

int ha_samples_add(struct ha_samples *samples, uint64_t ns)
{
	if (samples->count == samples->room) {
		uint64_t *more = realloc(samples->ns, (samples->room * 2 + 1024) * sizeof(*more));

		if (!more)
			return ha_fault(-ENOMEM, "out of memory");
		samples->ns = more;
		samples->room = samples->room * 2 + 1024;
	}
	samples->ns[samples->count++] = ns;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void ha_samples_sort(uint64_t *samples, size_t n)
{
	qsort(samples, n, sizeof(*samples), by_value);
}

double ha_percentile_us(const uint64_t *sorted, size_t n, double part)
{
	size_t at = (size_t)(part * (double)n + 0.999999);

	if (!n)
		return 0;
	if (at < 1)
		at = 1;
	if (at > n)
		at = n;
	return (double)sorted[at - 1] / 1000;
}

/* nccl-tests' -a over the ranks' mean time of an iteration. */
static double time_over_ranks(int average, const struct ha_tally *tallies, int ranks)
{
	double sum = 0, low = 1e300, high = 0;

	for (int i = 0; i < ranks; i++) {
		double t = (double)tallies[i].elapsed_ns / (double)tallies[i].iterations / 1000;

		sum += t;
		low = t < low ? t : low;
		high = t > high ? t : high;
	}
	switch (average) {
	case 0:
		return (double)tallies[0].elapsed_ns / (double)tallies[0].iterations / 1000;
	case 2:
		return low;
	case 3:
		return high;
	default:
		return sum / ranks;
	}
}

static void figures_compute(const struct ha_figures_of *of, const struct ha_tally *tallies,
			    uint64_t *samples, struct ha_figures *f)
{
	double half = of->half_trip ? 0.5 : 1, cpu_us = 0;
	int ranks = of->place->ranks;
	size_t n = (size_t)tallies[0].iterations * (size_t)ranks;

	*f = (struct ha_figures) { .valid = true };
	for (int i = 0; i < ranks; i++) {
		f->wrong += tallies[i].wrong;
		f->messages += tallies[i].messages;
		cpu_us += (double)tallies[i].cpu_ns / 1000;
	}
	f->verified = tallies[0].verified;
	f->iterations = tallies[0].iterations;
	if (!n)
		return;
	ha_samples_sort(samples, n);
	f->time_us = time_over_ranks(of->run->average, tallies, ranks) * half;
	f->p50_us = ha_percentile_us(samples, n, 0.50) * half;
	f->p99_us = ha_percentile_us(samples, n, 0.99) * half;
	f->max_us = ha_percentile_us(samples, n, 1) * half;
	f->algbw = f->time_us > 0 ? (double)of->bytes / f->time_us / 1000 : 0;
	f->busbw = f->algbw * of->bus_factor;
	f->cpu_us_per_iter = cpu_us / (double)f->iterations;
	if (f->messages)
		f->cpu_us_per_msg = f->cpu_us_per_iter / (double)f->messages;
}

int ha_figures_gather(const struct ha_figures_of *of, const struct ha_tally *mine,
		      const struct ha_samples *samples, struct ha_figures *figures)
{
	/* the same in all ranks */
	size_t ranks = (size_t)of->place->ranks, n = (size_t)mine->iterations;
	struct ha_tally *tallies = calloc(ranks, sizeof(*tallies));
	uint64_t *all = calloc(ranks * n + 1, sizeof(*all));
	int err = tallies && all ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err)
		err = ha_rendezvous_gather(of->rendezvous, mine, sizeof(*mine), tallies);
	if (!err && n)
		err = ha_rendezvous_gather(of->rendezvous, samples->ns, n * sizeof(*all), all);
	if (!err && !of->place->rank)
		figures_compute(of, tallies, all, figures);
	free(tallies);
	free(all);
	return err;
}

/* ---- over all rows ---- */

uint64_t ha_rows_wrong(const struct ha_rows *rows)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < rows->count; i++)
		for (int p = 0; p < HA_PLACEMENTS; p++)
			for (int s = 0; s < HA_SIDES; s++)
				wrong += rows->rows[i].figures[p][s].wrong;
	return wrong;
}

double ha_rows_busbw(const struct ha_rows *rows, int side)
{
	double sum = 0;
	int n = 0;

	for (size_t i = 0; i < rows->count; i++) {
		for (int p = 0; p < HA_PLACEMENTS; p++) {
			if (!rows->rows[i].figures[p][side].valid)
				continue;
			sum += rows->rows[i].figures[p][side].busbw;
			n++;
		}
	}
	return n ? sum / n : 0;
}

double ha_rows_ratio(const struct ha_rows *rows, bool time)
{
	double sum = 0;
	int n = 0;

	for (size_t i = 0; i < rows->count; i++) {
		for (int p = 0; p < HA_PLACEMENTS; p++) {
			const struct ha_figures *a = &rows->rows[i].figures[p][0], *b = a + 1;
			double x = time ? a->time_us : a->busbw, y = time ? b->time_us : b->busbw;

			if (!a->valid || !b->valid || x <= 0 || y <= 0)
				continue;
			sum += log(y / x);
			n++;
		}
	}
	return n ? exp(sum / n) : 0;
}
