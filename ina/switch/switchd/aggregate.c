/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aggregate.c - contributions to the slot core, and its answers to the ranks: answers.h, the
 * general way here, and in predicted.h the way of nearly all packets
 *
 * Compiled again by aggregate_avx2.c.
 */
#ifndef INA_AGGREGATE
#define INA_AGGREGATE ina_aggregate_plain
#define INA_AGGREGATE_PREDICTED ina_aggregate_predicted_plain
#define LANE 16 /* bytes of a register */
#endif
#include "ina/switch/switchd/answers.h"

/* ---- contributions ---- */

/* What is not plain comes seldom, and would take the place of what comes often. */
INLINE bool is_predictable(const struct ina_frame *f, const struct rte_mbuf *m)
{
	return f->words && f->coll == INA_ALL_REDUCE && f->ecn == INA_ECT1 && !f->flags &&
	       m->data_len == ina_wire_bytes(f);
}

/* Of the next packet, from one that was taken. */
static void __attribute__((noinline))
predict_next(struct ina_core *c, const struct ina_frame *f, const struct rte_mbuf *m, uint32_t each)
{
	const struct ina_group_config *g = &c->sw.group[f->group].config;
	struct ina_prediction *p =
		&c->prediction[ina_predict_row(f->group, (uint8_t)(f->worker << 2 | INA_ECT1))]
			      [f->rank];
	uint64_t comes = ina_predict_comes(c->sw.changes, m->port, m->data_len);
	struct ina_frame a = *f;
	struct ina_wire_head head;

	if (!is_predictable(f, m))
		return;
	*p = (struct ina_prediction) { .comes = comes,
				       .place = ina_place_of(f->src_mac, m->port),
				       .whose = ina_predict_whose(c->sw.changes, f->group,
								  f->worker),
				       .first = g->base + f->worker * each,
				       .each = each,
				       .port = m->port,
				       .bytes = m->data_len,
				       .group = f->group,
				       .rank = f->rank,
				       .root = f->root,
				       .ranks = g->ranks,
				       .extended = f->extended,
				       .checksum = c->all->port[m->port].checksum };
	ina_predict_head(p, rte_pktmbuf_mtod(m, const uint8_t *), f->extended);
	a.src = c->sw.addr;
	ina_copy_mac(a.src_mac, c->sw.mac);
	a.flags = f->extended ? INA_F_ANSWER : 0;
	a.exponent = 0;
	a.agg_addr = 0;
	a.psn = 0;
	head = ina_wire_make(&a);
	ina_wire_write(&head, p->place, f->src, f->rank, INA_ECT1, !p->checksum, p->answer);
}

/* Did the rank of a known address send it? Then that is where it is. */
INLINE bool speaks_for_rank(enum ina_reason reason)
{
	switch (reason) {
	case INA_REASON_NOT_HERE:
	case INA_REASON_NO_GROUP:
	case INA_REASON_KIND:
	case INA_REASON_ANSWER:
	case INA_REASON_NO_RANK:
	case INA_REASON_WRONG_ADDRESS:
		return false;
	default:
		return true;
	}
}

INLINE void learn_place(struct ina_core *c, const struct ina_frame *f, uint16_t port)
{
	ina_place *at = &c->all->where[f->group][f->rank];
	uint64_t place = ina_place_of(f->src_mac, port);

	c->seen[f->group] = 1;
	if (likely(atomic_load_explicit(at, memory_order_relaxed) == place) || f->src_mac[0] & 1)
		return;
	atomic_store_explicit(at, place, memory_order_relaxed);
}

/*
 * An incarnation that was ended on another core, or by the controller, is ended here before its
 * next packet is looked at.
 */
INLINE void learn_of_end(struct ina_core *c, const struct ina_frame *f)
{
	uint64_t over = atomic_load_explicit(&c->all->over[f->group], memory_order_acquire);

	if (unlikely(over))
		ina_switch_end(&c->sw, f->group, (uint32_t)over);
}

INLINE void report_operation_end(struct ina_core *c, const struct ina_frame *f)
{
	atomic_store_explicit(&c->all->over[f->group],
			      1ull << 32 | c->sw.group[f->group].config.epoch,
			      memory_order_release);
}

/* The same way back: what this program does with a packet when it adds nothing, to compare with. */
INLINE void reflect_packet(struct ina_core *c, const struct ina_frame *f, struct rte_mbuf *m)
{
	uint16_t port = m->port;
	struct ina_frame back = *f;

	back.dst = f->src;
	back.src = f->dst;
	ina_copy_mac(back.dst_mac, f->src_mac);
	ina_copy_mac(back.src_mac, c->all->mac);
	m = reuse_packet(m);
	if (!m)
		return;
	ina_packet_encode_head(&c->all->port[port], &back, m);
	c->count.answers++;
	ina_tx_send(&c->tx[port], m);
}

/* What a contribution is worth, and who learns of it. */
INLINE void judge_frame(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	struct ina_slot *s = NULL;
	enum ina_reason reason;
	enum ina_action action;
	uint32_t each = 0;
	struct ina_frame a;
	uint8_t flags;

	reason = ina_step_find(&c->sw, c->now, f, &s, &each);
	if (likely(reason == INA_REASON_TAKEN))
		reason = ina_step_enter(s, each, f, c->sw.group[f->group].config.ranks);
	action = ina_step_action(reason, f->extended, &flags);
	c->count.reason[reason]++;
	if (likely(speaks_for_rank(reason)))
		learn_place(c, f, m->port);
	if (unlikely(reason == INA_REASON_ABORT))
		report_operation_end(c, f);
	if (reason == INA_REASON_TAKEN || reason == INA_REASON_COMPLETE)
		predict_next(c, f, m, each);
	if (action == INA_DROP) {
		put_packet(c, m);
		return;
	}
	ina_step_turn_round(&c->sw, f, flags, &a);
	if (reason == INA_REASON_COMPLETE || reason == INA_REASON_AGAIN)
		ina_step_put_sum(s, &a);
	if (action == INA_ANSWER_ALL)
		answer_all(c, &a, reuse_packet(m));
	else
		answer_one(c, &a, reuse_packet(m));
}

/* Did it meet congestion on its way in? */
INLINE bool marks_ingress(struct ina_core *c)
{
	return ina_mark_packet(&c->ingress, c->depth);
}

INLINE void contribute_frame(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	learn_of_end(c, f);
	if (marks_ingress(c)) {
		c->count.marked += f->ecn != INA_CE;
		f->ecn = INA_CE;
	}
	judge_frame(c, f, m);
}

static void __attribute__((noinline, cold))
drop_bad_packet(struct ina_core *c, struct rte_mbuf *m, enum ina_fault fault)
{
	c->count.fault[fault]++;
	drop_packet(m);
}

static void __attribute__((noinline))
reflect_all(struct ina_core *c, struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ina_frame f;
		enum ina_fault fault = ina_packet_decode(m[i], &f);

		if (fault)
			drop_bad_packet(c, m[i], fault);
		else
			reflect_packet(c, &f, m[i]);
	}
}

void INA_AGGREGATE(struct ina_core *c, struct rte_mbuf **m, unsigned n)
{
	if (unlikely(c->all->reflect)) {
		reflect_all(c, m, n);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		struct ina_frame f;
		enum ina_fault fault = ina_packet_decode(m[i], &f);

		if (likely(!fault))
			contribute_frame(c, &f, m[i]);
		else
			drop_bad_packet(c, m[i], fault);
	}
}

/* ---- as predicted ---- */

#include "ina/switch/switchd/predicted.h"

unsigned INA_AGGREGATE_PREDICTED(struct ina_core *c, struct rte_mbuf **m, unsigned n, int port)
{
	struct burst u = { .comes = ina_predict_comes(c->sw.changes, 0, 0),
			   .addr = __builtin_bswap32(c->sw.addr),
			   .calm = !c->depth && !c->ingress.average };
	const ina_prediction_row *rows = c->prediction;
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct ina_prediction *p =
			find_prediction(&u, rows, m[i], port < 0 ? m[i]->port : (unsigned)port);

		if (likely(p))
			contribute_as_predicted(c, &u, p, m[i]);
		else
			m[left++] = m[i];
	}
	c->count.reason[INA_REASON_TAKEN] += u.taken;
	c->count.reason[INA_REASON_COMPLETE] += u.complete;
	c->count.answers += u.answers;
	c->count.predicted += n - left;
	return left;
}
