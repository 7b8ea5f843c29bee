/* SPDX-License-Identifier: BSD-3-Clause */
/* Each way a request can be wrong: what the requester's completion says, what the responder's does,
 * which event is raised. */
#include "tests/softroce/engine_pair.h"
#include <endian.h>
#include <string.h>

static void open_with(struct pair *p, const struct options *opt)
{
	pair_open(p, opt);
	pair_connect(p, IBV_QPS_RTS);
}

/* The failing request has its status, one behind it is flushed, and both queue pairs (or only ours)
 * are in error. */
static void expect_failure(struct pair *p, enum ibv_wc_status status, int event, bool peer_too)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge list = make_sge(a, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, 99, &list, 1);

	CHECK_INT(post_wr(p, 0, &wr), 0);
	expect_status(p, a->scq, 1, status);
	expect_status(p, a->scq, 99, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(sr_qp_state(a->qp), IBV_QPS_ERR);
	CHECK_INT(sr_qp_state(b->qp), peer_too ? IBV_QPS_ERR : IBV_QPS_RTS);
	CHECK_INT(a->n_events, 0);
	if (event >= 0) {
		CHECK_INT(b->n_events, 1);
		CHECK_INT(b->events[0], event);
		CHECK(b->objects[0] == b);
	} else {
		CHECK_INT(b->n_events, 0);
	}
	pair_close(p);
}

static const enum ibv_wr_opcode one_sided[] = {
	IBV_WR_RDMA_WRITE,         IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};
static const int right[] = {
	IBV_ACCESS_REMOTE_WRITE,  IBV_ACCESS_REMOTE_WRITE,  IBV_ACCESS_REMOTE_READ,
	IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC,
};

enum wrong { KEY, RANGE, BELOW, WRAP, PD, MR_RIGHT, QP_RIGHT, DEREGISTERED };

static void one_sided_wrong(unsigned op, enum wrong wrong)
{
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct sr_pd *other;
	struct ibv_sge list;
	struct pair p;
	bool atomic = op >= 3;
	uint64_t *addr = atomic ? &wr.wr.atomic.remote_addr : &wr.wr.rdma.remote_addr;
	uint32_t *key = atomic ? &wr.wr.atomic.rkey : &wr.wr.rdma.rkey;
	int err;

	if (wrong == MR_RIGHT)
		opt.mr_access &= ~right[op];
	if (wrong == QP_RIGHT)
		opt.qp_access &= ~right[op];
	open_with(&p, &opt);
	if (one_sided[op] == IBV_WR_RDMA_WRITE_WITH_IMM)
		CHECK_INT(post_recv(&p.end[1], 3, 0, 0), 0);
	list = make_sge(&p.end[0], 0, 8);
	wr = send_wr(one_sided[op], 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	if (wrong == KEY)
		*key ^= 1u << 25;
	else if (wrong == RANGE)
		*addr += p.opt.buf_size - (atomic ? 0 : 7);
	else if (wrong == BELOW)
		*addr -= 8;
	else if (wrong == WRAP)
		*addr = UINT64_MAX - 7;
	else if (wrong == DEREGISTERED)
		CHECK_INT(sr_mr_destroy(p.end[1].mr), 0);
	if (wrong == PD) {
		other = sr_pd_create(p.end[1].nic, &err);
		CHECK_INT(sr_mr_rereg(p.end[1].mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
		*key = sr_mr_rkey(p.end[1].mr);
	}
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	if (one_sided[op] == IBV_WR_RDMA_WRITE_WITH_IMM)
		expect_status(&p, p.end[1].rcq, 3, IBV_WC_WR_FLUSH_ERR);
	if (wrong == QP_RIGHT)
		expect_failure(&p, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, true);
	else
		expect_failure(&p, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, true);
}

static void misaligned_atomic(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_with(&p, &default_options);
	list = make_sge(&p.end[0], 0, 8);
	wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 4);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_failure(&p, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, true);
}

/* A message longer than the receive: both ends learn of it in completions, so no event. */
static void too_long(uint32_t len)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_with(&p, &default_options);
	list = make_sge(&p.end[0], 0, len);
	wr = send_wr(IBV_WR_SEND, 1, &list, 1);
	CHECK_INT(post_recv(&p.end[1], 3, 0, len - 1), 0);
	CHECK_INT(post_recv(&p.end[1], 4, 0, len), 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[1].rcq, 3, IBV_WC_LOC_LEN_ERR);
	expect_status(&p, p.end[1].rcq, 4, IBV_WC_WR_FLUSH_ERR);
	expect_failure(&p, IBV_WC_REM_INV_REQ_ERR, -1, true);
}

/* A receive whose own buffer is wrong, or only readable: the sender receives "remote operation". */
static void bad_receive(bool read_only)
{
	struct ibv_send_wr wr;
	struct ibv_sge list, bad_list;
	struct ibv_recv_wr recv = { .wr_id = 3, .sg_list = &bad_list, .num_sge = 1 }, *bad;
	struct pair p;

	open_with(&p, &default_options);
	list = make_sge(&p.end[0], 0, 100);
	wr = send_wr(IBV_WR_SEND, 1, &list, 1);
	bad_list = make_sge(&p.end[1], read_only ? 0 : p.opt.buf_size - 50, 100);
	if (read_only) {
		CHECK_INT(sr_mr_rereg(p.end[1].mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_READ),
			  0);
		bad_list.lkey = sr_mr_lkey(p.end[1].mr);
	}
	CHECK_INT(sr_qp_post_recv(p.end[1].qp, &recv, &bad), 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[1].rcq, 3, IBV_WC_LOC_PROT_ERR);
	expect_failure(&p, IBV_WC_REM_OP_ERR, -1, true);
}

/* A send from memory that is not ours: what was posted before it still completes. */
static void bad_send(uint32_t before, bool key, enum ibv_wr_opcode opcode, bool signaled)
{
	struct ibv_sge good, bad;
	struct ibv_send_wr wr;
	struct options opt = default_options;
	struct pair p;

	opt.timeout = 0; /* nothing may depend on it */
	open_with(&p, &opt);
	good = make_sge(&p.end[0], 0, 3000);
	bad = make_sge(&p.end[0], 0, 8);
	if (key)
		bad.lkey ^= 1u << 30;
	else
		bad.addr += p.opt.buf_size - 4;
	wr = send_wr(IBV_WR_RDMA_WRITE, 0, &good, 1);
	set_remote_address(&wr, &p.end[1], 0);
	if (!signaled)
		wr.send_flags = 0;
	for (uint32_t i = 0; i < before; i++)
		CHECK_INT(post_wr(&p, 0, &wr), 0);
	wr = send_wr(opcode, 1, &bad, 1);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	for (uint32_t i = 0; i < before && signaled; i++)
		expect_status(&p, p.end[0].scq, 0, IBV_WC_SUCCESS);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, -1, false);
}

/* The second packet of a message can not be read: the message never completes, and its own request
 * says why. */
static void bad_in_the_middle(uint32_t before)
{
	struct ibv_sge good, list[2];
	struct ibv_send_wr wr;
	struct options opt = default_options;
	struct pair p;

	opt.timeout = 0;
	open_with(&p, &opt);
	good = make_sge(&p.end[0], 0, 10);
	wr = send_wr(IBV_WR_RDMA_WRITE, 0, &good, 1);
	set_remote_address(&wr, &p.end[1], 0);
	wr.send_flags = 0;
	for (uint32_t i = 0; i < before; i++)
		CHECK_INT(post_wr(&p, 0, &wr), 0);
	list[0] = make_sge(&p.end[0], 0, 1024);
	list[1] = make_sge(&p.end[0], 1024, 1024);
	list[1].lkey++;
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, list, 2);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, -1, false);
}

/* A read whose destination goes away while the answer is on its way. */
static void read_into_nothing(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_with(&p, &default_options);
	list = make_sge(&p.end[0], 0, 100000);
	wr = send_wr(IBV_WR_RDMA_READ, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	while (!p.end[0].buf[0] && sr_nic_counters(p.end[0].nic)->rcvd_pkts < 3)
		CHECK(sr_memwire_step(p.mw));
	CHECK_INT(sr_mr_destroy(p.end[0].mr), 0);
	p.end[0].mr = p.end[1].mr; /* only for its key */
	expect_failure(&p, IBV_WC_LOC_PROT_ERR, -1, false);
}

/* A read or write whose target is deregistered under way. */
static void target_goes_away(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_with(&p, &default_options);
	list = make_sge(&p.end[0], 0, 400000);
	wr = send_wr(opcode, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	while (sr_nic_counters(p.end[opcode == IBV_WR_RDMA_WRITE].nic)->rcvd_pkts < 3)
		CHECK(sr_memwire_step(p.mw));
	CHECK_INT(sr_mr_destroy(p.end[1].mr), 0);
	expect_failure(&p, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, true);
}

/* More reads than the responder agreed to: it says invalid request. None agreed: at once. */
static void too_many_reads(uint8_t agreed)
{
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	opt.rd_atomic = 8;
	opt.dest_rd_atomic = agreed;
	open_with(&p, &opt);
	/* A slow way back, so that answers pile up at the responder. */
	sr_memwire_set_link(p.end[1].port,
			    &(struct sr_memwire_link) { .latency_ns = 1000, .bytes_per_us = 100 });
	list = make_sge(&p.end[0], 0, 30000);
	wr = send_wr(IBV_WR_RDMA_READ, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 1000000000);
	CHECK_INT(sr_qp_state(p.end[0].qp), IBV_QPS_ERR);
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_ERR);
	CHECK_INT(p.end[1].events[0], IBV_EVENT_QP_REQ_ERR);
	for (int i = 0, failed = 0; i < 8; i++) {
		struct ibv_wc wc;

		CHECK_INT(sr_cq_poll(p.end[0].scq, 1, &wc), 1);
		CHECK(failed ? wc.status == IBV_WC_WR_FLUSH_ERR
			     : wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_INV_REQ_ERR);
		failed |= wc.status != IBV_WC_SUCCESS;
		CHECK(i < 7 || failed);
	}
	pair_close(&p);
}

int main(void)
{
	for (unsigned op = 0; op < 5; op++)
		for (enum wrong w = KEY; w <= DEREGISTERED; w++)
			one_sided_wrong(op, w);
	misaligned_atomic();
	too_long(10);
	too_long(5000);
	bad_receive(false);
	bad_receive(true);
	for (uint32_t before = 0; before < 4; before++) {
		bad_send(before, true, IBV_WR_RDMA_WRITE, true);
		bad_send(before, false, IBV_WR_RDMA_WRITE, false);
		bad_send(before, false, IBV_WR_RDMA_READ, true);
		bad_send(before, true, IBV_WR_ATOMIC_FETCH_AND_ADD, false);
		bad_in_the_middle(before);
	}
	read_into_nothing();
	target_goes_away(IBV_WR_RDMA_READ);
	target_goes_away(IBV_WR_RDMA_WRITE);
	too_many_reads(0);
	too_many_reads(1);
	too_many_reads(3);
	return 0;
}
