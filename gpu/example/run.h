/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - what a warp carries through a kernel: its launch, its deadline, words that say of which
 * launch they are, waiting, the result
 *
 * A word of a launch has its tag above and 32 bits below; a word with another tag counts as 0. So
 * no launch cleans up after another, and a launch that ended with a TIMEOUT goes on where it was
 * when it is called again.
 *
 * Lane 0 decides, the warp follows: whatever may differ between lanes goes through ha_gpu_shfl(…,
 * 0).
 */
#ifndef HA_GPU_EXAMPLE_RUN_H
#define HA_GPU_EXAMPLE_RUN_H

#include "gpu/example/moe.h"

struct ha_moe_run {
	struct ha_moe *m;
	const struct ha_moe_call *call;
	const struct ha_moe_words *w; /* of the launch's area */
	uint8_t *area;                /* ours; its offset is the same at every rank */
	uint64_t offset, tag, deadline;
	uint32_t warp, warps;
	uint32_t looked; /* connections asked for an abort, in turns */
};

struct ha_moe_vector {
	uint64_t a, b;
} __attribute__((aligned(16)));

HA_GPU_FN void ha_moe_run_begin(struct ha_moe_run *r, struct ha_moe *m,
				const struct ha_moe_call *call, uint32_t warp, uint32_t warps)
{
	r->m = m;
	r->call = call;
	r->w = &m->words[call->number & 1];
	r->area = ha_moe_area_of(m, call->number);
	r->offset = (uint64_t)(r->area - m->heap);
	r->tag = (call->number + 1) << 32;
	r->deadline = ha_gpu_deadline_of(call->limit);
	r->warp = warp;
	r->warps = warps;
	r->looked = warp;
	if (!ha_gpu_lane())
		ha_gpu_world_enter(m->world);
}

/* ---- words of a launch ---- */

#define HA_MOE_LOW UINT64_C(0xffffffff)

/* Its lower half, 0 when it is of another launch. */
HA_GPU_FN uint32_t ha_moe_read_word(const struct ha_moe_run *r, const uint64_t *word)
{
	uint64_t v = ha_gpu_load(word);

	return (v & ~HA_MOE_LOW) == r->tag ? (uint32_t)v : 0;
}

HA_GPU_FN void ha_moe_set_word(const struct ha_moe_run *r, uint64_t *word, uint32_t value)
{
	ha_gpu_store(word, r->tag | value);
}

/* What it has come to. */
HA_GPU_FN uint32_t ha_moe_add_to_word(const struct ha_moe_run *r, uint64_t *word, uint32_t add)
{
	uint64_t was = ha_gpu_load(word), now;

	do
		now = ((was & ~HA_MOE_LOW) == r->tag ? was : r->tag) + add;
	while (!ha_gpu_cas(word, &was, now));
	return (uint32_t)now;
}

/* True: nobody had set it before in this launch. */
HA_GPU_FN bool ha_moe_claim_word(const struct ha_moe_run *r, uint64_t *word)
{
	uint64_t was = ha_gpu_load(word);

	while ((was & ~HA_MOE_LOW) != r->tag || !(was & 1))
		if (ha_gpu_cas(word, &was, r->tag | 1))
			return true;
	return false;
}

/* ---- time, and what ends a launch early ---- */

/* For operations that take a limit of their own. */
HA_GPU_FN uint64_t ha_moe_time_left(const struct ha_moe_run *r)
{
	uint64_t now = ha_gpu_now();

	if (r->deadline == HA_GPU_FOREVER)
		return HA_GPU_FOREVER;
	return now < r->deadline ? r->deadline - now : 0;
}

/*
 * Lane 0, while it waits: another warp has met its end, or another rank says so. One connection's
 * word at each call.
 */
HA_GPU_FN enum ha_gpu_result ha_moe_check_abort(struct ha_moe_run *r)
{
	struct ha_moe *m = r->m;
	uint32_t turn = r->looked++ % (m->rows * m->shape.ranks);
	const struct ha_gpu_conn *c =
		ha_gpu_world_conn(m->world, turn / m->shape.ranks, turn % m->shape.ranks);
	uint64_t worst = ha_gpu_load(r->call->result);

	if (worst >= HA_GPU_BOTH_DOWN)
		return (enum ha_gpu_result)worst;
	return c && ha_gpu_signal_value(c, HA_MOE_SIGNAL_ABORT) ? HA_GPU_BOTH_DOWN : HA_GPU_DONE;
}

/* Lane 0. Signal `slot` of c has come to `value`. */
HA_GPU_FN enum ha_gpu_result ha_moe_wait_signal(struct ha_moe_run *r, struct ha_gpu_conn *c,
						unsigned slot, uint64_t value)
{
	enum ha_gpu_result result;

	while (ha_gpu_signal_value(c, slot) < value) {
		result = ha_gpu_load(&c->resv) & HA_GPU_DOWN ? HA_GPU_BOTH_DOWN
							     : ha_moe_check_abort(r);
		if (result != HA_GPU_DONE)
			return result;
		ha_gpu_idle_step(c);
		if (ha_gpu_now() > r->deadline)
			return ha_gpu_raise_alarm(c);
	}
	return HA_GPU_DONE;
}

/* Lane 0. A word of this rank's own has been set in this launch; its value. */
HA_GPU_FN enum ha_gpu_result ha_moe_wait_own(struct ha_moe_run *r, const uint64_t *word,
					     uint32_t *value)
{
	enum ha_gpu_result result;

	while (!(*value = ha_moe_read_word(r, word))) {
		result = ha_moe_check_abort(r);
		if (result != HA_GPU_DONE)
			return result;
		ha_gpu_pause();
		if (ha_gpu_now() > r->deadline)
			return HA_GPU_TIMEOUT;
	}
	return HA_GPU_DONE;
}

/* ---- memory: by all lanes, 16 bytes at once ---- */

HA_GPU_FN void ha_moe_copy_bytes(void *to, const void *from, uint64_t bytes)
{
	struct ha_moe_vector *t = (struct ha_moe_vector *)to;
	const struct ha_moe_vector *f = (const struct ha_moe_vector *)from;

	for (uint64_t i = ha_gpu_lane(); i < bytes / 16; i += ha_gpu_lanes())
		t[i] = f[i];
}

/* Puts what is at `local` in our area to `remote` in the peer's, on the connection of expert
 * `expert`; the index-th message of its kind: one in four rings, the signal rings the rest. To
 * ourselves it is copied. All lanes. */
HA_GPU_FN enum ha_gpu_result ha_moe_put_bytes(struct ha_moe_run *r, uint32_t rank, uint32_t expert,
					      uint64_t remote, uint64_t local, uint64_t bytes,
					      uint32_t index)
{
	struct ha_gpu_conn *c;
	enum ha_gpu_result result;

	if (rank == r->m->rank) {
		ha_moe_copy_bytes(r->area + remote, r->area + local, bytes);
		ha_gpu_syncwarp();
		return HA_GPU_DONE;
	}
	c = ha_moe_conn_to(r->m, rank, expert);
	result = ha_gpu_put_nbi_warp(c, c->remote + r->offset + remote, r->area + local, bytes,
				     (index + 1) % HA_MOE_BATCH ? HA_GPU_LATER : 0,
				     ha_gpu_shfl(ha_moe_time_left(r), 0));
	return (enum ha_gpu_result)ha_gpu_shfl((uint64_t)result, 0);
}

/* ---- the end ---- */

/*
 * A rank that has lost a peer for good says so to all others: they would wait for what will never
 * come.
 */
HA_GPU_FN void ha_moe_signal_abort(struct ha_moe_run *r)
{
	struct ha_moe *m = r->m;

	for (uint32_t rank = 0; rank < m->shape.ranks; rank++)
		for (uint32_t row = 0; row < m->rows && rank != m->rank; row++)
			if (ha_gpu_signal(ha_gpu_world_conn(m->world, row, rank),
					  HA_MOE_SIGNAL_ABORT, 1, 0,
					  ha_moe_time_left(r)) == HA_GPU_DONE)
				break;
}

/*
 * The launch's result is the worst of its warps'. The first that finds BOTH_DOWN notifies the
 * others.
 */
HA_GPU_FN void ha_moe_run_end(struct ha_moe_run *r, enum ha_gpu_result result)
{
	uint64_t was;

	ha_gpu_syncwarp();
	if (ha_gpu_lane())
		return;
	was = ha_gpu_load(r->call->result);
	while (was < (uint64_t)result)
		if (ha_gpu_cas(r->call->result, &was, (uint64_t)result)) {
			if (result == HA_GPU_BOTH_DOWN)
				ha_moe_signal_abort(r);
			break;
		}
	ha_gpu_world_leave(r->m->world);
}

#endif
