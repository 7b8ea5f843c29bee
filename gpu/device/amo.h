/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * amo.h - fetch-add at the peer, exactly once
 *
 * A NIC's own fetch-add that was executed and not acknowledged would be executed again. So the
 * asker writes what it wants (address, operand) and a signal that counts its requests; the peer
 * serves each count once and answers the same way. Both entries of a request are one reservation: a
 * request is posted whole or not at all. One request of a connection is under way at a time.
 *
 * Somebody at the peer has to call ha_gpu_serve(): the host agent where the memory is the host's,
 * or a warp of a kernel.
 */
#ifndef HA_GPU_AMO_H
#define HA_GPU_AMO_H

#include "gpu/device/signal.h"

/* Two words at `to` in the peer's mailbox, and the signal that says so. */
HA_GPU_FN enum ha_gpu_result ha_gpu_post_to_mailbox(struct ha_gpu_conn *c, uint64_t offset,
						    uint64_t a, uint64_t b, unsigned slot,
						    uint64_t deadline)
{
	uint32_t word[7] = {
		(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32), 0, 0, 0
	};
	const struct ha_gpu_path *p;
	struct ha_gpu_slots s;
	enum ha_gpu_result r = ha_gpu_reserve(c, 1 + ha_gpu_signal_entries(c), deadline, &s);

	if (r != HA_GPU_DONE)
		return r;
	p = ha_gpu_active_path(c);
	ha_gpu_write_inline(c, p, ha_gpu_entry_index(&s, 0), p->mailbox + offset, p->mailbox_key,
			    word, 16, 0);
	ha_gpu_publish_signal(c, p, &s, 1, slot, 1);
	ha_gpu_ring(c);
	return HA_GPU_DONE;
}

/* Waits for the answer of the fetch-add that this thread has under way, and takes it. */
HA_GPU_FN enum ha_gpu_result ha_gpu_fetch_add_wait(struct ha_gpu_conn *c, uint64_t *old,
						   uint64_t limit)
{
	enum ha_gpu_result r = ha_gpu_wait(c, HA_GPU_SIGNAL_ANSWER, ha_gpu_load(&c->asked), limit);

	if (r != HA_GPU_DONE)
		return r;
	*old = c->mailbox->answer[0];
	r = (enum ha_gpu_result)c->mailbox->answer[1];
	ha_gpu_store(&c->asking, 0);
	return r;
}

/* Adds to the 64-bit word at `remote`, which only served fetch-adds may change meanwhile; *old is
 * what was there before. TIMEOUT with *posted: it will be done once, ha_gpu_fetch_add_wait() goes
 * on waiting; without: nothing was posted. */
HA_GPU_FN enum ha_gpu_result ha_gpu_fetch_add(struct ha_gpu_conn *c, uint64_t remote, uint64_t add,
					      uint64_t *old, bool *posted, uint64_t limit)
{
	uint64_t deadline = ha_gpu_deadline_of(limit), now, idle = 0;
	enum ha_gpu_result r;

	*posted = false;
	if (!ha_gpu_is_inside(c, c->local, remote, 8) || remote % 8)
		return HA_GPU_REFUSED;
	for (; !ha_gpu_cas(&c->asking, &idle, 1); idle = 0) {
		if (ha_gpu_load(&c->resv) & HA_GPU_DOWN)
			return HA_GPU_BOTH_DOWN; /* who has it gets no answer, and keeps it */
		ha_gpu_idle_step(c);
		if (ha_gpu_now() > deadline)
			return ha_gpu_raise_alarm(c);
	}
	/*
	 * One whose asker died (ha_gpu_host_repair) may be under way still, and lies at the peer
	 * where ours would.
	 */
	now = ha_gpu_now();
	r = ha_gpu_wait(c, HA_GPU_SIGNAL_ANSWER, ha_gpu_load(&c->asked),
			now < deadline ? deadline - now : 0);
	if (r == HA_GPU_DONE)
		r = ha_gpu_post_to_mailbox(c, __builtin_offsetof(struct ha_gpu_mailbox, ask),
					   remote, add, HA_GPU_SIGNAL_ASK, deadline);
	if (r != HA_GPU_DONE) {
		ha_gpu_store(&c->asking, 0);
		return r;
	}
	*posted = true;
	ha_gpu_store(&c->asked, ha_gpu_load(&c->asked) + 1);
	if (deadline == HA_GPU_FOREVER)
		return ha_gpu_fetch_add_wait(c, old, HA_GPU_FOREVER);
	now = ha_gpu_now();
	return ha_gpu_fetch_add_wait(c, old, deadline > now ? deadline - now : 0);
}

/*
 * One step for the peer's request, if there is one: executes it, then answers. By one thread at a
 * time. True: something was done.
 */
HA_GPU_FN bool ha_gpu_serve(struct ha_gpu_conn *c)
{
	uint64_t address;
	bool done = false;

	if (c->served == c->answered) {
		if (ha_gpu_signal_value(c, HA_GPU_SIGNAL_ASK) == c->served)
			return false;
		address = c->mailbox->ask[0];
		c->answer[1] = HA_GPU_REFUSED;
		c->answer[0] = 0;
		if (address % 8 == 0 && ha_gpu_is_inside(c, address, c->remote, 8)) {
			c->answer[0] =
				ha_gpu_add((uint64_t *)(uintptr_t)address, c->mailbox->ask[1]);
			c->answer[1] = HA_GPU_DONE;
		}
		c->served++;
		done = true;
	}
	if (ha_gpu_post_to_mailbox(c, __builtin_offsetof(struct ha_gpu_mailbox, answer),
				   c->answer[0], c->answer[1], HA_GPU_SIGNAL_ANSWER,
				   0) != HA_GPU_DONE)
		return done; /* not now: the ring is full or closed; the answer is kept */
	c->answered++;
	return true;
}

#endif
