/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: what they grant, to whom, until when; binding and invalidating in the order of
 * the send queue. */
#include "softroce/engine/nic.h"
#include "softroce/engine/packet.h"
#include "softroce/engine/qp.h"
#include "softroce/engine/rc.h"
#include "tests/softroce/engine_pair.h"
#include <errno.h>
#include <string.h>

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct bed {
	struct pair p;
	struct sr_mr *mw; /* of end 1 */
	struct ibv_mw public;
	struct ibv_mr region;
};

static void open_bed_of(struct bed *b, enum ibv_mw_type type, uint32_t max_wr)
{
	struct options opt = default_options;
	int err;

	memset(b, 0, sizeof(*b));
	opt.max_wr = max_wr;
	/* nothing from afar but through a window */
	opt.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	pair_open(&b->p, &opt);
	pair_connect(&b->p, IBV_QPS_RTS);
	b->mw = sr_mw_create(b->p.end[1].pd, type, &err);
	CHECK_INT(err, 0);
	b->public.type = type;
	b->region.lkey = sr_mr_lkey(b->p.end[1].mr);
}

static void open_bed(struct bed *b, enum ibv_mw_type type)
{
	open_bed_of(b, type, default_options.max_wr);
}

/* Posts at end 1; the status of the work request. */
static enum ibv_wc_status bind_window(struct bed *b, uint32_t rkey, size_t offset, uint64_t length,
				      unsigned access)
{
	struct ibv_send_wr wr = {
		.wr_id = 40,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { &b->public,
			     rkey,
			     { &b->region, address_of(&b->p.end[1], offset), length, access } },
	};
	struct ibv_wc wc;

	CHECK_INT(post_wr(&b->p, 1, &wr), 0);
	CHECK(wait_cq(&b->p, b->p.end[1].scq, &wc, 1000000000));
	CHECK_INT(wc.wr_id, 40);
	if (wc.status == IBV_WC_SUCCESS)
		CHECK_INT(wc.opcode, IBV_WC_BIND_MW);
	return wc.status;
}

/* End 0 writes 64 bytes at end 1. */
static enum ibv_wc_status write_at(struct bed *b, uint64_t address, uint32_t rkey)
{
	struct ibv_sge list = make_sge(&b->p.end[0], 0, 64);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = rkey;
	CHECK_INT(post_wr(&b->p, 0, &wr), 0);
	CHECK(wait_cq(&b->p, b->p.end[0].scq, &wc, 10000000000));
	return wc.status;
}

static void window_grants_access(enum ibv_mw_type type)
{
	struct bed b;
	uint32_t rkey;

	open_bed(&b, type);
	rkey = ibv_inc_rkey(sr_mr_rkey(b.mw));
	CHECK_INT(bind_window(&b, rkey, 1000, 200, REMOTE), IBV_WC_SUCCESS);
	CHECK_INT(sr_mr_rkey(b.mw), rkey);
	memset(b.p.end[0].buf, 0x77, 64);
	CHECK_INT(write_at(&b, address_of(&b.p.end[1], 1136), rkey), IBV_WC_SUCCESS);
	CHECK_INT(b.p.end[1].buf[1199], 0x77);
	CHECK_INT(b.p.end[1].buf[1135], 0);
	CHECK_INT(sr_mr_destroy(b.p.end[1].mr), -EBUSY); /* a window is bound to it */
	CHECK_INT(sr_mw_destroy(b.mw), 0);
	CHECK_INT(write_at(&b, address_of(&b.p.end[1], 1136), rkey), IBV_WC_REM_ACCESS_ERR);
	CHECK_INT(sr_mr_destroy(b.p.end[1].mr), 0);
	pair_close(&b.p);
}

/* One wrong access each, by the connection that the answer ends. */
static void window_denies_access(void)
{
	for (int i = 0; i < 5; i++) {
		struct bed b;
		uint32_t rkey, old;
		uint64_t at;

		open_bed(&b, IBV_MW_TYPE_1);
		old = sr_mr_rkey(b.mw);
		rkey = ibv_inc_rkey(old);
		at = address_of(&b.p.end[1], 1000);
		if (i != 1)
			CHECK_INT(bind_window(&b, rkey, 1000, 200,
					      i ? REMOTE : IBV_ACCESS_REMOTE_READ),
				  IBV_WC_SUCCESS);
		if (i == 2) /* of type 1: bound again elsewhere, under a new key */
			CHECK_INT(bind_window(&b, ibv_inc_rkey(rkey), 5000, 200, REMOTE),
				  IBV_WC_SUCCESS);
		if (i == 3)
			at += 137; /* one byte too far */
		if (i == 4)
			at -= 1;
		CHECK_INT(write_at(&b, at, i == 1 ? old : rkey), IBV_WC_REM_ACCESS_ERR);
		CHECK_INT(sr_nic_counters(b.p.end[1].nic)->dropped_bad_key, 1);
		CHECK_INT(sr_nic_counters(b.p.end[1].nic)->refused_request, 1);
		pair_close(&b.p);
	}
}

/* A window gives no right to use its key for buffers of one's own. */
static void not_local(void)
{
	struct ibv_sge list;
	struct ibv_send_wr wr;
	struct bed b;
	uint32_t rkey;

	open_bed(&b, IBV_MW_TYPE_1);
	rkey = ibv_inc_rkey(sr_mr_rkey(b.mw));
	CHECK_INT(bind_window(&b, rkey, 1000, 200, REMOTE), IBV_WC_SUCCESS);
	list = make_sge(&b.p.end[1], 1000, 8);
	list.lkey = rkey;
	wr = send_wr(IBV_WR_SEND, 3, &list, 1);
	CHECK_INT(post_wr(&b.p, 1, &wr), 0);
	expect_status(&b.p, b.p.end[1].scq, 3, IBV_WC_LOC_PROT_ERR);
	pair_close(&b.p);
}

static void bad_binds(void)
{
	static const struct {
		enum ibv_mw_type type;
		size_t offset;
		uint64_t length;
		unsigned access;
		uint32_t key_flip;
	} bad[] = {
		{ IBV_MW_TYPE_1, (1 << 20) - 100, 101, REMOTE, 0 },
		{ IBV_MW_TYPE_1, 1000, UINT64_MAX - 50, REMOTE, 0 },
		{ IBV_MW_TYPE_1, 1000, 100, REMOTE | IBV_ACCESS_ZERO_BASED, 0 },
		{ IBV_MW_TYPE_1, 1000, 100, REMOTE | IBV_ACCESS_ON_DEMAND, 0 },
		{ IBV_MW_TYPE_1, 1000, 100, REMOTE, 1u << 31 },
		{ IBV_MW_TYPE_2, 1000, 0, REMOTE, 0 },
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct bed b;
		uint32_t rkey;

		open_bed(&b, bad[i].type);
		rkey = ibv_inc_rkey(sr_mr_rkey(b.mw)) ^ bad[i].key_flip;
		CHECK_INT(bind_window(&b, rkey, bad[i].offset, bad[i].length, bad[i].access),
			  IBV_WC_MW_BIND_ERR);
		CHECK_INT(sr_qp_state(b.p.end[1].qp), IBV_QPS_ERR);
		CHECK_INT(sr_mr_destroy(b.p.end[1].mr), 0); /* nothing was bound */
		pair_close(&b.p);
	}
}

/* Type 2: bound once, for one queue pair, until somebody of it invalidates it. */
static void type_two(void)
{
	struct ibv_send_wr wr = { .wr_id = 8,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge list;
	struct ibv_wc wc;
	struct bed b;
	uint32_t rkey;

	open_bed(&b, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(sr_mr_rkey(b.mw));
	CHECK_INT(bind_window(&b, rkey, 1000, 200, REMOTE | IBV_ACCESS_ZERO_BASED), IBV_WC_SUCCESS);
	CHECK_INT(write_at(&b, 136, rkey), IBV_WC_SUCCESS);
	wr.invalidate_rkey = rkey;
	CHECK_INT(post_wr(&b.p, 1, &wr), 0);
	wc = expect_status(&b.p, b.p.end[1].scq, 8, IBV_WC_SUCCESS);
	CHECK_INT(wc.opcode, IBV_WC_LOCAL_INV);
	/* Bound again, and this time the peer ends it with its last message. */
	rkey = ibv_inc_rkey(rkey);
	CHECK_INT(bind_window(&b, rkey, 1000, 200, REMOTE), IBV_WC_SUCCESS);
	CHECK_INT(write_at(&b, address_of(&b.p.end[1], 1000), rkey), IBV_WC_SUCCESS);
	CHECK_INT(post_recv(&b.p.end[1], 9, 0, 3000), 0);
	list = make_sge(&b.p.end[0], 0, 3000);
	wr = send_wr(IBV_WR_SEND_WITH_INV, 2, &list, 1);
	wr.invalidate_rkey = rkey;
	CHECK_INT(post_wr(&b.p, 0, &wr), 0);
	expect_status(&b.p, b.p.end[0].scq, 2, IBV_WC_SUCCESS);
	wc = expect_status(&b.p, b.p.end[1].rcq, 9, IBV_WC_SUCCESS);
	CHECK_INT(wc.wc_flags, IBV_WC_WITH_INV);
	CHECK_INT(wc.invalidated_rkey, rkey);
	CHECK_INT(write_at(&b, address_of(&b.p.end[1], 1000), rkey), IBV_WC_REM_ACCESS_ERR);
	pair_close(&b.p);
}

/* Another queue pair of the same protection domain may not use a type 2 window, nor invalidate
 * it. */
static void only_its_queue_pair(bool invalidate)
{
	struct sr_qp *other[2];
	struct ibv_send_wr wr, *bad;
	struct ibv_sge list;
	struct bed b;
	uint32_t rkey;
	int err;

	open_bed(&b, IBV_MW_TYPE_2);
	for (int e = 0; e < 2; e++)
		other[e] = pair_new_qp(&b.p, e, &err);
	for (int e = 0; e < 2; e++)
		pair_to_state(&b.p, e, other[e], sr_qp_num(other[!e]), IBV_QPS_RTS);
	rkey = ibv_inc_rkey(sr_mr_rkey(b.mw));
	CHECK_INT(bind_window(&b, rkey, 1000, 200, REMOTE), IBV_WC_SUCCESS);
	list = make_sge(&b.p.end[0], 0, 64);
	wr = send_wr(invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_RDMA_WRITE, 5, &list, 1);
	if (invalidate) {
		list = make_sge(&b.p.end[1], 0, 100);
		CHECK_INT(sr_qp_post_recv(other[1],
					  &(struct ibv_recv_wr) { .sg_list = &list, .num_sge = 1 },
					  &(struct ibv_recv_wr *) { NULL }),
			  0);
		list = make_sge(&b.p.end[0], 0, 64);
		wr.invalidate_rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = address_of(&b.p.end[1], 1000);
		wr.wr.rdma.rkey = rkey;
	}
	CHECK_INT(sr_qp_post_send(other[0], sr_memwire_now(b.p.mw), &wr, &bad), 0);
	expect_status(&b.p, b.p.end[0].scq, 5, IBV_WC_REM_ACCESS_ERR);
	CHECK_INT(write_at(&b, address_of(&b.p.end[1], 1000), rkey), IBV_WC_SUCCESS);
	pair_close(&b.p);
}

/*
 * Window work between sends, on a wire that loses and answers late: done once, in order, and
 * completed behind what precedes it. In a queue of four places each comes to lie where work on a
 * window has lain before, and an answer that arrives when the sender has gone back must complete
 * what it covers and nothing behind it.
 */
static void in_order(uint32_t max_wr, uint64_t late, uint32_t length)
{
	static const struct sr_memwire_link narrow = { .latency_ns = 2000,
						       .bytes_per_us = 12500,
						       .backlog_ns = 1000 };
	struct ibv_send_wr wr[3];
	struct ibv_sge list;
	struct bed b;

	open_bed_of(&b, IBV_MW_TYPE_2, max_wr);
	sr_memwire_faults(b.p.end[1].port)->tx.drop_ppm = late ? 0 : 100000;
	sr_memwire_faults(b.p.end[0].port)->tx.delay_ns = late;
	sr_memwire_set_link(b.p.end[1].port, &narrow);
	list = make_sge(&b.p.end[1], 0, length);
	for (uint32_t i = 0; i < (late ? 5 : 50); i++) {
		uint32_t rkey = ibv_inc_rkey(sr_mr_rkey(b.mw));
		struct ibv_send_wr *bad;

		wr[0] = send_wr(IBV_WR_SEND, 10 * i, &list, 1);
		wr[1] = (struct ibv_send_wr) {
			.wr_id = 10 * i + 1,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = { &b.public,
				     rkey,
				     { &b.region, address_of(&b.p.end[1], 0), 100, REMOTE } },
		};
		wr[2] = (struct ibv_send_wr) {
			.wr_id = 10 * i + 2,
			.opcode = IBV_WR_LOCAL_INV,
			.send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = rkey,
		};
		wr[0].next = &wr[1];
		wr[1].next = &wr[2];
		CHECK_INT(post_recv(&b.p.end[0], i, 0, length), 0);
		CHECK_INT(sr_qp_post_send(b.p.end[1].qp, sr_memwire_now(b.p.mw), wr, &bad), 0);
		for (uint32_t k = 0; k < 3; k++)
			expect_status(&b.p, b.p.end[1].scq, 10 * i + k, IBV_WC_SUCCESS);
		expect_status(&b.p, b.p.end[0].rcq, i, IBV_WC_SUCCESS);
	}
	CHECK(sr_cq_empty(b.p.end[1].scq));
	CHECK_INT(sr_mr_destroy(b.p.end[1].mr), 0);
	pair_close(&b.p);
}

static bool drop_all(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	(void)arg;
	(void)from;
	(void)packet;
	(void)len;
	return false;
}

/* A write, and a bind behind it that is done: the write's acknowledgement comes late, when the
 * write has just been sent again and the bind is next. What is sent next is never behind what is
 * done. */
static void acknowledged_after_a_rewind(void)
{
	struct sr_path path = { .ttl = 64, .sport = 0xc000 };
	uint8_t packet[64], *aeth;
	struct ibv_send_wr write, bind;
	struct ibv_sge list;
	struct sr_qp *qp;
	struct bed b;

	open_bed_of(&b, IBV_MW_TYPE_1, 4);
	qp = b.p.end[1].qp;
	sr_memwire_set_tap(b.p.mw, drop_all, NULL);
	list = make_sge(&b.p.end[1], 0, 64);
	write = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&write, &b.p.end[0], 0);
	bind = (struct ibv_send_wr) { .wr_id = 2,
				      .opcode = IBV_WR_BIND_MW,
				      .send_flags = IBV_SEND_SIGNALED,
				      .bind_mw = { &b.public,
						   sr_mr_rkey(b.mw),
						   { &b.region, address_of(&b.p.end[1], 0), 64,
						     REMOTE } } };
	CHECK_INT(post_wr(&b.p, 1, &write), 0);
	CHECK_INT(post_wr(&b.p, 1, &bind), 0);
	run_for(&b.p, 1000);
	CHECK_INT(qp->sq.cur - qp->sq.tail, 2);
	sr_requester_rewind(qp);
	CHECK_INT(sr_requester_transmit(qp, 1), 1);
	CHECK_INT(qp->sq.cur - qp->sq.tail, 1);
	aeth = make_packet(packet, SR_OP_ACK, qp->qpn, b.p.opt.psn[1], false, 0);
	memcpy(aeth, "\x1f\0\0\1", 4); /* one message, no credits */
	memcpy(path.src, &b.p.end[1].gid, 16);
	memcpy(path.dst, &b.p.end[0].gid, 16);
	sr_nic_receive(b.p.end[1].nic, b.p.end[1].nic->now, &path, packet,
		       (uint32_t)(aeth - packet) + 4);
	CHECK_INT(qp->sq.tail, qp->sq.head);
	CHECK_INT(qp->sq.cur, qp->sq.head);
	pair_close(&b.p);
}

int main(void)
{
	window_grants_access(IBV_MW_TYPE_1);
	window_grants_access(IBV_MW_TYPE_2);
	window_denies_access();
	not_local();
	bad_binds();
	type_two();
	only_its_queue_pair(false);
	only_its_queue_pair(true);
	acknowledged_after_a_rewind();
	in_order(128, 0, 5000);
	in_order(4, 0, 5000);
	/* Longer than the sender waits before it goes back; and more than the wire takes at once,
	 * so it is found in the middle of that. */
	for (uint64_t late = 4150000; late < 4210000; late += 1500)
		in_order(4, late, 250000);
	return 0;
}
