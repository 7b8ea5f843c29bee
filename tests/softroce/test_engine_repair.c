/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery without the timer (it is off here): lost requests are named by a NAK, lost answers by
 * the ones behind them. And the small promises of going back: what is repeated, what is not, what
 * waits for what.
 */
#include "softroce/engine/packet.h"
#include "softroce/engine/qp.h"
#include "tests/softroce/engine_pair.h"
#include <endian.h>
#include <string.h>

/* What went by, and what was made to vanish: the n-th packet of an end, for a few n. */
struct watch {
	struct pair *p;
	uint64_t n[2], acks, naks, read_requests, last_ack_psn, last_answer_psn;
	uint64_t lose[2][4];
	bool write_seen, write_before_answer;
};

static uint32_t psn_of(const uint8_t *packet)
{
	uint32_t v;

	memcpy(&v, packet + 8, 4);
	return be32toh(v) & 0xffffff;
}

static bool watch_packet(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	struct watch *w = arg;
	int e = from == w->p->end[1].port;

	w->n[e]++;
	if (packet[0] == SR_OP_ACK && (packet[12] & SR_AETH_KIND) == 0) {
		w->acks++;
		w->last_ack_psn = psn_of(packet);
	} else if (packet[0] == SR_OP_ACK) {
		w->naks++;
	}
	if (packet[0] == SR_OP_READ_ONLY)
		w->last_answer_psn = psn_of(packet);
	w->read_requests += packet[0] == SR_OP_READ_REQUEST;
	if (packet[0] == SR_OP_WRITE_ONLY) {
		w->write_seen = true;
		/* of the read */
		w->write_before_answer |= sr_nic_counters(w->p->end[0].nic)->rcvd_pkts < 5;
	}
	for (int i = 0; i < 4; i++)
		if (w->lose[e][i] == w->n[e])
			return false;
	return true;
}

static void open_pair(struct pair *p, struct watch *w)
{
	struct options opt = default_options;

	opt.timeout = 0;
	pair_open(p, &opt);
	pair_connect(p, IBV_QPS_RTS);
	w->p = p;
	sr_memwire_set_tap(p->mw, watch_packet, w);
}

static void post_op(struct pair *p, enum ibv_wr_opcode opcode, uint64_t id, uint32_t len,
		    unsigned flags)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, len);
	struct ibv_send_wr wr = send_wr(opcode, id, &list, 1);

	wr.send_flags |= flags;
	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

/* Three losses in one message: three NAKs, and each goes back no further than the loss. */
static void lost_requests(void)
{
	struct watch w = { .lose = { { 3, 60, 110 } } };
	struct pair p;

	open_pair(&p, &w);
	fill_random(p.end[0].buf, 50 * 1024, 1);
	post_op(&p, IBV_WR_RDMA_WRITE, 1, 50 * 1024, 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(p.end[0].buf, p.end[1].buf, 50 * 1024));
	CHECK_INT(w.naks, 3);
	CHECK_INT(sr_nic_counters(p.end[0].nic)->rcvd_seq_err, 3);
	pair_close(&p);
}

/* A lost read response: the read is asked again from there, once, and answered from there. */
static void lost_responses(void)
{
	struct watch w = { .lose = { { 0 }, { 5, 70 } } };
	struct pair p;

	open_pair(&p, &w);
	fill_random(p.end[1].buf, 50 * 1024, 1);
	post_op(&p, IBV_WR_RDMA_READ, 1, 50 * 1024, 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(p.end[0].buf, p.end[1].buf, 50 * 1024));
	CHECK_INT(w.read_requests, 3);
	CHECK_INT(sr_nic_counters(p.end[1].nic)->duplicate_request, 2);
	run_for(&p, 1000000);
	CHECK(w.n[1] <= 50 + 46 + 46);
	pair_close(&p);
}

/* A late fence: what is fenced leaves after the read's answer is here. */
static void check_fence(unsigned flags)
{
	struct watch w = { 0 };
	struct pair p;

	open_pair(&p, &w);
	post_op(&p, IBV_WR_RDMA_READ, 1, 5000, 0);
	post_op(&p, IBV_WR_RDMA_WRITE, 2, 100, flags);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	expect_status(&p, p.end[0].scq, 2, IBV_WC_SUCCESS);
	CHECK(w.write_seen);
	CHECK_INT(w.write_before_answer, !flags);
	pair_close(&p);
}

/* A repeated write is acknowledged, but not past a read behind it whose answer may be on its
 * way. */
static void repeated_write(void)
{
	struct watch w = { 0 };
	struct sr_reth reth = { 0 };
	uint8_t packet[28];
	struct pair p;

	open_pair(&p, &w);
	sr_memwire_faults(p.end[1].port)->tx.blackhole = 1;
	post_op(&p, IBV_WR_RDMA_WRITE, 1, 0, 0);
	post_op(&p, IBV_WR_RDMA_READ, 2, 100, 0);
	post_op(&p, IBV_WR_RDMA_WRITE, 3, 0, 0);
	run_for(&p, 100000);
	sr_memwire_faults(p.end[1].port)->tx.blackhole = 0;
	memcpy(make_packet(packet, SR_OP_WRITE_ONLY, sr_qp_num(p.end[1].qp), p.opt.psn[0], true, 0),
	       &reth, sizeof(reth));
	w.last_ack_psn = 0;
	inject_packet(&p, 0, packet, sizeof(packet));
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK_INT(w.last_ack_psn, p.opt.psn[0]);
	/* A repetition of the last: acknowledged in full, which shows that the read's answer is
	 * lost. */
	memcpy(make_packet(packet, SR_OP_WRITE_ONLY, sr_qp_num(p.end[1].qp), p.opt.psn[0] + 2, true,
			   0),
	       &reth, sizeof(reth));
	inject_packet(&p, 0, packet, sizeof(packet));
	expect_status(&p, p.end[0].scq, 2, IBV_WC_SUCCESS);
	expect_status(&p, p.end[0].scq, 3, IBV_WC_SUCCESS);
	pair_close(&p);
}

static void receive_op(struct pair *p, uint8_t opcode, uint32_t psn, bool ack_request)
{
	struct sr_path path = { 0 };
	struct sr_reth reth = { 0 };
	uint8_t packet[28];

	memcpy(path.src, &p->end[1].gid, 16);
	memcpy(path.dst, &p->end[0].gid, 16);
	memcpy(make_packet(packet, opcode, sr_qp_num(p->end[1].qp), psn, ack_request, 0), &reth,
	       sizeof(reth));
	sr_nic_receive(p->end[1].nic, sr_memwire_now(p->mw), &path, packet, sizeof(packet));
}

static void receive_write(struct pair *p, uint32_t psn, bool ack_request)
{
	receive_op(p, SR_OP_WRITE_ONLY, psn, ack_request);
}

/* All agreed reads are on the way, an old one is repeated by the network, and a new one comes in
 * the same batch. */
static void repeated_read_makes_room(void)
{
	struct watch w = { 0 };
	struct pair p;

	open_pair(&p, &w);
	for (uint32_t i = 0; i < p.opt.dest_rd_atomic; i++)
		receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0] + i, true);
	run_for(&p, 100000);
	CHECK_INT(w.n[1], p.opt.dest_rd_atomic);
	receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0], true);
	receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0] + p.opt.dest_rd_atomic, true);
	run_for(&p, 100000);
	CHECK_INT(w.n[1], p.opt.dest_rd_atomic + 1);
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_RTS);
	/* Repetitions in the wrong order are answered oldest first, each once. */
	receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0] + 3, true);
	receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0] + 2, true);
	receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0] + 3, true);
	run_for(&p, 100000);
	CHECK_INT(w.n[1], p.opt.dest_rd_atomic + 3);
	CHECK_INT(w.last_answer_psn, p.opt.psn[0] + 3);
	/* But one more than agreed that has not been answered at all is one too many. */
	for (uint32_t i = 0; i <= p.opt.dest_rd_atomic; i++)
		receive_op(&p, SR_OP_READ_REQUEST, p.opt.psn[0] + p.opt.dest_rd_atomic + 1 + i,
			   true);
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_ERR);
	pair_close(&p);
}

/* A repeated write when the last read was half the number space ago. */
static void repeated_long_after(void)
{
	struct watch w = { 0 };
	struct pair p;

	open_pair(&p, &w);
	post_op(&p, IBV_WR_RDMA_READ, 1, 100, 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	p.end[1].qp->resp.epsn = (p.end[1].qp->resp.epsn + 9000000) & 0xffffff;
	p.end[0].qp->req.post_psn = p.end[0].qp->req.next_psn = p.end[0].qp->req.una_psn =
		p.end[0].qp->req.max_psn = p.end[1].qp->resp.epsn;
	w.lose[1][0] = w.n[1] + 1;
	post_op(&p, IBV_WR_RDMA_WRITE, 2, 10, 0);
	run_for(&p, 100000);
	post_op(&p, IBV_WR_RDMA_WRITE, 3, 10, 0); /* the first one is acknowledged with it */
	expect_status(&p, p.end[0].scq, 2, IBV_WC_SUCCESS);
	expect_status(&p, p.end[0].scq, 3, IBV_WC_SUCCESS);
	receive_write(&p, p.end[0].qp->req.una_psn - 2, true);
	run_for(&p, 100000);
	CHECK_INT(w.last_ack_psn, p.end[0].qp->req.una_psn - 1);
	pair_close(&p);
}

/* A batch of packets costs one answer; a gap that closes within the batch costs none. */
static void answers_are_coalesced(void)
{
	struct watch w = { 0 };
	struct pair p;

	open_pair(&p, &w);
	for (uint32_t i = 0; i < 20; i++)
		receive_write(&p, p.opt.psn[0] + i, i & 1);
	run_for(&p, 100000);
	CHECK_INT(w.acks, 1);
	CHECK_INT(w.last_ack_psn, p.opt.psn[0] + 19);
	receive_write(&p, p.opt.psn[0] + 21, true);
	receive_write(&p, p.opt.psn[0] + 20, false);
	run_for(&p, 100000);
	CHECK_INT(w.naks, 0);
	CHECK_INT(w.acks, 1);
	/* The next gap is reported, once. */
	for (uint32_t i = 30; i < 40; i++)
		receive_write(&p, p.opt.psn[0] + i, true);
	run_for(&p, 100000);
	receive_write(&p, p.opt.psn[0] + 50, true);
	run_for(&p, 100000);
	CHECK_INT(w.naks, 1);
	CHECK_INT(w.acks, 1);
	pair_close(&p);
}

/* Once the program has put a queue pair into the error state, nothing leaves it, not even what it
 * owes. */
static void error_state_is_silent(void)
{
	struct watch w = { 0 };
	struct pair p;

	open_pair(&p, &w);
	receive_write(&p, p.opt.psn[0], true);
	pair_to_state(&p, 1, p.end[1].qp, 0, IBV_QPS_ERR);
	run_for(&p, 100000);
	receive_write(&p, p.opt.psn[0] + 1, true);
	run_for(&p, 100000);
	CHECK_INT(w.n[1], 0);
	pair_close(&p);
}

int main(void)
{
	lost_requests();
	lost_responses();
	check_fence(0);
	check_fence(IBV_SEND_FENCE);
	repeated_write();
	repeated_long_after();
	repeated_read_makes_room();
	answers_are_coalesced();
	error_state_is_silent();
	return 0;
}
