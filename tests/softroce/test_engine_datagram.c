/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: bytes and origin, what is dropped and counted, the send queue's own error
 * state. */
#include "tests/softroce/engine_lone.h"
#include <errno.h>
#include <string.h>

#define GRH 40

static struct ibv_send_wr datagram_wr(const struct pair *p, int from, struct sr_ah *ah, uint64_t id,
				      struct ibv_sge *list)
{
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, id, list, 1);

	wr.wr.ud.ah = &ah->ah;
	wr.wr.ud.remote_qpn = sr_qp_num(p->end[!from].qp);
	wr.wr.ud.remote_qkey = LONE_QKEY;
	return wr;
}

/* The 40 bytes say who sent it. */
static void check_origin(const struct pair *p, const uint8_t *grh, uint32_t len)
{
	uint32_t sum = 0;

	if (p->opt.ipv6) {
		CHECK_INT(grh[0] >> 4, 6);
		CHECK_INT(grh[4] << 8 | grh[5], 8 + 20 + len + 4);
		CHECK(!memcmp(grh + 8, &p->end[0].gid, 16) &&
		      !memcmp(grh + 24, &p->end[1].gid, 16));
		return;
	}
	CHECK_INT(grh[20], 0x45);
	CHECK_INT(grh[22] << 8 | grh[23], 20 + 8 + 20 + len + 4);
	for (int i = 20; i < 40; i += 2)
		sum += (uint32_t)grh[i] << 8 | grh[i + 1];
	CHECK_INT((sum & 0xffff) + (sum >> 16), 0xffff);
	CHECK(!memcmp(grh + 32, p->end[0].gid.raw + 12, 4) &&
	      !memcmp(grh + 36, p->end[1].gid.raw + 12, 4));
}

/* Every size class, inline and from buffers, with and without immediate data. */
static void bytes_arrive(const struct options *opt)
{
	static const uint32_t sizes[] = { 0, 1, 3, 4, 64, 255, 1000, 4095, 4096 };
	struct sr_ah ah;
	struct pair p;

	lone_open(&p, opt, IBV_QPT_UD);
	ah = lone_ah(&p, 0);
	fill_random(p.end[0].buf, 5000, 3);
	for (uint64_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 2; i++) {
		uint32_t size = sizes[i / 2], padded = (size + 3) & ~3u;
		struct ibv_sge list = make_sge(&p.end[0], 0, size);
		struct ibv_send_wr wr = datagram_wr(&p, 0, &ah, i, &list);
		struct ibv_wc wc;

		CHECK_INT(post_recv(&p.end[1], i, 8192, GRH + size), 0);
		if (i & 1) {
			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = 0x01020304;
		}
		if (size <= 256)
			wr.send_flags |= IBV_SEND_INLINE;
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		memset(&ah.path, 0xee, sizeof(ah.path)); /* the handle is not needed any more */
		wc = expect_status(&p, p.end[0].scq, i, IBV_WC_SUCCESS);
		CHECK_INT(wc.opcode, IBV_WC_SEND);
		wc = expect_status(&p, p.end[1].rcq, i, IBV_WC_SUCCESS);
		CHECK_INT(wc.byte_len, GRH + size);
		CHECK_INT(wc.src_qp, sr_qp_num(p.end[0].qp));
		CHECK_INT(wc.wc_flags, IBV_WC_GRH | (i & 1 ? IBV_WC_WITH_IMM : 0));
		CHECK_INT(wc.imm_data, i & 1 ? 0x01020304 : 0);
		CHECK(!memcmp(p.end[1].buf + 8192 + GRH, p.end[0].buf, size));
		check_origin(&p, p.end[1].buf + 8192, padded + (i & 1 ? 4 : 0));
		ah = lone_ah(&p, 0);
	}
	pair_close(&p);
}

/* None of these arrives, each is counted, and the queue pair goes on. */
static void drops_are_counted(void)
{
	struct sr_ah ah;
	struct pair p;
	struct ibv_sge list;
	struct ibv_send_wr wr;
	const struct sr_counters *c;

	lone_open(&p, &default_options, IBV_QPT_UD);
	ah = lone_ah(&p, 0);
	list = make_sge(&p.end[0], 0, 100);
	c = sr_nic_counters(p.end[1].nic);
	wr = datagram_wr(&p, 0, &ah, 1, &list);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS); /* nothing reports it to the sender */
	run_for(&p, 100000);
	CHECK_INT(c->dropped_no_receive, 1);
	CHECK_INT(post_recv(&p.end[1], 5, 0, 1000), 0);
	wr.wr.ud.remote_qkey = LONE_QKEY + 1;
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 100000);
	CHECK_INT(c->dropped_bad_qkey, 1);
	wr.wr.ud.remote_qpn ^= 1u << 20;
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 100000);
	CHECK_INT(c->dropped_no_qp, 1);
	CHECK(sr_cq_empty(p.end[1].rcq));
	/* The privileged key stands for the sender's own. */
	wr = datagram_wr(&p, 0, &ah, 9, &list);
	wr.wr.ud.remote_qkey = 0x80000000u;
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[1].rcq, 5, IBV_WC_SUCCESS);
	pair_close(&p);
}

static void bad_work_is_refused(void)
{
	struct sr_ah ah;
	struct pair p;
	struct ibv_sge list;
	struct ibv_send_wr wr;
	struct ibv_ah_attr nowhere = { .is_global = 1, .port_num = 1 };

	lone_open(&p, &default_options, IBV_QPT_UD);
	ah = lone_ah(&p, 0);
	list = make_sge(&p.end[0], 0, 4097);
	wr = datagram_wr(&p, 0, &ah, 1, &list);
	CHECK_INT(post_wr(&p, 0, &wr), -EINVAL); /* longer than a packet */
	list.length = 8;
	wr.wr.ud.ah = NULL;
	CHECK_INT(post_wr(&p, 0, &wr), -EINVAL);
	wr = datagram_wr(&p, 0, &ah, 1, &list);
	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK_INT(post_wr(&p, 0, &wr), -EINVAL);
	CHECK_INT(sr_ah_resolve(p.end[0].nic, &nowhere, &ah.path), -EINVAL);
	nowhere.grh.dgid = p.end[1].gid;
	nowhere.grh.sgid_index = 1; /* not in use */
	CHECK_INT(sr_ah_resolve(p.end[0].nic, &nowhere, &ah.path), -EINVAL);
	pair_close(&p);
}

/* A bad buffer stops the send queue alone; receiving goes on, and RTS brings it back. */
static void send_queue_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_sge bad_list, list;
	struct ibv_send_wr wr, second;
	struct sr_ah ah[2];
	struct pair p;

	lone_open(&p, &default_options, IBV_QPT_UD);
	ah[0] = lone_ah(&p, 0);
	ah[1] = lone_ah(&p, 1);
	list = make_sge(&p.end[0], 0, 8);
	bad_list = list;
	bad_list.lkey ^= 0x100;
	wr = datagram_wr(&p, 0, &ah[0], 1, &bad_list);
	second = datagram_wr(&p, 0, &ah[0], 2, &list);
	wr.next = &second;
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	expect_status(&p, p.end[0].scq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(sr_qp_state(p.end[0].qp), IBV_QPS_SQE);
	CHECK_INT(post_wr(&p, 0, &second), 0);
	expect_status(&p, p.end[0].scq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(post_recv(&p.end[0], 7, 0, 1000), 0);
	list = make_sge(&p.end[1], 0, 8);
	wr = datagram_wr(&p, 1, &ah[1], 3, &list);
	CHECK_INT(post_wr(&p, 1, &wr), 0);
	expect_status(&p, p.end[0].rcq, 7, IBV_WC_SUCCESS);
	CHECK_INT(sr_qp_modify(p.end[0].qp, 0, &attr, IBV_QP_STATE), 0);
	list = make_sge(&p.end[0], 0, 8);
	second = datagram_wr(&p, 0, &ah[0], 4, &list);
	CHECK_INT(post_wr(&p, 0, &second), 0);
	expect_status(&p, p.end[0].scq, 4, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* The receive is too short for the 40 bytes and the payload. */
static void too_short(void)
{
	struct ibv_sge list;
	struct ibv_send_wr wr;
	struct sr_ah ah;
	struct pair p;

	lone_open(&p, &default_options, IBV_QPT_UD);
	ah = lone_ah(&p, 0);
	list = make_sge(&p.end[0], 0, 100);
	wr = datagram_wr(&p, 0, &ah, 1, &list);
	memset(p.end[1].buf, 0x5a, 200);
	CHECK_INT(post_recv(&p.end[1], 5, 0, GRH + 99), 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[1].rcq, 5, IBV_WC_LOC_LEN_ERR);
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_ERR);
	for (int i = 0; i < 200; i++)
		CHECK_INT(p.end[1].buf[i], 0x5a);
	pair_close(&p);
}

static void send_queue_drains(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_sge list;
	struct ibv_send_wr wr;
	struct sr_ah ah;
	struct pair p;

	lone_open(&p, &default_options, IBV_QPT_UD);
	ah = lone_ah(&p, 0);
	list = make_sge(&p.end[0], 0, 100);
	wr = datagram_wr(&p, 0, &ah, 1, &list);
	CHECK_INT(sr_qp_modify(p.end[0].qp, 0, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		  0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 1000000);
	CHECK_INT(count_events(&p.end[0], IBV_EVENT_SQ_DRAINED), 1);
	CHECK(sr_cq_empty(p.end[0].scq));
	attr.qp_state = IBV_QPS_RTS;
	CHECK_INT(sr_qp_modify(p.end[0].qp, 0, &attr, IBV_QP_STATE), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	pair_close(&p);
}

int main(void)
{
	struct options opt = default_options;

	bytes_arrive(&opt);
	opt.use_srq = true;
	bytes_arrive(&opt);
	opt.ipv6 = true;
	bytes_arrive(&opt);
	drops_are_counted();
	bad_work_is_refused();
	send_queue_error();
	too_short();
	send_queue_drains();
	return 0;
}
