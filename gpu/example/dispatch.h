/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dispatch.h - tokens to the ranks of their experts
 *
 * Sending: a warp per token puts it into the `arrived` of each of its experts, on the expert's
 * connection, in the next slot that this rank has there. When all of an expert's are posted, its
 * count follows on the same connection, also where it is 0: the receiver waits for nothing else.
 * Who posts the last one sends the count: `ended` takes 1 for each message and COUNTED less their
 * number from the warp that counts, so one addition makes it COUNTED, and no warp waits for
 * another.
 *
 * Receiving: a warp per expert and rank waits for the count and packs the tokens of an expert one
 * behind the other.
 */
#ifndef HA_GPU_EXAMPLE_DISPATCH_H
#define HA_GPU_EXAMPLE_DISPATCH_H

#include "gpu/example/run.h"

#define HA_MOE_COUNTED (1u << 24)
#define HA_MOE_POSTED (1u << 31)
#define HA_MOE_SKIP UINT64_MAX

/* ---- sending ---- */

/* Lane 0. The count of expert `e` (of all experts): once. */
HA_GPU_FN enum ha_gpu_result ha_moe_notify_count(struct ha_moe_run *r, uint32_t e)
{
	struct ha_moe *m = r->m;
	uint32_t rank = e / m->layout.local, local = e % m->layout.local,
		 count = ha_moe_read_word(r, &r->w->taken[e]);
	enum ha_gpu_result result = HA_GPU_DONE;

	if (!ha_moe_claim_word(r, &r->w->announced[e]))
		return HA_GPU_DONE;
	if (rank == m->rank)
		ha_moe_set_word(r, &r->w->own_count[local], count + 1);
	else
		result = ha_gpu_signal(ha_moe_conn_to(m, rank, local),
				       ha_moe_signal_slot(m, local, HA_MOE_COUNT, r->call->number),
				       (uint64_t)count + 1, 0, ha_moe_time_left(r));
	if (result != HA_GPU_DONE)
		ha_moe_set_word(r, &r->w->announced[e], 0);
	return result;
}

HA_GPU_FN void ha_moe_stage_token(struct ha_moe_run *r, uint32_t t)
{
	uint8_t *message = r->area + r->m->layout.stage + t * r->m->layout.message;

	if (ha_gpu_shfl(ha_moe_read_word(r, &r->w->staged[t]), 0))
		return; /* a NIC may be reading it */
	if (!ha_gpu_lane()) {
		struct ha_moe_vector *header = (struct ha_moe_vector *)message;

		header->a = t;
		header->b = 0;
	}
	ha_moe_copy_bytes(message + HA_MOE_HEADER, r->call->x + t * r->m->layout.token,
			  r->m->layout.token);
	ha_gpu_syncwarp();
	if (!ha_gpu_lane())
		ha_moe_set_word(r, &r->w->staged[t], 1);
}

/* Lane 0. The slot for the token's i-th expert; SKIP: it has been posted. */
HA_GPU_FN uint64_t ha_moe_take_slot(struct ha_moe_run *r, uint64_t i, uint32_t e)
{
	uint32_t was = ha_moe_read_word(r, &r->w->placed[i]);

	if (was & HA_MOE_POSTED)
		return HA_MOE_SKIP;
	if (!was) {
		was = ha_moe_add_to_word(r, &r->w->taken[e], 1);
		ha_moe_set_word(r, &r->w->placed[i], was);
	}
	return was - 1;
}

HA_GPU_FN enum ha_gpu_result ha_moe_send_to(struct ha_moe_run *r, uint32_t t, uint64_t i,
					    uint32_t e)
{
	const struct ha_moe_layout *l = &r->m->layout;
	uint64_t slot = ha_gpu_shfl(ha_gpu_lane() ? 0 : ha_moe_take_slot(r, i, e), 0), place;
	enum ha_gpu_result result;

	if (slot == HA_MOE_SKIP)
		return HA_GPU_DONE;
	if (slot >= r->m->shape.tokens_max)
		return HA_GPU_REFUSED; /* a token names an expert twice */
	place = ((uint64_t)(e % l->local) * r->m->shape.ranks + r->m->rank) *
			r->m->shape.tokens_max +
		slot;
	result = ha_moe_put_bytes(r, e / l->local, e % l->local, l->arrived + place * l->message,
				  l->stage + t * l->message, HA_MOE_HEADER + l->token,
				  (uint32_t)slot);
	if (result != HA_GPU_DONE || ha_gpu_lane())
		return result;
	ha_moe_set_word(r, &r->w->placed[i], (uint32_t)(slot + 1) | HA_MOE_POSTED);
	return ha_moe_add_to_word(r, &r->w->ended[e], 1) == HA_MOE_COUNTED
		       ? ha_moe_notify_count(r, e)
		       : HA_GPU_DONE;
}

HA_GPU_FN enum ha_gpu_result ha_moe_send_token(struct ha_moe_run *r, uint32_t t)
{
	uint32_t topk = r->m->shape.topk;
	enum ha_gpu_result result = HA_GPU_DONE;

	ha_moe_stage_token(r, t);
	for (uint32_t k = 0; k < topk && result == HA_GPU_DONE; k++) {
		uint64_t i = (uint64_t)t * topk + k;
		int32_t e = r->call->topk[i];

		if (e >= (int32_t)r->m->shape.experts)
			return HA_GPU_REFUSED;
		if (e >= 0)
			result = (enum ha_gpu_result)ha_gpu_shfl(
				(uint64_t)ha_moe_send_to(r, t, i, (uint32_t)e), 0);
	}
	return result;
}

/* All lanes: how many tokens name the expert. */
HA_GPU_FN uint32_t ha_moe_count_tokens(const struct ha_moe_run *r, uint32_t e)
{
	uint64_t n = (uint64_t)r->call->tokens * r->m->shape.topk;
	uint32_t count = 0;

	for (uint64_t i = 0; i < n; i += ha_gpu_lanes()) {
		uint64_t mine = i + ha_gpu_lane();

		count += (uint32_t)__builtin_popcount(
			ha_gpu_ballot(mine < n && r->call->topk[mine] == (int32_t)e));
	}
	return count;
}

HA_GPU_FN enum ha_gpu_result ha_moe_count_and_notify(struct ha_moe_run *r, uint32_t e)
{
	uint32_t count = ha_moe_count_tokens(r, e), ended;
	enum ha_gpu_result result = HA_GPU_DONE;

	if (!ha_gpu_lane()) {
		ended = ha_moe_read_word(r, &r->w->ended[e]);
		/* not yet counted by a call before that had a TIMEOUT */
		if (ended < HA_MOE_COUNTED / 2)
			ended = ha_moe_add_to_word(r, &r->w->ended[e], HA_MOE_COUNTED - count);
		if (ended == HA_MOE_COUNTED)
			result = ha_moe_notify_count(r, e);
	}
	return (enum ha_gpu_result)ha_gpu_shfl((uint64_t)result, 0);
}

HA_GPU_FN enum ha_gpu_result ha_moe_send_tokens(struct ha_moe_run *r)
{
	enum ha_gpu_result result = HA_GPU_DONE;

	for (uint32_t t = r->warp; t < r->call->tokens && result == HA_GPU_DONE; t += r->warps)
		result = ha_moe_send_token(r, t);
	for (uint32_t e = r->warp; e < r->m->shape.experts && result == HA_GPU_DONE; e += r->warps)
		result = ha_moe_count_and_notify(r, e);
	return result;
}

/* ---- receiving ---- */

/* Lane 0. Waits until rank `from` has signalled how many tokens it has for our expert `local`. */
HA_GPU_FN enum ha_gpu_result ha_moe_wait_count(struct ha_moe_run *r, uint32_t local, uint32_t from,
					       uint32_t *count)
{
	struct ha_moe *m = r->m;
	uint64_t *base = &r->w->base[local * m->shape.ranks + from], sum;
	unsigned slot = ha_moe_signal_slot(m, local, HA_MOE_COUNT, r->call->number);
	struct ha_gpu_conn *c;
	enum ha_gpu_result result;

	if (from == m->rank) {
		result = ha_moe_wait_own(r, &r->w->own_count[local], count);
		*count -= result == HA_GPU_DONE;
		return result;
	}
	c = ha_moe_conn_to(m, from, local);
	result = ha_moe_wait_signal(r, c, slot, *base + 1);
	if (result != HA_GPU_DONE)
		return result;
	sum = ha_gpu_signal_value(c, slot);
	if (sum - *base - 1 > m->shape.tokens_max)
		return HA_GPU_REFUSED; /* ranks of different shapes */
	*count = (uint32_t)(sum - *base - 1);
	*base = sum;
	return HA_GPU_DONE;
}

HA_GPU_FN void ha_moe_pack_tokens(struct ha_moe_run *r, uint32_t local, uint32_t from,
				  uint32_t begin, uint32_t count)
{
	const struct ha_moe_layout *l = &r->m->layout;
	uint64_t all = (uint64_t)r->m->shape.ranks * r->m->shape.tokens_max,
		 to = local * all + begin;
	const uint8_t *message =
		r->area + l->arrived +
		((uint64_t)local * r->m->shape.ranks + from) * r->m->shape.tokens_max * l->message;

	for (uint32_t i = 0; i < count; i++, to++, message += l->message) {
		if (!ha_gpu_lane())
			r->w->origin[to] = (uint64_t)from << 32 |
					   ((const struct ha_moe_vector *)(const void *)message)->a;
		ha_moe_copy_bytes(r->call->packed + to * l->token, message + HA_MOE_HEADER,
				  l->token);
	}
	ha_gpu_syncwarp();
}

HA_GPU_FN enum ha_gpu_result ha_moe_take_from(struct ha_moe_run *r, uint32_t pair)
{
	uint32_t local = pair / r->m->shape.ranks, from = pair % r->m->shape.ranks, count = 0,
		 begin = 0;
	uint64_t result = HA_GPU_DONE;

	if (ha_gpu_shfl(ha_moe_read_word(r, &r->w->arrivals[pair]), 0))
		return HA_GPU_DONE;
	if (!ha_gpu_lane()) {
		result = ha_moe_wait_count(r, local, from, &count);
		if (result == HA_GPU_DONE)
			begin = ha_moe_add_to_word(r, &r->w->packed[local], count) - count;
	}
	result = ha_gpu_shfl(result, 0);
	if (result != HA_GPU_DONE)
		return (enum ha_gpu_result)result;
	count = (uint32_t)ha_gpu_shfl(count, 0);
	begin = (uint32_t)ha_gpu_shfl(begin, 0);
	ha_gpu_syncwarp(); /* lane 0 has seen the count, all lanes read what came before it */
	ha_moe_pack_tokens(r, local, from, begin, count);
	if (!ha_gpu_lane()) {
		r->w->begin[pair] = begin;
		ha_moe_set_word(r, &r->w->arrivals[pair], count + 1);
	}
	return HA_GPU_DONE;
}

HA_GPU_FN enum ha_gpu_result ha_moe_take_tokens(struct ha_moe_run *r)
{
	uint32_t pairs = r->m->layout.local * r->m->shape.ranks;
	enum ha_gpu_result result = HA_GPU_DONE;

	for (uint32_t pair = r->warp; pair < pairs && result == HA_GPU_DONE; pair += r->warps)
		result = ha_moe_take_from(r, pair);
	return result;
}

/*
 * The kernel, by each of its warps. All of a launch that both sends and receives must be resident
 * at once.
 */
HA_GPU_FN void ha_moe_dispatch(struct ha_moe *m, const struct ha_moe_call *call, uint32_t warp,
			       uint32_t warps)
{
	enum ha_gpu_result result = ha_moe_may_dispatch(m, call) ? HA_GPU_DONE : HA_GPU_REFUSED;
	struct ha_moe_run r;

	ha_moe_run_begin(&r, m, call, warp, warps);
	if (result == HA_GPU_DONE && call->phases & HA_MOE_SEND)
		result = ha_moe_send_tokens(&r);
	if (result == HA_GPU_DONE && call->phases & HA_MOE_RECEIVE)
		result = ha_moe_take_tokens(&r);
	ha_moe_run_end(&r, result);
}

#endif
