/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wqe.h - mlx5 send queue entries, one basic block of 64 bytes each, and what a CQE64 says
 *
 * Layouts, opcodes and syndromes as the public infiniband/mlx5dv.h has them
 * (tests/gpu/test_layout.c compares every one). An entry is put together in registers, as eight
 * little-endian words of the big-endian bytes, and stored at once.
 *
 *   bytes  0-15  control: opmod<<24 | index<<8 | opcode; qpn<<8 | ds; signature, stream (2), flags;
 *                immediate
 *         16-31  remote address: va, rkey, reserved            (not in a NOP)
 *         32-47  data: length, lkey, va; or atomic: add, compare; or inline: length | 1<<31, then
 *                the bytes
 *         48-63  data of an atomic: where the old value goes;  the rest of inline bytes
 */
#ifndef HA_GPU_WQE_H
#define HA_GPU_WQE_H

#include "gpu/device/env.h"

#define HA_GPU_WQE_BYTES 64u
/* what one basic block holds beside control, remote address and the length */
#define HA_GPU_INLINE_MAX 28u
/*
 * of one entry: the longest message that a queue pair is set up for (prm.c), and that ConnectX
 * takes
 */
#define HA_GPU_LENGTH_MAX (1u << 30)

enum ha_gpu_opcode {
	HA_GPU_OP_NOP = 0x00,
	HA_GPU_OP_WRITE = 0x08,
	HA_GPU_OP_WRITE_IMM = 0x09,
	HA_GPU_OP_READ = 0x10,
	HA_GPU_OP_CAS = 0x11,
	HA_GPU_OP_FETCH_ADD = 0x12
};

enum {
	HA_GPU_WQE_SOLICITED = 1 << 1,
	HA_GPU_WQE_SIGNALED = 2 << 2,
	HA_GPU_WQE_FENCE = 4 << 5, /* starts when earlier reads and atomics are complete */
	HA_GPU_INLINE = 1u << 31
};

enum { HA_GPU_DBR_RECEIVE = 0, HA_GPU_DBR_SEND = 1 };

enum ha_gpu_cqe_opcode {
	HA_GPU_CQE_REQ = 0,
	HA_GPU_CQE_RESP_WRITE_IMM = 1,
	HA_GPU_CQE_REQ_ERR = 13,
	HA_GPU_CQE_RESP_ERR = 14,
	HA_GPU_CQE_INVALID = 15
};

enum ha_gpu_syndrome {
	HA_GPU_SYN_LOCAL_QP = 0x02,
	HA_GPU_SYN_LOCAL_PROTECTION = 0x04,
	HA_GPU_SYN_FLUSH = 0x05,
	HA_GPU_SYN_REMOTE_ACCESS = 0x13,
	HA_GPU_SYN_RETRIES = 0x15,
	HA_GPU_SYN_RNR = 0x16
};

/* Offsets within a CQE64. The last eight bytes are all that a poll needs: one load, never torn. */
enum {
	HA_GPU_CQE_BYTES = 64,
	HA_GPU_CQE_IMM = 36,
	HA_GPU_CQE_LENGTH = 44,
	HA_GPU_CQE_VENDOR = 54, /* of an error */
	HA_GPU_CQE_SYNDROME = 55,
	HA_GPU_CQE_QPN = 56,
	HA_GPU_CQE_COUNTER = 60,
	HA_GPU_CQE_OWN = 63 /* opcode << 4 | owner */
};

struct ha_gpu_wqe {
	uint64_t w[8];
};

HA_GPU_FN uint64_t ha_gpu_pack_pair(uint32_t first, uint32_t second)
{
	return (uint64_t)ha_gpu_be32(second) << 32 | ha_gpu_be32(first);
}

/* ds: sixteen-byte units in use. Clears the rest of the block. */
HA_GPU_FN void ha_gpu_wqe_control(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index,
				  enum ha_gpu_opcode op, unsigned ds, unsigned flags)
{
	e->w[0] = ha_gpu_pack_pair((uint32_t)index << 8 | (uint32_t)op, qpn << 8 | ds);
	e->w[1] = (uint64_t)flags << 24;
	for (int i = 2; i < 8; i++)
		e->w[i] = 0;
}

/* Keys are big-endian already, as the tables of a path hold them. */
HA_GPU_FN void ha_gpu_wqe_remote(struct ha_gpu_wqe *e, uint64_t address, uint32_t rkey)
{
	e->w[2] = ha_gpu_be64(address);
	e->w[3] = rkey;
}

HA_GPU_FN void ha_gpu_wqe_data(struct ha_gpu_wqe *e, unsigned word, uint64_t address, uint32_t lkey,
			       uint32_t length)
{
	e->w[word] = (uint64_t)lkey << 32 | ha_gpu_be32(length);
	e->w[word + 1] = ha_gpu_be64(address);
}

HA_GPU_FN void ha_gpu_wqe_write(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index, unsigned flags)
{
	ha_gpu_wqe_control(e, qpn, index, HA_GPU_OP_WRITE, 3, flags);
}

HA_GPU_FN void ha_gpu_wqe_read(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index, unsigned flags)
{
	ha_gpu_wqe_control(e, qpn, index, HA_GPU_OP_READ, 3, flags);
}

HA_GPU_FN void ha_gpu_wqe_nop(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index, unsigned flags)
{
	ha_gpu_wqe_control(e, qpn, index, HA_GPU_OP_NOP, 1, flags);
}

/* Up to 28 bytes in the entry itself; what the words hold beyond `length` is not sent. */
HA_GPU_FN void ha_gpu_wqe_inline(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index, unsigned flags,
				 const uint32_t word[7], unsigned length)
{
	ha_gpu_wqe_control(e, qpn, index, HA_GPU_OP_WRITE, 2 + (4 + length + 15) / 16, flags);
	e->w[4] = (uint64_t)word[0] << 32 | ha_gpu_be32(length | HA_GPU_INLINE);
	e->w[5] = (uint64_t)word[2] << 32 | word[1];
	e->w[6] = (uint64_t)word[4] << 32 | word[3];
	e->w[7] = (uint64_t)word[6] << 32 | word[5];
}

HA_GPU_FN void ha_gpu_wqe_fetch_add(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index,
				    unsigned flags, uint64_t add)
{
	ha_gpu_wqe_control(e, qpn, index, HA_GPU_OP_FETCH_ADD, 4, flags);
	e->w[4] = ha_gpu_be64(add);
	e->w[5] = 0;
}

/*
 * ---- dynamically connected: the same entry over two blocks, with its target's address vector
 * between control and the rest ----
 *
 *   first block:   control (three units more), address vector (48 bytes)
 *   second block:  remote address, data, as bytes 16-63 above
 *
 * A NOP names no target: it is two of them, a block each, and the second one asks for the
 * completion: when it comes the NIC has read both blocks.
 */
enum { HA_GPU_AV_WORDS = 6, HA_GPU_AV_UNITS = 3 };
#define HA_GPU_AV_EXTENDED (1u << 31) /* in dqp_dct: all 48 bytes are there */

HA_GPU_FN void ha_gpu_wqe_widen(const struct ha_gpu_wqe *e, const uint64_t av[6],
				struct ha_gpu_wqe *first, struct ha_gpu_wqe *second)
{
	uint32_t control = ha_gpu_be32((uint32_t)e->w[0]),
		 qpn_ds = ha_gpu_be32((uint32_t)(e->w[0] >> 32));

	*first = *e;
	if ((control & 0xff) == HA_GPU_OP_NOP) {
		*second = *e;
		second->w[0] = ha_gpu_pack_pair(control + (1u << 8), qpn_ds);
		first->w[1] &= ~((uint64_t)HA_GPU_WQE_SIGNALED << 24);
		return;
	}
	first->w[0] = ha_gpu_pack_pair(control, qpn_ds + HA_GPU_AV_UNITS);
	second->w[6] = second->w[7] = 0;
	for (int i = 0; i < HA_GPU_AV_WORDS; i++) {
		first->w[2 + i] = av[i];
		second->w[i] = e->w[2 + i];
	}
}

HA_GPU_FN void ha_gpu_wqe_narrow(struct ha_gpu_wqe *e, const struct ha_gpu_wqe *first,
				 const struct ha_gpu_wqe *second)
{
	uint32_t control = ha_gpu_be32((uint32_t)first->w[0]),
		 qpn_ds = ha_gpu_be32((uint32_t)(first->w[0] >> 32));

	*e = *first;
	if ((control & 0xff) == HA_GPU_OP_NOP) {
		e->w[1] = second->w[1];
		return;
	}
	e->w[0] = ha_gpu_pack_pair(control, qpn_ds - HA_GPU_AV_UNITS);
	for (int i = 0; i < HA_GPU_AV_WORDS; i++)
		e->w[2 + i] = second->w[i];
}

/* ---- reading entries back: the ring is the redo log ---- */
HA_GPU_FN unsigned ha_gpu_wqe_opcode(const struct ha_gpu_wqe *e)
{
	return ha_gpu_be32((uint32_t)e->w[0]) & 0xff;
}

HA_GPU_FN uint16_t ha_gpu_wqe_index(const struct ha_gpu_wqe *e)
{
	return (uint16_t)(ha_gpu_be32((uint32_t)e->w[0]) >> 8);
}

HA_GPU_FN uint32_t ha_gpu_wqe_qpn(const struct ha_gpu_wqe *e)
{
	return ha_gpu_be32((uint32_t)(e->w[0] >> 32)) >> 8;
}

HA_GPU_FN unsigned ha_gpu_wqe_ds(const struct ha_gpu_wqe *e)
{
	return ha_gpu_be32((uint32_t)(e->w[0] >> 32)) & 0x3f;
}

HA_GPU_FN unsigned ha_gpu_wqe_flags(const struct ha_gpu_wqe *e)
{
	return (unsigned)(e->w[1] >> 24) & 0xff;
}

HA_GPU_FN uint64_t ha_gpu_wqe_raddr(const struct ha_gpu_wqe *e)
{
	return ha_gpu_be64(e->w[2]);
}

HA_GPU_FN bool ha_gpu_wqe_is_inline(const struct ha_gpu_wqe *e)
{
	return ha_gpu_wqe_opcode(e) == HA_GPU_OP_WRITE &&
	       ha_gpu_be32((uint32_t)e->w[4]) & HA_GPU_INLINE;
}

/* The first eight inline bytes. */
HA_GPU_FN uint64_t ha_gpu_wqe_inline64(const struct ha_gpu_wqe *e)
{
	return e->w[5] << 32 | e->w[4] >> 32;
}

/* What the last eight bytes of a completion say, loaded as one little-endian word. */
HA_GPU_FN unsigned ha_gpu_cqe_opcode(uint64_t tail)
{
	return (unsigned)(tail >> 60);
}

HA_GPU_FN unsigned ha_gpu_cqe_owner(uint64_t tail)
{
	return (unsigned)(tail >> 56) & 1;
}

HA_GPU_FN uint16_t ha_gpu_cqe_counter(uint64_t tail)
{
	return (uint16_t)((tail >> 40 & 0xff) | (tail >> 24 & 0xff00));
}

#endif
