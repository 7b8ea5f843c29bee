/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - what a GPU thread does with a connection
 *
 * Addresses are the device's own (local) and the peer's own (remote), both within the registered
 * memory of the connection. `limit` is in nanoseconds; HA_GPU_FOREVER waits. A result other than
 * HA_GPU_DONE from a put, get or signal means that it, or the rest of it, was not posted; doing it
 * again is right (writing the same bytes twice to memory that is not yet signalled does no harm; a
 * signal counts only if it was posted).
 *
 * Whose memory when: the destination of a put belongs to the sender until the receiver has seen a
 * signal that was posted after it on the same connection; the source until quiet() is done, or the
 * receiver has answered such a signal. Nothing else shows that data has come: not the data itself.
 */
#ifndef HA_GPU_OPS_H
#define HA_GPU_OPS_H

#include "gpu/device/ring.h"

/* how: publish, and let a later call ring (any call that rings or waits does) */
enum { HA_GPU_LATER = 1 };

/* ---- pieces: no entry crosses the end of what one key covers, at either end ---- */

HA_GPU_FN bool ha_gpu_is_inside(const struct ha_gpu_conn *c, uint64_t local, uint64_t remote,
				uint64_t bytes)
{
	return local >= c->local && bytes <= c->local_bytes &&
	       local - c->local <= c->local_bytes - bytes && remote >= c->remote &&
	       bytes <= c->remote_bytes && remote - c->remote <= c->remote_bytes - bytes;
}

HA_GPU_FN uint32_t ha_gpu_piece_bytes(const struct ha_gpu_conn *c, uint64_t local, uint64_t remote,
				      uint64_t bytes)
{
	uint64_t chunk = UINT64_C(1) << c->chunk;
	uint64_t here = chunk - ((local - c->local) & (chunk - 1)),
		 there = chunk - ((remote - c->remote) & (chunk - 1));

	bytes = bytes < here ? bytes : here;
	bytes = bytes < there ? bytes : there;
	return (uint32_t)(bytes < HA_GPU_LENGTH_MAX ? bytes : HA_GPU_LENGTH_MAX);
}

HA_GPU_FN uint32_t ha_gpu_lkey_of(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				  uint64_t local)
{
	return p->lkey[(local - c->local) >> c->chunk];
}

HA_GPU_FN uint32_t ha_gpu_rkey_of(const struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				  uint64_t remote)
{
	return p->rkey[(remote - c->remote) >> c->chunk];
}

/* One write or read of a piece into the reserved entry `index`. */
HA_GPU_FN void ha_gpu_write_move(struct ha_gpu_conn *c, const struct ha_gpu_path *p, uint64_t index,
				 enum ha_gpu_opcode op, uint64_t local, uint64_t remote,
				 uint32_t bytes, unsigned flags)
{
	struct ha_gpu_wqe e;

	ha_gpu_wqe_control(&e, p->qpn, ha_gpu_hw_index(p, index), op, 3, flags);
	ha_gpu_wqe_remote(&e, remote, ha_gpu_rkey_of(c, p, remote));
	ha_gpu_wqe_data(&e, 4, local, ha_gpu_lkey_of(c, p, local), bytes);
	ha_gpu_write_entry(c, p, index, &e);
}

/* Every piece asks for its completion: a put of more pieces than the ring has slots frees them as
 * it goes, and one that its limit cuts short leaves nothing that is never reported. */
HA_GPU_FN enum ha_gpu_result ha_gpu_post_move(struct ha_gpu_conn *c, enum ha_gpu_opcode op,
					      uint64_t local, uint64_t remote, uint64_t bytes,
					      unsigned how, uint64_t limit, uint64_t *last)
{
	const struct ha_gpu_path *p;
	struct ha_gpu_slots s;
	enum ha_gpu_result r;
	uint64_t deadline = 0;
	uint32_t n;

	if (!ha_gpu_is_inside(c, local, remote, bytes))
		return HA_GPU_REFUSED;
	for (; bytes; bytes -= n, local += n, remote += n) {
		n = ha_gpu_piece_bytes(c, local, remote, bytes);
		r = ha_gpu_reserve_within(c, 1, limit, &deadline, &s);
		if (r != HA_GPU_DONE)
			return r;
		p = ha_gpu_active_path(c);
		*last = ha_gpu_entry_index(&s, 0);
		ha_gpu_write_move(c, p, *last, op, local, remote, n, HA_GPU_WQE_SIGNALED);
		ha_gpu_publish(c, &s);
	}
	if (!(how & HA_GPU_LATER))
		ha_gpu_ring(c);
	return HA_GPU_DONE;
}

/* Writes `bytes` from local to remote; returns when posted. */
HA_GPU_FN enum ha_gpu_result ha_gpu_put_nbi(struct ha_gpu_conn *c, uint64_t remote,
					    const void *local, uint64_t bytes, unsigned how,
					    uint64_t limit)
{
	uint64_t last;

	return ha_gpu_post_move(c, HA_GPU_OP_WRITE, (uint64_t)(uintptr_t)local, remote, bytes, how,
				limit, &last);
}

/* Reads from remote into local; returns when posted: what came is there after quiet(). */
HA_GPU_FN enum ha_gpu_result ha_gpu_get_nbi(struct ha_gpu_conn *c, void *local, uint64_t remote,
					    uint64_t bytes, unsigned how, uint64_t limit)
{
	uint64_t last;

	return ha_gpu_post_move(c, HA_GPU_OP_READ, (uint64_t)(uintptr_t)local, remote, bytes, how,
				limit, &last);
}

/*
 * Reads, and waits until it is there. TIMEOUT: it may still come; local is the connection's until
 * quiet() is done.
 */
HA_GPU_FN enum ha_gpu_result ha_gpu_get(struct ha_gpu_conn *c, void *local, uint64_t remote,
					uint64_t bytes, uint64_t limit)
{
	uint64_t deadline = ha_gpu_deadline_of(limit), last = 0;
	enum ha_gpu_result r;

	if (!bytes)
		return HA_GPU_DONE;
	r = ha_gpu_post_move(c, HA_GPU_OP_READ, (uint64_t)(uintptr_t)local, remote, bytes, 0, limit,
			     &last);
	if (r != HA_GPU_DONE)
		return r;
	return c->apart ? ha_gpu_prove(c, deadline) : ha_gpu_wait_read(c, last, deadline);
}

/*
 * ---- the same by a whole warp: an entry per lane, one reservation, one doorbell. All lanes call
 * with the same arguments. ----
 */

struct ha_gpu_cut {
	uint64_t local, remote;
	uint32_t bytes; /* 0: nothing for this lane */
	uint64_t all;   /* bytes of all lanes */
};

HA_GPU_FN void ha_gpu_cut_for_lane(const struct ha_gpu_conn *c, struct ha_gpu_cut *cut,
				   uint64_t local, uint64_t remote, uint64_t bytes)
{
	uint64_t done = 0;
	uint32_t n;

	cut->local = cut->remote = 0;
	cut->bytes = 0;
	for (unsigned i = 0; i < ha_gpu_lanes() && done < bytes; i++, done += n) {
		n = ha_gpu_piece_bytes(c, local + done, remote + done, bytes - done);
		if (i == ha_gpu_lane()) {
			cut->local = local + done;
			cut->remote = remote + done;
			cut->bytes = n;
		}
	}
	cut->all = done;
}

HA_GPU_FN enum ha_gpu_result ha_gpu_put_nbi_warp(struct ha_gpu_conn *c, uint64_t remote,
						 const void *from, uint64_t bytes, unsigned how,
						 uint64_t limit)
{
	uint64_t deadline = 0, local = (uint64_t)(uintptr_t)from, said = 0;
	unsigned lane = ha_gpu_lane(), n;
	const struct ha_gpu_path *p;
	struct ha_gpu_slots s;
	struct ha_gpu_cut cut;

	s.first = 0;
	if (!ha_gpu_is_inside(c, local, remote, bytes))
		return HA_GPU_REFUSED;
	for (; bytes; bytes -= cut.all, local += cut.all, remote += cut.all) {
		ha_gpu_cut_for_lane(c, &cut, local, remote, bytes);
		n = (unsigned)__builtin_popcount(ha_gpu_ballot(cut.bytes != 0));
		if (!lane)
			said = ha_gpu_reserve_within(c, n, limit, &deadline, &s);
		/* the reservation is every lane's: what was before it is seen by all */
		ha_gpu_syncwarp();
		said = ha_gpu_shfl(said, 0);
		if (said != HA_GPU_DONE)
			return (enum ha_gpu_result)said;
		ha_gpu_slots_at(c, &s, ha_gpu_shfl(s.first, 0), n);
		p = ha_gpu_active_path(c);
		if (cut.bytes)
			ha_gpu_write_move(c, p, ha_gpu_entry_index(&s, lane), HA_GPU_OP_WRITE,
					  cut.local, cut.remote, cut.bytes,
					  lane == n - 1 ? (unsigned)HA_GPU_WQE_SIGNALED : 0);
		ha_gpu_syncwarp();
		if (!lane)
			ha_gpu_publish(c, &s);
	}
	if (!lane && !(how & HA_GPU_LATER))
		ha_gpu_ring(c);
	ha_gpu_syncwarp();
	return HA_GPU_DONE;
}

/* ---- small things ---- */

/* The first `bytes` of what the words hold, for remote memory under this key. */
HA_GPU_FN void ha_gpu_write_inline(struct ha_gpu_conn *c, const struct ha_gpu_path *p,
				   uint64_t index, uint64_t remote, uint32_t rkey,
				   const uint32_t word[7], unsigned bytes, unsigned flags)
{
	struct ha_gpu_wqe e;

	ha_gpu_wqe_inline(&e, p->qpn, ha_gpu_hw_index(p, index), HA_GPU_WQE_SIGNALED | flags, word,
			  bytes);
	ha_gpu_wqe_remote(&e, remote, rkey);
	ha_gpu_write_entry(c, p, index, &e);
}

/*
 * Writes up to 28 bytes that travel in the entry: from[] may be used again at once. The remote end
 * must lie in one chunk.
 */
HA_GPU_FN enum ha_gpu_result ha_gpu_put_inline(struct ha_gpu_conn *c, uint64_t remote,
					       const void *from, unsigned bytes, unsigned how,
					       uint64_t limit)
{
	uint32_t word[7] = { 0, 0, 0, 0, 0, 0, 0 };
	const struct ha_gpu_path *p;
	struct ha_gpu_slots s;
	uint64_t deadline = 0;
	enum ha_gpu_result r;

	if (bytes > HA_GPU_INLINE_MAX || !ha_gpu_is_inside(c, c->local, remote, bytes) ||
	    ha_gpu_piece_bytes(c, c->local, remote, bytes) < bytes)
		return HA_GPU_REFUSED;
	if (!bytes)
		return HA_GPU_DONE; /* the end of the heap has no key */
	for (unsigned i = 0; i < bytes; i++)
		word[i / 4] |= (uint32_t)((const uint8_t *)from)[i] << 8 * (i % 4);
	r = ha_gpu_reserve_within(c, 1, limit, &deadline, &s);
	if (r != HA_GPU_DONE)
		return r;
	p = ha_gpu_active_path(c);
	ha_gpu_write_inline(c, p, ha_gpu_entry_index(&s, 0), remote, ha_gpu_rkey_of(c, p, remote),
			    word, bytes, 0);
	ha_gpu_publish(c, &s);
	if (!(how & HA_GPU_LATER))
		ha_gpu_ring(c);
	return HA_GPU_DONE;
}

/* Earlier gets are complete before any entry that is posted after it starts. (Puts and signals of a
 * connection land in their order without it.) Does not wait. */
HA_GPU_FN enum ha_gpu_result ha_gpu_fence(struct ha_gpu_conn *c, uint64_t limit)
{
	const struct ha_gpu_path *p;
	struct ha_gpu_slots s;
	uint64_t deadline = 0;
	enum ha_gpu_result r = ha_gpu_reserve_within(c, 1, limit, &deadline, &s);
	struct ha_gpu_wqe e;

	if (r != HA_GPU_DONE)
		return r;
	p = ha_gpu_active_path(c);
	ha_gpu_wqe_nop(&e, p->qpn, ha_gpu_hw_index(p, ha_gpu_entry_index(&s, 0)),
		       HA_GPU_WQE_FENCE | HA_GPU_WQE_SIGNALED);
	ha_gpu_write_entry(c, p, ha_gpu_entry_index(&s, 0), &e);
	ha_gpu_publish(c, &s);
	ha_gpu_ring(c);
	return HA_GPU_DONE;
}

/* Everything this thread has posted on the connection, and whatever was published before, is in the
 * peer's memory or in ours. Called again after a TIMEOUT it waits for the read that it has posted
 * already. */
HA_GPU_FN enum ha_gpu_result ha_gpu_quiet(struct ha_gpu_conn *c, uint64_t limit)
{
	uint64_t deadline = ha_gpu_deadline_of(limit), end = ha_gpu_load(&c->ready);

	if ((ha_gpu_load(&c->tail) & HA_GPU_INDEX) == end)
		return HA_GPU_DONE;
	if (ha_gpu_load(&c->last_proof) == end)
		return ha_gpu_wait_read(c, end - 1, deadline);
	return ha_gpu_prove(c, deadline);
}

#endif
