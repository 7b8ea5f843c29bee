/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * combine.h - the experts' rows back to the tokens' ranks, and their weighted sums
 *
 * Sending: a warp per row puts it into `returned` at the token's rank, in the place of the expert
 * and the token. The last of those that go to a rank is followed by "all returned"; where there are
 * none it goes alone.
 *
 * Receiving: a warp per token waits for the experts that it went to and adds their rows up, in the
 * order of its top-k, in float. The launch is done when every expert has said "all returned", also
 * those that had none of ours: that is what makes the area free again.
 */
#ifndef HA_GPU_EXAMPLE_COMBINE_H
#define HA_GPU_EXAMPLE_COMBINE_H

#include "gpu/example/number.h"
#include "gpu/example/run.h"

/* ---- sending ---- */

/* Lane 0. "All returned" of our expert `local` to rank `to`: once. */
HA_GPU_FN enum ha_gpu_result ha_moe_notify_returned(struct ha_moe_run *r, uint32_t local,
						    uint32_t to)
{
	struct ha_moe *m = r->m;
	uint64_t *announced = &r->w->announced_returned[local * m->shape.ranks + to];
	enum ha_gpu_result result = HA_GPU_DONE;

	if (!ha_moe_claim_word(r, announced))
		return HA_GPU_DONE;
	if (to == m->rank)
		ha_moe_set_word(r, &r->w->own_returned[local], 1);
	else
		result = ha_gpu_signal(ha_moe_conn_to(m, to, local),
				       ha_moe_signal_slot(m, local, HA_MOE_RETURNED,
							  r->call->number),
				       1, 0, ha_moe_time_left(r));
	if (result != HA_GPU_DONE)
		ha_moe_set_word(r, announced, 0);
	return result;
}

/* Rows that go from our expert to a rank: as many as tokens came from there. */
HA_GPU_FN uint32_t ha_moe_rows_for(const struct ha_moe_run *r, uint32_t pair)
{
	return ha_moe_read_word(r, &r->w->arrivals[pair]) - 1;
}

HA_GPU_FN enum ha_gpu_result ha_moe_return_row(struct ha_moe_run *r, uint32_t local, uint64_t i)
{
	const struct ha_moe_layout *l = &r->m->layout;
	uint64_t at = (uint64_t)local * r->m->shape.ranks * r->m->shape.tokens_max + i,
		 token = r->w->origin[at] & HA_MOE_LOW, place;
	uint32_t to = (uint32_t)(r->w->origin[at] >> 32), pair = local * r->m->shape.ranks + to;
	enum ha_gpu_result result;

	if (ha_gpu_shfl(ha_moe_read_word(r, &r->w->posted[at]), 0))
		return HA_GPU_DONE;
	if (token >= r->m->shape.tokens_max)
		return HA_GPU_REFUSED;
	place = (uint64_t)(r->m->rank * l->local + local) * r->m->shape.tokens_max + token;
	result = ha_moe_put_bytes(r, to, local, l->returned + place * l->row,
				  l->outputs + at * l->row, l->row,
				  (uint32_t)(i - r->w->begin[pair]));
	if (result != HA_GPU_DONE || ha_gpu_lane())
		return result;
	ha_moe_set_word(r, &r->w->posted[at], 1);
	return ha_moe_add_to_word(r, &r->w->returned[pair], 1) == ha_moe_rows_for(r, pair)
		       ? ha_moe_notify_returned(r, local, to)
		       : HA_GPU_DONE;
}

/* A rank that sent none; or all were posted by a call before, which could not signal it any more.
 */
HA_GPU_FN enum ha_gpu_result ha_moe_notify_rest(struct ha_moe_run *r, uint32_t pair)
{
	uint64_t result = HA_GPU_DONE;

	if (!ha_gpu_lane() &&
	    ha_moe_read_word(r, &r->w->returned[pair]) == ha_moe_rows_for(r, pair))
		result = ha_moe_notify_returned(r, pair / r->m->shape.ranks,
						pair % r->m->shape.ranks);
	return (enum ha_gpu_result)ha_gpu_shfl(result, 0);
}

HA_GPU_FN enum ha_gpu_result ha_moe_return_rows(struct ha_moe_run *r)
{
	enum ha_gpu_result result = HA_GPU_DONE;

	for (uint32_t local = 0; local < r->m->layout.local; local++) {
		uint32_t rows = (uint32_t)ha_gpu_shfl(ha_moe_read_word(r, &r->w->packed[local]), 0);

		for (uint64_t i = (r->warp + local) % r->warps; i < rows && result == HA_GPU_DONE;
		     i += r->warps)
			result = (enum ha_gpu_result)ha_gpu_shfl(
				(uint64_t)ha_moe_return_row(r, local, i), 0);
	}
	for (uint32_t pair = r->warp;
	     pair < r->m->layout.local * r->m->shape.ranks && result == HA_GPU_DONE;
	     pair += r->warps)
		result = ha_moe_notify_rest(r, pair);
	return result;
}

/* ---- receiving ---- */

/*
 * Every launch of an area adds 1 to the expert's signal there: how much it has come to after this
 * one. All lanes.
 */
HA_GPU_FN enum ha_gpu_result ha_moe_wait_returned(struct ha_moe_run *r, uint32_t e)
{
	struct ha_moe *m = r->m;
	uint32_t rank = e / m->layout.local, local = e % m->layout.local, one;
	uint64_t result = HA_GPU_DONE;

	if (!ha_gpu_lane() && rank == m->rank)
		result = ha_moe_wait_own(r, &r->w->own_returned[local], &one);
	else if (!ha_gpu_lane())
		result = ha_moe_wait_signal(r, ha_moe_conn_to(m, rank, local),
					    ha_moe_signal_slot(m, local, HA_MOE_RETURNED,
							       r->call->number),
					    (r->call->number >> 1) + 1);
	result = ha_gpu_shfl(result, 0);
	/* lane 0 has seen the signal, all lanes read the rows that came before it */
	ha_gpu_syncwarp();
	return (enum ha_gpu_result)result;
}

HA_GPU_FN void ha_moe_sum_up(const struct ha_moe_run *r, uint32_t t)
{
	const struct ha_moe_shape *s = &r->m->shape;
	const struct ha_moe_layout *l = &r->m->layout;
	const int32_t *topk = r->call->topk + (uint64_t)t * s->topk;
	const float *weight = r->call->weights + (uint64_t)t * s->topk;
	const uint16_t *row;
	float sum;

	for (uint32_t j = ha_gpu_lane(); j < s->hidden; j += ha_gpu_lanes()) {
		sum = 0;
		for (uint32_t k = 0; k < s->topk; k++) {
			if (topk[k] < 0)
				continue;
			row = (const uint16_t *)(const void *)(r->area + l->returned +
							       ((uint64_t)topk[k] * s->tokens_max +
								t) * l->row);
			sum = ha_moe_plus(sum, ha_moe_times(weight[k], ha_moe_from_bf16(row[j])));
		}
		r->call->combined[(uint64_t)t * s->hidden + j] = ha_moe_to_bf16(sum);
	}
}

HA_GPU_FN enum ha_gpu_result ha_moe_take_rows(struct ha_moe_run *r)
{
	uint32_t topk = r->m->shape.topk;
	enum ha_gpu_result result = HA_GPU_DONE;

	for (uint32_t t = r->warp; t < r->call->tokens && result == HA_GPU_DONE; t += r->warps) {
		for (uint32_t k = 0; k < topk && result == HA_GPU_DONE; k++)
			if (r->call->topk[(uint64_t)t * topk + k] >= 0)
				result = ha_moe_wait_returned(
					r, (uint32_t)r->call->topk[(uint64_t)t * topk + k]);
		if (result == HA_GPU_DONE)
			ha_moe_sum_up(r, t);
	}
	for (uint32_t e = r->warp; e < r->m->shape.experts && result == HA_GPU_DONE; e += r->warps)
		result = ha_moe_wait_returned(r, e);
	return result;
}

/* The kernel, by each of its warps. */
HA_GPU_FN void ha_moe_combine(struct ha_moe *m, const struct ha_moe_call *call, uint32_t warp,
			      uint32_t warps)
{
	enum ha_gpu_result result = ha_moe_may_combine(m, call) ? HA_GPU_DONE : HA_GPU_REFUSED;
	struct ha_moe_run r;

	ha_moe_run_begin(&r, m, call, warp, warps);
	if (result == HA_GPU_DONE && call->phases & HA_MOE_SEND)
		result = ha_moe_return_rows(&r);
	if (result == HA_GPU_DONE && call->phases & HA_MOE_RECEIVE)
		result = ha_moe_take_rows(&r);
	ha_moe_run_end(&r, result);
}

#endif
