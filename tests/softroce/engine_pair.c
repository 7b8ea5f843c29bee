/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_pair.c - see engine_pair.h */
#include "tests/softroce/engine_pair.h"
#include <endian.h>
#include <string.h>

const struct options default_options = {
	.seed = 1,
	.mtu = IBV_MTU_1024,
	.buf_size = 1 << 20,
	.psn = { 0x100, 0x200 },
	.timeout = 10, /* 4.2 ms */
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 1,
	.rd_atomic = 4,
	.dest_rd_atomic = 4,
	.qp_access = ALL_ACCESS,
	.mr_access = ALL_ACCESS,
	.max_wr = 128,
	.cqe = 1024,
};

static void on_completion(void *user, struct sr_cq *cq)
{
	((struct end *)user)->n_completions++;
}

static void on_async(void *user, enum ibv_event_type type, void *object)
{
	struct end *end = user;

	CHECK(end->n_events < MAX_EVENTS);
	end->events[end->n_events] = type;
	end->objects[end->n_events++] = object;
}

static void make_gid(union ibv_gid *gid, bool ipv6, int i)
{
	memset(gid, 0, sizeof(*gid));
	if (ipv6) {
		gid->raw[0] = 0xfd;
	} else {
		gid->raw[10] = gid->raw[11] = 0xff;
		gid->raw[12] = 10;
	}
	gid->raw[15] = (uint8_t)(i + 1);
}

static void open_end(struct pair *p, int i)
{
	struct sr_event_ops event_ops = {
		.completion = on_completion,
		.async = on_async,
		.placing = p->opt.placing,
	};
	struct end *end = &p->end[i];
	struct sr_nic_config config = {
		.name = i ? "b" : "a",
		.active_mtu = IBV_MTU_4096,
		.seed = (uint32_t)p->opt.seed * 2 + (uint32_t)i,
		.max_inflight = p->opt.max_inflight,
		.event_ops = &event_ops,
		.user = end,
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = p->opt.max_wr, .max_sge = 4 } };
	int err;

	make_gid(&end->gid, p->opt.ipv6, i);
	config.gid[0] = end->gid;
	end->nic = sr_memwire_nic(p->mw, &config, &err);
	CHECK_INT(err, 0);
	end->port = sr_memwire_port_of(p->mw, end->nic);
	CHECK(sr_memwire_nic_of(end->port) == end->nic);
	end->pd = sr_pd_create(end->nic, &err);
	end->buf = calloc(1, p->opt.buf_size);
	end->mr = sr_mr_create(end->pd, end->buf, p->opt.buf_size, (uintptr_t)end->buf,
			       p->opt.mr_access, &err);
	CHECK_INT(err, 0);
	end->scq = sr_cq_create(end->nic, p->opt.cqe, end, &err);
	end->rcq = sr_cq_create(end->nic, p->opt.cqe, end, &err);
	CHECK_INT(err, 0);
	if (p->opt.use_srq) {
		end->srq = sr_srq_create(end->pd, &srq, end, &err);
		CHECK_INT(err, 0);
	}
	end->qp = pair_new_qp(p, i, &err);
	CHECK_INT(err, 0);
}

struct sr_qp *pair_new_qp(struct pair *p, int e, int *err)
{
	struct end *end = &p->end[e];
	struct sr_qp_init init = {
		.type = IBV_QPT_RC,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.srq = end->srq,
		.cap = {
			.max_send_wr = p->opt.max_wr,
			.max_recv_wr = p->opt.max_wr,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 256,
		},
		.sq_sig_all = p->opt.sig_all,
		.user = end,
	};

	return sr_qp_create(end->pd, &init, err);
}

void pair_open(struct pair *p, const struct options *opt)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->opt = *opt;
	p->mw = sr_memwire_create(opt->seed, &err);
	CHECK_INT(err, 0);
	open_end(p, 0);
	open_end(p, 1);
}

int pair_attr(const struct pair *p, int e, enum ibv_qp_state to, struct ibv_qp_attr *a)
{
	const struct options *o = &p->opt;

	memset(a, 0, sizeof(*a));
	a->qp_state = to;
	switch (to) {
	case IBV_QPS_INIT:
		a->port_num = 1;
		a->qp_access_flags = (unsigned)o->qp_access;
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	case IBV_QPS_RTR:
		a->ah_attr.is_global = 1;
		a->ah_attr.port_num = 1;
		a->ah_attr.grh.dgid = p->end[!e].gid;
		a->ah_attr.grh.hop_limit = 64;
		a->path_mtu = o->mtu;
		a->dest_qp_num = sr_qp_num(p->end[!e].qp);
		a->rq_psn = o->psn[!e];
		a->max_dest_rd_atomic = o->dest_rd_atomic;
		a->min_rnr_timer = o->min_rnr_timer;
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPS_RTS:
		a->timeout = o->timeout;
		a->retry_cnt = o->retry_cnt;
		a->rnr_retry = o->rnr_retry;
		a->sq_psn = o->psn[e];
		a->max_rd_atomic = o->rd_atomic;
		return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	default:
		return IBV_QP_STATE;
	}
}

void pair_to_state(struct pair *p, int e, struct sr_qp *qp, uint32_t dest_qpn, enum ibv_qp_state to)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
						 IBV_QPS_SQD };
	struct ibv_qp_attr attr;

	if (to == IBV_QPS_ERR) {
		attr.qp_state = to;
		CHECK_INT(sr_qp_modify(qp, sr_memwire_now(p->mw), &attr, IBV_QP_STATE), 0);
		return;
	}
	for (unsigned i = 0; i < 4 && to != IBV_QPS_RESET; i++) {
		int mask = pair_attr(p, e, way[i], &attr);

		if (way[i] == IBV_QPS_RTR)
			attr.dest_qp_num = dest_qpn;
		CHECK_INT(sr_qp_modify(qp, sr_memwire_now(p->mw), &attr, mask), 0);
		if (way[i] == to)
			break;
	}
	CHECK_INT(sr_qp_state(qp), to);
}

void pair_connect(struct pair *p, enum ibv_qp_state to)
{
	for (int e = 0; e < 2; e++)
		pair_to_state(p, e, p->end[e].qp, sr_qp_num(p->end[!e].qp), to);
}

void pair_close(struct pair *p)
{
	uint8_t *a = p->end[0].buf, *b = p->end[1].buf;

	sr_memwire_destroy(p->mw);
	free(a);
	free(b);
}

struct ibv_sge make_sge(const struct end *end, size_t offset, uint32_t length)
{
	return (struct ibv_sge) { (uintptr_t)end->buf + offset, length, sr_mr_lkey(end->mr) };
}

uint64_t address_of(const struct end *end, size_t offset)
{
	return (uintptr_t)end->buf + offset;
}

struct ibv_send_wr send_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *list, int n)
{
	return (struct ibv_send_wr) {
		.wr_id = wr_id,
		.sg_list = list,
		.num_sge = n,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

void set_remote_address(struct ibv_send_wr *wr, const struct end *at, size_t offset)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = address_of(at, offset);
		wr->wr.atomic.rkey = sr_mr_rkey(at->mr);
	} else {
		wr->wr.rdma.remote_addr = address_of(at, offset);
		wr->wr.rdma.rkey = sr_mr_rkey(at->mr);
	}
}

int post_wr(struct pair *p, int e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return sr_qp_post_send(p->end[e].qp, sr_memwire_now(p->mw), wr, &bad);
}

int post_recv(struct end *end, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge list = make_sge(end, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &list, .num_sge = 1 }, *bad;

	return end->srq ? sr_srq_post(end->srq, &wr, &bad) : sr_qp_post_recv(end->qp, &wr, &bad);
}

bool wait_cq(struct pair *p, struct sr_cq *cq, struct ibv_wc *wc, uint64_t limit_ns)
{
	uint64_t until = sr_memwire_now(p->mw) + limit_ns;

	while (sr_cq_empty(cq)) {
		if (sr_memwire_now(p->mw) > until || !sr_memwire_step(p->mw))
			return false;
	}
	CHECK_INT(sr_cq_poll(cq, 1, wc), 1);
	return true;
}

struct ibv_wc expect_status(struct pair *p, struct sr_cq *cq, uint64_t wr_id,
			    enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(wait_cq(p, cq, &wc, 1000000000000000ull));
	CHECK_INT(wc.status, status);
	CHECK_INT(wc.wr_id, wr_id);
	return wc;
}

void run_for(struct pair *p, uint64_t ns)
{
	sr_memwire_run_until(p->mw, sr_memwire_now(p->mw) + ns);
}

int count_events(const struct end *end, enum ibv_event_type type)
{
	int n = 0;

	for (int i = 0; i < end->n_events; i++)
		n += end->events[i] == type;
	return n;
}

uint8_t *make_packet(uint8_t *packet, uint8_t opcode, uint32_t qpn, uint32_t psn, bool ack_request,
		     unsigned pad)
{
	uint32_t qpn_be = htobe32(qpn), psn_be = htobe32(psn | (ack_request ? 0x80000000u : 0));

	packet[0] = opcode;
	packet[1] = (uint8_t)(0x40 | pad << 4);
	packet[2] = packet[3] = 0xff;
	memcpy(packet + 4, &qpn_be, 4);
	memcpy(packet + 8, &psn_be, 4);
	return packet + 12;
}

void inject_packet(struct pair *p, int from, const uint8_t *packet, uint32_t len)
{
	struct sr_path path = { .ttl = 64, .sport = 0xc000 };

	memcpy(path.src, &p->end[from].gid, 16);
	memcpy(path.dst, &p->end[!from].gid, 16);
	CHECK_INT(sr_memwire_inject(p->end[from].port, &path, packet, len), 0);
}

void fill_random(uint8_t *buf, size_t len, uint64_t seed)
{
	struct sr_rng rng = { seed };

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(sr_rng_next(&rng) >> 24);
}
