/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_engine.c - drives one kind of work through two engines back to back, to be counted by
 * callgrind
 *
 * - perf_engine OPERATION LENGTH COUNT; OPERATION: write, imm, send, read
 * - valgrind --tool=callgrind --toggle-collect=work perf_engine write 8 10000
 *
 * Both ends are in the process and the wire is a ring of packets, so sum over the files of
 * softroce/engine/ for what the two engines cost together. tests/softroce/perf_engine.sh does that.
 */
#include "softroce/engine/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING 4096
#define DEPTH 64u

struct packet {
	struct sr_path path;
	uint32_t len;
	uint8_t data[SR_HDR_MAX + SR_MTU_MAX];
};

struct side {
	struct sr_nic *nic;
	struct sr_pd *pd;
	struct sr_cq *cq;
	struct sr_mr *mr;
	struct sr_qp *qp;
	struct packet *ring; /* to the other side */
	uint32_t head, tail;
	union ibv_gid gid;
	uint8_t *buf;
};

static struct side side[2];
static uint64_t now = 1;
static uint64_t packets;

static int to_ring(void *wire, const struct sr_frame *frame)
{
	struct side *s = wire;
	struct packet *p;

	if (s->head - s->tail == RING)
		return -11;
	p = &s->ring[s->head++ % RING];
	memcpy(p->data, frame->hdr, frame->hdr_len);
	p->len = frame->hdr_len;
	for (unsigned i = 0; i < frame->iov_n; i++) {
		memcpy(p->data + p->len, frame->iov[i].iov_base, frame->iov[i].iov_len);
		p->len += (uint32_t)frame->iov[i].iov_len;
	}
	p->len += frame->pad;
	packets++;
	return 0;
}

static const struct sr_wire_ops ops = { .send = to_ring };

static void deliver_packets(struct side *from, struct side *to)
{
	for (; from->tail != from->head; from->tail++) {
		struct packet *p = &from->ring[from->tail % RING];

		sr_nic_receive(to->nic, now, &p->path, p->data, p->len);
	}
}

static void open_side(int i)
{
	struct side *s = &side[i];
	struct sr_nic_config config = { .active_mtu = IBV_MTU_4096, .wire_ops = &ops, .wire = s };
	struct sr_qp_init init = { .type = IBV_QPT_RC, .cap = { 256, 256, 1, 1, 64 } };
	int err;

	s->gid.raw[15] = (uint8_t)(i + 1);
	config.gid[0] = s->gid;
	s->nic = sr_nic_create(&config, &err);
	s->pd = sr_pd_create(s->nic, &err);
	s->cq = sr_cq_create(s->nic, 1024, NULL, &err);
	s->buf = calloc(1, 1 << 24);
	s->mr = sr_mr_create(s->pd, s->buf, 1 << 24, (uintptr_t)s->buf, 15, &err);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = sr_qp_create(s->pd, &init, &err);
	s->ring = malloc(RING * sizeof(*s->ring));
	if (!s->qp || !s->ring)
		exit(1);
}

static void connect_side(int i)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = 15,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = sr_qp_num(side[!i].qp),
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = side[!i].gid },
	};
	static const int masks[] = {
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC,
	};

	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		if (sr_qp_modify(side[i].qp, now, &attr,
				 masks[state - IBV_QPS_INIT] | IBV_QP_STATE))
			exit(1);
	}
	for (int n = 0; n < RING; n++) {
		memcpy(side[!i].ring[n].path.src, &side[i].gid, 16);
		memcpy(side[!i].ring[n].path.dst, &side[!i].gid, 16);
	}
}

void work(enum ibv_wr_opcode opcode, uint32_t len, unsigned count);
/* Keeps DEPTH operations under way; all signaled. Not static, so that callgrind can find it. */
__attribute__((noinline)) void work(enum ibv_wr_opcode opcode, uint32_t len, unsigned count)
{
	struct ibv_sge list = { (uintptr_t)side[0].buf, len, sr_mr_lkey(side[0].mr) };
	struct ibv_send_wr wr = {
		.sg_list = &list, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)side[1].buf, sr_mr_rkey(side[1].mr) },
	}, *bad;
	struct ibv_sge to = { (uintptr_t)side[1].buf, len, sr_mr_lkey(side[1].mr) };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	bool receives = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned posted = 0, done = 0;
	struct ibv_wc wc[16];

	while (done < count) {
		int n;

		for (; posted < count && posted - done < DEPTH; posted++) {
			if (receives && sr_qp_post_recv(side[1].qp, &recv, &bad_recv))
				exit(1);
			if (sr_qp_post_send(side[0].qp, now, &wr, &bad))
				exit(1);
		}
		now += 1000;
		sr_nic_progress(side[0].nic, now, 0);
		deliver_packets(&side[0], &side[1]);
		sr_nic_progress(side[1].nic, now, 0);
		deliver_packets(&side[1], &side[0]);
		while ((n = sr_cq_poll(side[0].cq, 16, wc)) > 0)
			done += (unsigned)n;
		while (receives && sr_cq_poll(side[1].cq, 16, wc) > 0)
			;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
	} names[] = { { "write", IBV_WR_RDMA_WRITE },
		      { "imm", IBV_WR_RDMA_WRITE_WITH_IMM },
		      { "send", IBV_WR_SEND },
		      { "read", IBV_WR_RDMA_READ } };
	uint32_t len = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 8;
	unsigned count = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : 1000;

	open_side(0);
	open_side(1);
	connect_side(0);
	connect_side(1);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (argc < 2 || !strcmp(argv[1], names[i].name)) {
			packets = 0;
			work(names[i].opcode, len, count);
			printf("%s %u bytes: %u operations, %llu packets\n", names[i].name, len,
			       count, (unsigned long long)packets);
		}
	return 0;
}
