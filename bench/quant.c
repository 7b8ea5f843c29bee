/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-quant: what turning floats into words costs beside copying them
 *
 * Each way in turn with memcpy of the same bytes, the best of many rounds of each; the ratio is
 * time over memcpy's time, so 1 is the speed of a copy. Usage: bench-quant [MEGABYTES]...
 */
#include "ina/frame/quant.h"
#include "base/clock.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 15

struct work {
	const struct ina_quant *q;
	float *x;
	int32_t *words;
	struct ina_block *block;
	size_t n;
};

static void run_copy(const struct work *w)
{
	memcpy(w->words, w->x, 4 * w->n);
	__asm__ volatile("" ::"r"(w->words) : "memory");
}

static void run_scale(const struct work *w)
{
	w->q->scale(w->x, w->words, w->n, 1000);
}

static void run_unscale(const struct work *w)
{
	w->q->unscale(w->words, w->x, w->n, 1000);
}

static void run_blocks(const struct work *w)
{
	ina_quant_blocks(w->q, w->x, w->n, 5, (uint8_t *)w->words, w->block);
}

static void run_unblocks(const struct work *w)
{
	ina_quant_unblocks(w->q, (const uint8_t *)w->words, w->block, w->x, w->n);
}

static void run_swap(const struct work *w)
{
	w->q->swap(w->x, w->words, w->n);
}

static void run_largest(const struct work *w)
{
	volatile uint32_t most = w->q->largest(w->x, w->n);

	(void)most;
}

static double time_runs(void (*run)(const struct work *), const struct work *w, unsigned times)
{
	double begin = ha_monotonic_s();

	for (unsigned i = 0; i < times; i++)
		run(w);
	return ha_monotonic_s() - begin;
}

/* The best round of each, taken in turns, so that what disturbs the machine disturbs both. */
static void measure_way(const char *name, void (*run)(const struct work *), const struct work *w)
{
	unsigned times = (unsigned)((16u << 20) / (4 * w->n) + 1);
	double mine = 1e9, memcpys = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double m = time_runs(run, w, times), c = time_runs(run_copy, w, times);

		mine = m < mine ? m : mine;
		memcpys = c < memcpys ? c : memcpys;
	}
	printf("%-8s %-9s %8.2f MB %8.2f GB/s   memcpy %8.2f GB/s   ratio %5.2f\n", w->q->name,
	       name, 4e-6 * (double)w->n, 4e-9 * (double)w->n * times / mine,
	       4e-9 * (double)w->n * times / memcpys, mine / memcpys);
}

static void measure_all(double megabytes)
{
	static const struct {
		const char *name;
		void (*run)(const struct work *);
	} ways[] = {
		{ "largest", run_largest },   { "scale", run_scale },
		{ "unscale", run_unscale },   { "blocks", run_blocks },
		{ "unblocks", run_unblocks }, { "swap", run_swap },
	};
	struct work w = { .n = (size_t)(megabytes * 1e6 / 256) * 64 };

	w.x = aligned_alloc(64, 4 * w.n + 64);
	w.words = aligned_alloc(64, 4 * w.n + 64);
	w.block = calloc(w.n / INA_WORDS + 1, sizeof(*w.block));
	for (int simd = INA_SIMDS - 1; simd >= 0; simd--) {
		w.q = ina_quant_of((enum ina_simd)simd);
		for (size_t i = 0; i < w.n; i++)
			w.x[i] = (float)(i % 1000) - 500;
		if (w.q && w.x && w.words && w.block)
			for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
				measure_way(ways[i].name, ways[i].run, &w);
	}
	free(w.x);
	free(w.words);
	free(w.block);
}

#define SIZES_MAX 64

struct arguments {
	const char *size[SIZES_MAX];
	unsigned sizes;
};

#define HA_TARGET struct arguments

static const struct ha_option operands[] = {
	{ "MEGABYTES", 0, NULL, "from 0.001 to 1000 (0.016 0.2 2 64)",
	  HA_LIST(size, sizes, SIZES_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-quant",
	.about = "What turning floats into words costs beside copying them.",
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct arguments arguments = { .size = { "0.016", "0.2", "2", "64" } };
	int stop = ha_options_parse(&program, argc, argv, &arguments);

	if (stop)
		return stop - 1;
	if (!arguments.sizes)
		arguments.sizes = 4;
	for (unsigned i = 0; i < arguments.sizes; i++) {
		double size = atof(arguments.size[i]);

		if (!(size >= 0.001 && size <= 1000))
			return ha_program_refuse(&program, "'%s' is no size from 0.001 to 1000",
						 arguments.size[i]) -
			       1;
		measure_all(size);
	}
	return 0;
}
