/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-place: what it costs the software NIC to place payload in ascending order, beside memcpy
 *
 * sr_place and memcpy of the same bytes in turns, in the cache where the size fits; medians of the
 * rounds and of the rounds' ratios (time over memcpy's time, so 1 is the speed of a copy).
 */
#include "softroce/engine/place.h"

#include "base/clock.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 1001
#define ROUND_BYTES (4u << 20) /* moved by each of the two in a round, one copy at least */
#define SIZE_MOST (1u << 30)

static void place_memcpy(void *to, const void *from, uint32_t len)
{
	memcpy(to, from, len);
}

/* Volatile, so that neither is built into the loop. */
static void (*volatile const way[])(void *to, const void *from, uint32_t len) = { sr_place,
										  place_memcpy };

/* ns per KiB. */
static double measure_round(unsigned which, void *to, const void *from, uint32_t size)
{
	uint32_t copies = size < ROUND_BYTES ? ROUND_BYTES / size : 1;
	double begin = ha_monotonic_s();

	for (uint32_t i = 0; i < copies; i++) {
		way[which](to, from, size);
		__asm__ volatile("" ::: "memory");
	}
	return (ha_monotonic_s() - begin) * 1e9 / copies / size * 1024;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void sort_doubles(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare_doubles);
}

static int measure_size(uint32_t size, unsigned rounds)
{
	static double ns[2][ROUNDS_MAX], ratio[ROUNDS_MAX];
	char *from = aligned_alloc(64, (size + 63u) & ~63u);
	char *to = aligned_alloc(64, (size + 63u) & ~63u);

	if (!from || !to) {
		fprintf(stderr, "bench-place: no memory for two buffers of %u bytes\n", size);
		free(from);
		free(to);
		return 1;
	}
	memset(from, 1, size);
	memset(to, 2, size);
	measure_round(0, to, from, size); /* not counted */
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < 2; k++)
			ns[k ^ (i & 1)][i] = measure_round(k ^ (i & 1), to, from, size);
		ratio[i] = ns[0][i] / ns[1][i];
	}
	sort_doubles(ns[0], rounds);
	sort_doubles(ns[1], rounds);
	sort_doubles(ratio, rounds);
	printf("| %u | %.1f | %.1f | **%.2f** (%.2f to %.2f) |\n", size, ns[0][rounds / 2],
	       ns[1][rounds / 2], ratio[rounds / 2], ratio[rounds / 4],
	       ratio[rounds - 1 - rounds / 4]);
	free(from);
	free(to);
	return 0;
}

struct options {
	unsigned rounds;
	uint32_t size;
};

#define HA_TARGET struct options

static const struct ha_option options[] = {
	{ "rounds", 'r', "N", "in which both take turns (201)", HA_NUMBER(rounds, 1, ROUNDS_MAX) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "SIZE", 0, NULL, "one size only (64, 4K, 64K and 1M)", HA_SIZE(size, 1, SIZE_MOST) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-place",
	.about = "What placing payload in ascending order costs beside memcpy.",
	.options = { options },
	.operands = operands,
};

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 64, 4 << 10, 64 << 10, 1 << 20 };
	struct options o = { .rounds = 201 };
	int stop = ha_options_parse(&program, argc, argv, &o);

	if (stop)
		return stop - 1;
	printf("| bytes | sr_place, ns per KiB | memcpy, ns per KiB | ratio, median of %u rounds "
	       "(quartiles) |\n|---|---|---|---|\n",
	       o.rounds);
	if (o.size)
		return measure_size(o.size, o.rounds);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (measure_size(sizes[i], o.rounds))
			return 1;
	return 0;
}
