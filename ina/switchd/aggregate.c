/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aggregate.c - a contribution to the slot core, and its answers to the ranks
 *
 * One packet for each rank that gets an answer, of one copy of the words from the slot. The packets that came are used again for the answers, so a sum
 * takes no new ones. Words shared between the answers (attached mbufs) would save less than they cost: an answer would be two
 * mbufs, the drivers of virtual devices copy both into their rings all the same (af_xdp takes no chains at all), and the slot, which its next psn
 * overwrites, would have to live until the last driver had sent.
 */
#include "ina/port/packet.h"
#include "ina/step.h"
#include "ina/switchd/core.h"

#ifndef INA_AGGREGATE
#define INA_AGGREGATE ina_aggregate_plain
#define LANE 16
#endif
#define INLINE static inline __attribute__((always_inline))

/* ---- packets ---- */

static void __attribute__((noinline, cold)) drop(struct rte_mbuf *m)
{
	rte_pktmbuf_free(m);
}

static void __attribute__((noinline, cold)) bad(struct ina_core *c, struct rte_mbuf *m, enum ina_fault fault)
{
	c->count.fault[fault]++;
	drop(m);
}

/* An mbuf that another user may see, or that has no room, is not written to. */
INLINE struct rte_mbuf *reusable(struct rte_mbuf *m)
{
	if (unlikely(rte_mbuf_refcnt_read(m) > 1 || m->nb_segs > 1 || m->data_len + rte_pktmbuf_tailroom(m) < INA_FRAME_MAX || !RTE_MBUF_DIRECT(m))) {
		drop(m);
		return NULL;
	}
	m->ol_flags = 0;
	return m;
}

/* A packet that is done with. */
INLINE void put(struct ina_core *c, struct rte_mbuf *m)
{
	if (c->nspare == INA_SPARES)
		drop(m);
	else if ((m = reusable(m)))
		c->spare[c->nspare++] = m;
}

static struct rte_mbuf *__attribute__((noinline, cold)) fresh(struct ina_core *c)
{
	return rte_pktmbuf_alloc(c->all->pool);
}

INLINE struct rte_mbuf *take(struct ina_core *c)
{
	return likely(c->nspare) ? c->spare[--c->nspare] : fresh(c);
}

INLINE void send_answer(struct ina_core *c, unsigned port, struct rte_mbuf *m)
{
	if (unlikely(c->all->trouble.on) && !ina_trouble_pass(&c->trouble, m, (int)port, c->now))
		return;
	ina_tx_send(&c->tx[port], m);
}

/* ---- answers ---- */

/* As wide as this processor's registers. */
typedef uint64_t lane __attribute__((vector_size(LANE), aligned(4), may_alias));

INLINE void copy_words(void *to, const uint8_t *from)
{
	for (unsigned i = 0; i < INA_PAYLOAD_BYTES / LANE; i++)
		((lane *)to)[i] = ((const lane *)from)[i];
}

/* What the ranks' answers have in common. */
struct answers {
	struct ina_wire_head head;
	const uint8_t *words;
	uint64_t group, ecn;
};

INLINE struct answers answers_of(const struct ina_frame *a)
{
	return (struct answers){ .head = ina_wire_make(a), .words = a->words, .group = a->group, .ecn = a->ecn };
}

/* m: a packet to be used, or NULL for a new one. Always taken. */
INLINE void answer(struct ina_core *c, const struct answers *a, uint8_t rank, struct rte_mbuf *m)
{
	struct ina_cores *all = c->all;
	uint64_t place = atomic_load_explicit(&all->where[a->group][rank], memory_order_relaxed);
	uint16_t port = ina_place_port(place);
	uint64_t ecn = a->ecn;
	uint8_t *b;
	size_t head;

	if (unlikely(!place)) {
		c->count.answers_nowhere++;
		drop(m);
		return;
	}
	if (!m)
		m = take(c);
	if (unlikely(!m)) {
		c->count.no_packet++;
		return;
	}
	if (ina_mark_packet(&c->egress[port], ina_tx_depth(&c->tx[port]))) {
		c->count.marked += ecn != INA_CE;
		ecn = INA_CE;
	}
	b = rte_pktmbuf_mtod(m, uint8_t *);
	head = ina_wire_write(&a->head, place, c->sw.group[a->group].config.member[rank].addr, rank, ecn, !all->port[port].checksum, b);
	if (a->words)
		copy_words(b + head, a->words);
	ina_packet_made(&all->port[port], m, head + (a->words ? INA_PAYLOAD_BYTES : 0));
	c->count.answers++;
	send_answer(c, port, m);
}

/* The sender's last: its packet holds what is decoded. */
INLINE uint8_t turn_of(unsigned i, unsigned ranks, uint8_t sender)
{
	return (uint8_t)(i < sender ? i : i + 1 < ranks ? i + 1 : sender);
}

/* Some get words, the others none. */
static void __attribute__((noinline)) answer_each(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	unsigned ranks = c->sw.group[f->group].config.ranks;
	struct answers with = answers_of(f), without;

	ina_step_leave_out(f);
	without = answers_of(f);
	for (unsigned i = 0; i < ranks; i++) {
		uint8_t rank = turn_of(i, ranks, f->rank);

		answer(c, ina_coll_gets(f->coll, f->root, rank) ? &with : &without, rank, rank == f->rank ? m : NULL);
	}
}

INLINE void answer_all(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	unsigned ranks = c->sw.group[f->group].config.ranks;
	uint8_t sender = f->rank;
	struct answers a;

	if (f->words && f->coll != INA_ALL_REDUCE) {
		struct ina_frame copy = *f;

		answer_each(c, &copy, m);
		return;
	}
	a = answers_of(f);
	for (unsigned i = 0; i < ranks; i++) {
		uint8_t rank = turn_of(i, ranks, sender);

		answer(c, &a, rank, rank == sender ? m : NULL);
	}
}

/* ---- contributions ---- */

/* Did the rank of a known address speak? Then that is where it is. */
INLINE bool speaks_for_rank(enum ina_reason reason)
{
	switch (reason) {
	case INA_REASON_NOT_HERE:
	case INA_REASON_NO_GROUP:
	case INA_REASON_KIND:
	case INA_REASON_ANSWER:
	case INA_REASON_NO_RANK:
	case INA_REASON_STRANGER:
		return false;
	default:
		return true;
	}
}

INLINE void learn(struct ina_core *c, const struct ina_frame *f, uint16_t port)
{
	ina_place *at = &c->all->where[f->group][f->rank];
	uint64_t place = ina_place_of(f->src_mac, port);

	c->seen[f->group] = 1;
	if (likely(atomic_load_explicit(at, memory_order_relaxed) == place) || f->src_mac[0] & 1)
		return;
	atomic_store_explicit(at, place, memory_order_relaxed);
}

/* A life that was ended on another core, or by the controller, is ended here before its next packet is looked at. */
INLINE void hear_of_end(struct ina_core *c, const struct ina_frame *f)
{
	uint64_t over = atomic_load_explicit(&c->all->over[f->group], memory_order_acquire);

	if (unlikely(over))
		ina_switch_end(&c->sw, f->group, (uint32_t)over);
}

INLINE void tell_of_end(struct ina_core *c, const struct ina_frame *f)
{
	atomic_store_explicit(&c->all->over[f->group], 1ull << 32 | c->sw.group[f->group].config.epoch, memory_order_release);
}

/* The same way back: what this program does with a packet when it adds nothing, to compare with. */
INLINE void reflect(struct ina_core *c, const struct ina_frame *f, struct rte_mbuf *m)
{
	uint16_t port = m->port;
	struct ina_frame back = *f;

	back.dst = f->src;
	back.src = f->dst;
	ina_copy_mac(back.dst_mac, f->src_mac);
	ina_copy_mac(back.src_mac, c->all->mac);
	m = reusable(m);
	if (!m)
		return;
	ina_packet_encode_head(&c->all->port[port], &back, m);
	c->count.answers++;
	ina_tx_send(&c->tx[port], m);
}


INLINE void contribute(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	struct ina_slot *s = NULL;
	enum ina_reason reason;
	enum ina_action action;
	struct ina_frame a;
	uint32_t each;
	uint8_t flags;

	hear_of_end(c, f);
	if (ina_mark_packet(&c->ingress, c->depth)) {
		c->count.marked += f->ecn != INA_CE;
		f->ecn = INA_CE;
	}
	reason = ina_step_find(&c->sw, c->now, f, &s, &each);
	if (likely(reason == INA_REASON_TAKEN))
		reason = ina_step_enter(s, each, f, c->sw.group[f->group].config.ranks);
	action = ina_step_action(reason, f->extended, &flags);
	c->count.reason[reason]++;
	if (likely(speaks_for_rank(reason)))
		learn(c, f, m->port);
	if (unlikely(reason == INA_REASON_ABORT))
		tell_of_end(c, f);
	if (action == INA_DROP) {
		put(c, m);
		return;
	}
	ina_step_turn_round(&c->sw, f, flags, &a);
	if (reason == INA_REASON_COMPLETE || reason == INA_REASON_AGAIN)
		ina_step_put_sum(s, &a);
	if (action == INA_ANSWER_ALL) {
		answer_all(c, &a, reusable(m));
	} else {
		struct answers one;

		if (a.words && !ina_coll_gets(a.coll, a.root, a.rank))
			ina_step_leave_out(&a);
		one = answers_of(&a);
		answer(c, &one, a.rank, reusable(m));
	}
}

static void __attribute__((noinline)) reflect_all(struct ina_core *c, struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ina_frame f;
		enum ina_fault fault = ina_packet_decode(m[i], &f);

		if (fault)
			bad(c, m[i], fault);
		else
			reflect(c, &f, m[i]);
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
			contribute(c, &f, m[i]);
		else
			bad(c, m[i], fault);
	}
}
