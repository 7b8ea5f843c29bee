/* SPDX-License-Identifier: BSD-3-Clause */
/* An acknowledgement that waits: goes behind the next packet, with the next turn, at its time at
 * the latest, and before its queue pair goes; several, one with each post; and those that may not
 * wait. */
#include "softroce/engine/packet.h"
#include "tests/softroce/engine_pair.h"
#include <string.h>

#define WAIT_NS 100000u
#define SMALL 256u
#define SEEN_MAX 16

/* What end 1 has sent, in order. */
static uint8_t seen[SEEN_MAX];
static int n_seen;

static bool note_opcode(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	struct pair *p = arg;

	if (from == p->end[1].port) {
		CHECK(n_seen < SEEN_MAX);
		seen[n_seen++] = packet[0];
	}
	return true;
}

static void open_pair(struct pair *p)
{
	pair_open(p, &default_options);
	pair_connect(p, IBV_QPS_RTS);
	run_for(p, 1);
	sr_memwire_set_tap(p->mw, note_opcode, p);
	n_seen = 0;
}

static void post_write(struct pair *p, int from, uint64_t id, uint32_t length)
{
	struct ibv_sge list = make_sge(&p->end[from], 0, length);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, id, &list, 1);

	set_remote_address(&wr, &p->end[!from], 0);
	CHECK_INT(post_wr(p, from, &wr), 0);
}

/* Until end 1 owes something; it has not been asked for it yet. */
static void receive(struct pair *p)
{
	while (sr_nic_deadline(p->end[1].nic))
		CHECK(sr_memwire_step(p->mw));
}

static bool let_wait(struct pair *p)
{
	uint64_t now = sr_memwire_now(p->mw);

	return sr_nic_let_acks_wait(p->end[1].nic, now, now + WAIT_NS);
}

/* One write of end 0, whose acknowledgement waits. When that ends. */
static uint64_t begin_wait(struct pair *p)
{
	open_pair(p);
	post_write(p, 0, 1, 8);
	receive(p);
	CHECK(let_wait(p));
	CHECK(sr_nic_acks_wait(p->end[1].nic));
	CHECK_INT(n_seen, 0);
	CHECK_INT(sr_nic_counters(p->end[1].nic)->ack_waited, 1);
	return sr_memwire_now(p->mw) + WAIT_NS;
}

static void end_wait(struct pair *p)
{
	CHECK(!sr_nic_acks_wait(p->end[1].nic));
	expect_status(p, p->end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK_INT(sr_nic_counters(p->end[0].nic)->completer_retry_err, 0);
	pair_close(p);
}

static void sent_in_time(void)
{
	struct pair p;
	uint64_t until = begin_wait(&p);

	CHECK_INT(sr_nic_deadline(p.end[1].nic), until);
	sr_memwire_run_until(p.mw, until - 1);
	CHECK_INT(n_seen, 0);
	sr_memwire_run_until(p.mw, until);
	CHECK(n_seen == 1 && seen[0] == SR_OP_ACK);
	end_wait(&p);
}

/* Behind it: the wire has the last packet of a run smaller. */
static void sent_behind_next_packet(void)
{
	struct pair p;
	uint64_t now;

	begin_wait(&p);
	now = sr_memwire_now(p.mw);
	post_write(&p, 1, 2, 8);
	CHECK_INT(sr_nic_deadline(p.end[1].nic), 0);
	sr_memwire_run_until(p.mw, now);
	CHECK(n_seen == 2 && seen[0] == SR_OP_WRITE_ONLY && seen[1] == SR_OP_ACK);
	expect_status(&p, p.end[1].scq, 2, IBV_WC_SUCCESS);
	end_wait(&p);
}

/* What comes meanwhile is acknowledged with it, and does not wait. */
static void sent_with_next_turn(void)
{
	struct pair p;

	begin_wait(&p);
	CHECK(!let_wait(&p));
	sr_nic_progress(p.end[1].nic, sr_memwire_now(p.mw), 0);
	CHECK(n_seen == 1 && seen[0] == SR_OP_ACK);
	end_wait(&p);
}

static void sent_before_queue_pair_goes(bool destroy)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair p;

	begin_wait(&p);
	if (destroy)
		sr_qp_destroy(p.end[1].qp);
	else
		CHECK_INT(sr_qp_modify(p.end[1].qp, sr_memwire_now(p.mw), &attr, IBV_QP_STATE), 0);
	CHECK(n_seen == 1 && seen[0] == SR_OP_ACK);
	end_wait(&p);
}

/* A port that is down loses it, and the write that is repeated gets another. */
static void lost_with_port(void)
{
	struct pair p;
	uint64_t until = begin_wait(&p);

	sr_memwire_cut(p.end[1].port, true);
	sr_memwire_run_until(p.mw, until);
	CHECK_INT(n_seen, 0);
	CHECK_INT(sr_nic_counters(p.end[1].nic)->dropped_link_down, 1);
	sr_memwire_cut(p.end[1].port, false);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK_INT(sr_nic_counters(p.end[1].nic)->duplicate_request, 1);
	pair_close(&p);
}

static void killed_sends_nothing(void)
{
	struct pair p;

	begin_wait(&p);
	sr_memwire_kill(p.end[1].port);
	CHECK(!let_wait(&p));
	sr_qp_destroy(p.end[1].qp);
	CHECK_INT(n_seen, 0);
	pair_close(&p);
}

/* A second queue pair of each end, connected; each end's end of it. */
static void add_queue_pair(struct pair *p, struct sr_qp *qp[2])
{
	for (int e = 0; e < 2; e++) {
		int err = 0;

		qp[e] = pair_new_qp(p, e, &err);
		CHECK_INT(err, 0);
	}
	for (int e = 0; e < 2; e++)
		pair_to_state(p, e, qp[e], sr_qp_num(qp[!e]), IBV_QPS_RTS);
}

/* By end 1, as a program does between two polls. */
static void send_one(struct pair *p, struct sr_qp *qp, uint64_t id)
{
	struct ibv_sge list = make_sge(&p->end[1], 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, id, &list, 1), *bad;
	uint64_t now = sr_memwire_now(p->mw);

	set_remote_address(&wr, &p->end[0], 0);
	CHECK_INT(sr_qp_post_send(qp, now, &wr, &bad), 0);
	sr_nic_send_posted(p->end[1].nic, now);
}

/* Two acknowledgements wait, each of a queue pair of its own. When that ends. */
static uint64_t begin_two_waits(struct pair *p, struct sr_qp *further[2])
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge list;
	uint64_t until;

	open_pair(p);
	add_queue_pair(p, further);
	run_for(p, 1);
	post_write(p, 0, 1, 8);
	receive(p);
	CHECK(let_wait(p));
	until = sr_memwire_now(p->mw) + WAIT_NS;
	list = make_sge(&p->end[0], 0, 8);
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(sr_qp_post_send(further[0], sr_memwire_now(p->mw), &wr, &bad), 0);
	while (sr_nic_counters(p->end[1].nic)->rcvd_pkts < 2)
		CHECK(sr_memwire_step(p->mw));
	CHECK(sr_nic_acks_wait(p->end[1].nic));
	CHECK_INT(n_seen, 0);
	return until;
}

/* A run has room for one smaller packet, at its end: each post takes one along. */
static void sent_one_with_each_post(void)
{
	struct sr_qp *further[2];
	struct pair p;

	begin_two_waits(&p, further);
	send_one(&p, p.end[1].qp, 2);
	CHECK(n_seen == 2 && seen[0] == SR_OP_WRITE_ONLY && seen[1] == SR_OP_ACK);
	CHECK(sr_nic_acks_wait(p.end[1].nic));
	send_one(&p, further[1], 3);
	CHECK(n_seen == 4 && seen[2] == SR_OP_WRITE_ONLY && seen[3] == SR_OP_ACK);
	CHECK(!sr_nic_acks_wait(p.end[1].nic));
	CHECK(!sr_nic_acks_left(p.end[1].nic, sr_memwire_now(p.mw)));
	pair_close(&p);
}

/* What a post has left may wait for one look that finds nothing, and no longer. */
static void left_waits_for_one_look(void)
{
	struct sr_qp *further[2];
	struct pair p;
	uint64_t now;

	begin_two_waits(&p, further);
	now = sr_memwire_now(p.mw);
	CHECK(!sr_nic_acks_left(p.end[1].nic, now)); /* nothing was posted */
	send_one(&p, p.end[1].qp, 2);
	CHECK(sr_nic_acks_left(p.end[1].nic, now));
	CHECK(!sr_nic_acks_left(p.end[1].nic, now));
	sr_nic_progress(p.end[1].nic, now, 0);
	CHECK(n_seen == 3 && seen[2] == SR_OP_ACK);
	pair_close(&p);
}

static void left_goes_in_time(void)
{
	struct sr_qp *further[2];
	struct pair p;
	uint64_t until = begin_two_waits(&p, further);

	send_one(&p, p.end[1].qp, 2);
	CHECK(sr_nic_deadline(p.end[1].nic) <= until);
	CHECK(!sr_nic_acks_left(p.end[1].nic, until));
	sr_memwire_run_until(p.mw, until);
	CHECK(n_seen >= 3 && seen[2] == SR_OP_ACK);
	CHECK(!sr_nic_acks_wait(p.end[1].nic));
	pair_close(&p);
}

/* ---- what may not wait ---- */

static void check_urgent(struct pair *p)
{
	receive(p);
	CHECK(!let_wait(p));
	CHECK(!sr_nic_acks_wait(p->end[1].nic));
	CHECK_INT(sr_nic_counters(p->end[1].nic)->ack_waited, 0);
	pair_close(p);
}

static void large_packet(void)
{
	struct pair p;

	open_pair(&p);
	post_write(&p, 0, 1, SMALL + 1);
	check_urgent(&p);
	open_pair(&p);
	post_write(&p, 0, 1, SMALL);
	receive(&p);
	CHECK(let_wait(&p));
	pair_close(&p);
}

/* The sender of several may stand still for want of it: the second one ends the first one's wait,
 * and that of the next one does not begin. */
static void several_packets(void)
{
	struct pair p;

	begin_wait(&p);
	post_write(&p, 0, 2, 8);
	receive(&p);
	CHECK_INT(sr_nic_counters(p.end[1].nic)->rcvd_pkts, 2);
	CHECK(!sr_nic_acks_wait(p.end[1].nic));
	sr_memwire_run_until(p.mw, sr_memwire_now(p.mw));
	CHECK(n_seen == 1 && seen[0] == SR_OP_ACK);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	expect_status(&p, p.end[0].scq, 2, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		post_write(&p, 0, 1, 8);
		receive(&p);
		CHECK(let_wait(&p) == i);
		if (!i)
			expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	}
	run_for(&p, WAIT_NS);
	end_wait(&p);
}

static void negative_answer(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_pair(&p);
	list = make_sge(&p.end[0], 0, 8);
	wr = send_wr(IBV_WR_SEND, 1, &list, 1);
	CHECK_INT(post_wr(&p, 0, &wr), 0); /* no receive is posted */
	check_urgent(&p);
}

static void read_response(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_pair(&p);
	list = make_sge(&p.end[0], 0, 8);
	wr = send_wr(IBV_WR_RDMA_READ, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	check_urgent(&p);
}

static void nothing_owed(void)
{
	struct pair p;

	open_pair(&p);
	CHECK(!let_wait(&p));
	pair_close(&p);
}

int main(void)
{
	sent_in_time();
	sent_behind_next_packet();
	sent_with_next_turn();
	sent_before_queue_pair_goes(true);
	sent_before_queue_pair_goes(false);
	lost_with_port();
	killed_sends_nothing();
	sent_one_with_each_post();
	left_waits_for_one_look();
	left_goes_in_time();
	large_packet();
	several_packets();
	negative_answer();
	read_response();
	nothing_owed();
	return 0;
}
