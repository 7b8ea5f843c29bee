/* SPDX-License-Identifier: BSD-3-Clause */
/* test_layout.c - our queue entries and completions are those of the public infiniband/mlx5dv.h,
 * byte by byte */
#include "gpu/device/wqe.h"
#include "tests/ina/switch/named.h"

#include <infiniband/mlx5dv.h>
#include <stddef.h>

static void same_constants(void)
{
	CHECK_INT(HA_GPU_WQE_BYTES, MLX5_SEND_WQE_BB);
	CHECK_INT(HA_GPU_OP_NOP, MLX5_OPCODE_NOP);
	CHECK_INT(HA_GPU_OP_WRITE, MLX5_OPCODE_RDMA_WRITE);
	CHECK_INT(HA_GPU_OP_WRITE_IMM, MLX5_OPCODE_RDMA_WRITE_IMM);
	CHECK_INT(HA_GPU_OP_READ, MLX5_OPCODE_RDMA_READ);
	CHECK_INT(HA_GPU_OP_CAS, MLX5_OPCODE_ATOMIC_CS);
	CHECK_INT(HA_GPU_OP_FETCH_ADD, MLX5_OPCODE_ATOMIC_FA);
	CHECK_INT(HA_GPU_WQE_SIGNALED, MLX5_WQE_CTRL_CQ_UPDATE);
	CHECK_INT(HA_GPU_WQE_SOLICITED, MLX5_WQE_CTRL_SOLICITED);
	CHECK_INT(HA_GPU_WQE_FENCE, MLX5_WQE_CTRL_FENCE);
	CHECK_INT((uint32_t)HA_GPU_INLINE, (uint32_t)MLX5_INLINE_SEG);
	CHECK_INT(HA_GPU_DBR_RECEIVE, MLX5_RCV_DBR);
	CHECK_INT(HA_GPU_DBR_SEND, MLX5_SND_DBR);
	CHECK_INT(HA_GPU_CQE_REQ, MLX5_CQE_REQ);
	CHECK_INT(HA_GPU_CQE_RESP_WRITE_IMM, MLX5_CQE_RESP_WR_IMM);
	CHECK_INT(HA_GPU_CQE_REQ_ERR, MLX5_CQE_REQ_ERR);
	CHECK_INT(HA_GPU_CQE_RESP_ERR, MLX5_CQE_RESP_ERR);
	CHECK_INT(HA_GPU_CQE_INVALID, MLX5_CQE_INVALID);
	CHECK_INT(HA_GPU_SYN_LOCAL_QP, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	CHECK_INT(HA_GPU_SYN_LOCAL_PROTECTION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	CHECK_INT(HA_GPU_SYN_FLUSH, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	CHECK_INT(HA_GPU_SYN_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	CHECK_INT(HA_GPU_SYN_RETRIES, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	CHECK_INT(HA_GPU_SYN_RNR, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
	CHECK_INT(sizeof(struct ha_gpu_wqe),
		  sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg) +
			  sizeof(struct mlx5_wqe_atomic_seg) + sizeof(struct mlx5_wqe_data_seg));
}

static void completion_layout(void)
{
	CHECK_INT(HA_GPU_CQE_BYTES, sizeof(struct mlx5_cqe64));
	CHECK_INT(HA_GPU_CQE_IMM, offsetof(struct mlx5_cqe64, imm_inval_pkey));
	CHECK_INT(HA_GPU_CQE_LENGTH, offsetof(struct mlx5_cqe64, byte_cnt));
	CHECK_INT(HA_GPU_CQE_QPN, offsetof(struct mlx5_cqe64, sop_drop_qpn));
	CHECK_INT(HA_GPU_CQE_COUNTER, offsetof(struct mlx5_cqe64, wqe_counter));
	CHECK_INT(HA_GPU_CQE_OWN, offsetof(struct mlx5_cqe64, op_own));
	CHECK_INT(HA_GPU_CQE_BYTES, sizeof(struct mlx5_err_cqe));
	CHECK_INT(HA_GPU_CQE_VENDOR, offsetof(struct mlx5_err_cqe, vendor_err_synd));
	CHECK_INT(HA_GPU_CQE_SYNDROME, offsetof(struct mlx5_err_cqe, syndrome));
	CHECK_INT(HA_GPU_CQE_COUNTER, offsetof(struct mlx5_err_cqe, wqe_counter));
	CHECK_INT(HA_GPU_CQE_OWN, offsetof(struct mlx5_err_cqe, op_own));
}

/* One load of the last eight bytes gives opcode, owner and counter, whatever else is in them. */
static void completion_tail(void)
{
	struct mlx5_cqe64 cqe;
	uint64_t tail;

	for (unsigned i = 0; i < 65536; i += 257) {
		memset(&cqe, 0xa5, sizeof(cqe));
		cqe.wqe_counter = htobe16((uint16_t)i);
		cqe.op_own = (uint8_t)((i % 16) << 4 | (i & 1));
		memcpy(&tail, (char *)&cqe + HA_GPU_CQE_QPN, 8);
		CHECK_INT(ha_gpu_cqe_counter(tail), i);
		CHECK_INT(ha_gpu_cqe_opcode(tail), mlx5dv_get_cqe_opcode(&cqe));
		CHECK_INT(ha_gpu_cqe_owner(tail), mlx5dv_get_cqe_owner(&cqe));
	}
}

struct entry {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_raddr_seg remote;
	union {
		struct {
			struct mlx5_wqe_data_seg data;
			uint8_t rest[16];
		};
		struct {
			struct mlx5_wqe_atomic_seg atomic;
			struct mlx5_wqe_data_seg old;
		};
		struct {
			struct mlx5_wqe_inl_data_seg inl;
			uint8_t bytes[28];
		};
	};
};

#define REMOTE 0x1122334455667788u
#define LOCAL 0x99aabbccddeeff01u
#define RKEY 0xcafe0102u
#define LKEY 0xbeef0304u
#define QPN 0x00abcdefu
#define INDEX 0xf17eu

static void fill_expected(struct entry *e, uint8_t opcode, uint8_t ds, uint8_t flags)
{
	memset(e, 0, sizeof(*e));
	mlx5dv_set_ctrl_seg(&e->ctrl, INDEX, opcode, 0, QPN, flags, ds, 0, 0);
	e->remote.raddr = htobe64(REMOTE);
	e->remote.rkey = htobe32(RKEY);
}

static void check_same_entry(const struct ha_gpu_wqe *ours, const struct entry *theirs)
{
	CHECK_INT(sizeof(*theirs), 64);
	for (unsigned i = 0; i < 64; i++)
		if (((const uint8_t *)ours)[i] != ((const uint8_t *)theirs)[i]) {
			fprintf(stderr, "byte %u: %02x, expected %02x\n", i,
				((const uint8_t *)ours)[i], ((const uint8_t *)theirs)[i]);
			exit(1);
		}
	CHECK_INT(ha_gpu_wqe_index(ours), INDEX);
	CHECK_INT(ha_gpu_wqe_qpn(ours), QPN);
	CHECK_INT(ha_gpu_wqe_opcode(ours), be32toh(theirs->ctrl.opmod_idx_opcode) & 0xff);
	CHECK_INT(ha_gpu_wqe_ds(ours), be32toh(theirs->ctrl.qpn_ds) & 0x3f);
	CHECK_INT(ha_gpu_wqe_flags(ours), theirs->ctrl.fm_ce_se);
}

static void write_and_read(void)
{
	struct ha_gpu_wqe w;
	struct entry e;

	fill_expected(&e, MLX5_OPCODE_RDMA_WRITE, 3, MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE);
	mlx5dv_set_data_seg(&e.data, 0x12345678, LKEY, LOCAL);
	ha_gpu_wqe_write(&w, QPN, INDEX, HA_GPU_WQE_SIGNALED | HA_GPU_WQE_FENCE);
	ha_gpu_wqe_remote(&w, REMOTE, ha_gpu_be32(RKEY));
	ha_gpu_wqe_data(&w, 4, LOCAL, ha_gpu_be32(LKEY), 0x12345678);
	check_same_entry(&w, &e);
	CHECK(!ha_gpu_wqe_is_inline(&w));
	CHECK(ha_gpu_wqe_raddr(&w) == REMOTE);

	fill_expected(&e, MLX5_OPCODE_RDMA_READ, 3, 0);
	mlx5dv_set_data_seg(&e.data, 8, LKEY, LOCAL);
	ha_gpu_wqe_read(&w, QPN, INDEX, 0);
	ha_gpu_wqe_remote(&w, REMOTE, ha_gpu_be32(RKEY));
	ha_gpu_wqe_data(&w, 4, LOCAL, ha_gpu_be32(LKEY), 8);
	check_same_entry(&w, &e);
}

static void inline_write_layout(void)
{
	static const uint8_t bytes[28] = "0123456789abcdefghijklmnopq";
	struct ha_gpu_wqe w;
	struct entry e;
	uint32_t word[7];
	uint64_t first;

	for (unsigned length = 0; length <= HA_GPU_INLINE_MAX; length++) {
		memset(word, 0, sizeof(word));
		memcpy(word, bytes, length);
		fill_expected(&e, MLX5_OPCODE_RDMA_WRITE, (uint8_t)((32 + 4 + length + 15) / 16),
			      0);
		e.inl.byte_count = htobe32(length | MLX5_INLINE_SEG);
		memcpy(e.bytes, bytes, length);
		ha_gpu_wqe_inline(&w, QPN, INDEX, 0, word, length);
		ha_gpu_wqe_remote(&w, REMOTE, ha_gpu_be32(RKEY));
		check_same_entry(&w, &e);
		CHECK(ha_gpu_wqe_is_inline(&w));
		if (length >= 8) {
			memcpy(&first, bytes, 8);
			CHECK(ha_gpu_wqe_inline64(&w) == first);
		}
	}
}

static void atomic_layout(void)
{
	struct ha_gpu_wqe w;
	struct entry e;

	fill_expected(&e, MLX5_OPCODE_ATOMIC_FA, 4, MLX5_WQE_CTRL_CQ_UPDATE);
	e.atomic.swap_add = htobe64(0x0102030405060708u);
	mlx5dv_set_data_seg(&e.old, 8, LKEY, LOCAL);
	ha_gpu_wqe_fetch_add(&w, QPN, INDEX, HA_GPU_WQE_SIGNALED, 0x0102030405060708u);
	ha_gpu_wqe_remote(&w, REMOTE, ha_gpu_be32(RKEY));
	ha_gpu_wqe_data(&w, 6, LOCAL, ha_gpu_be32(LKEY), 8);
	check_same_entry(&w, &e);

	fill_expected(&e, MLX5_OPCODE_NOP, 1, MLX5_WQE_CTRL_FENCE);
	memset(&e.remote, 0, sizeof(e.remote));
	ha_gpu_wqe_nop(&w, QPN, INDEX, HA_GPU_WQE_FENCE);
	check_same_entry(&w, &e);
}

/* Dynamically connected: control, the 48 bytes of an address vector, then the rest in a second
 * block. */
struct wide {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_datagram_seg target;
	struct mlx5_wqe_raddr_seg remote;
	struct mlx5_wqe_data_seg data;
	uint8_t rest[32];
};

static void address_vectors(void)
{
	CHECK_INT(sizeof(struct mlx5_wqe_datagram_seg), 48);
	CHECK_INT(sizeof(struct mlx5_wqe_datagram_seg), 8 * HA_GPU_AV_WORDS);
	CHECK_INT(HA_GPU_AV_UNITS, 3);
	CHECK_INT(HA_GPU_AV_EXTENDED, MLX5_EXTENDED_UD_AV);
	CHECK_INT(offsetof(struct mlx5_wqe_av, key.dc_key), 0);
	CHECK_INT(offsetof(struct mlx5_wqe_av, dqp_dct), 8);
	CHECK_INT(offsetof(struct mlx5_wqe_av, stat_rate_sl), 12);
	CHECK_INT(offsetof(struct mlx5_wqe_av, fl_mlid), 13);
	CHECK_INT(offsetof(struct mlx5_wqe_av, rlid), 14);
	CHECK_INT(offsetof(struct mlx5_wqe_av, rmac), 20);
	CHECK_INT(offsetof(struct mlx5_wqe_av, tclass), 26);
	CHECK_INT(offsetof(struct mlx5_wqe_av, hop_limit), 27);
	CHECK_INT(offsetof(struct mlx5_wqe_av, grh_gid_fl), 28);
	CHECK_INT(offsetof(struct mlx5_wqe_av, rgid), 32);
}

static void wide_entry_layout(void)
{
	struct ha_gpu_wqe w, block[2], back;
	struct wide e;
	uint64_t av[6];

	memset(&e, 0, sizeof(e));
	mlx5dv_set_ctrl_seg(&e.ctrl, INDEX, MLX5_OPCODE_RDMA_WRITE, 0, QPN, MLX5_WQE_CTRL_CQ_UPDATE,
			    6, 0, 0);
	e.target.av.key.dc_key = htobe64(0x0123456789abcdefu);
	e.target.av.dqp_dct = htobe32(0x4711 | MLX5_EXTENDED_UD_AV);
	memset(e.target.av.rmac, 7, 6);
	memset(e.target.av.rgid, 9, 16);
	e.remote.raddr = htobe64(REMOTE);
	e.remote.rkey = htobe32(RKEY);
	mlx5dv_set_data_seg(&e.data, 0x1234, LKEY, LOCAL);
	memcpy(av, &e.target.av, sizeof(av));
	ha_gpu_wqe_write(&w, QPN, INDEX, HA_GPU_WQE_SIGNALED);
	ha_gpu_wqe_remote(&w, REMOTE, ha_gpu_be32(RKEY));
	ha_gpu_wqe_data(&w, 4, LOCAL, ha_gpu_be32(LKEY), 0x1234);
	ha_gpu_wqe_widen(&w, av, &block[0], &block[1]);
	CHECK_INT(sizeof(block), sizeof(e));
	CHECK(!memcmp(block, &e, sizeof(e)));
	ha_gpu_wqe_narrow(&back, &block[0], &block[1]);
	CHECK(!memcmp(&back, &w, sizeof(w)));
}

/* Two of them: the first waits where the entry is to wait, the second asks for the completion. */
static void wide_nop(void)
{
	struct ha_gpu_wqe w, block[2], back;
	uint64_t av[6] = { 1, 2, 3, 4, 5, 6 };

	ha_gpu_wqe_nop(&w, QPN, INDEX & ~1u, HA_GPU_WQE_FENCE | HA_GPU_WQE_SIGNALED);
	ha_gpu_wqe_widen(&w, av, &block[0], &block[1]);
	CHECK_INT(ha_gpu_wqe_index(&block[0]), INDEX & ~1u);
	CHECK_INT(ha_gpu_wqe_index(&block[1]), (INDEX & ~1u) + 1);
	CHECK_INT(ha_gpu_wqe_flags(&block[0]), HA_GPU_WQE_FENCE);
	CHECK_INT(ha_gpu_wqe_flags(&block[1]), HA_GPU_WQE_FENCE | HA_GPU_WQE_SIGNALED);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(ha_gpu_wqe_opcode(&block[i]), MLX5_OPCODE_NOP);
		CHECK_INT(ha_gpu_wqe_ds(&block[i]), 1);
		CHECK_INT(ha_gpu_wqe_qpn(&block[i]), QPN);
	}
	ha_gpu_wqe_narrow(&back, &block[0], &block[1]);
	CHECK(!memcmp(&back, &w, sizeof(w)));
}

static const struct named_test tests[] = {
	{ "constants", same_constants },
	{ "completion", completion_layout },
	{ "completion_tail", completion_tail },
	{ "write_and_read", write_and_read },
	{ "inlined", inline_write_layout },
	{ "atomics", atomic_layout },
	{ "address_vectors", address_vectors },
	{ "wide", wide_entry_layout },
	{ "wide_nop", wide_nop },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
