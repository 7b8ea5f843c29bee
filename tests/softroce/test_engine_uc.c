/* SPDX-License-Identifier: BSD-3-Clause */
/* The unreliable connection: bytes arrive whole or not at all, loss costs the message and nothing
 * else. */
#include "softroce/engine/packet.h"
#include "tests/softroce/engine_lone.h"
#include <errno.h>
#include <string.h>

static void bytes_arrive(void)
{
	static const uint32_t sizes[] = { 0, 1, 1023, 1024, 1025, 5000, 100000 };
	struct pair p;

	lone_open(&p, &default_options, IBV_QPT_UC);
	fill_random(p.end[0].buf, 100000, 3);
	for (uint64_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 4; i++) {
		enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)(i & 3);
		uint32_t size = sizes[i / 4];
		struct ibv_sge list = make_sge(&p.end[0], 0, size);
		struct ibv_send_wr wr = send_wr(opcode, i, &list, 1);
		struct ibv_wc wc;

		memset(p.end[1].buf, 0, 100000);
		if (opcode <= IBV_WR_RDMA_WRITE_WITH_IMM)
			set_remote_address(&wr, &p.end[1], 0);
		if (opcode != IBV_WR_RDMA_WRITE)
			CHECK_INT(post_recv(&p.end[1], i, 0, size), 0);
		wr.imm_data = 77;
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, i, IBV_WC_SUCCESS);
		if (opcode != IBV_WR_RDMA_WRITE) {
			wc = expect_status(&p, p.end[1].rcq, i, IBV_WC_SUCCESS);
			CHECK_INT(wc.byte_len, size);
			CHECK_INT(wc.src_qp, sr_qp_num(p.end[0].qp));
		}
		run_for(&p, 1000000);
		CHECK(!memcmp(p.end[1].buf, p.end[0].buf, size));
	}
	CHECK_INT(sr_nic_counters(p.end[1].nic)->sent_pkts, 0); /* nobody answers */
	pair_close(&p);
}

/* Every message that arrives is whole, and the receives serve messages in order, whatever the wire
 * loses. */
static void loss_costs_whole_messages(void)
{
	struct options opt = default_options;
	unsigned arrived = 0;
	struct pair p;

	opt.seed = 9;
	lone_open(&p, &opt, IBV_QPT_UC);
	sr_memwire_faults(p.end[0].port)->tx.drop_ppm = 50000;
	for (uint64_t i = 0; i < 100; i++)
		CHECK_INT(post_recv(&p.end[1], i, i * 8192, 8192), 0);
	for (uint32_t i = 0; i < 100; i++) {
		struct ibv_sge list = make_sge(&p.end[0], 0, 4000 + i);
		struct ibv_send_wr wr = send_wr(IBV_WR_SEND_WITH_IMM, i, &list, 1);

		memset(p.end[0].buf, (int)i, 8192);
		wr.imm_data = i;
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, i, IBV_WC_SUCCESS);
		run_for(&p, 1000000);
	}
	while (!sr_cq_empty(p.end[1].rcq)) {
		struct ibv_wc wc = expect_status(&p, p.end[1].rcq, arrived++, IBV_WC_SUCCESS);

		CHECK_INT(wc.byte_len, 4000 + wc.imm_data);
		for (uint32_t i = 0; i < wc.byte_len; i++)
			CHECK_INT(p.end[1].buf[wc.wr_id * 8192 + i], wc.imm_data);
	}
	CHECK(arrived > 50 && arrived < 95);
	CHECK(sr_nic_counters(p.end[1].nic)->dropped_message > 0);
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_RTS);
	pair_close(&p);
}

/* Wrong keys and rights: nothing is written, nothing is answered, the next message arrives. */
static void bad_access_is_dropped(void)
{
	struct ibv_sge list;
	struct ibv_send_wr wr;
	struct pair p;

	lone_open(&p, &default_options, IBV_QPT_UC);
	list = make_sge(&p.end[0], 0, 3000);
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	memset(p.end[0].buf, 1, 3000);
	wr.wr.rdma.rkey ^= 0x100;
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	set_remote_address(&wr, &p.end[1], p.opt.buf_size - 2999);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 1000000);
	CHECK_INT(sr_nic_counters(p.end[1].nic)->dropped_bad_key, 2);
	for (size_t i = 0; i < p.opt.buf_size; i++)
		CHECK_INT(p.end[1].buf[i], 0);
	set_remote_address(&wr, &p.end[1], 8);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 1000000);
	CHECK(!memcmp(p.end[1].buf + 8, p.end[0].buf, 3000));
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK_INT(post_wr(&p, 0, &wr), -EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	CHECK_INT(post_wr(&p, 0, &wr), -EINVAL);
	pair_close(&p);
}

int main(void)
{
	bytes_arrive();
	loss_costs_whole_messages();
	bad_access_is_dropped();
	return 0;
}
