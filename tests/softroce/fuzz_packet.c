/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_packet.c - packets from a hostile but connected peer, against a whole engine
 *
 * The NIC has queue pairs of every service with receives posted and with sends, reads and atomics
 * under way, memory regions that end at unmapped pages and a bound window, beside memory that is
 * not registered and must never change. The input is a list of packets, of each these bytes:
 *
 * - 0: queue pair; 0x40: a length that is no multiple of 4, 0x80: a wrong queue pair number
 * - 1: opcode
 * - 2: distance of the PSN from what the queue pair expects, signed
 * - 3: flags: bits 0-3 which headers are made right, 4-7 of the BTH
 * - 4, 5: length behind the BTH, little-endian, modulo 5000
 * - then up to 32 bytes for the headers; the rest of the packet is one repeated byte
 */
#include "softroce/engine/packet.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/qp.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define QPS 6
#define QP_UC 4
#define QP_UD 5
#define QKEY 0x11223344u
#define REGION 16384u
#define CANARY 0xa5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bed {
	struct sr_nic *nic;
	struct sr_pd *pd;
	struct sr_cq *cq;
	struct sr_mr *mr, *read_only, *window;
	struct sr_srq *srq;
	struct sr_qp *qp[QPS];
	uint64_t now;
};

static uint8_t *region, *fenced; /* registered; its unregistered neighbour page */

static int discard_frame(void *wire, const struct sr_frame *frame)
{
	static uint8_t copy[SR_HDR_MAX + SR_MTU_MAX];
	size_t payload = 0;

	/* Read all of it, as a wire would. */
	memcpy(copy, frame->hdr, frame->hdr_len);
	for (unsigned i = 0; i < frame->iov_n; i++) {
		memcpy(copy, frame->iov[i].iov_base, frame->iov[i].iov_len);
		payload += frame->iov[i].iov_len;
	}
	if (payload != frame->payload_len || payload > SR_MTU_MAX ||
	    ((frame->hdr_len + payload + frame->pad) & 3))
		abort();
	return 0;
}

static const struct sr_wire_ops wire_ops = { .send = discard_frame };

static enum ibv_qp_type type_of(unsigned i)
{
	if (i == QP_UC)
		return IBV_QPT_UC;
	return i == QP_UD ? IBV_QPT_UD : IBV_QPT_RC;
}

/* Unmapped, region, canary page, unmapped. */
static void map_memory(void)
{
	uint8_t *base =
		mmap(NULL, REGION + 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED || mprotect(base + 4096, REGION + 4096, PROT_READ | PROT_WRITE))
		abort();
	region = base + 4096;
	fenced = region + REGION;
}

static void modify_qp(struct bed *b, struct sr_qp *qp, enum ibv_qp_state to, int mask, unsigned i)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.qp_access_flags = i == 2 ? IBV_ACCESS_REMOTE_READ : 15,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid.raw = { 1 } },
		.path_mtu = (enum ibv_mtu)(1 + i % 4),
		.qkey = QKEY,
		.dest_qp_num = 7,
		.rq_psn = 0xfffffe,
		.sq_psn = 0xfffff0,
		.max_dest_rd_atomic = (uint8_t)(i ? i : 16),
		.max_rd_atomic = 4,
		.timeout = 1,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	if (sr_qp_modify(qp, b->now, &attr, mask | IBV_QP_STATE))
		abort();
}

static void connect_qp(struct bed *b, struct sr_qp *qp, unsigned i)
{
	if (i == QP_UC || i == QP_UD) {
		modify_qp(b, qp, IBV_QPS_INIT,
			  IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  (i == QP_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
			  i);
		modify_qp(b, qp, IBV_QPS_RTR,
			  i == QP_UD
				  ? 0
				  : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
			  i);
		modify_qp(b, qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, i);
		return;
	}
	modify_qp(b, qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, i);
	modify_qp(b, qp, IBV_QPS_RTR,
		  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		  i);
	modify_qp(b, qp, IBV_QPS_RTS,
		  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC,
		  i);
}

static void post_work(struct bed *b, struct sr_qp *qp)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_READ,           IBV_WR_SEND,      IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	};
	struct ibv_sge list = { (uintptr_t)region, 3000, sr_mr_lkey(b->mr) };
	struct ibv_recv_wr recv = { .sg_list = &list, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr = { .sg_list = &list, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	for (int i = 0; i < 3; i++) {
		list.addr = (uintptr_t)region + REGION - 3000;
		if (sr_qp_post_recv(qp, &recv, &bad_recv))
			sr_srq_post(b->srq, &recv, &bad_recv);
	}
	if (qp == b->qp[QP_UC] || qp == b->qp[QP_UD])
		return;
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		wr.opcode = ops[i];
		list.length = ops[i] == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 3000;
		if (sr_qp_post_send(qp, b->now, &wr, &bad))
			abort();
	}
}

/* The window shows the region's last bytes to queue pair 0 only. */
static void bind_window(struct bed *b)
{
	struct ibv_mw public = { .type = IBV_MW_TYPE_2 };
	struct ibv_mr of = { .lkey = sr_mr_lkey(b->mr) };
	struct ibv_mw_bind_info end = { &of, (uintptr_t)region + REGION - 64, 64,
					IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { &public, ibv_inc_rkey(sr_mr_rkey(b->window)), end },
	}, *bad;

	if (sr_qp_post_send(b->qp[0], b->now, &wr, &bad))
		abort();
}

static void open_bed(struct bed *b)
{
	struct sr_nic_config config = {
		.gid = { { .raw = { 2 } } },
		.active_mtu = IBV_MTU_4096,
		.seed = 5,
		.wire_ops = &wire_ops,
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 64, .max_sge = 2 } };
	int err;

	b->now = 1000;
	b->nic = sr_nic_create(&config, &err);
	b->pd = sr_pd_create(b->nic, &err);
	b->cq = sr_cq_create(b->nic, 64, NULL, &err);
	b->mr = sr_mr_create(b->pd, region, REGION, (uintptr_t)region, 15 | IBV_ACCESS_MW_BIND,
			     &err);
	b->read_only = sr_mr_create(b->pd, region, 100, 0, IBV_ACCESS_REMOTE_READ, &err);
	b->window = sr_mw_create(b->pd, IBV_MW_TYPE_2, &err);
	b->srq = sr_srq_create(b->pd, &srq, NULL, &err);
	for (unsigned i = 0; i < QPS; i++) {
		struct sr_qp_init init = {
			.type = type_of(i),
			.send_cq = b->cq,
			.recv_cq = b->cq,
			.srq = i == 3 ? b->srq : NULL,
			.cap = { 16, 16, 2, 2, 64 },
		};

		b->qp[i] = sr_qp_create(b->pd, &init, &err);
		if (!b->qp[i])
			abort();
		connect_qp(b, b->qp[i], i);
		post_work(b, b->qp[i]);
	}
	bind_window(b);
	sr_nic_progress(b->nic, b->now, 0);
}

/* The header behind the first, where a packet has room for it. */
static void put_header(uint8_t *packet, uint32_t len, const void *header, size_t bytes)
{
	if (len >= sizeof(struct sr_bth) + bytes)
		memcpy(packet + sizeof(struct sr_bth), header, bytes);
}

static bool has_invalidate_key(const uint8_t *packet)
{
	return packet[0] == SR_OP_SEND_LAST_INV || packet[0] == SR_OP_SEND_ONLY_INV;
}

/* Key, address and length of a one-sided request. */
static void help_reth(struct bed *b, uint8_t *packet, uint8_t flags, uint32_t len)
{
	uint32_t behind = sizeof(struct sr_bth) + sizeof(struct sr_reth);
	const struct sr_mr *mr;
	struct sr_reth reth;

	if (len < behind)
		return;
	memcpy(&reth, packet + sizeof(struct sr_bth), sizeof(reth));
	mr = reth.rkey & 1 ? b->window : b->mr;
	reth.rkey = htobe32(sr_mr_rkey(flags & 2 ? b->read_only : mr));
	if (flags & 4)
		reth.va =
			htobe64((flags & 2 ? 0 : (uintptr_t)region) + (be64toh(reth.va) & 0x7fff));
	if (flags & 8)
		reth.length = htobe32(len - behind);
	put_header(packet, len, &reth, sizeof(reth));
}

/* Makes the parts right that a random packet would never get right, as far as the input asks for
 * it. */
static void put_valid_headers(struct bed *b, const struct sr_qp *qp, uint8_t *packet, uint8_t flags,
			      uint32_t len)
{
	struct sr_deth deth = { htobe32(QKEY), htobe32(9) };
	uint32_t key = htobe32(sr_mr_rkey(b->window));

	if (!(flags & 1))
		return;
	if (qp == b->qp[QP_UD])
		put_header(packet, len, &deth, sizeof(deth));
	if (has_invalidate_key(packet) && len >= sizeof(struct sr_bth) + SR_IMM_LEN)
		put_header(packet, len, &key, sizeof(key));
	else if (qp != b->qp[QP_UD])
		help_reth(b, packet, flags, len);
}

static size_t one_packet(struct bed *b, const uint8_t *in, size_t size)
{
	static const struct sr_path path = { .src = { 2 }, .dst = { 1 } };
	const struct sr_qp *qp = b->qp[in[0] % QPS];
	uint32_t base = in[1] >= SR_OP_READ_FIRST && in[1] <= SR_OP_ATOMIC_ACK ? qp->req.una_psn
									       : qp->resp.epsn;
	uint32_t len = sizeof(struct sr_bth) + (in[4] | (uint32_t)in[5] << 8) % 5000;
	uint32_t headers = size - 6 < 32 ? (uint32_t)size - 6 : 32;
	struct sr_bth bth = {
		.opcode = in[1],
		.flags = in[3] & 0xb0,
		.pkey = htobe16(SR_PKEY),
		.qpn = htobe32(in[0] & 0x80 ? in[0] * 77777u : qp->qpn),
		.apsn = htobe32(sr_psn_add(base, (uint32_t)(int8_t)in[2]) |
				(in[3] & 0x40 ? SR_BTH_ACKREQ : 0)),
	};
	/* Exactly as long as the packet, so that the sanitizer sees every byte too far. */
	uint8_t *packet = malloc(len);

	memset(packet, in[2], len);
	memcpy(packet, &bth, sizeof(bth));
	if (headers > len - sizeof(bth))
		headers = len - (uint32_t)sizeof(bth);
	memcpy(packet + sizeof(bth), in + 6, headers);
	put_valid_headers(b, qp, packet, in[3], len);
	sr_nic_receive(b->nic, b->now, &path, packet, in[0] & 0x40 ? len : (len & ~3u));
	free(packet);
	return 6 + headers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibv_wc wc[16];
	struct bed b;

	if (!region)
		map_memory();
	memset(fenced, CANARY, 4096);
	open_bed(&b);
	while (size >= 6) {
		size_t used = one_packet(&b, data, size);

		data += used;
		size -= used;
		b.now += 100;
		sr_nic_progress(b.nic, b.now, 64);
		sr_cq_poll(b.cq, 16, wc);
	}
	/* Let every timer that is running come due a few times. */
	for (int i = 0; i < 20; i++) {
		b.now += 10000;
		sr_nic_progress(b.nic, b.now, 0);
	}
	for (int i = 0; i < 4096; i++)
		if (fenced[i] != CANARY)
			abort();
	sr_nic_destroy(b.nic);
	return 0;
}
