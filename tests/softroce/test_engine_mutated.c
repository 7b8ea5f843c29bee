/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real traffic of every service, and beside it packets of that traffic that somebody has changed:
 * bits, lengths, addresses, sequence numbers, opcodes, keys, order.
 *
 * Usage: test_engine_mutated [PACKETS [SEED]]
 *
 * - A foreign sender sends them, from another address: not one changes anything, every one is
 *   counted, and all traffic is delivered byte by byte.
 * - The peer sends them, so some are believed; connections may end. No byte outside the registered
 *   regions is read (unmapped neighbours, packets in blocks of their exact size) or written
 *   (canaries), and the NIC goes on.
 */
#include "softroce/engine/packet.h"
#include "tests/softroce/engine_pair.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define REGION 65536u
#define PAGE 4096u
#define CANARY 0x5c
#define KEPT 128 /* packets of the traffic to make others of */
#define QKEY 0x42u
#define KINDS 3

static const enum ibv_qp_type types[KINDS] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

struct node {
	struct sr_nic *nic;
	union ibv_gid gid;
	struct sr_pd *pd;
	struct sr_mr *mr;
	struct sr_cq *cq;
	struct sr_qp *qp[KINDS];
	uint8_t *buf; /* canary page, region, canary page; unmapped before and behind */
	unsigned sends, receives, done, failed;
};

struct kept {
	int to; /* node */
	uint32_t len;
	uint8_t data[SR_HDR_MAX + SR_MTU_MAX];
};

struct bed {
	struct sr_memwire *mw;
	struct node node[2];
	struct sr_rng rng;
	struct kept kept[KEPT];
	unsigned n_kept;
	bool foreign;
	uint64_t injected;
};

static uint32_t random_below(struct bed *b, uint32_t n)
{
	return (uint32_t)sr_rng_below(&b->rng, n);
}

/* ---- the traffic ---- */

static bool keep_packet(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	struct bed *b = arg;
	struct kept *k = &b->kept[b->n_kept++ % KEPT];

	k->to = sr_memwire_nic_of(from) == b->node[0].nic;
	k->len = *len;
	memcpy(k->data, packet, *len);
	return true;
}

static void modify_qp(struct bed *b, int e, int kind, enum ibv_qp_state to, int mask)
{
	struct node *n = &b->node[e], *peer = &b->node[!e];
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = ALL_ACCESS,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = peer->gid } },
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = sr_qp_num(peer->qp[kind]),
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
	};

	CHECK_INT(sr_qp_modify(n->qp[kind], sr_memwire_now(b->mw), &attr, mask | IBV_QP_STATE), 0);
}

/* From whatever state to RTS, at both ends. */
static void connect_qps(struct bed *b, int kind)
{
	bool ud = types[kind] == IBV_QPT_UD, rc = types[kind] == IBV_QPT_RC;

	for (int e = 0; e < 2; e++)
		modify_qp(b, e, kind, IBV_QPS_RESET, 0);
	for (int e = 0; e < 2; e++) {
		modify_qp(b, e, kind, IBV_QPS_INIT,
			  IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
		modify_qp(b, e, kind, IBV_QPS_RTR,
			  (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
				  (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
		modify_qp(b, e, kind, IBV_QPS_RTS,
			  IBV_QP_SQ_PSN |
				  (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						   IBV_QP_MAX_QP_RD_ATOMIC
				      : 0));
	}
}

static void open_node(struct bed *b, int e)
{
	struct node *n = &b->node[e];
	struct sr_nic_config config = { .name = "n",
					.active_mtu = IBV_MTU_4096,
					.seed = (uint32_t)e + 3 };
	uint8_t *base =
		mmap(NULL, REGION + 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	CHECK(base != MAP_FAILED &&
	      !mprotect(base + PAGE, REGION + 2 * PAGE, PROT_READ | PROT_WRITE));
	n->buf = base + 2 * PAGE;
	memset(n->buf - PAGE, CANARY, PAGE);
	memset(n->buf + REGION, CANARY, PAGE);
	n->gid.raw[0] = 0xfd;
	n->gid.raw[15] = (uint8_t)(e + 1);
	config.gid[0] = n->gid;
	n->nic = sr_memwire_nic(b->mw, &config, &err);
	CHECK_INT(err, 0);
	n->pd = sr_pd_create(n->nic, &err);
	n->mr = sr_mr_create(n->pd, n->buf, REGION, (uintptr_t)n->buf, ALL_ACCESS, &err);
	n->cq = sr_cq_create(n->nic, 4096, NULL, &err);
	for (int kind = 0; kind < KINDS; kind++) {
		struct sr_qp_init init = {
			.type = types[kind],
			.send_cq = n->cq,
			.recv_cq = n->cq,
			.cap = { 64, 64, 2, 2, 64 },
			.sq_sig_all = true,
		};

		n->qp[kind] = sr_qp_create(n->pd, &init, &err);
		CHECK_INT(err, 0);
	}
}

static void open_bed(struct bed *b, uint64_t seed, bool foreign)
{
	int err;

	memset(b, 0, sizeof(*b));
	b->rng.state = seed;
	b->foreign = foreign;
	b->mw = sr_memwire_create(seed, &err);
	open_node(b, 0);
	open_node(b, 1);
	for (int kind = 0; kind < KINDS; kind++)
		connect_qps(b, kind);
	sr_memwire_set_tap(b->mw, keep_packet, b);
}

static void close_bed(struct bed *b)
{
	sr_memwire_destroy(b->mw);
	for (int e = 0; e < 2; e++)
		munmap(b->node[e].buf - 2 * PAGE, REGION + 4 * PAGE);
}

/* One send of any kind, or nothing when the queue is full. Its wr_id says where it came from. */
static void post_one(struct bed *b, int e)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	static const unsigned n_ops[KINDS] = { 6, 4, 2 };
	struct node *n = &b->node[e], *peer = &b->node[!e];
	int kind = (int)random_below(b, KINDS);
	enum ibv_wr_opcode op = ops[random_below(b, n_ops[kind])];
	uint32_t longest = types[kind] == IBV_QPT_UD ? 2000 : 6000;
	uint32_t length = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : random_below(b, longest);
	struct ibv_sge list = { (uintptr_t)n->buf + random_below(b, REGION / 4), length,
				sr_mr_lkey(n->mr) };
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1, .grh = { .dgid = peer->gid } };
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &list, .num_sge = 1 }, *bad;
	uint64_t target = (uintptr_t)peer->buf + REGION / 2 + 8 * random_below(b, REGION / 32);
	struct sr_ah ah;

	if (types[kind] == IBV_QPT_UD) {
		CHECK_INT(sr_ah_resolve(n->nic, &to, &ah.path), 0);
		wr.wr.ud.ah = &ah.ah;
		wr.wr.ud.remote_qpn = sr_qp_num(peer->qp[kind]);
		wr.wr.ud.remote_qkey = QKEY;
	} else if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = target;
		wr.wr.atomic.rkey = sr_mr_rkey(peer->mr);
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = target;
		wr.wr.rdma.rkey = sr_mr_rkey(peer->mr);
	}
	n->sends += !sr_qp_post_send(n->qp[kind], sr_memwire_now(b->mw), &wr, &bad);
}

static void post_receives(struct node *n)
{
	struct ibv_sge list = { (uintptr_t)n->buf + REGION - 8192, 8192, sr_mr_lkey(n->mr) };
	struct ibv_recv_wr wr = { .sg_list = &list, .num_sge = 1 }, *bad;

	for (int kind = 0; kind < KINDS; kind++)
		while (!sr_qp_post_recv(n->qp[kind], &wr, &bad))
			n->receives++;
}

static void collect_completions(struct node *n)
{
	struct ibv_wc wc[32];
	int got;

	while ((got = sr_cq_poll(n->cq, 32, wc)) > 0)
		for (int i = 0; i < got; i++) {
			n->done++;
			n->failed += wc[i].status != IBV_WC_SUCCESS;
		}
}

static void run_traffic(struct bed *b)
{
	for (int e = 0; e < 2; e++) {
		post_receives(&b->node[e]);
		for (int i = 0; i < 4; i++)
			post_one(b, e);
	}
	sr_memwire_run_until(b->mw, sr_memwire_now(b->mw) + 20000);
	for (int e = 0; e < 2; e++)
		collect_completions(&b->node[e]);
	for (int kind = 0; kind < KINDS; kind++)
		for (int e = 0; e < 2; e++)
			if (sr_qp_state(b->node[e].qp[kind]) != IBV_QPS_RTS) {
				CHECK(!b->foreign);
				connect_qps(b, kind);
			}
}

/* ---- the mutations ---- */

static void put_extended(struct bed *b, uint8_t *data, uint32_t len)
{
	static const uint64_t addresses[] = { 0, 1, UINT64_MAX, UINT64_MAX - 100, 1ull << 63 };
	struct node *n = &b->node[random_below(b, 2)];
	uint64_t near = (uintptr_t)n->buf + REGION - random_below(b, 200) + random_below(b, 100);
	struct sr_reth reth = {
		htobe64(random_below(b, 2) ? near : addresses[random_below(b, 5)]),
		htobe32(random_below(b, 2) ? sr_mr_rkey(n->mr) : (uint32_t)sr_rng_next(&b->rng)),
		htobe32(random_below(b, 2) ? random_below(b, 4000)
					   : UINT32_MAX - random_below(b, 100)),
	};

	if (len >= sizeof(struct sr_bth) + sizeof(reth))
		memcpy(data + sizeof(struct sr_bth), &reth, sizeof(reth));
}

static void shift_psn(struct bed *b, uint8_t *data)
{
	uint32_t apsn,
		by = random_below(b, 2) ? random_below(b, 64) - 32 : (uint32_t)sr_rng_next(&b->rng);

	memcpy(&apsn, data + 8, sizeof(apsn));
	apsn = be32toh(apsn);
	apsn = htobe32((apsn & 0xff000000u) | ((apsn + by) & 0xffffff));
	memcpy(data + 8, &apsn, sizeof(apsn));
}

/* Changes the packet in one of many ways; its new length. The block has room for 64 more bytes. */
static uint32_t mutate_packet(struct bed *b, uint8_t *data, uint32_t len)
{
	uint32_t to;

	switch (random_below(b, 9)) {
	case 0: /* replayed as it was */
		return len;
	case 1:
		for (uint32_t i = 1 + random_below(b, 8); i; i--)
			data[random_below(b, len)] ^= (uint8_t)(1u << random_below(b, 8));
		return len;
	case 2:
		for (uint32_t i = 1 + random_below(b, 4); i; i--)
			data[random_below(b, len < 44 ? len : 44)] = (uint8_t)sr_rng_next(&b->rng);
		return len;
	case 3: /* truncated */
		to = random_below(b, len);
		return random_below(b, 2) ? to : to & ~3u;
	case 4: /* longer than it says */
		to = len + 4 * (1 + random_below(b, 16));
		memset(data + len, 0x3e, to - len);
		return to;
	case 5:
		shift_psn(b, data);
		return len;
	case 6:
		data[0] = (uint8_t)((data[0] & 0xe0) | random_below(b, 0x18));
		return len;
	case 7:
		put_extended(b, data, len);
		return len;
	default: /* several at once */
		shift_psn(b, data);
		data[0] = (uint8_t)((data[0] & 0xe0) | random_below(b, 0x18));
		put_extended(b, data, len);
		return len;
	}
}

static void inject_one(struct bed *b)
{
	const struct kept *k = &b->kept[random_below(b, b->n_kept < KEPT ? b->n_kept : KEPT)];
	struct node *to = &b->node[k->to], *from = &b->node[!k->to];
	struct sr_path path = { .ttl = 64 };
	uint8_t scratch[sizeof(k->data) + 64], *packet;
	uint32_t len;

	memcpy(scratch, k->data, k->len);
	len = mutate_packet(b, scratch, k->len);
	memcpy(path.src, &to->gid, 16);
	memcpy(path.dst, &from->gid, 16);
	if (b->foreign) {
		path.dst[14] = 9;
		/* A datagram from anywhere is welcome when it has the key: take it away. */
		if (scratch[0] >> SR_OPCODE_CLASS_SHIFT == SR_CLASS_UD && len >= 16)
			scratch[12] |= 0x40;
	}
	packet = malloc(len ? len : 1);
	memcpy(packet, scratch, len);
	sr_nic_receive(to->nic, sr_memwire_now(b->mw), &path, packet, len);
	free(packet);
	b->injected++;
}

static void check_canaries(const struct bed *b)
{
	for (int e = 0; e < 2; e++)
		for (uint32_t i = 0; i < PAGE; i++) {
			CHECK_INT(b->node[e].buf[-(int)PAGE + (int)i], CANARY);
			CHECK_INT(b->node[e].buf[REGION + i], CANARY);
		}
}

static uint64_t count_dropped(const struct bed *b)
{
	uint64_t sum = 0;

	for (int e = 0; e < 2; e++) {
		const struct sr_counters *c = sr_nic_counters(b->node[e].nic);

		sum += c->dropped_bad_header + c->dropped_no_qp + c->dropped_wrong_peer +
		       c->dropped_bad_qkey;
	}
	return sum;
}

/* All traffic of a bed under attack from outside is delivered; what it was is compared by
 * test_engine_loss. */
static void finish_traffic(struct bed *b)
{
	struct node *a = &b->node[0], *z = &b->node[1];

	for (int i = 0; i < 100; i++) {
		for (int e = 0; e < 2; e++)
			post_receives(&b->node[e]);
		sr_memwire_run_until(b->mw, sr_memwire_now(b->mw) + 1000000);
		collect_completions(a);
		collect_completions(z);
	}
	CHECK_INT(a->failed + z->failed, 0);
	CHECK_INT(sr_nic_counters(a->nic)->refused_request +
			  sr_nic_counters(z->nic)->refused_request,
		  0);
	CHECK_INT(sr_nic_counters(a->nic)->dropped_message +
			  sr_nic_counters(z->nic)->dropped_message,
		  0);
}

static void attack_bed(uint64_t packets, uint64_t seed, bool foreign)
{
	static struct bed b;

	open_bed(&b, seed, foreign);
	run_traffic(&b);
	while (b.injected < packets) {
		run_traffic(&b);
		for (int i = 0; i < 64 && b.injected < packets; i++)
			inject_one(&b);
		if (b.injected % 4096 < 64)
			check_canaries(&b);
	}
	check_canaries(&b);
	if (foreign) {
		CHECK_INT(count_dropped(&b), b.injected);
		finish_traffic(&b);
	}
	printf("%s: %llu packets, %u completions, %u of them errors; refused %llu, keys %llu, "
	       "answers %llu, headers %llu\n",
	       foreign ? "a foreign sender" : "the peer", (unsigned long long)b.injected,
	       b.node[0].done + b.node[1].done, b.node[0].failed + b.node[1].failed,
	       (unsigned long long)sr_nic_counters(b.node[0].nic)->refused_request,
	       (unsigned long long)sr_nic_counters(b.node[0].nic)->dropped_bad_key,
	       (unsigned long long)sr_nic_counters(b.node[0].nic)->dropped_answer,
	       (unsigned long long)sr_nic_counters(b.node[0].nic)->dropped_bad_header);
	close_bed(&b);
}

int main(int argc, char **argv)
{
	uint64_t packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 40000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	attack_bed(packets / 2, seed, true);
	attack_bed(packets - packets / 2, seed + 1, false);
	return 0;
}
