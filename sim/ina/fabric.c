/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric.c - the switch, a cable to each rank, and a foreign sender, which sends anything to
 * everybody
 */
#include "sim/ina/world.h"

#include <stdlib.h>
#include <string.h>

#define TO_SWITCH INA_RANKS_MAX
#define FRAMING 24u /* preamble, check sequence, gap */

struct ina_sim_packet {
	struct ina_sim_world *world;
	SLIST_ENTRY(ina_sim_packet) free, made;
	unsigned to;
	size_t len;
	uint8_t bytes[INA_FRAME_MAX];
};

static struct ina_sim_packet *new_packet(struct ina_sim_world *w)
{
	struct ina_sim_packet *p = SLIST_FIRST(&w->free);

	if (p) {
		SLIST_REMOVE_HEAD(&w->free, free);
		return p;
	}
	p = malloc(sizeof(*p));
	if (!p)
		abort();
	p->world = w;
	SLIST_INSERT_HEAD(&w->made, p, made);
	return p;
}

static void free_packet(struct ina_sim_packet *p)
{
	SLIST_INSERT_HEAD(&p->world->free, p, free);
}

void ina_sim_packets_free(struct ina_sim_world *w)
{
	struct ina_sim_packet *p;

	while ((p = SLIST_FIRST(&w->made))) {
		SLIST_REMOVE_HEAD(&w->made, made);
		free(p);
	}
}

uint64_t ina_sim_packet_incarnation(const struct ina_sim_scenario *sc)
{
	uint64_t up = sc->up.reorder_ns + sc->up.jitter_ns,
		 down = sc->down.reorder_ns + sc->down.jitter_ns;

	return up + down + 2 * (sc->latency_ns + sc->queue_ns) + 100000;
}

static void switch_receive(struct ina_sim_world *w, const struct ina_frame *f);

static void receive_packet(void *arg)
{
	struct ina_sim_packet *p = arg;
	struct ina_sim_world *w = p->world;
	struct ina_frame f;

	w->result.packets++;
	w->result.hash = (w->result.hash ^ ina_sim_now(w) ^ p->to ^ (uint64_t)p->len << 40) *
			 UINT64_C(0x9e3779b97f4a7c15);
	w->result.hash ^= w->result.hash >> 29 ^ (uint64_t)p->bytes[p->len - 1] << 8;
	if (!ina_sim_has_finding(w) && ina_frame_decode(p->bytes, p->len, &f) == INA_FAULT_NONE) {
		if (p->to == TO_SWITCH)
			switch_receive(w, &f);
		else
			w->receive(&w->rank[p->to], &f);
	}
	free_packet(p);
}

/* One copy arrives. */
static void deliver_copy(struct ina_sim_world *w, unsigned to, const uint8_t *bytes, size_t len,
			 uint64_t when)
{
	struct ina_sim_packet *p = new_packet(w);

	p->to = to;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	sr_memwire_at(w->wire, when, receive_packet, p);
}

/* Through one direction of a cable: its queue, its faults, its length. */
static void pass_cable(struct ina_sim_world *w, const struct ina_frame *f, unsigned to,
		       uint64_t *busy, uint64_t *last, uint64_t rate,
		       const struct sr_fault_dir *dir)
{
	uint64_t now = ina_sim_now(w), start = *busy > now ? *busy : now, when;
	struct ina_frame marked = *f;
	uint8_t bytes[INA_FRAME_MAX];
	struct sr_verdict v;
	size_t len;

	if (start - now > w->sc.queue_ns) {
		w->result.lost++;
		return;
	}
	if (start - now > w->sc.mark_ns)
		marked.ecn = INA_CE;
	len = ina_frame_encode(&marked, bytes);
	*busy = start + (len + FRAMING) * 1000 / rate;
	v = sr_faults_decide(dir, &w->rng);
	w->result.lost += !v.copies;
	if (!v.copies)
		return;
	when = *busy + w->sc.latency_ns + v.delay_ns;
	if (!v.reordered) {
		when = when > *last ? when : *last;
		*last = when;
	}
	deliver_copy(w, to, bytes, len, when);
	if (v.copies == 2)
		deliver_copy(w, to, bytes, len,
			     *busy + w->sc.latency_ns + v.delay2_ns + dir->reorder_ns / 2);
}

static uint64_t rate_of(const struct ina_sim_rank *r)
{
	return r->index ? r->world->sc.bytes_per_us : r->world->sc.slow_bytes_per_us;
}

void ina_sim_send_up(struct ina_sim_rank *r, const struct ina_frame *f)
{
	if (r->index == 1 && ina_sim_now(r->world) < r->world->cut_until) {
		r->world->result.lost++;
		return;
	}
	pass_cable(r->world, f, TO_SWITCH, &r->up_free, &r->up_last, rate_of(r), &r->world->sc.up);
}

static void switch_receive(struct ina_sim_world *w, const struct ina_frame *f)
{
	struct ina_verdict v;

	if (w->away)
		return;
	ina_switch_step(&w->sw, ina_sim_now(w), f, &v);
	w->result.reason[v.reason]++;
	if (w->verbose)
		ina_sim_trace_line(w, "switch: rank %u psn %u epoch %u flags %02x: %s", f->rank,
				   f->psn, f->epoch, f->flags, ina_reason_name(v.reason, NULL));
	for (uint8_t i = 0; v.action != INA_DROP && i < w->sc.ranks; i++) {
		struct ina_sim_rank *r = &w->rank[i];
		struct ina_frame answer;

		if (v.action == INA_ANSWER_ONE && i != f->rank)
			continue;
		ina_switch_answer(&w->sw, &v, i, &answer);
		pass_cable(w, &answer, i, &r->down_free, &r->down_last, rate_of(r), &w->sc.down);
	}
}

/* ---- the foreign sender ---- */

static void extend_frame(struct ina_sim_world *w, struct ina_frame *f, bool to_switch)
{
	f->epoch = w->epoch;
	f->flags = to_switch ? 0 : INA_F_ANSWER;
	if (!sr_rng_below(&w->rng, 4)) {
		f->flags |= INA_F_ABORT;
		f->words = NULL;
	}
}

/* As the operation of this moment has it, if there is one. */
static void imitate_operation(const struct ina_op *op, struct ina_frame *f, bool to_switch)
{
	if (op) {
		f->coll = op->coll;
		f->root = op->root;
	}
	if (to_switch && !ina_coll_brings(f->coll, f->root, f->rank))
		f->words = NULL;
}

/* All but the sender is as it must be, or nearly; he knows the group, its psns, everything. */
void ina_sim_send_foreign(void *arg)
{
	struct ina_sim_world *w = arg;
	struct sr_rng *rng = &w->rng;
	struct ina_sim_rank *victim = &w->rank[sr_rng_below(rng, w->sc.ranks)];
	uint8_t words[INA_PAYLOAD_BYTES], bytes[INA_FRAME_MAX];
	uint32_t psn = victim->worker.left + (uint32_t)sr_rng_below(rng, w->sc.len) - w->sc.len / 4;
	bool to_switch = sr_rng_below(rng, 2);
	struct ina_frame f = {
		.src = sr_rng_below(rng, 2) ? 0xc0a80001
					    : INA_SIM_RANK_ADDR + (uint32_t)w->sc.ranks,
		.dst = to_switch ? INA_SIM_SWITCH_ADDR : INA_SIM_RANK_ADDR + victim->index,
		.ecn = INA_ECT1,
		.extended = sr_rng_below(rng, 8) ? w->sc.extended : !w->sc.extended,
		.coll = (uint8_t)(1 + sr_rng_below(rng, 5)),
		.group = sr_rng_below(rng, 8) ? INA_SIM_GROUP : 8,
		.rank = to_switch && !sr_rng_below(rng, 4) ? (uint8_t)sr_rng_below(rng, 32)
							   : (uint8_t)victim->index,
		.root = (uint8_t)sr_rng_below(rng, w->sc.ranks),
		.psn = psn,
		.agg_addr = (uint16_t)(INA_SIM_BASE + (psn & (w->sc.len - 1))),
		.words = words,
	};

	if (ina_sim_has_finding(w))
		return;
	memset(words, 0x5a, sizeof(words));
	if (f.extended)
		extend_frame(w, &f, to_switch);
	if (f.words && sr_rng_below(rng, 2))
		imitate_operation(STAILQ_FIRST(&victim->worker.posted), &f, to_switch);
	deliver_copy(w, to_switch ? TO_SWITCH : victim->index, bytes, ina_frame_encode(&f, bytes),
		     ina_sim_now(w));
	sr_memwire_at(w->wire, ina_sim_now(w) + 1 + sr_rng_below(rng, 2 * w->sc.hostile_ns),
		      ina_sim_send_foreign, w);
}
