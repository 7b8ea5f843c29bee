/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c - the sending half of the data path
 *
 * isend serves the receive at the head of the clear-to-send ring. A group is posted when all its
 * sends are there. One buffer is one work request per rail, prebuilt in the rail; everything else
 * (groups, more bytes than one work request carries) goes through ha_stripe_post(), which writes
 * the data first and then a sizes record with the immediate.
 */
#include "plugin/balance/policy.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/stripe.h"
#include "plugin/transfer/suspect.h"

#include "base/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define HA_COPY_POLL 16 /* copied sends; a poll for so many of them */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * With adaptive routing the packets of a write may overtake each other, and a NIC then holds a
 * write with immediate back until all of it is there: large payloads go first, as plain writes, and
 * the immediate follows apart.
 */
static uint32_t single_max(const struct ha_bundle *b, const struct ha_rail *r)
{
	const struct ha_config *config = &b->ctx->config;
	int adaptive = config->ib_adaptive_routing;

	if (b->terms.unordered)
		return r->max_msg; /* an immediate that is posted apart would wait for the data */
	if (adaptive < 0)
		adaptive = r->setup.peer.qp.link_layer == IBV_LINK_LAYER_INFINIBAND;
	return adaptive && config->ib_ar_threshold < r->max_msg ? (uint32_t)config->ib_ar_threshold
								: r->max_msg;
}

static void prepare_request(struct ha_send *s, unsigned entry, unsigned m)
{
	*ha_send_request(&s->slot[entry], m) = (struct ha_request) {
		.kind = HA_REQ_SEND, .member = (uint8_t)m, .entry = (uint8_t)entry, .bundle = &s->b
	};
}

void ha_send_prepare(struct ha_send *s)
{
	if (!s->puts && !(s->b.terms.flags & HA_FLAG_ACK_MEMORY))
		s->copy_max = (uint32_t)s->b.ctx->config.copy_max;
	for (unsigned e = 0; e < HA_SLOTS; e++) {
		s->slot[e].more = s->more[e];
		prepare_request(s, e, 0);
	}
}

void ha_send_prepare_rail(struct ha_send *s, struct ha_rail *r)
{
	struct ha_send_slot whole = { .pending = (uint16_t)(1u << r->index | s->b.await),
				      .mask = (uint8_t)(1u << r->index) };

	r->single_max = single_max(&s->b, r);
	if (r->single_max > HA_PIECE_MIN)
		r->single_max = HA_PIECE_MIN;
	r->imm_whole = ha_imm_alone(r->index);
	r->work_whole = whole.work;
	r->wr = (struct ibv_send_wr) { .sg_list = &r->sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				       .send_flags = IBV_SEND_SIGNALED };
}

/*
 * One buffer, one rail, one work request: the case that nearly every message is. -EAGAIN: the
 * buffer has no key for this rail, at either end, yet. What a post returns is not for the caller: a
 * queue pair that takes no work is as good as one that loses it, and the fence finds out what
 * became of it.
 */
static inline int post_single(struct ha_send *s, struct ha_rail *r, struct ha_send_slot *slot,
			      const struct ha_cts *cts)
{
	const struct ha_request *req = &slot->req;
	struct ibv_send_wr *bad;
	int err;

	r->sge.length = (uint32_t)req->size;
	if (likely(req->size)) {
		uint32_t lkey = req->mr->lkey[r->index], rkey = cts->rkey[r->index];

		if (unlikely(!lkey || !rkey))
			return -EAGAIN;
		r->sge.addr = (uintptr_t)req->data;
		r->sge.lkey = lkey;
		r->wr.wr.rdma.rkey = rkey;
	} else {
		r->wr.num_sge = 0; /* an empty message may have no registration */
	}
	r->wr.wr.rdma.remote_addr = cts->addr;
	r->wr.imm_data = htonl(ha_imm_identity(slot->idx) | r->imm_whole);
	r->wr.wr_id =
		ha_wr_id(HA_WR_DATA, ha_wr_data_entry(req->entry, r->index), ha_rail_count_post(r));
	slot->work = r->work_whole;
	err = r->hot->post_send(r->qp, &r->wr, &bad);
	if (unlikely(!req->size))
		r->wr.num_sge = 1;
	if (unlikely(err))
		ha_rail_failed(&s->b, r, NULL, err < 0 ? err : -err);
	return 0;
}

/*
 * As post_single, from a copy: the buffer is the program's again, so the request is complete. The
 * slot is not until the work request is, and keeps the copy for as long as it may have to be sent
 * again. -EAGAIN: not a case for this.
 */
static __attribute__((noinline)) int post_copied(struct ha_send *s, struct ha_rail *r,
						 struct ha_send_slot *slot,
						 const struct ha_cts *cts)
{
	struct ha_request *req = &slot->req;
	struct ibv_send_wr *bad;
	int err;

	if (req->mr->type != HA_MEM_HOST || req->size > r->max_inline || !cts->rkey[r->index])
		return -EAGAIN;
	r->sge.addr = (uintptr_t)memcpy(ha_send_copy(s, req->entry), req->data, req->size);
	r->sge.length = (uint32_t)req->size;
	r->wr.wr.rdma.rkey = cts->rkey[r->index];
	r->wr.wr.rdma.remote_addr = cts->addr;
	r->wr.imm_data = htonl(ha_imm_identity(slot->idx) | r->imm_whole);
	r->wr.wr_id =
		ha_wr_id(HA_WR_DATA, ha_wr_data_entry(req->entry, r->index), ha_rail_count_post(r));
	slot->work = r->work_whole | HA_WORK_COPIED;
	req->done = 1;
	r->wr.send_flags |= IBV_SEND_INLINE;
	err = r->hot->post_send(r->qp, &r->wr, &bad);
	r->wr.send_flags &= ~(unsigned)IBV_SEND_INLINE;
	if (unlikely(err))
		ha_rail_failed(&s->b, r, NULL, err < 0 ? err : -err);
	/* nobody may wait for these completions */
	if (slot->idx % HA_COPY_POLL == 0)
		ha_bundle_poll(&s->b);
	return 0;
}

unsigned ha_send_copies(const struct ha_send *s, uint64_t end)
{
	unsigned n = 0;

	for (unsigned e = 0; e < HA_SLOTS; e++)
		n += s->slot[e].copied && s->slot[e].pending && s->slot[e].idx < end;
	return n;
}

static uint64_t find_largest_size(const struct ha_send_slot *slot)
{
	uint64_t max = 0;

	for (unsigned m = 0; m < slot->n; m++)
		if (ha_send_request(slot, m)->size > max)
			max = ha_send_request(slot, m)->size;
	return max;
}

static uint64_t all_bytes(const struct ha_send_slot *slot)
{
	uint64_t sum = 0;

	for (unsigned m = 0; m < slot->n; m++)
		sum += ha_send_request(slot, m)->size;
	return sum;
}

/* Where the data of a put goes, as a clear-to-send would say it. */
static const struct ha_cts *put_target(const struct ha_send *s, const struct ha_send_slot *slot,
				       struct ha_cts *to)
{
	const struct ha_put_slot *put = &s->puts->slot[slot->idx % HA_SLOTS];

	memset(to, 0, sizeof(*to));
	to->n = 1;
	if (!slot->req.size)
		return to;
	to->addr = s->puts->window[put->window].addr + put->offset;
	memcpy(to->rkey, s->puts->window[put->window].rkey, sizeof(to->rkey));
	return to;
}

/* The stripe of this rail is measured (gate.h). */
static void begin_measurement(struct ha_send *s, const struct ha_send_slot *slot, unsigned rail,
			      uint64_t length)
{
	int err = ha_gate_begin(&s->b, rail, slot->req.entry, length);

	if (err)
		ha_rail_failed(&s->b, &s->b.rail[rail], NULL, err);
}

/* The agent's hint may be another for each message. */
static void take_advice(struct ha_send *s)
{
	const struct ha_advised *d = &s->b.balance.advised;
	uint32_t slot = atomic_load_explicit(&d->flow.slot, memory_order_relaxed), sup_bw = 0;
	enum ha_hint hint = ha_hints_read(&s->b.ctx->advice.hints, slot, d->flow.sout_src,
					  d->flow.sout_dst, &sup_bw);

	if (unlikely(hint != d->hint || sup_bw != d->sup_bw))
		ha_advice_follow(s, hint, sup_bw);
}

/* What has no work request prebuilt. -EAGAIN = not enough room in a send queue, or keys are
 * missing. */
static __attribute__((noinline)) int post_slot_sized(struct ha_send *s, struct ha_send_slot *slot,
						     const struct ha_cts *cts)
{
	struct ha_stripe st = { .slot = slot, .cts = cts, .weight = slot->weight };
	int measured;

	slot->copied = false; /* of the slot's last message: has_keys() would take the copy's key */
	st.mask = ha_stripes_with_keys(s, &st,
				       ha_policy_mask(&s->b, slot->idx, find_largest_size(slot)));
	if (!st.mask) { /* not the rails that it should be: any that can */
		st.mask = ha_stripes_with_keys(s, &st, s->b.active);
		st.mask &= -st.mask;
	}
	if (!st.mask) {
		ha_stripe_want_keys(s, &st);
		return -EAGAIN;
	}
	memcpy(slot->weight, s->b.balance.weight, sizeof(slot->weight));
	for (unsigned left = st.mask; left; left &= left - 1) {
		st.index = (unsigned)__builtin_ctz(left);
		if (ha_stripe_cost(&st, &s->b.rail[st.index]) > ha_rail_room(&s->b.rail[st.index]))
			return -EAGAIN;
	}
	ha_stripe_stage_sizes(s, slot);
	slot->work = 0;
	slot->mask = (uint8_t)st.mask;
	slot->pending = (uint16_t)(st.mask | s->b.await);
	if (s->b.balance.adaptive.on)
		ha_stripes_count(s, slot);
	measured = ha_gate_rests(&s->b.balance.gate) ? -1 : ha_gate_choose(&s->b, st.mask);
	if (measured >= 0)
		begin_measurement(s, slot, (unsigned)measured,
				  ha_stripe_bytes(slot, (unsigned)measured));
	for (unsigned left = st.mask; left; left &= left - 1) {
		st.index = (unsigned)__builtin_ctz(left);
		st.timed = s->b.balance.adaptive.on || (int)st.index == measured;
		ha_stripe_post(s, &s->b.rail[st.index], &st);
	}
	return 0;
}

/* Where the stripe of rail i, of those in `left`, ends. `below`: the weights so far. */
static inline uint64_t next_end(const struct ha_bundle *b, unsigned i, unsigned left, uint64_t size,
				uint64_t *below)
{
	if (!(left & (left - 1)))
		return size;
	*below += b->balance.weight[i];
	return ha_policy_boundary(size, *below, b->balance.carried);
}

/*
 * Fill the work requests of the rails of `mask`, but for the number of each; the rails go to
 * `rails`, up to a NULL. Without `cut` all active rails take part by their weights, which is cut
 * here and now. False: a stripe is empty or needs more than one work request, or there is no room
 * for it, or no key at one of the ends.
 */
static inline __attribute__((always_inline)) bool prepare_stripes(
	struct ha_send *s, const struct ha_send_slot *slot, const struct ha_cts *cts, unsigned mask,
	const struct ha_cut *cut, struct ha_rail **rails)
{
	const struct ha_request *req = &slot->req;
	uint32_t imm = ha_imm_make(slot->idx, 0, mask, false);
	uint64_t id = ha_wr_id(HA_WR_DATA, req->entry, 0), at = 0, below = 0;

	for (unsigned left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		struct ha_rail *r = HA_KEEP(&s->b.rail[i]);
		uint64_t end = cut ? cut->end[i] : next_end(&s->b, i, left, req->size, &below);
		uint32_t lkey = req->mr->lkey[i], rkey = cts->rkey[i];

		if (unlikely(end - at - 1 >= r->single_max || !ha_rail_room(r) || !lkey || !rkey))
			return false;
		r->sge.addr = (uintptr_t)req->data + at;
		r->sge.length = (uint32_t)(end - at);
		r->sge.lkey = lkey;
		r->wr.wr_id = id | i << 8;
		r->wr.imm_data = htonl(imm | i << 16);
		r->wr.wr.rdma.remote_addr = cts->addr + at;
		r->wr.wr.rdma.rkey = rkey;
		*rails++ = r;
		at = end;
	}
	*rails = NULL;
	return true;
}

/* Which stripes are timed: all of them, or the one that is measured. */
static __attribute__((noinline)) void choose_timed(struct ha_send *s,
						   const struct ha_send_slot *slot)
{
	bool all = s->b.balance.adaptive.on;
	int measured;

	if (all)
		ha_stripes_count(s, slot);
	measured = ha_gate_choose(&s->b, slot->mask);
	if (measured >= 0)
		begin_measurement(s, slot, (unsigned)measured, s->b.rail[measured].sge.length);
	for (unsigned left = slot->mask; left; left &= left - 1) {
		int i = __builtin_ctz(left);

		if (all || i == measured)
			s->b.rail[i].wr.wr_id +=
				ha_wr_id(HA_WR_TIMED, 0, 0) - ha_wr_id(HA_WR_DATA, 0, 0);
	}
}

/* What the receiver gets is the sum of what arrives, as with one rail; only what is posted again
 * after a fence needs the record of sizes. */
static inline __attribute__((always_inline)) void post_stripes(struct ha_send *s,
							       struct ha_send_slot *slot,
							       unsigned mask,
							       struct ha_rail *const *rails)
{
	struct ha_rail *r = *rails;

	memcpy(slot->weight, s->b.balance.weight, sizeof(slot->weight));
	slot->work = mask | s->b.await | (uint64_t)mask << 16;
	if (unlikely(s->b.balance.adaptive.on || !ha_gate_rests(&s->b.balance.gate)))
		choose_timed(s, slot);
	do {
		struct ibv_send_wr *bad;
		int err;

		r->wr.wr_id |= (uint64_t)ha_rail_count_post(r) << 32;
		err = r->hot->post_send(r->qp, &r->wr, &bad);
		if (unlikely(err))
			ha_rail_failed(&s->b, r, NULL, err < 0 ? err : -err);
	} while ((r = *++rails) != NULL);
}

/* Rails that take turns, stripes that would be empty, and what else is not as usual. */
static __attribute__((noinline)) int post_slot_cut(struct ha_send *s, struct ha_send_slot *slot,
						   const struct ha_cts *cts)
{
	struct ha_rail *rails[HA_MAX_RAILS + 1];
	struct ha_cut cut;

	if (slot->n > 1 || !slot->req.size)
		return post_slot_sized(s, slot, cts);
	ha_policy_cut(&s->b, slot->idx, slot->req.size, &cut);
	if (!prepare_stripes(s, slot, cts, cut.mask, &cut, rails))
		return post_slot_sized(s, slot, cts);
	post_stripes(s, slot, cut.mask, rails);
	return 0;
}

/* It is measured (balance/lag.h), on one rail, whoever carries the others. False: not this one. */
static __attribute__((noinline)) bool post_sample(struct ha_send *s, struct ha_send_slot *slot,
						  const struct ha_cts *cts)
{
	struct ha_rail *rails[HA_MAX_RAILS + 1];
	unsigned mask = ha_lag_choose(&s->b);
	const struct ha_request *req = &slot->req;

	if (!mask || slot->n > 1 || !req->size || !prepare_stripes(s, slot, cts, mask, NULL, rails))
		return false;
	ha_lag_begin(&s->b, rails[0]->index, req->entry, req->size);
	rails[0]->wr.wr_id += ha_wr_id(HA_WR_TIMED, 0, 0) - ha_wr_id(HA_WR_DATA, 0, 0);
	post_stripes(s, slot, mask, rails);
	return true;
}

/* Everything that is not one buffer on one rail whose turn needs no look. -EAGAIN = not now. */
static __attribute__((noinline)) int post_slot_shared(struct ha_send *s, struct ha_send_slot *slot,
						      const struct ha_cts *cts)
{
	struct ha_rail *rails[HA_MAX_RAILS + 1];
	unsigned mask;

	if (s->b.balance.advised.on)
		take_advice(s);
	if (unlikely(s->b.balance.adaptive.on))
		ha_adaptive_cut(s, all_bytes(slot));
	if (unlikely(s->b.balance.lag.armed) && post_sample(s, slot, cts))
		return 0;
	mask = s->b.balance.carriers;
	if (unlikely(slot->n > 1 || slot->req.size < s->b.balance.floor || !slot->req.size ||
		     s->b.balance.turns || !prepare_stripes(s, slot, cts, mask, NULL, rails)))
		return post_slot_cut(s, slot, cts);
	post_stripes(s, slot, mask, rails);
	return 0;
}

/* All sends of the slot are there. -EAGAIN: not now. */
static inline __attribute__((always_inline)) int post_slot(struct ha_send *s,
							   struct ha_send_slot *slot,
							   const struct ha_cts *cts, bool group)
{
	struct ha_rail *r = HA_KEEP(&s->b.rail[s->b.balance.first]);
	uint64_t size = slot->req.size;

	if (unlikely(!s->b.active))
		return -EAGAIN;
	if (unlikely((group && slot->n > 1) || size >= s->b.balance.stripe_min ||
		     size > r->single_max))
		return post_slot_shared(s, slot, cts);
	if (unlikely(!ha_rail_room(r)))
		return -EAGAIN;
	if (unlikely(size - 1 < s->copy_max) && !post_copied(s, r, slot, cts))
		return 0;
	if (unlikely(post_single(s, r, slot, cts)))
		return post_slot_sized(s, slot, cts);
	return 0;
}

int ha_send_post_put(struct ha_send *s, struct ha_send_slot *slot, bool with_record)
{
	struct ha_cts room;
	const struct ha_cts *to = put_target(s, slot, &room);

	if (!with_record)
		return post_slot(s, slot, to, false);
	if (!s->b.active)
		return -EAGAIN;
	if (s->b.balance.advised.on)
		take_advice(s);
	if (s->b.balance.adaptive.on)
		ha_adaptive_cut(s, slot->req.size);
	return post_slot_sized(s, slot, to);
}

/* ---- again, after a fence ---- */

/* Of the rails that could, one with the most weight for its load; -1: none. */
static int pick_carrier(struct ha_send *s, const struct ha_stripe *st)
{
	unsigned rails = ha_stripes_with_keys(s, st, s->b.active);

	uint64_t best_load = UINT64_MAX;
	int best = -1;

	if (!rails)
		ha_stripe_want_keys(s, st);
	for (unsigned left = rails; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		const struct ha_rail *r = &s->b.rail[i];
		uint64_t load = (uint64_t)(r->sq_posted - r->sq_retired + 1) * 1024 /
				(s->b.balance.weight[i] ? s->b.balance.weight[i] : 1);

		if (ha_stripe_cost(st, r) <= ha_rail_room(r) && load < best_load) {
			best_load = load;
			best = (int)i;
		}
	}
	return best;
}

/* Under registered.list_lock: a buffer that is given back meanwhile is either not known or not
 * gone. */
static int replay_stripe(struct ha_send *s, struct ha_send_slot *slot, unsigned index,
			 uint64_t *bytes)
{
	struct ha_cts to;
	struct ha_stripe st = { .slot = slot,
				.cts = s->puts ? put_target(s, slot, &to)
					       : ha_send_cts(s, slot->idx),
				.mask = slot->mask,
				.index = index,
				.weight = slot->weight };
	int carrier;

	for (unsigned m = 0; m < slot->n && !slot->copied; m++)
		if (ha_send_request(slot, m)->size &&
		    !ha_mr_known(&s->b, ha_send_request(slot, m)->mr))
			/* given back in the middle: it waits for the close that will follow */
			return -EAGAIN;
	carrier = pick_carrier(s, &st);
	if (carrier < 0)
		return -EAGAIN;
	/* The lengths of a message that one work request carried the first time are not in the
	 * record yet; those of any other are, and the same. */
	ha_stripe_stage_sizes(s, slot);
	for (unsigned m = 0; m < slot->n; m++)
		*bytes += ha_policy_range(st.weight, st.mask, index, ha_send_request(slot, m)->size)
				  .length;
	slot->parked &= (uint8_t) ~(1u << index);
	slot->moved |= (uint8_t)(1u << index);
	slot->carrier[index] = (uint8_t)carrier;
	ha_stripe_post(s, &s->b.rail[carrier], &st);
	return 0;
}

int ha_send_replay(struct ha_send *s, struct ha_send_slot *slot, unsigned index, uint64_t *bytes)
{
	int err;

	pthread_mutex_lock(&s->b.registered.list_lock);
	err = replay_stripe(s, slot, index, bytes);
	pthread_mutex_unlock(&s->b.registered.list_lock);
	return err;
}

/* ---- sends ---- */

/* Which buffer of the receive takes a send with this tag; -1 = none that is free. */
static __attribute__((noinline)) int match_tag(const struct ha_send *s,
					       const struct ha_send_slot *slot,
					       const struct ha_cts *cts, uint32_t tag)
{
	for (unsigned m = 0; m < slot->n; m++) {
		if (slot->have >> m & 1)
			continue;
		/* Each buffer is a cache line of its own and may become visible later than the
		 * first, so nothing of it, the tag neither, is read before its idx: pairs with the
		 * order in which the NIC writes. */
		if (__atomic_load_n(&cts[m].idx, __ATOMIC_ACQUIRE) != s->head + 1)
			return -1;
		if (cts[m].tag == tag)
			return (int)m;
	}
	return -1;
}

/* The receive at the head has been announced; is its slot free, and does it look as it should? */
static __attribute__((noinline)) int open_group(struct ha_send *s, struct ha_send_slot *slot,
						const struct ha_cts *cts)
{
	uint8_t n;

	if (slot->held || slot->pending)
		/* requests of HA_SLOTS receives ago have not been tested to their end */
		return -EAGAIN;
	/* once: the peer's NIC may write it at any time */
	n = __atomic_load_n(&cts->n, __ATOMIC_RELAXED);
	if (unlikely(n == 0 || n > HA_MAX_RECVS)) {
		ha_bundle_abort(&s->b, -EPROTO, HA_CAUSE_PROTOCOL,
				"the peer announced a receive of %u buffers, 1 to %u are possible; "
				"its memory or its plugin "
				"is damaged",
				n, HA_MAX_RECVS);
		return -EAGAIN;
	}
	slot->idx = s->head;
	slot->n = n;
	slot->have = 0;
	slot->open = 1;
	for (unsigned m = 1; m < n; m++)
		prepare_request(s, slot->req.entry, m);
	return 0;
}

static inline void fill_request(struct ha_request *q, const struct ha_cts *cts, void *data,
				uint64_t size, struct ha_mr *mr)
{
	q->done = 0;
	q->data = data;
	q->size = size < cts->size ? size : cts->size;
	q->mr = mr;
}

/* No room, no rail or no keys: completions make room, and a round of the driver brings rails and
 * keys. */
__attribute__((noinline)) int ha_send_not_now(struct ha_send *s)
{
	ha_bundle_poll(&s->b);
	ha_bundle_count_idle(&s->b);
	return 0;
}

/* A poll of any connection moves the packets of the whole NIC: this one's is only needed while
 * nobody else polls. Of a rail that is polled: another one may be opened anew at this moment. */
static void poll_unless_polled(struct ha_send *s)
{
	const struct ha_rail *r = s->b.poll.list[0];
	_Atomic uint32_t *polls;

	if (!r)
		return;
	polls = &r->dev->polls;
	/* Relaxed: who counts on another thread's poll that came too early polls the next time. */
	if (atomic_load_explicit(polls, memory_order_relaxed) == s->polls_seen)
		ha_bundle_poll(&s->b);
	s->polls_seen = atomic_load_explicit(polls, memory_order_relaxed);
}

/* No receive is there. */
static __attribute__((noinline)) int not_yet(struct ha_send *s)
{
	if (s->b.poll.always)
		poll_unless_polled(s);
	ha_bundle_count_idle(&s->b);
	return 0;
}

void ha_send_not_yet(struct ha_send *s)
{
	not_yet(s);
}

/* One send of a group, in any order; the last one posts them all. */
static __attribute__((noinline)) int isend_group(struct ha_send *s, void *data, size_t size,
						 int tag, struct ha_mr *mr, struct ha_request **req)
{
	struct ha_send_slot *slot = &s->slot[s->head % HA_SLOTS];
	const struct ha_cts *cts = ha_send_cts(s, s->head);
	int m;

	if (!slot->open && open_group(s, slot, cts))
		return ha_send_not_now(s);
	m = match_tag(s, slot, cts, (uint32_t)tag);
	if (m < 0)
		return not_yet(s);
	fill_request(ha_send_request(slot, m), &cts[m], data, size, mr);
	slot->have |= (uint8_t)(1u << m);
	if (slot->have == (1u << slot->n) - 1) {
		if (post_slot(s, slot, cts, true)) {
			slot->have &= (uint8_t) ~(1u << m);
			return ha_send_not_now(s);
		}
		slot->open = 0;
		s->head++;
	}
	slot->held |= (uint8_t)(1u << m);
	*req = ha_send_request(slot, m);
	return 0;
}

static inline int isend_single(struct ha_send *s, void *data, size_t size, int tag,
			       struct ha_mr *mr, struct ha_request **req)
{
	struct ha_send_slot *slot = HA_KEEP(&s->slot[s->head % HA_SLOTS]);
	const struct ha_cts *cts = HA_KEEP(ha_send_cts(s, s->head));

	/* Acquire: pairs with the peer's NIC, which writes idx last of its cache line. */
	if (__atomic_load_n(&cts->idx, __ATOMIC_ACQUIRE) != s->head + 1)
		return not_yet(s);
	if (unlikely(cts->n != 1))
		return isend_group(s, data, size, tag, mr, req);
	if (unlikely(cts->tag != (uint32_t)tag))
		return not_yet(s);
	if (unlikely(slot->held | slot->pending))
		return ha_send_not_now(s);
	slot->idx = s->head;
	slot->n = 1;
	fill_request(&slot->req, cts, data, size, mr);
	if (unlikely(post_slot(s, slot, cts, false)))
		return ha_send_not_now(s);
	s->head++;
	slot->held = 1;
	*req = &slot->req;
	return 0;
}

/* The connection has its error. After a close in order the send is taken, by the first slot that
 * nobody holds, and test() says what has become of it; the head stays where it is, since nothing is
 * posted. */
static __attribute__((noinline, cold)) int isend_ended(struct ha_send *s, struct ha_request **req)
{
	for (uint64_t idx = s->head; ha_bundle_closed(&s->b) && idx < s->head + HA_SLOTS; idx++) {
		struct ha_send_slot *slot = &s->slot[idx % HA_SLOTS];

		if (slot->held || slot->pending || slot->open)
			continue;
		slot->n = 1;
		slot->held = 1;
		slot->req.done = 0;
		*req = &slot->req;
		return 0;
	}
	return s->b.error;
}

int ha_isend(struct ha_send *s, void *data, size_t size, int tag, struct ha_mr *mr,
	     struct ha_request **req)
{
	enum ha_entry entry = ha_bundle_enter(&s->b);
	int err;

	*req = NULL;
	if (unlikely(entry == HA_NOT_NOW))
		return ha_bundle_shut(&s->b);
	if (unlikely(entry != HA_ENTERED && s->b.error))
		err = isend_ended(s, req);
	else
		err = isend_single(s, data, size, tag, mr, req);
	ha_bundle_leave(&s->b);
	return err;
}
