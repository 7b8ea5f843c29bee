/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - the log: reserve, write, publish, ring, poll
 *
 * Order of a post: (1) compare-and-swap on resv reserves; (2) the entries are written; (3) when
 * ready has come to the first of them it is moved past the last: release; (4) whoever takes the
 * bell writes the doorbell record up to ready, then the register. Between (1) and (3) a thread
 * waits for nobody but threads in the same stretch, so a ring that is closed becomes quiet in
 * bounded time. (4) happens under the bell with the path read again, so that no thread writes the
 * doorbell of a path that is given up. Whoever finds the bell taken leaves: the holder looks at
 * ready once more after it has let go, and one of the two sees the other.
 */
#ifndef HA_GPU_RING_H
#define HA_GPU_RING_H

#include "gpu/device/conn.h"

HA_GPU_FN uint64_t ha_gpu_deadline_of(uint64_t limit)
{
	uint64_t now = ha_gpu_now();

	return now + limit < now ? HA_GPU_FOREVER : now + limit;
}

/* A time limit has passed: the host shall look. It proves nothing. */
HA_GPU_FN enum ha_gpu_result ha_gpu_raise_alarm(struct ha_gpu_conn *c)
{
	uint64_t good = HA_GPU_GOOD;

	ha_gpu_add(&c->alarm, 1);
	ha_gpu_cas(&c->health[ha_gpu_load(&c->active)], &good, HA_GPU_SUSPECTED);
	return HA_GPU_TIMEOUT;
}

/* ---- poll ---- */

/*
 * tail follows what is proved: `upto` is the end of a read that has come back, seen in cons's
 * epoch. (cons is never FROZEN.)
 */
HA_GPU_FN void ha_gpu_advance_tail(struct ha_gpu_conn *c, uint64_t cons, uint64_t upto)
{
	uint64_t t = ha_gpu_load(&c->tail);

	while ((!HA_GPU_PROTECTED || !((t ^ cons) & (HA_GPU_FROZEN | HA_GPU_EPOCH))) &&
	       ha_gpu_index_of(t) < upto)
		if (ha_gpu_cas(&c->tail, &t, HA_GPU_PROTECTED ? (t & HA_GPU_EPOCH) | upto : upto))
			return;
}

/*
 * What cons proves by itself: up to the last fixed proof below it, or all of it where
 * acknowledgements are believed. Where the peer's memory is apart, up to the one before that: the
 * two have read one place each.
 */
HA_GPU_FN uint64_t ha_gpu_proved_index(const struct ha_gpu_conn *c, uint64_t cons)
{
	uint64_t i = ha_gpu_index_of(cons);

	if (!HA_GPU_PROTECTED || !c->proof_every)
		return i;
	i &= ~(uint64_t)(c->proof_every - 1);
	if (!c->apart)
		return i;
	return i > c->proof_every ? i - c->proof_every : 0;
}

/* An error completion, in the epoch of `cons`. */
HA_GPU_FN void ha_gpu_record_error(struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				   const uint8_t *cqe, uint64_t cons)
{
	uint64_t syndrome = ha_gpu_load((const uint64_t *)(cqe + HA_GPU_CQE_SYNDROME - 7)) >> 56,
		 none = 0;
	uint64_t *health = &c->health[p - c->path];
	uint64_t was = ha_gpu_load(health);

	if (ha_gpu_load(&c->cons) != cons)
		return; /* of an incarnation that is over, perhaps */
	ha_gpu_cas(&c->error, &none, (cons & HA_GPU_EPOCH) | 1 << 8 | syndrome);
	while ((was == HA_GPU_GOOD || was == HA_GPU_SUSPECTED) &&
	       !ha_gpu_cas(health, &was, HA_GPU_FAILED))
		;
}

/* Writes for the NIC how far a queue of several is emptied. Threads pass each other between taking
 * a completion and writing that; the word only ever grows within an incarnation, or the NIC would
 * believe that the queue is overrun. The half that nobody arms carries the incarnation. */
HA_GPU_FN void ha_gpu_write_cq_index(struct ha_gpu_path *p)
{
	uint64_t *word = (uint64_t *)(void *)p->cq_dbrec, was = ha_gpu_load(word), now, ci;

	do {
		ci = ha_gpu_load(&p->cq_ci);
		now = ci >> 48 << 32 | ha_gpu_be32((uint32_t)ci);
	} while (was != now && !ha_gpu_cas(word, &was, now));
}

/*
 * The completion that says most: its last eight bytes, or INVALID. A queue of several is emptied,
 * in the incarnation of *incarnation; an error stays in it.
 * Until an incarnation carries the log, what completes in it are the agent's probes, and nobody
 * else's: probes says that we are the agent.
 */
HA_GPU_FN uint64_t ha_gpu_take_completion(struct ha_gpu_path *p, const uint8_t **cqe, bool probes,
					  uint64_t *incarnation)
{
	uint64_t last = (uint64_t)HA_GPU_CQE_INVALID << 60, ci, w;

	*cqe = p->cqe;
	if (!p->cq_log) {
		/* before the look whose it is */
		w = ha_gpu_load((const uint64_t *)(p->cqe + HA_GPU_CQE_QPN));
		return !probes && ha_gpu_load(&p->cq_ci) & HA_GPU_CQ_PROBES ? last : w;
	}
	ci = ha_gpu_load(&p->cq_ci);
	for (*incarnation = ci >> 47;
	     ci >> 47 == *incarnation && (probes || !(ci & HA_GPU_CQ_PROBES));) {
		*cqe = p->cqe + HA_GPU_CQE_BYTES * (ci & ((1u << p->cq_log) - 1));
		w = ha_gpu_load((const uint64_t *)(*cqe + HA_GPU_CQE_QPN));
		if (ha_gpu_cqe_opcode(w) == HA_GPU_CQE_INVALID ||
		    ha_gpu_cqe_owner(w) != (ci >> p->cq_log & 1))
			return last;
		if (ha_gpu_cqe_opcode(w) != HA_GPU_CQE_REQ)
			return ha_gpu_cqe_opcode(last) == HA_GPU_CQE_REQ ? last : w;
		if (!ha_gpu_cas(&p->cq_ci, &ci, ci + 1))
			continue; /* another thread has it, and will report it */
		ci++;
		ha_gpu_write_cq_index(p);
		last = w;
	}
	return last;
}

/* The incarnation of this queue carries the log, as whoever has read cons since sees it. */
HA_GPU_FN bool ha_gpu_carries_log(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				  uint64_t incarnation)
{
	return p == &c->path[ha_gpu_load(&c->active)] &&
	       ha_gpu_load(&p->cq_ci) >> 47 == incarnation;
}

/*
 * Moves cons and what it proves; returns cons. cons is read before the completion, so that the
 * completion is never the older.
 */
HA_GPU_FN uint64_t ha_gpu_poll_since(struct ha_gpu_conn *c, uint64_t cons)
{
	uint64_t w, next, incarnation = 0;
	struct ha_gpu_path *p = &c->path[HA_GPU_PROTECTED ? ha_gpu_load(&c->active) : 0];
	const uint8_t *cqe;
	unsigned wide = ha_gpu_block_shift(p), step = 1u << wide;
	uint16_t ahead;

	w = ha_gpu_take_completion(p, &cqe, false, &incarnation);
	if (ha_gpu_cqe_opcode(w) == HA_GPU_CQE_INVALID)
		return cons;
	if (ha_gpu_cqe_opcode(w) != HA_GPU_CQE_REQ) {
		ha_gpu_record_error(c, p, cqe, cons);
		return cons;
	}
	for (;;) {
		ahead = (uint16_t)((ha_gpu_cqe_counter(w) & ~(step - 1)) + step -
				   (uint16_t)((ha_gpu_index_of(cons) -
					       (HA_GPU_PROTECTED ? ha_gpu_load(&p->base) : 0))
					      << wide));
		ahead >>= wide;
		if (!ahead || ahead > c->nwqes)
			break;       /* not news: what another thread has reported */
		next = cons + ahead; /* 48 bits do not overflow */
		if (ha_gpu_cas(&c->cons, &cons, next)) {
			cons = next;
			break;
		}
		if (!p->cq_log)
			break; /* the next poll sees it again */
		if (((cons ^ next) & HA_GPU_EPOCH) && !ha_gpu_carries_log(c, p, incarnation))
			break; /* of an incarnation that is over */
	}
	ha_gpu_advance_tail(c, cons, ha_gpu_proved_index(c, cons));
	return cons;
}

HA_GPU_FN uint64_t ha_gpu_poll(struct ha_gpu_conn *c)
{
	return ha_gpu_poll_since(c, ha_gpu_load(&c->cons));
}

/* ---- doorbell ---- */

/* Where the n-th entry of an incarnation lies. */
HA_GPU_FN uint8_t *ha_gpu_entry_address(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
					uint64_t n)
{
	return p->wqe + (n & (c->nwqes - 1)) * (HA_GPU_WQE_BYTES << ha_gpu_block_shift(p));
}

HA_GPU_FN void ha_gpu_write_doorbell(struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				     uint64_t upto)
{
	uint32_t producer =
		(uint32_t)((upto - ha_gpu_base_of(p)) << ha_gpu_block_shift(p)) & 0xffff;
	const uint64_t *last =
		(const uint64_t *)ha_gpu_entry_address(c, p, upto - 1 - ha_gpu_base_of(p));

	ha_gpu_store32(&p->dbrec[HA_GPU_DBR_SEND], ha_gpu_be32(producer));
	ha_gpu_mmio(ha_gpu_doorbell_register(p), *last);
}

/*
 * Everything published is rung when this returns, or will be by the thread that has the bell. Host
 * proxies call it, too.
 */
HA_GPU_FN void ha_gpu_ring_now(struct ha_gpu_conn *c)
{
	uint64_t ready, idle;

	while ((ready = ha_gpu_load_sc(&c->ready)) != ha_gpu_load(&c->rung)) {
		idle = 0;
		if (!ha_gpu_cas(&c->bell, &idle, 1))
			return;
		ready = ha_gpu_load(&c->ready);
		if (ready != ha_gpu_load(&c->rung)) {
			ha_gpu_write_doorbell(c, ha_gpu_active_path(c), ready);
			ha_gpu_store(&c->rung, ready);
		}
		ha_gpu_store_sc(&c->bell, 0);
	}
}

/* By the NIC's doorbell, or by a word that gives the host's proxy how far to ring. */
HA_GPU_FN void ha_gpu_ring(struct ha_gpu_conn *c)
{
	uint64_t upto, was;

	if (!c->proxied) {
		ha_gpu_ring_now(c);
		return;
	}
	upto = ha_gpu_load(&c->ready);
	was = ha_gpu_load(&c->producer);
	while (was < upto && !ha_gpu_cas(&c->producer, &was, upto))
		;
}

/* The host's side of a proxied connection. True: it rang. */
HA_GPU_FN bool ha_gpu_ring_proxied(struct ha_gpu_conn *c)
{
	if (ha_gpu_load(&c->producer) <= ha_gpu_load(&c->rung))
		return false;
	ha_gpu_ring_now(c);
	return true;
}

/* ---- reserve, publish ---- */

/* What a thread has reserved: its entries, and among them a proof where one is due. */
struct ha_gpu_slots {
	uint64_t first, end; /* all of it */
	uint64_t at;         /* our first entry: first, or behind the proof */
	/* so many of ours lie before the proof, at least 1; more than there are: none does */
	uint32_t skip;
};

HA_GPU_FN uint64_t ha_gpu_entry_index(const struct ha_gpu_slots *s, unsigned i)
{
	return i ? s->at + i + (i >= s->skip) : s->at;
}

/* n entries from `first` on, and one more where a proof is due among them. */
HA_GPU_FN void ha_gpu_slots_at(const struct ha_gpu_conn *c, struct ha_gpu_slots *s, uint64_t first,
			       unsigned n)
{
	/* entries before the next one that is a proof */
	uint32_t before = ~(uint32_t)first & (c->proof_every - 1);
	bool due = HA_GPU_PROTECTED && c->proof_every && before < n;

	s->first = first;
	s->end = first + n + due;
	s->at = first + (due && !before);
	s->skip = due && before ? before : UINT32_MAX;
}

/* What a thread does while it waits: nothing that was published may wait for it. */
HA_GPU_FN void ha_gpu_idle_step(struct ha_gpu_conn *c)
{
	ha_gpu_ring(c);
	ha_gpu_poll(c);
	ha_gpu_pause();
}

HA_GPU_FN uint16_t ha_gpu_hw_index(const struct ha_gpu_path *p, uint64_t index)
{
	return (uint16_t)((index - ha_gpu_base_of(p)) << ha_gpu_block_shift(p));
}

HA_GPU_FN void ha_gpu_write_nth(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				uint64_t n, const struct ha_gpu_wqe *e)
{
	uint8_t *at = ha_gpu_entry_address(c, p, n);
	struct ha_gpu_wqe first, second;

	if (!ha_gpu_block_shift(p)) {
		ha_gpu_store_block(at, e->w);
		return;
	}
	ha_gpu_wqe_widen(e, p->av, &first, &second);
	ha_gpu_store_block(at + HA_GPU_WQE_BYTES, second.w);
	ha_gpu_store_block(at, first.w);
}

/* As it was written. */
HA_GPU_FN void ha_gpu_read_entry(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				 uint64_t index, struct ha_gpu_wqe *e)
{
	const struct ha_gpu_wqe *at = (const struct ha_gpu_wqe *)(const void *)ha_gpu_entry_address(
		c, p, index - ha_gpu_base_of(p));

	if (ha_gpu_block_shift(p))
		ha_gpu_wqe_narrow(e, at, at + 1);
	else
		*e = *at;
}

HA_GPU_FN void ha_gpu_write_entry(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				  uint64_t index, const struct ha_gpu_wqe *e)
{
	ha_gpu_write_nth(c, p, index - ha_gpu_base_of(p), e);
}

/* What a proof reads. */
enum ha_gpu_place { HA_GPU_AT_MAILBOX, HA_GPU_AT_MEMORY };

/*
 * A read of eight bytes at the peer: what comes back proves that all before it that was written to
 * the same device is there. Where the peer's memory is not apart its mailbox stands for both.
 */
HA_GPU_SLOW void ha_gpu_write_proof(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				    uint64_t index, enum ha_gpu_place place)
{
	struct ha_gpu_wqe e;

	ha_gpu_wqe_read(&e, p->qpn, ha_gpu_hw_index(p, index), HA_GPU_WQE_SIGNALED);
	if (place == HA_GPU_AT_MEMORY)
		ha_gpu_wqe_remote(&e, c->remote, p->rkey[0]);
	else
		ha_gpu_wqe_remote(&e, p->mailbox, p->mailbox_key);
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)&c->scratch[0], p->scratch_key, 8);
	ha_gpu_write_entry(c, p, index, &e);
}

/* Of a proof that is due: the places in turns. */
HA_GPU_FN void ha_gpu_write_fixed_proof(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
					uint64_t index)
{
	bool memory = c->apart && index & c->proof_every;

	ha_gpu_write_proof(c, p, index, memory ? HA_GPU_AT_MEMORY : HA_GPU_AT_MAILBOX);
}

/* The proofs of all places. */
HA_GPU_FN unsigned ha_gpu_count_proofs(const struct ha_gpu_conn *c)
{
	return 1 + c->apart;
}

/* One of each place, into as many entries; returns the last one's index. */
HA_GPU_FN uint64_t ha_gpu_write_proofs(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				       const struct ha_gpu_slots *s)
{
	ha_gpu_write_proof(c, p, ha_gpu_entry_index(s, 0), HA_GPU_AT_MAILBOX);
	if (c->apart)
		ha_gpu_write_proof(c, p, ha_gpu_entry_index(s, 1), HA_GPU_AT_MEMORY);
	return ha_gpu_entry_index(s, c->apart);
}

/* The proof that is due among them, by who reserved them. */
HA_GPU_FN void ha_gpu_write_due(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				const struct ha_gpu_slots *s, unsigned n)
{
	if (s->end - s->first > n)
		ha_gpu_write_fixed_proof(c, p, s->at > s->first ? s->first : s->first + s->skip);
}

/* The gate: what ends below it finds room, and no proof among its entries. Nobody needs it to be
 * the newest: tail only grows, and who has read resv before a proof that lies below the gate finds
 * that resv has moved. */
HA_GPU_FN uint64_t ha_gpu_compute_gate(const struct ha_gpu_conn *c, uint64_t next, uint64_t tail)
{
	uint64_t room = tail + c->nwqes, proof = next | (c->proof_every - 1);

	return HA_GPU_PROTECTED && c->proof_every && proof < room ? proof : room;
}

/* Past the gate: a proof is due, or the gate is old, or there is no room, or the ring is closed. */
HA_GPU_SLOW bool ha_gpu_reserve_slow(struct ha_gpu_conn *c, unsigned n, struct ha_gpu_slots *s)
{
	uint64_t r = ha_gpu_load(&c->resv), tail;

	do {
		tail = ha_gpu_index_of(ha_gpu_load(&c->tail));
		ha_gpu_slots_at(c, s, r, n);
		if (HA_GPU_PROTECTED && r & (HA_GPU_CLOSED | HA_GPU_DOWN))
			return false;
		if (s->end - tail > c->nwqes)
			return false;
	} while (!ha_gpu_cas(&c->resv, &r, s->end));
	ha_gpu_store(&c->gate, ha_gpu_compute_gate(c, s->end, tail));
	ha_gpu_write_due(c, ha_gpu_active_path(c), s, n);
	return true;
}

/*
 * n entries (at most 32), and one more where a proof is due, which is written; at once or not at
 * all. CLOSED and DOWN lie above every gate.
 */
HA_GPU_FN bool ha_gpu_reserve_now(struct ha_gpu_conn *c, unsigned n, struct ha_gpu_slots *s)
{
	uint64_t r = ha_gpu_load(&c->resv);
	struct ha_gpu_slots rare; /* the address of *s goes nowhere, so it need not lie in memory */
	bool got;

	do {
		if (HA_GPU_RARE(r + n > ha_gpu_load(&c->gate))) {
			got = ha_gpu_reserve_slow(c, n, &rare);
			*s = rare;
			return got;
		}
	} while (!ha_gpu_cas(&c->resv, &r, r + n));
	s->first = s->at = r;
	s->end = r + n;
	s->skip = UINT32_MAX;
	return true;
}

/*
 * The same with a time limit. Nothing is held when the result is not DONE. Deadline 0: now or
 * never, and no alarm.
 */
HA_GPU_SLOW enum ha_gpu_result ha_gpu_reserve(struct ha_gpu_conn *c, unsigned n, uint64_t deadline,
					      struct ha_gpu_slots *s)
{
	while (!ha_gpu_reserve_now(c, n, s)) {
		if (HA_GPU_PROTECTED && ha_gpu_load(&c->resv) & HA_GPU_DOWN)
			return HA_GPU_BOTH_DOWN;
		if (!deadline)
			return HA_GPU_TIMEOUT;
		ha_gpu_idle_step(c);
		if (ha_gpu_now() > deadline)
			return ha_gpu_raise_alarm(c);
	}
	return HA_GPU_DONE;
}

/*
 * The same: the limit counts from when it is first waited; *deadline is 0 until then. Who need not
 * wait does not ask what time it is.
 */
HA_GPU_FN enum ha_gpu_result ha_gpu_reserve_within(struct ha_gpu_conn *c, unsigned n,
						   uint64_t limit, uint64_t *deadline,
						   struct ha_gpu_slots *s)
{
	struct ha_gpu_slots late;
	enum ha_gpu_result r;

	if (!HA_GPU_RARE(!ha_gpu_reserve_now(c, n, s)))
		return HA_GPU_DONE;
	if (!*deadline)
		*deadline = ha_gpu_deadline_of(limit);
	r = ha_gpu_reserve(c, n, *deadline, &late);
	*s = late;
	return r;
}

/*
 * It is this thread's turn when everything before its entries is published; until it publishes,
 * nobody else's.
 */
HA_GPU_FN void ha_gpu_await_turn(struct ha_gpu_conn *c, const struct ha_gpu_slots *s)
{
	while (HA_GPU_RARE(ha_gpu_load(&c->ready) != s->first))
		ha_gpu_pause();
}

HA_GPU_FN void ha_gpu_publish(struct ha_gpu_conn *c, const struct ha_gpu_slots *s)
{
	ha_gpu_await_turn(c, s);
	ha_gpu_store_sc(&c->ready, s->end);
}

/* Until the entry `index` is done and everything before it: a read, where the peer's memory is
 * apart the last of the proofs of all places. */
HA_GPU_FN enum ha_gpu_result ha_gpu_wait_read(struct ha_gpu_conn *c, uint64_t index,
					      uint64_t deadline)
{
	uint64_t cons;

	for (;;) {
		cons = ha_gpu_poll(c);
		if ((cons & HA_GPU_INDEX) > index)
			/* in vain while the agent switches: the limit goes on */
			ha_gpu_advance_tail(c, cons, index + 1);
		if ((ha_gpu_load(&c->tail) & HA_GPU_INDEX) > index)
			return HA_GPU_DONE;
		if (ha_gpu_load(&c->resv) & HA_GPU_DOWN)
			return HA_GPU_BOTH_DOWN;
		ha_gpu_ring(c);
		ha_gpu_pause();
		if (ha_gpu_now() > deadline)
			return ha_gpu_raise_alarm(c);
	}
}

/* Posts proofs of all places and waits for them. */
HA_GPU_FN enum ha_gpu_result ha_gpu_prove(struct ha_gpu_conn *c, uint64_t deadline)
{
	struct ha_gpu_slots s;
	enum ha_gpu_result r = ha_gpu_reserve(c, ha_gpu_count_proofs(c), deadline, &s);
	uint64_t last;

	if (r != HA_GPU_DONE)
		return r;
	last = ha_gpu_write_proofs(c, ha_gpu_active_path(c), &s);
	ha_gpu_await_turn(c, &s);
	ha_gpu_store(&c->last_proof, last + 1);
	ha_gpu_publish(c, &s);
	ha_gpu_ring(c);
	return ha_gpu_wait_read(c, last, deadline);
}

#endif
