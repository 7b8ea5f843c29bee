/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answers.h - packets that were taken in, and answers to the ranks made of them: a part of
 * aggregate.c, compiled with it for each kind of processor
 *
 * One packet for each rank that gets an answer, of one copy of the words from the slot. The packets
 * that came are used again for the answers, so a sum takes no new ones. Words shared between the
 * answers (attached mbufs) would save less than they cost: an answer would be two mbufs, the
 * drivers of virtual devices copy both into their rings all the same (af_xdp takes no chains at
 * all), and the slot, which its next psn overwrites, would have to live until the last driver had
 * sent.
 */
#ifndef INA_SWITCHD_ANSWERS_H
#define INA_SWITCHD_ANSWERS_H

#include "ina/frame/port/packet.h"
#include "ina/switch/step.h"
#include "ina/switch/switchd/core.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- packets ---- */

static void __attribute__((noinline, cold)) drop_packet(struct rte_mbuf *m)
{
	rte_pktmbuf_free(m);
}

/* An mbuf that another user may see, or that has no room, is not written to. */
INLINE struct rte_mbuf *reuse_packet(struct rte_mbuf *m)
{
	if (unlikely(rte_mbuf_refcnt_read(m) > 1 || m->nb_segs > 1 ||
		     m->data_len + rte_pktmbuf_tailroom(m) < INA_FRAME_MAX ||
		     !RTE_MBUF_DIRECT(m))) {
		drop_packet(m);
		return NULL;
	}
	m->ol_flags = 0;
	return m;
}

/* A packet that is done with. */
INLINE void put_packet(struct ina_core *c, struct rte_mbuf *m)
{
	if (c->nspare == INA_SPARES)
		drop_packet(m);
	else if ((m = reuse_packet(m)))
		c->spare[c->nspare++] = m;
}

static struct rte_mbuf *__attribute__((noinline, cold)) alloc_packet(struct ina_core *c)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(c->all->pool);

	if (!m)
		c->count.no_packet++;
	return m;
}

INLINE struct rte_mbuf *take_packet(struct ina_core *c)
{
	return likely(c->nspare) ? c->spare[--c->nspare] : alloc_packet(c);
}

INLINE void send_answer(struct ina_core *c, unsigned port, struct rte_mbuf *m)
{
	if (unlikely(c->all->faults.on) && !ina_faults_pass(&c->faults, m, (int)port, c->now))
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
	return (struct answers) {
		.head = ina_wire_make(a), .words = a->words, .group = a->group, .ecn = a->ecn
	};
}

INLINE uint64_t place_of(const struct ina_core *c, uint8_t group, uint8_t rank)
{
	return atomic_load_explicit(&c->all->where[group][rank], memory_order_relaxed);
}

/* Shall what goes to that port be marked? */
INLINE bool marks_egress(struct ina_core *c, uint16_t port)
{
	return ina_mark_packet(&c->egress[port], ina_tx_depth(&c->tx[port]));
}

INLINE void write_answer(struct ina_core *c, const struct answers *a, uint8_t rank, uint64_t place,
			 uint64_t ecn, struct rte_mbuf *m)
{
	struct ina_cores *all = c->all;
	uint16_t port = ina_place_port(place);
	uint8_t *b = rte_pktmbuf_mtod(m, uint8_t *);
	size_t head =
		ina_wire_write(&a->head, place, c->sw.group[a->group].config.member[rank].addr,
			       rank, ecn, !all->port[port].checksum, b);

	if (a->words)
		copy_words(b + head, a->words);
	ina_packet_made(&all->port[port], m, head + (a->words ? INA_PAYLOAD_BYTES : 0));
	c->count.answers++;
	send_answer(c, port, m);
}

/* m: a packet to be used, or NULL for a new one. Always taken. */
INLINE void answer_rank(struct ina_core *c, const struct answers *a, uint8_t rank,
			struct rte_mbuf *m)
{
	uint64_t place = place_of(c, a->group, rank), ecn = a->ecn;

	if (unlikely(!place)) {
		c->count.answers_nowhere++;
		drop_packet(m);
		return;
	}
	if (!m)
		m = take_packet(c);
	if (unlikely(!m))
		return;
	if (marks_egress(c, ina_place_port(place))) {
		c->count.marked += ecn != INA_CE;
		ecn = INA_CE;
	}
	write_answer(c, a, rank, place, ecn, m);
}

/* The sender's last: its packet holds what is decoded. */
INLINE uint8_t turn_of(unsigned i, unsigned ranks, uint8_t sender)
{
	if (i < sender)
		return (uint8_t)i;
	return (uint8_t)(i + 1 < ranks ? i + 1 : sender);
}

/* Some get words, the others none. */
static void __attribute__((noinline))
answer_each(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	unsigned ranks = c->sw.group[f->group].config.ranks;
	struct answers with = answers_of(f), without;

	ina_step_leave_out(f);
	without = answers_of(f);
	for (unsigned i = 0; i < ranks; i++) {
		uint8_t rank = turn_of(i, ranks, f->rank);

		answer_rank(c, ina_coll_gets(f->coll, f->root, rank) ? &with : &without, rank,
			    rank == f->rank ? m : NULL);
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

		answer_rank(c, &a, rank, rank == sender ? m : NULL);
	}
}

INLINE void answer_one(struct ina_core *c, struct ina_frame *f, struct rte_mbuf *m)
{
	struct answers a;

	if (f->words && !ina_coll_gets(f->coll, f->root, f->rank))
		ina_step_leave_out(f);
	a = answers_of(f);
	answer_rank(c, &a, f->rank, m);
}

#endif
