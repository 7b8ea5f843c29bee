/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal.h - counters at the peer that survive a change of path
 *
 * The sender adds; what travels is the sum so far, written into the slot of the path that carries
 * it. The receiver takes the greatest of the slots. Written twice, a sum does no harm; written late
 * by a path that was given up, it is smaller than what the other path brought;
 * and no path overwrites the other's. Sums are formed by whoever publishes, in the order of the
 * log, so a slot never runs backwards.
 *
 * A signal comes after the data that was posted before it on the same connection. (Not because two
 * NICs kept an order: while one carries data no other carries the signal; before a path takes over,
 * the old one is fenced at both ends.) Where the peer's memory is apart from its mailbox (conn.h)
 * the signal is posted behind a read of that memory and waits for it: a round trip.
 */
#ifndef HA_GPU_SIGNAL_H
#define HA_GPU_SIGNAL_H

#include "gpu/device/ops.h"

HA_GPU_FN uint64_t ha_gpu_slot_address(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				       unsigned slot)
{
	uint64_t path = ha_gpu_path_number(c, p);

	return p->mailbox + (path * HA_GPU_SIGNALS + slot) * 8;
}

/* In this thread's turn: the sum is formed, and written into the reserved entry. */
HA_GPU_FN void ha_gpu_write_signal(struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				   uint64_t index, unsigned slot, uint64_t add)
{
	uint64_t sum = c->sent[slot] + add;
	uint32_t word[7] = { (uint32_t)sum, (uint32_t)(sum >> 32), 0, 0, 0, 0, 0 };

	c->sent[slot] = sum;
	ha_gpu_write_inline(c, p, index, ha_gpu_slot_address(c, p, slot), p->mailbox_key, word, 8,
			    c->apart ? (unsigned)HA_GPU_WQE_FENCE : 0);
}

/* Entries of a signal: itself, and where the peer's memory is apart the read before it. */
HA_GPU_FN unsigned ha_gpu_signal_entries(const struct ha_gpu_conn *c)
{
	return 1 + c->apart;
}

/* Into the entries from our `which`-th on. */
HA_GPU_FN void ha_gpu_publish_signal(struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				     const struct ha_gpu_slots *s, unsigned which, unsigned slot,
				     uint64_t add)
{
	if (HA_GPU_RARE(c->apart))
		ha_gpu_write_proof(c, p, ha_gpu_entry_index(s, which), HA_GPU_AT_MEMORY);
	ha_gpu_await_turn(c, s);
	ha_gpu_write_signal(c, p, ha_gpu_entry_index(s, which + c->apart), slot, add);
	ha_gpu_publish(c, s);
}

/*
 * Adds to the peer's signal `slot`, after everything this thread has posted on the connection.
 * DONE: posted, and will count once.
 */
HA_GPU_FN enum ha_gpu_result ha_gpu_signal(struct ha_gpu_conn *c, unsigned slot, uint64_t add,
					   unsigned how, uint64_t limit)
{
	const struct ha_gpu_path *p;
	struct ha_gpu_slots s;
	uint64_t deadline = 0;
	enum ha_gpu_result r;

	if (slot >= HA_GPU_SIGNALS_USER || !add)
		return HA_GPU_REFUSED;
	r = ha_gpu_reserve_within(c, ha_gpu_signal_entries(c), limit, &deadline, &s);
	if (r != HA_GPU_DONE)
		return r;
	p = ha_gpu_active_path(c);
	ha_gpu_publish_signal(c, p, &s, 0, slot, add);
	if (!(how & HA_GPU_LATER))
		ha_gpu_ring(c);
	return HA_GPU_DONE;
}

/* What the peer's signals have come to at our end. */
HA_GPU_FN uint64_t ha_gpu_signal_value(const struct ha_gpu_conn *c, unsigned slot)
{
	uint64_t a = ha_gpu_load(&c->mailbox->slot[0][slot]),
		 b = ha_gpu_load(&c->mailbox->slot[1][slot]);

	return a > b ? a : b;
}

/*
 * Until signal `slot` at our end has come to `value`: all that the peer posted before that signal
 * is in memory.
 */
HA_GPU_FN enum ha_gpu_result ha_gpu_wait(struct ha_gpu_conn *c, unsigned slot, uint64_t value,
					 uint64_t limit)
{
	uint64_t deadline = ha_gpu_deadline_of(limit);

	if (slot >= HA_GPU_SIGNALS)
		return HA_GPU_REFUSED;
	while (ha_gpu_signal_value(c, slot) < value) {
		if (ha_gpu_load(&c->resv) & HA_GPU_DOWN)
			return HA_GPU_BOTH_DOWN;
		ha_gpu_idle_step(c);
		if (ha_gpu_now() > deadline)
			return ha_gpu_raise_alarm(c);
	}
	return HA_GPU_DONE;
}

#endif
