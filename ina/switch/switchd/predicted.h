/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predicted.h - contributions whose heads are as predicted (predict.h), and answers with predicted
 * heads: a part of aggregate.c, behind the general way
 *
 * The slot core is the same (ina/switch/step.h); what is left out is what the prediction has
 * answered. Whatever is not as usual then - a slot that is not the packet's, an incarnation that is
 * over, a block that was in already, a mark, a flag, a rank that has moved - goes the general way.
 */
#ifndef INA_SWITCHD_PREDICTED_H
#define INA_SWITCHD_PREDICTED_H

#include "ina/switch/switchd/answers.h"

/* ---- the prediction of a packet ---- */

/* A burst of packets: what it counts, and what is known for all of them. */
struct burst {
	uint64_t comes; /* ina_predict_comes() without port and bytes */
	uint32_t addr;  /* the switch's, as it lies */
	/* nothing waits, and has not for a while: no packet is marked on its way in */
	bool calm;
	uint8_t group; /* is there, as was seen after all of them had come; 0: not looked yet */
	unsigned taken, complete, answers;
};

typedef uint64_t head_lane __attribute__((vector_size(32), aligned(1), may_alias));

INLINE bool is_zero(head_lane v)
{
#ifdef __AVX2__
	typedef long long lanes __attribute__((vector_size(32)));

	return __builtin_ia32_ptestz256((lanes)v, (lanes)v);
#else
	return !(v[0] | v[1] | v[2] | v[3]);
#endif
}

/* But for what differs from packet to packet. */
INLINE bool same_head(const uint8_t *b, const struct ina_prediction *p)
{
	const head_lane *is = (const head_lane *)b, *was = (const head_lane *)p->head,
			*mask = (const head_lane *)p->mask;

	return is_zero(((is[0] & mask[0]) ^ was[0]) | ((is[1] & mask[1]) ^ was[1]));
}

/* One mbuf, in memory of its own, that nobody else has. */
INLINE bool is_plain(const struct rte_mbuf *m)
{
	uint32_t users; /* refcnt, nb_segs */

	memcpy(&users, (const uint8_t *)m + offsetof(struct rte_mbuf, refcnt), sizeof(users));
	return users == 0x00010001 && !(m->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL));
}

/* The one that m, from this port, is as; NULL: none. */
INLINE const struct ina_prediction *find_prediction(const struct burst *u,
						    const ina_prediction_row *rows,
						    const struct rte_mbuf *m, unsigned port)
{
	const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *), *at;
	const struct ina_prediction *p;
	uint32_t dst;

	if (m->data_len < INA_PREDICT_BYTES)
		return NULL;
	memcpy(&dst, b + INA_WIRE_IP_AT + 16, sizeof(dst));
	if (dst != u->addr) /* most of what is not for the slot core */
		return NULL;
	at = b + INA_WIRE_AT +
	     (b[INA_WIRE_IP_AT + 9] == INA_PROTOCOL_EXTENDED ? INA_EXTENSION_BYTES : 0);
	p = &rows[ina_predict_row(at[1], b[INA_WIRE_IP_AT + 1])][0] + at[2];
	if (unlikely(!same_head(b, p)) ||
	    unlikely(p->comes != (u->comes | port << 16 | m->data_len)) || unlikely(!is_plain(m)))
		return NULL;
	return p;
}

/* ---- answers ---- */

/*
 * What differs between packets, as the last of an answer's numbers have it: the same for all ranks.
 */
struct varying {
	uint64_t part[INA_PREDICT_ANSWER - INA_PREDICT_VARIES];
};

/* Slot and psn are the contribution's; the exponent is the sum's. */
INLINE struct varying varying_of(const struct ina_prediction *p, const uint8_t *b, uint8_t exponent)
{
	uint64_t mask[INA_PREDICT_ANSWER - INA_PREDICT_VARIES];
	struct varying v;

	memcpy(mask, p->mask + 8 * INA_PREDICT_VARIES, sizeof(mask));
	memcpy(v.part, b + 8 * INA_PREDICT_VARIES, sizeof(v.part));
	for (unsigned i = 0; i < INA_PREDICT_ANSWER - INA_PREDICT_VARIES; i++)
		v.part[i] &= ~mask[i];
	if (p->extended)
		v.part[0] = (uint64_t)exponent << 8 * (INA_WIRE_AT + 2 - 8 * INA_PREDICT_VARIES);
	return v;
}

INLINE void answer_as_predicted(struct ina_core *c, const struct ina_prediction *p,
				const struct varying *v, const struct ina_slot *s,
				struct rte_mbuf *m)
{
	uint64_t last[INA_PREDICT_ANSWER - INA_PREDICT_VARIES];
	uint8_t *b = rte_pktmbuf_mtod(m, uint8_t *);

	memcpy(b, p->answer, 8 * INA_PREDICT_VARIES);
	for (unsigned i = 0; i < INA_PREDICT_ANSWER - INA_PREDICT_VARIES; i++)
		last[i] = p->answer[INA_PREDICT_VARIES + i] | v->part[i];
	/* up to twelve bytes too many, where words will be */
	memcpy(b + 8 * INA_PREDICT_VARIES, last, sizeof(last));
	copy_words(b + p->bytes - INA_PAYLOAD_BYTES, (const uint8_t *)s->word);
	if (p->checksum) {
		ina_packet_made(&c->all->port[p->port], m, p->bytes);
	} else {
		m->data_len = p->bytes;
		m->pkt_len = p->bytes;
	}
	ina_tx_send(&c->tx[p->port], m);
}

/* ---- what goes the general way after all ---- */

/* marked: it has met congestion here, which is in no byte of it. */
INLINE void decode_again(struct rte_mbuf *m, bool marked, struct ina_frame *f)
{
	enum ina_fault fault = ina_packet_decode(m, f);

	if (fault)
		/*
		 * all but slot, exponent, psn and words are as they were when it was taken, and any
		 * of those are sound
		 */
		__builtin_unreachable();
	if (marked)
		f->ecn = INA_CE;
}

/* What the answers to the last contribution have in common. */
INLINE void sum_of(const struct ina_core *c, const struct ina_slot *s, struct rte_mbuf *came,
		   bool marked, struct ina_frame *a)
{
	struct ina_frame f;

	decode_again(came, marked, &f);
	ina_step_turn_round(&c->sw, &f, f.extended ? INA_F_ANSWER : 0, a);
	ina_step_put_sum(s, a);
}

static void __attribute__((noinline))
contribute_generally(struct ina_core *c, const struct ina_prediction *p, struct rte_mbuf *m)
{
	struct ina_frame f;

	m->port = p->port;
	decode_again(m, false, &f);
	contribute_frame(c, &f, m);
}

static void __attribute__((noinline))
judge_generally(struct ina_core *c, const struct ina_prediction *p, struct rte_mbuf *m, bool marked)
{
	struct ina_frame f;

	m->port = p->port;
	decode_again(m, marked, &f);
	judge_frame(c, &f, m);
}

static void __attribute__((noinline))
answer_all_generally(struct ina_core *c, const struct ina_slot *s, struct rte_mbuf *m, bool marked)
{
	struct ina_frame a;

	sum_of(c, s, m, marked, &a);
	answer_all(c, &a, m);
}

static void __attribute__((noinline))
answer_generally(struct ina_core *c, const struct ina_slot *s, struct rte_mbuf *came, uint8_t rank,
		 struct rte_mbuf *m)
{
	struct ina_frame a;
	struct answers one;

	sum_of(c, s, came, false, &a);
	one = answers_of(&a);
	answer_rank(c, &one, rank, m);
}

/* The queue to it has become too long. */
static void __attribute__((noinline))
answer_marked(struct ina_core *c, const struct ina_slot *s, struct rte_mbuf *came,
	      const struct ina_prediction *to, struct rte_mbuf *m)
{
	struct ina_frame a;
	struct answers one;

	sum_of(c, s, came, false, &a);
	one = answers_of(&a);
	c->count.marked++;
	write_answer(c, &one, to->rank, to->place, INA_CE, m);
}

/* ---- contributions ---- */

/*
 * p: of the last one to come. Its packet is the last rank's: until then it holds what the general
 * way needs.
 */
INLINE void answer_all_as_predicted(struct ina_core *c, struct burst *u,
				    const struct ina_prediction *p, const struct ina_slot *s,
				    struct rte_mbuf *came)
{
	struct varying v = varying_of(p, rte_pktmbuf_mtod(came, const uint8_t *), s->exponent);
	const struct ina_prediction *to = p - p->rank;

	came->ol_flags = 0;
	for (unsigned i = 0; i < p->ranks; i++, to++) {
		struct rte_mbuf *m = i + 1 < p->ranks ? take_packet(c) : came;

		if (unlikely(!m))
			continue;
		if (unlikely(to->whose != p->whose ||
			     to->place != place_of(c, p->group, (uint8_t)i))) {
			answer_generally(c, s, came, (uint8_t)i, m);
		} else if (unlikely(marks_egress(c, to->port))) {
			answer_marked(c, s, came, to, m);
		} else {
			answer_as_predicted(c, to, &v, s, m);
			u->answers++;
		}
	}
}

/*
 * It has not been ended by an abort that came here or to another core, nor by its lease. Looked at
 * once for a burst: whoever has learned of an abort sends after the word of it was written
 * (core.h), so what was received before the look has nothing that the look could miss.
 */
INLINE bool is_group_active(struct ina_core *c, struct burst *u, uint8_t group)
{
	const struct ina_group *g = &c->sw.group[group];

	if (likely(u->group == group))
		return true;
	if (atomic_load_explicit(&c->all->over[group], memory_order_acquire) || g->over ||
	    c->now >= g->config.lease_until)
		return false;
	c->seen[group] = 1;
	u->group = group;
	return true;
}

/* What the prediction does not say, from before the words. */
INLINE struct ina_frame frame_of(const struct ina_prediction *p, const uint8_t *words, uint32_t psn,
				 bool marked)
{
	return (struct ina_frame) {
		.extended = p->extended,
		.coll = INA_ALL_REDUCE,
		.root = p->root,
		.rank = p->rank,
		.ecn = marked ? INA_CE : INA_ECT1,
		.exponent = p->extended ? words[2 - INA_EXTENSION_BYTES - INA_HEADER_BYTES] : 0,
		.psn = psn,
		.words = words
	};
}

/* Known to be reusable. */
INLINE void put_plain(struct ina_core *c, struct rte_mbuf *m)
{
	if (unlikely(c->nspare == INA_SPARES)) {
		drop_packet(m);
		return;
	}
	m->ol_flags = 0;
	c->spare[c->nspare++] = m;
}

INLINE void contribute_as_predicted(struct ina_core *c, struct burst *u,
				    const struct ina_prediction *p, struct rte_mbuf *m)
{
	const uint8_t *words = rte_pktmbuf_mtod(m, const uint8_t *) + p->bytes - INA_PAYLOAD_BYTES;
	uint32_t psn = ina_get32(words - 4), at = p->first + (psn & (p->each - 1));
	struct ina_slot *s = &c->sw.slot[at];
	enum ina_reason reason;
	bool marked = false;
	struct ina_frame f;

	if (unlikely(at != ina_get16(words - 6) || !is_group_active(c, u, p->group))) {
		contribute_generally(c, p, m);
		return;
	}
	if (unlikely(!u->calm)) {
		marked = marks_ingress(c);
		c->count.marked += marked;
	}
	f = frame_of(p, words, psn, marked);
	reason = ina_step_enter(s, p->each, &f, p->ranks);
	if (reason == INA_REASON_TAKEN) {
		u->taken++;
		put_plain(c, m);
	} else if (unlikely(reason != INA_REASON_COMPLETE)) { /* then nothing has changed */
		judge_generally(c, p, m, marked);
	} else {
		u->complete++;
		if (likely(!s->flags & !s->marked))
			answer_all_as_predicted(c, u, p, s, m);
		else
			answer_all_generally(c, s, m, marked);
	}
}

#endif
