/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pump.c - pieces on their way: in, to the backend, out
 *
 * One step for each group in turn, so that no group's copies hold up another's. The copy of one
 * piece overlaps with what the network does with those before.
 */
#include "base/clock.h"
#include "ina/host/front/front.h"

#include <errno.h>
#include <string.h>

static struct ina_front_piece *piece_of(const struct ina_front_asked *a)
{
	return &a->op->piece[ina_front_part(a->op, a->index).segment];
}

static void set_state(struct ina_front_piece *p, enum piece_state state)
{
	/* DONE: with the result's bytes, for ha_ina_op_done() */
	atomic_store_explicit(&p->state, state, memory_order_release);
}

static uint8_t *place_of(struct ha_ina *ctx, const struct ina_front_asked *a)
{
	return ctx->client.memory.buffer + a->offset;
}

/* The place in the buffer and the slot are free again. */
static void give_back(struct ha_ina *ctx, struct ina_front_asked *a)
{
	ina_shm_buffer_give(&ctx->buffer, a->offset, a->bytes);
	if (a->group)
		a->group->in_flight--;
	*a = (struct ina_front_asked) { .op = NULL };
	ctx->slots.free[ctx->slots.free_count++] = (uint32_t)(a - ctx->slots.asked);
}

/* Between host memory and the buffer, with the lock let go. */
static void copy_unlocked(struct ha_ina *ctx, void *to, const void *from, size_t bytes)
{
	pthread_mutex_unlock(&ctx->lock);
	memcpy(to, from, bytes);
	pthread_mutex_lock(&ctx->lock);
}

/* ---- in ---- */

static struct ina_front_asked *take_place(struct ha_ina_group *g, struct ha_ina_op *op,
					  uint32_t bytes)
{
	struct ha_ina *ctx = g->ctx;
	uint32_t share = ctx->buffer.segments / ctx->groups.count,
		 most = INA_SHM_ENTRIES / ctx->groups.count;
	struct ina_front_asked *a;
	uint64_t offset;

	if (!ctx->slots.free_count || g->in_flight >= most ||
	    !ina_shm_buffer_take(&ctx->buffer, g->owner, share, bytes, &offset))
		return NULL;
	a = &ctx->slots.asked[ctx->slots.free[--ctx->slots.free_count]];
	*a = (struct ina_front_asked) { .op = op,
					.group = g,
					.index = op->filled,
					.offset = offset,
					.bytes = bytes,
					.used = true };
	a->sequence = ++ctx->slots.sequences * INA_SHM_ENTRIES + (uint64_t)(a - ctx->slots.asked);
	g->in_flight++;
	return a;
}

static void fill_piece(struct ha_ina_group *g, struct ha_ina_op *op, struct ina_front_part part,
		       struct ina_front_asked *a)
{
	struct ina_front_piece *p = &op->piece[part.segment];
	uint8_t *to = place_of(g->ctx, a);
	char why[CUDA_WHY];

	p->slot = (uint16_t)(a - g->ctx->slots.asked);
	op->filled++;
	if (part.in)
		memset(to + part.bytes, 0, ina_shm_blocks(part.bytes) - part.bytes);
	if (part.in && op->cuda) {
		if (ina_cuda_from_device(op->cuda, to, part.in, part.bytes,
					 op->waited_in ? NULL : op->ready, &p->copy, why))
			ina_front_group_fail(g, -EIO, true, "%s", why);
		op->waited_in = true;
		set_state(p, p->copy.stream ? FILLING : FULL);
		return;
	}
	if (part.in)
		copy_unlocked(g->ctx, to, part.in, part.bytes);
	set_state(p, FULL);
}

static bool fill_next(struct ha_ina_group *g)
{
	struct ina_front_asked *a;
	struct ina_front_part part;

	while (g->filling && g->filling->filled == g->filling->pieces)
		g->filling = STAILQ_NEXT(g->filling, link);
	if (!g->filling || g->error || g->refused)
		return false;
	part = ina_front_part(g->filling, g->filling->filled);
	a = take_place(g, g->filling, part.bytes);
	if (a)
		fill_piece(g, g->filling, part, a);
	return a != NULL;
}

/* ---- to the backend ---- */

/* True: its copy in has ended, one way or the other. */
static bool poll_copy_in(struct ha_ina_group *g, struct ina_front_piece *p)
{
	char why[CUDA_WHY];
	int done;

	if (p->state != FILLING)
		return true;
	done = ina_cuda_done(&p->copy, why);
	if (!done)
		return false;
	if (done < 0)
		ina_front_group_fail(g, -EIO, true, "%s", why);
	set_state(p, FULL);
	return true;
}

static bool ask_next(struct ha_ina_group *g)
{
	struct ha_ina_op *op;
	struct ina_front_part part;
	struct ina_front_piece *p;
	struct ina_front_asked *a;
	struct ina_shm_request q;

	while (g->asking && g->asking->asked == g->asking->pieces)
		g->asking = STAILQ_NEXT(g->asking, link);
	op = g->asking;
	if (!op || g->error || g->refused || op->asked == op->filled)
		return false;
	part = ina_front_part(op, op->asked);
	p = &op->piece[part.segment];
	if (!poll_copy_in(g, p) || g->error)
		return false;
	a = &g->ctx->slots.asked[p->slot];
	q = (struct ina_shm_request) { .sequence = a->sequence,
				       .offset = a->offset,
				       .bytes = part.bytes,
				       .group = g->handle,
				       .coll = part.coll,
				       .type = (uint8_t)op->request.type,
				       .root = part.root };
	if (ina_shm_ring_push(&g->ctx->client.memory.requests, &q))
		return false; /* torn: daemon.c, do_round */
	op->asked++;
	a->pushed = true;
	set_state(p, ASKED);
	if (!g->ctx->loopback)
		(void)ina_shm_client_bell(&g->ctx->client);
	return true;
}

/* ---- out ---- */

static void finish_piece(struct ha_ina *ctx, struct ina_front_asked *a, enum piece_state state)
{
	a->op->finished += state == DONE;
	set_state(piece_of(a), state);
	give_back(ctx, a);
}

static void empty_piece(struct ha_ina *ctx, struct ina_front_asked *a)
{
	struct ina_front_part part = ina_front_part(a->op, a->index);
	struct ina_front_piece *p = &a->op->piece[part.segment];
	struct ha_ina_op *op = a->op;
	char why[CUDA_WHY];

	set_state(p, EMPTYING);
	if (part.out && op->cuda) {
		int err = ina_cuda_to_device(op->cuda, part.out, place_of(ctx, a), part.bytes,
					     op->waited_out ? NULL : op->ready, &p->copy, why);

		op->waited_out = true;
		a->emptying = p->copy.stream != NULL;
		ctx->emptying += a->emptying;
		if (err)
			ina_front_group_fail(a->group, -EIO, true, "%s", why);
		if (!a->emptying)
			finish_piece(ctx, a, FAILED);
		return;
	}
	if (part.out)
		copy_unlocked(ctx, part.out, place_of(ctx, a), part.bytes);
	finish_piece(ctx, a, DONE);
}

static bool copies_out(struct ha_ina *ctx)
{
	bool moved = false;
	char why[CUDA_WHY];

	for (uint32_t i = 0; ctx->emptying && i < INA_SHM_ENTRIES; i++) {
		struct ina_front_asked *a = &ctx->slots.asked[i];
		int done = a->emptying ? ina_cuda_done(&piece_of(a)->copy, why) : 0;

		if (!done)
			continue;
		if (done < 0)
			ina_front_group_fail(a->group, -EIO, true, "%s", why);
		ctx->emptying--;
		finish_piece(ctx, a, done < 0 ? FAILED : DONE);
		moved = true;
	}
	return moved;
}

/*
 * The group has ended. Its operations do so with the backend's sentence (daemon.c, apply_states),
 * which may be behind this answer.
 */
static void note_refusal(struct ha_ina_group *g, int result)
{
	if (g->refused)
		return;
	g->refused = result;
	g->refused_until = ha_clock_now(&ha_clock_live) + REASON_MS * HA_NS_PER_MS;
}

int ina_front_responses(struct ha_ina *ctx)
{
	struct ina_shm_response r;
	int moved = 0, got;

	while ((got = ina_shm_ring_pop(&ctx->client.memory.responses, &r)) > 0) {
		struct ina_front_asked *a = &ctx->slots.asked[r.sequence % INA_SHM_ENTRIES];

		if (!a->used || !a->pushed || a->emptying || a->sequence != r.sequence ||
		    r.result > 0 || r.result < -4095)
			return -EPROTO;
		moved = 1;
		if (!a->op) {
			give_back(ctx, a);
		} else if (r.result) {
			note_refusal(a->group, r.result);
			finish_piece(ctx, a, FAILED);
		} else {
			a->op->met |= r.met & (HA_INA_SATURATED | HA_INA_NONFINITE);
			empty_piece(ctx, a);
		}
	}
	return got < 0 ? got : moved;
}

/* ---- the end ---- */

/*
 * Of a failed group's operation: true when no copy touches its memory any more. What the backend
 * still has is nobody's from here on.
 */
static bool let_go(struct ha_ina_group *g, struct ha_ina_op *op)
{
	struct ha_ina *ctx = g->ctx;

	for (size_t i = 0; i < op->filled; i++) {
		struct ina_front_piece *p = &op->piece[ina_front_part(op, i).segment];

		if (p->state == EMPTYING || !poll_copy_in(g, p))
			return false;
	}
	for (size_t i = 0; i < op->filled; i++) {
		struct ina_front_piece *p = &op->piece[ina_front_part(op, i).segment];

		if (p->state == FULL)
			finish_piece(ctx, &ctx->slots.asked[p->slot], FAILED);
		if (p->state != ASKED)
			continue;
		ctx->slots.asked[p->slot].op = NULL;
		ctx->slots.asked[p->slot].group = NULL;
		g->in_flight--;
		set_state(p, FAILED);
	}
	return true;
}

static int check_result(struct ha_ina_group *g, struct ha_ina_op *op)
{
	if (op->request.coll != HA_INA_BARRIER || (uint32_t)op->token == op->ranks)
		return 0;
	ina_front_group_fail(g, -EPROTO, true, "a barrier reached %d ranks of %u", op->token,
			     op->ranks);
	return -EPROTO;
}

static bool end_some(struct ha_ina_group *g)
{
	struct ha_ina_op *op;
	bool moved = false;

	while ((op = STAILQ_FIRST(&g->ops))) {
		if (op->finished == op->pieces)
			ina_front_end(op, check_result(g, op));
		else if (g->error && let_go(g, op))
			ina_front_end(op, g->error);
		else
			break;
		moved = true;
	}
	return moved;
}

bool ina_front_pump(struct ha_ina *ctx)
{
	bool moved = copies_out(ctx);
	struct ha_ina_group *g;

	LIST_FOREACH(g, &ctx->groups.list, link) {
		moved |= fill_next(g);
		while (ask_next(g))
			moved = true;
		moved |= end_some(g);
		if (g->error && g->own_error && !g->reported)
			ina_front_send_leave(g);
	}
	return moved;
}
