/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation, every MTU, sizes around packet boundaries, several buffers, inline: right bytes,
 * right completions. */
#include "base/rng.h"
#include "tests/softroce/engine_pair.h"
#include <arpa/inet.h>
#include <string.h>

#define GUARD 64

static void check_send_wc(const struct ibv_wc *wc, const struct pair *p, enum ibv_wc_opcode opcode)
{
	CHECK_INT(wc->opcode, opcode);
	CHECK_INT(wc->qp_num, sr_qp_num(p->end[0].qp));
	CHECK_INT(wc->wc_flags, 0);
}

static void check_recv_wc(const struct ibv_wc *wc, const struct pair *p, uint32_t len, bool imm)
{
	CHECK_INT(wc->byte_len, len);
	CHECK_INT(wc->qp_num, sr_qp_num(p->end[1].qp));
	CHECK_INT(wc->src_qp, sr_qp_num(p->end[0].qp));
	CHECK_INT(wc->wc_flags, imm ? IBV_WC_WITH_IMM : 0);
	if (imm)
		CHECK_INT(ntohl(wc->imm_data), 0xdeadbeef);
}

/* Cuts [offset, offset + len) of the end's buffer into n pieces of odd sizes. */
static int cut_buffer(const struct end *end, size_t offset, uint32_t len, struct ibv_sge *list,
		      int n)
{
	uint32_t at = 0;

	for (int i = 0; i < n; i++) {
		uint32_t piece = i == n - 1 ? len - at : (len - at) / 3;

		list[i] = make_sge(end, offset + at, piece);
		at += piece;
	}
	return n;
}

static enum ibv_wc_opcode completion_of(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM)
		return IBV_WC_SEND;
	return opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
}

/* The data have come, and nothing is written before or behind them. */
static void check_data(const struct pair *p, const struct end *to, uint32_t len)
{
	CHECK(!memcmp(p->end[0].buf + GUARD, p->end[1].buf + GUARD, len));
	for (int i = 0; i < GUARD; i++)
		CHECK(to->buf[i] == 0x5a && to->buf[GUARD + len + (uint32_t)i] == 0x5a);
}

static void check_no_completions(const struct pair *p)
{
	for (int e = 0; e < 2; e++)
		CHECK(sr_cq_empty(p->end[e].scq) && sr_cq_empty(p->end[e].rcq));
}

static void check_operation(struct pair *p, enum ibv_wr_opcode opcode, uint32_t len, int pieces,
			    bool is_inline)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	bool imm = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool send = completion_of(opcode) == IBV_WC_SEND;
	bool read = opcode == IBV_WR_RDMA_READ;
	struct end *from = read ? b : a, *to = read ? a : b;
	struct ibv_sge local[4], remote[4];
	struct ibv_send_wr wr =
		send_wr(opcode, len, local, cut_buffer(a, GUARD, len, local, pieces));
	struct ibv_recv_wr recv = { .wr_id = 7 }, *bad;
	struct ibv_wc wc;

	fill_random(from->buf, len + 2 * GUARD, len + (uint64_t)opcode);
	memset(to->buf, 0x5a, len + 2 * GUARD);
	wr.imm_data = htonl(0xdeadbeef);
	if (is_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	set_remote_address(&wr, b, GUARD);
	if (send || imm) {
		recv.sg_list = remote;
		recv.num_sge = send ? cut_buffer(b, GUARD, len, remote, pieces) : 0;
		CHECK_INT(sr_qp_post_recv(b->qp, &recv, &bad), 0);
	}
	CHECK_INT(post_wr(p, 0, &wr), 0);
	if (is_inline)
		memset(a->buf, 0, len + 2 * GUARD); /* must have been taken already */
	wc = expect_status(p, a->scq, len, IBV_WC_SUCCESS);
	check_send_wc(&wc, p, completion_of(opcode));
	if (read)
		CHECK_INT(wc.byte_len, len);
	if (is_inline)
		fill_random(from->buf, len + 2 * GUARD, len + (uint64_t)opcode);
	check_data(p, to, len);
	if (send || imm) {
		wc = expect_status(p, b->rcq, 7, IBV_WC_SUCCESS);
		CHECK_INT(wc.opcode, send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
		check_recv_wc(&wc, p, len, imm);
	}
	check_no_completions(p);
}

static void check_sizes(struct pair *p, enum ibv_wr_opcode opcode)
{
	uint32_t mtu = 128u << p->opt.mtu;
	const uint32_t bases[] = { 0, 4, mtu, 2 * mtu, 17 * mtu, 300 * mtu };

	for (unsigned i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		for (int d = -3; d <= 3; d++) {
			if (d < 0 && bases[i] < (uint32_t)-d)
				continue;
			check_operation(p, opcode, bases[i] + (uint32_t)d, 1 + (d & 3), false);
		}
	if (opcode != IBV_WR_RDMA_READ)
		for (uint32_t len = 0; len <= 256; len += 51)
			check_operation(p, opcode, len, 3, true);
}

static void atomics_add_and_swap(struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge list = make_sge(a, 8, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &list, 1);
	uint64_t v = UINT64_MAX, got;
	struct ibv_wc wc;

	memcpy(b->buf + 16, &v, 8);
	set_remote_address(&wr, b, 16);
	wr.wr.atomic.compare_add = 5;
	CHECK_INT(post_wr(p, 0, &wr), 0);
	wc = expect_status(p, a->scq, 1, IBV_WC_SUCCESS);
	check_send_wc(&wc, p, IBV_WC_FETCH_ADD);
	CHECK_INT(wc.byte_len, 8);
	memcpy(&got, a->buf + 8, 8);
	memcpy(&v, b->buf + 16, 8);
	CHECK(got == UINT64_MAX && v == 4);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	for (uint64_t compare = 4; compare <= 5;
	     compare++) { /* the first matches, the second finds 0x77 */
		wr.wr.atomic.compare_add = compare;
		wr.wr.atomic.swap = 0x77;
		CHECK_INT(post_wr(p, 0, &wr), 0);
		wc = expect_status(p, a->scq, 1, IBV_WC_SUCCESS);
		check_send_wc(&wc, p, IBV_WC_COMP_SWAP);
		memcpy(&got, a->buf + 8, 8);
		memcpy(&v, b->buf + 16, 8);
		CHECK_INT(got, compare == 4 ? 4 : 0x77);
		CHECK_INT(v, 0x77);
	}
}

/* Unsignaled requests complete silently, in order, and their places come back with the next polled
 * completion. */
static void unsignaled_complete(struct pair *p)
{
	struct end *a = &p->end[0], *b = &p->end[1];
	struct ibv_sge list = make_sge(a, 0, 100);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, 0, &list, 1);

	set_remote_address(&wr, b, 0);
	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < p->opt.max_wr; i++) {
			wr.wr_id = i;
			wr.send_flags = i == p->opt.max_wr - 1 ? IBV_SEND_SIGNALED : 0;
			CHECK_INT(post_wr(p, 0, &wr), 0);
		}
		run_for(p, 10000000);
		CHECK_INT(post_wr(p, 0, &wr), -ENOMEM);
		expect_status(p, a->scq, p->opt.max_wr - 1, IBV_WC_SUCCESS);
		CHECK(sr_cq_empty(a->scq));
	}
}

static void bad_work_is_refused(struct pair *p)
{
	struct end *a = &p->end[0];
	struct ibv_sge list[5] = { make_sge(a, 0, 300), make_sge(a, 0, 8), make_sge(a, 0, 8),
				   make_sge(a, 0, 8), make_sge(a, 0, 8) };
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, 1, list, 5), second, *bad;
	struct ibv_recv_wr recv = { .sg_list = list, .num_sge = 5 }, *bad_recv;

	CHECK_INT(post_wr(p, 0, &wr), -EINVAL); /* too many entries */
	wr.num_sge = -1;
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL);
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_INLINE;
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL); /* too long for inline */
	list[0].length = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL); /* reads have nothing to take inline */
	wr.send_flags = 0;
	wr.opcode = IBV_WR_TSO;
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL);
	wr.opcode = IBV_WR_LOCAL_INV; /* work on windows has no buffers */
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL);
	wr.opcode = IBV_WR_BIND_MW;
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	list[0].length = 4;
	CHECK_INT(post_wr(p, 0, &wr), -EINVAL);
	CHECK_INT(sr_qp_post_recv(a->qp, &recv, &bad_recv), -EINVAL);
	CHECK(bad_recv == &recv);
	/* In a chain, what precedes the bad one is posted. */
	list[0].length = 300;
	wr = send_wr(IBV_WR_RDMA_WRITE, 8, list, 1);
	set_remote_address(&wr, &p->end[1], 0);
	second = wr;
	second.opcode = IBV_WR_TSO;
	wr.next = &second;
	CHECK_INT(sr_qp_post_send(a->qp, sr_memwire_now(p->mw), &wr, &bad), -EINVAL);
	CHECK(bad == &second);
	expect_status(p, a->scq, 8, IBV_WC_SUCCESS);
}

static void write_small(struct pair *p, int e, struct sr_qp *qp, uint64_t limit_ns)
{
	struct ibv_sge list = make_sge(&p->end[e], 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1), *bad;
	uint64_t start = sr_memwire_now(p->mw);
	struct ibv_wc wc;

	set_remote_address(&wr, &p->end[!e], 1 << 20);
	CHECK_INT(sr_qp_post_send(qp, start, &wr, &bad), 0);
	CHECK(wait_cq(p, p->end[e].scq, &wc, 10000000) && wc.status == IBV_WC_SUCCESS);
	CHECK_INT(wc.wr_id, 1);
	CHECK(sr_memwire_now(p->mw) - start < limit_ns);
}

/*
 * Beside a queue pair that sends as much as a slow wire takes: an acknowledgement does not wait for
 * its turn, so the write that it is for completes in the time of a few packets; nor does what is
 * small wait for more than a packet of it.
 */
static void small_goes_between(void)
{
	const struct sr_memwire_link slow = { .latency_ns = 1000,
					      .bytes_per_us = 100,
					      .backlog_ns = 1000 }; /* a packet: 41 us */
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct sr_qp *qp[2];
	struct pair p;
	int err;

	opt.mtu = IBV_MTU_4096;
	opt.buf_size = 2 << 20;
	opt.timeout = 16;
	pair_open(&p, &opt);
	pair_connect(&p, IBV_QPS_RTS);
	for (int e = 0; e < 2; e++) {
		qp[e] = pair_new_qp(&p, e, &err);
		CHECK_INT(err, 0);
	}
	for (int e = 0; e < 2; e++)
		pair_to_state(&p, e, qp[e], sr_qp_num(qp[!e]), IBV_QPS_RTS);
	sr_memwire_set_link(p.end[1].port, &slow);
	list = make_sge(&p.end[1], 0, 1 << 20);
	wr = send_wr(IBV_WR_RDMA_WRITE, 2, &list, 1);
	set_remote_address(&wr, &p.end[0], 0);
	CHECK_INT(post_wr(&p, 1, &wr), 0);
	run_for(&p, 500000);
	/* Answered on the queue pair that has nothing else to send, then on the one that sends. */
	write_small(&p, 0, qp[0], 4 * 41000);
	write_small(&p, 0, p.end[0].qp, 4 * 41000);
	for (int i = 0; i < 10; i++) { /* at any moment of a turn */
		write_small(&p, 1, qp[1], 5 * 41000);
		run_for(&p, 100000);
	}
	expect_status(&p, p.end[1].scq, 2, IBV_WC_SUCCESS);
	pair_close(&p);
}

#define STREAMS 16
#define STREAM_WINDOW 32

static void keep_writing(struct pair *p, struct sr_qp *const *qp, unsigned *out)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_wc wc[64];
	struct ibv_sge list;
	int n = sr_cq_poll(p->end[0].scq, 64, wc);

	for (int k = 0; k < n; k++) {
		CHECK_INT(wc[k].status, IBV_WC_SUCCESS);
		out[wc[k].wr_id]--;
	}
	for (unsigned i = 0; i < STREAMS; i++)
		for (; out[i] < STREAM_WINDOW; out[i]++) {
			list = make_sge(&p->end[0], 0, 8);
			wr = send_wr(IBV_WR_RDMA_WRITE, i, &list, 1);
			set_remote_address(&wr, &p->end[1], 1 << 20);
			CHECK_INT(sr_qp_post_send(qp[i], sr_memwire_now(p->mw), &wr, &bad), 0);
		}
}

/*
 * Acknowledgements of small writes on sixteen queue pairs fill a slow wire, and each lets the peer
 * send what asks for the next. Data goes out all the same. (Found by reading: it never did.)
 */
static void data_is_not_starved(void)
{
	const struct sr_memwire_link slow = { .latency_ns = 1000,
					      .bytes_per_us = 100,
					      .backlog_ns = 1000 };
	const struct sr_memwire_link fast = { .latency_ns = 1000, .bytes_per_us = 1000 };
	struct options opt = default_options;
	unsigned out[STREAMS] = { 0 };
	struct sr_qp *qp[2][STREAMS];
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct ibv_wc wc;
	struct pair p;
	int err;

	opt.mtu = IBV_MTU_4096;
	opt.buf_size = 2 << 20;
	opt.timeout = 20;
	opt.max_wr = 64;
	opt.cqe = 4096;
	pair_open(&p, &opt);
	pair_connect(&p, IBV_QPS_RTS);
	for (unsigned i = 0; i < STREAMS; i++) {
		for (int e = 0; e < 2; e++) {
			qp[e][i] = pair_new_qp(&p, e, &err);
			CHECK_INT(err, 0);
		}
		for (int e = 0; e < 2; e++)
			pair_to_state(&p, e, qp[e][i], sr_qp_num(qp[!e][i]), IBV_QPS_RTS);
	}
	sr_memwire_set_link(p.end[1].port, &slow);
	sr_memwire_set_link(p.end[0].port, &fast);
	list = make_sge(&p.end[1], 0, 64 << 10);
	wr = send_wr(IBV_WR_RDMA_WRITE, 999, &list, 1);
	set_remote_address(&wr, &p.end[0], 0);
	CHECK_INT(post_wr(&p, 1, &wr), 0);
	for (int us = 0; sr_cq_poll(p.end[1].scq, 1, &wc) < 1; us++) {
		CHECK(us < 3000); /* alone it takes 660 */
		keep_writing(&p, qp[0], out);
		run_for(&p, 1000);
	}
	CHECK_INT(wc.status, IBV_WC_SUCCESS);
	pair_close(&p);
}

int main(void)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
	};

	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		struct options opt = default_options;
		struct pair p;

		opt.mtu = mtu;
		opt.buf_size = 2 << 20;
		opt.ipv6 = mtu & 1;
		opt.psn[0] = 0xffffff - (uint32_t)mtu * 100; /* every opcode wraps */
		pair_open(&p, &opt);
		pair_connect(&p, IBV_QPS_RTS);
		for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
			check_sizes(&p, ops[i]);
		atomics_add_and_swap(&p);
		unsignaled_complete(&p);
		bad_work_is_refused(&p);
		CHECK_INT(sr_nic_counters(p.end[1].nic)->duplicate_request, 0);
		CHECK_INT(sr_nic_counters(p.end[1].nic)->out_of_seq_request, 0);
		CHECK_INT(p.end[0].n_events, 0);
		pair_close(&p);
	}
	small_goes_between();
	data_is_not_starved();
	return 0;
}
