/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/failover/replay.h"

static void entry_at(const struct ha_gpu_replay *r, uint64_t index, struct ha_gpu_wqe *e)
{
	*e = r->log[index & (r->conn->nwqes - 1)];
}

/* The signal slot that the entry writes, or HA_GPU_SIGNALS. */
static unsigned slot_of(const struct ha_gpu_replay *r, const struct ha_gpu_wqe *e)
{
	uint64_t first = ha_gpu_slot_address(r->conn, r->from, 0), at = ha_gpu_wqe_raddr(e) - first;

	return ha_gpu_wqe_is_inline(e) && at < 8 * HA_GPU_SIGNALS ? (unsigned)(at / 8)
								  : HA_GPU_SIGNALS;
}

uint64_t ha_gpu_replay_landed(const struct ha_gpu_replay *r, const uint64_t slot[HA_GPU_SIGNALS])
{
	struct ha_gpu_wqe e;
	unsigned s;

	for (uint64_t i = r->end; i-- > r->first;) {
		entry_at(r, i, &e);
		s = slot_of(r, &e);
		if (s < HA_GPU_SIGNALS && ha_gpu_wqe_inline64(&e) <= slot[s])
			return i + 1;
	}
	return r->first;
}

/* Something that has landed waited for the reads before it: they are done below this index. */
static uint64_t reads_done(const struct ha_gpu_replay *r)
{
	struct ha_gpu_wqe e;

	for (uint64_t i = r->landed; i-- > r->first;) {
		entry_at(r, i, &e);
		if (ha_gpu_wqe_flags(&e) & HA_GPU_WQE_FENCE)
			return i;
	}
	return r->first;
}

static void translate_entry(const struct ha_gpu_replay *r, struct ha_gpu_wqe *e, uint64_t index)
{
	const struct ha_gpu_path *from = r->from, *to = r->to;
	uint64_t remote = ha_gpu_wqe_raddr(e), local;
	unsigned op = ha_gpu_wqe_opcode(e), at = op == HA_GPU_OP_FETCH_ADD ? 6 : 4,
		 slot = slot_of(r, e);

	e->w[0] = ha_gpu_pack_pair((uint32_t)ha_gpu_hw_index(r->to, index) << 8 | op,
				   r->to->qpn << 8 | ha_gpu_wqe_ds(e));
	if (op == HA_GPU_OP_NOP)
		return;
	if (slot < HA_GPU_SIGNALS)
		ha_gpu_wqe_remote(e, ha_gpu_slot_address(r->conn, r->to, slot), to->mailbox_key);
	else if (remote - from->mailbox < sizeof(struct ha_gpu_mailbox))
		ha_gpu_wqe_remote(e, remote - from->mailbox + r->to->mailbox, to->mailbox_key);
	else
		ha_gpu_wqe_remote(e, remote, ha_gpu_rkey_of(r->conn, to, remote));
	if (ha_gpu_wqe_is_inline(e))
		return;
	local = ha_gpu_be64(e->w[at + 1]);
	ha_gpu_wqe_data(e, at, local,
			local - (uint64_t)(uintptr_t)r->conn->scratch < 16
				? to->scratch_key
				: ha_gpu_lkey_of(r->conn, to, local),
			ha_gpu_be32((uint32_t)e->w[at]));
}

void ha_gpu_replay_copy(struct ha_gpu_replay *r)
{
	uint64_t reads = reads_done(r);
	struct ha_gpu_wqe e;

	for (uint64_t i = r->first; i < r->end; i++) {
		entry_at(r, i, &e);
		if (i < r->landed && (ha_gpu_wqe_opcode(&e) != HA_GPU_OP_READ || i < reads)) {
			ha_gpu_wqe_nop(&e, r->to->qpn, ha_gpu_hw_index(r->to, i),
				       HA_GPU_WQE_SIGNALED);
			r->skipped++;
		} else {
			translate_entry(r, &e, i);
			r->posted++;
		}
		ha_gpu_write_entry(r->conn, r->to, i, &e);
	}
}
