/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets nobody should send: dropped and counted, or refused as the specification says, and never
 * believed. */
#include "softroce/engine/packet.h"
#include "tests/softroce/engine_pair.h"
#include <string.h>

static uint8_t packet[5000];

static void open_pair(struct pair *p)
{
	pair_open(p, &default_options);
	pair_connect(p, IBV_QPS_RTS);
}

static const struct sr_counters *counters_of(const struct pair *p)
{
	return sr_nic_counters(p->end[1].nic);
}

static void deliver_packet(struct pair *p, uint32_t len)
{
	inject_packet(p, 0, packet, len);
	run_for(p, 100000);
}

static void put_reth(uint8_t *at, uint64_t va, uint32_t key, uint32_t len)
{
	struct sr_reth reth = { htobe64(va), htobe32(key), htobe32(len) };

	memcpy(at, &reth, sizeof(reth));
}

/* Beyond the plain operations of a reliable connection. */
static bool is_of_a_service(unsigned opcode)
{
	unsigned class = opcode >> SR_OPCODE_CLASS_SHIFT, op = opcode & 0x1f;

	switch (class) {
	case SR_CLASS_RC:
		return op == SR_OP_SEND_LAST_INV || op == SR_OP_SEND_ONLY_INV;
	case SR_CLASS_UC:
		return op <= SR_OP_WRITE_ONLY_IMM;
	case SR_CLASS_UD:
		return op == SR_OP_SEND_ONLY || op == SR_OP_SEND_ONLY_IMM;
	default:
		return false;
	}
}

/* What is delivered next is dropped, counted as the seen-th, and answered with nothing. */
static void check_dropped(struct pair *p, const uint64_t *counter, uint64_t seen, uint32_t bytes)
{
	deliver_packet(p, bytes);
	CHECK_INT(*counter, seen);
	CHECK_INT(counters_of(p)->sent_pkts, 0);
	CHECK_INT(sr_qp_state(p->end[1].qp), IBV_QPS_RTS);
}

/* Headers that are wrong, in packets of `bytes`; byte `at` is `value` where at is not 0. */
static const struct {
	uint8_t opcode, pad, at, value;
	uint32_t bytes;
} bad_headers[] = {
	{ .opcode = SR_OP_SEND_ONLY, .bytes = 0 },
	{ .opcode = SR_OP_SEND_ONLY, .bytes = 11 },
	{ .opcode = SR_OP_SEND_ONLY, .bytes = 14 },           /* not a multiple of four */
	{ .opcode = SR_OP_SEND_ONLY, .pad = 3, .bytes = 12 }, /* more pad than payload */
	{ .opcode = SR_OP_SEND_ONLY, .at = 1, .value = 0x41, .bytes = 16 }, /* version */
	{ .opcode = SR_OP_SEND_ONLY, .at = 3, .value = 0xfe, .bytes = 16 }, /* partition */
	{ .opcode = SR_OP_SEND_ONLY_IMM, .bytes = 12 },
	{ .opcode = SR_OP_WRITE_ONLY, .bytes = 24 },
	{ .opcode = SR_OP_WRITE_ONLY_IMM, .bytes = 28 },
	{ .opcode = SR_OP_READ_REQUEST, .bytes = 24 },
	{ .opcode = SR_OP_READ_REQUEST, .bytes = 32 }, /* a read request has no payload */
	{ .opcode = SR_OP_CMP_SWAP, .bytes = 36 },
	{ .opcode = SR_OP_ATOMIC_ACK, .bytes = 20 },
	{ .opcode = SR_OP_ACK, .bytes = 12 },
};

static void drop_bad_headers(struct pair *p, uint32_t qpn, uint32_t psn)
{
	const uint64_t *counter = &counters_of(p)->dropped_bad_header;
	uint64_t seen = 0;

	for (size_t i = 0; i < sizeof(bad_headers) / sizeof(*bad_headers); i++) {
		make_packet(packet, bad_headers[i].opcode, qpn, psn, true, bad_headers[i].pad);
		if (bad_headers[i].at)
			packet[bad_headers[i].at] = bad_headers[i].value;
		check_dropped(p, counter, ++seen, bad_headers[i].bytes);
	}
	for (unsigned opcode = SR_OP_FETCH_ADD + 1; opcode < 256; opcode++) {
		if (is_of_a_service(opcode))
			continue;
		make_packet(packet, (uint8_t)opcode, qpn, psn, true, 0);
		check_dropped(p, counter, ++seen, 64);
	}
}

/* Another service's packets, for a reliable connection, and those for other numbers. */
static void drop_for_others(struct pair *p, uint32_t qpn, uint32_t psn)
{
	const uint64_t *counter = &counters_of(p)->dropped_no_qp;
	uint64_t seen = 0;

	for (unsigned op = 0; op <= SR_OP_WRITE_ONLY_IMM; op++) {
		make_packet(packet, (uint8_t)SR_OP_OF(SR_CLASS_UC, op), qpn, psn, true, 0);
		check_dropped(p, counter, ++seen, 64);
	}
	make_packet(packet, SR_OP_OF(SR_CLASS_UD, SR_OP_SEND_ONLY), qpn, psn, true, 0);
	check_dropped(p, counter, ++seen, 64);
	for (uint32_t bit = 0; bit < 24; bit++) {
		make_packet(packet, SR_OP_SEND_ONLY, qpn ^ 1u << bit, psn, true, 0);
		check_dropped(p, counter, ++seen, 16);
	}
}

static void bad_packets_are_dropped(void)
{
	struct pair p;
	uint32_t qpn, psn;

	open_pair(&p);
	qpn = sr_qp_num(p.end[1].qp);
	psn = p.opt.psn[0];
	drop_bad_headers(&p, qpn, psn);
	drop_for_others(&p, qpn, psn);
	pair_close(&p);
}

/* From another address than the connection's, to another of ours, or before anybody is
 * connected. */
static void wrong_peers_are_dropped(void)
{
	struct sr_path path = { .ttl = 1 };
	struct pair p;

	pair_open(&p, &default_options);
	pair_to_state(&p, 1, p.end[1].qp, 5, IBV_QPS_INIT);
	make_packet(packet, SR_OP_SEND_ONLY, sr_qp_num(p.end[1].qp), p.opt.psn[0], true, 0);
	deliver_packet(&p, 16);
	CHECK_INT(counters_of(&p)->dropped_no_qp, 1);
	pair_close(&p);
	open_pair(&p);
	make_packet(packet, SR_OP_SEND_ONLY, sr_qp_num(p.end[1].qp), p.opt.psn[0], true, 0);
	memcpy(path.dst, &p.end[0].gid, 16);
	memcpy(path.src, &p.end[1].gid, 16);
	path.dst[15] ^= 1;
	sr_nic_receive(p.end[1].nic, sr_memwire_now(p.mw), &path, packet, 16);
	CHECK_INT(counters_of(&p)->dropped_wrong_peer, 1);
	path.dst[15] ^= 1;
	path.src[15] ^= 1;
	sr_nic_receive(p.end[1].nic, sr_memwire_now(p.mw), &path, packet, 16);
	CHECK_INT(counters_of(&p)->dropped_wrong_peer, 2);
	pair_close(&p);
}

/* Sequences and lengths a requester may not send: refused as invalid, and the queue pair is in
 * error. */
static void refuse_invalid(const uint8_t *opcodes, const uint32_t *lengths, unsigned n)
{
	uint32_t qpn, psn;
	struct pair p;

	open_pair(&p);
	qpn = sr_qp_num(p.end[1].qp);
	psn = p.opt.psn[0];
	CHECK_INT(post_recv(&p.end[1], 1, 0, 100000), 0);
	for (unsigned i = 0; i < n; i++) {
		uint8_t *at = make_packet(packet, opcodes[i], qpn, psn + i, true, 0);
		bool reth = opcodes[i] == SR_OP_WRITE_FIRST || opcodes[i] == SR_OP_WRITE_ONLY;

		CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_RTS);
		if (reth)
			put_reth(at, address_of(&p.end[1], 0), sr_mr_rkey(p.end[1].mr), 3000);
		deliver_packet(&p, 12 + (reth ? 16 : 0) + lengths[i]);
	}
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_ERR);
	CHECK_INT(count_events(&p.end[1], IBV_EVENT_QP_REQ_ERR), 1);
	/* the NAK is for something it never sent */
	CHECK_INT(sr_qp_state(p.end[0].qp), IBV_QPS_RTS);
	pair_close(&p);
}

#define INVALID(...)                                             \
	do {                                                     \
		static const uint32_t a_[][2] = { __VA_ARGS__ }; \
		uint8_t ops_[8];                                 \
		uint32_t lens_[8];                               \
		unsigned n_ = sizeof(a_) / sizeof(a_[0]);        \
		for (unsigned i_ = 0; i_ < n_; i_++) {           \
			ops_[i_] = (uint8_t)a_[i_][0];           \
			lens_[i_] = a_[i_][1];                   \
		}                                                \
		refuse_invalid(ops_, lens_, n_);                 \
	} while (0)

static void invalid_sequences(void)
{
	INVALID({ SR_OP_SEND_MIDDLE, 1024 });
	INVALID({ SR_OP_SEND_LAST, 8 });
	INVALID({ SR_OP_WRITE_MIDDLE, 1024 });
	INVALID({ SR_OP_WRITE_LAST, 8 });
	INVALID({ SR_OP_SEND_FIRST, 512 });
	INVALID({ SR_OP_SEND_FIRST, 2048 });
	INVALID({ SR_OP_SEND_ONLY, 1028 });
	INVALID({ SR_OP_SEND_FIRST, 1024 }, { SR_OP_SEND_FIRST, 1024 });
	INVALID({ SR_OP_SEND_FIRST, 1024 }, { SR_OP_SEND_ONLY, 4 });
	INVALID({ SR_OP_SEND_FIRST, 1024 }, { SR_OP_WRITE_MIDDLE, 1024 });
	INVALID({ SR_OP_SEND_FIRST, 1024 }, { SR_OP_SEND_LAST, 0 });
	INVALID({ SR_OP_SEND_FIRST, 1024 }, { SR_OP_SEND_MIDDLE, 1020 });
	INVALID({ SR_OP_WRITE_FIRST, 1024 }, { SR_OP_SEND_LAST, 4 });
	INVALID({ SR_OP_WRITE_FIRST, 1024 }, { SR_OP_WRITE_LAST, 4 }); /* too early */
	INVALID({ SR_OP_WRITE_FIRST, 1024 }, { SR_OP_WRITE_MIDDLE, 1024 },
		{ SR_OP_WRITE_MIDDLE, 1024 }); /* too much */
	INVALID({ SR_OP_WRITE_ONLY, 1024 });   /* RETH says 3000 */
	INVALID({ SR_OP_WRITE_FIRST, 1024 }, { SR_OP_READ_REQUEST, 16 });
}

/* An acknowledgement of what was never sent, or is long past, changes nothing. */
static void forged_acks(void)
{
	static const uint8_t syndromes[] = { 0x1f, 0x00, 0x20, 0x60, 0x61, 0x62,
					     0x63, 0x64, 0x40, 0x80, 0xff };
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_pair(&p);
	list = make_sge(&p.end[0], 0, 8);
	wr = send_wr(IBV_WR_SEND, 1, &list, 1); /* nobody has a receive: it stays open */
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 5000);
	for (unsigned i = 0; i < sizeof(syndromes); i++)
		for (int d = -3; d <= 3; d++) {
			uint8_t *at =
				make_packet(packet, SR_OP_ACK, sr_qp_num(p.end[0].qp),
					    (p.opt.psn[0] + (uint32_t)d) & 0xffffff, false, 0);

			if (d == 0)
				continue; /* that would be a real one */
			memset(at, 0, 4);
			at[0] = syndromes[i];
			inject_packet(&p, 1, packet, 16);
		}
	run_for(&p, 50000);
	CHECK(sr_cq_empty(p.end[0].scq));
	CHECK_INT(sr_qp_state(p.end[0].qp), IBV_QPS_RTS);
	CHECK_INT(post_recv(&p.end[1], 1, 0, 8), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* An answer that can not be one to the request that waits for it. */
static void bad_response(enum ibv_wr_opcode opcode, uint8_t answer, uint32_t len)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	open_pair(&p);
	sr_memwire_faults(p.end[1].port)->tx.blackhole = 1;
	list = make_sge(&p.end[0], 0, opcode == IBV_WR_RDMA_READ ? 100 : 8);
	wr = send_wr(opcode, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 5000);
	sr_memwire_faults(p.end[1].port)->tx.blackhole = 0;
	memset(make_packet(packet, answer, sr_qp_num(p.end[0].qp), p.opt.psn[0], false, 0), 0, 200);
	inject_packet(&p, 1, packet, len);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_BAD_RESP_ERR);
	CHECK_INT(p.end[0].buf[0], 0);
	pair_close(&p);
}

int main(void)
{
	bad_packets_are_dropped();
	wrong_peers_are_dropped();
	invalid_sequences();
	forged_acks();
	bad_response(IBV_WR_RDMA_READ, SR_OP_READ_ONLY, 16 + 96);
	bad_response(IBV_WR_RDMA_READ, SR_OP_READ_ONLY, 16 + 104);
	bad_response(IBV_WR_RDMA_READ, SR_OP_READ_MIDDLE, 12 + 1024);
	bad_response(IBV_WR_RDMA_READ, SR_OP_ATOMIC_ACK, 24);
	bad_response(IBV_WR_ATOMIC_FETCH_AND_ADD, SR_OP_READ_ONLY, 16 + 8);
	return 0;
}
