/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/rounds.h"

int nccl_rounds_gather(struct nccl_rounds *all,
		       const struct nccl_round mine[HA_SIDES][NCCL_ROUNDS_MOST], int count,
		       struct ha_rendezvous *rendezvous, const struct ha_place *place)
{
	size_t one = HA_SIDES * NCCL_ROUNDS_MOST, ranks = (size_t)place->ranks;
	struct nccl_round *each = calloc(ranks * one, sizeof(*each));
	int err = each ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err)
		err = ha_rendezvous_gather(rendezvous, mine, one * sizeof(*each), each);
	*all = (struct nccl_rounds) { .count = err || place->rank ? 0 : count };
	for (size_t i = 0; i < ranks * one && all->count; i++) {
		size_t side = i % one / NCCL_ROUNDS_MOST, round = i % NCCL_ROUNDS_MOST;

		if (!each[i].iterations)
			continue;
		all->time_us[side][round] += (double)each[i].elapsed_ns /
					     (double)each[i].iterations / 1000 / (double)ranks;
		all->p50_us[side][round] += each[i].p50_us / (double)ranks;
		all->cpu_us[side][round] +=
			(double)each[i].cpu_ns / (double)each[i].iterations / 1000;
	}
	free(each);
	return err;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double nccl_rounds_ratio(int count, const double values[HA_SIDES][NCCL_ROUNDS_MOST])
{
	double ratios[NCCL_ROUNDS_MOST];
	int n = 0;

	for (int r = 0; r < count; r++)
		if (values[0][r] > 0)
			ratios[n++] = values[1][r] / values[0][r];
	if (!n)
		return 0;
	qsort(ratios, (size_t)n, sizeof(ratios[0]), by_value);
	return n % 2 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2;
}

static json_t *sides_array(const struct nccl_rounds *all,
			   const double values[HA_SIDES][NCCL_ROUNDS_MOST])
{
	json_t *sides = json_array();

	for (int s = 0; s < HA_SIDES; s++) {
		json_t *side = json_array();

		for (int r = 0; r < all->count; r++)
			json_array_append_new(side, json_real(values[s][r]));
		json_array_append_new(sides, side);
	}
	return sides;
}

json_t *nccl_rounds_object(const struct nccl_rounds *all)
{
	json_t *object = json_object();

	json_object_set_new(object, "time_us", sides_array(all, all->time_us));
	json_object_set_new(object, "p50_us", sides_array(all, all->p50_us));
	json_object_set_new(object, "cpu_us", sides_array(all, all->cpu_us));
	json_object_set_new(object, "ratio_time",
			    json_real(nccl_rounds_ratio(all->count, all->time_us)));
	json_object_set_new(object, "ratio_p50",
			    json_real(nccl_rounds_ratio(all->count, all->p50_us)));
	json_object_set_new(object, "ratio_cpu",
			    json_real(nccl_rounds_ratio(all->count, all->cpu_us)));
	return object;
}
