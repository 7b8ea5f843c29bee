/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations both ways over a wire that loses, reorders and duplicates, many seeds. Oracles:
 * every request completes exactly once, in order, successfully; every message arrives exactly once,
 * in order, byte-identical; writes and reads carry the right bytes; each fetch-and-add counted
 * once.
 */
#include "base/rng.h"
#include "tests/softroce/engine_pair.h"
#include <string.h>

#define SLOTS 16
#define SLOT 8192
#define COUNTER (3 * SLOTS * SLOT) /* place of the atomic counter in each buffer */
#define MESSAGES 120

struct direction {
	struct sr_rng rng;
	uint64_t next_wr, next_done; /* send side */
	uint64_t recv_posted, recv_done;
	uint64_t sent_msgs; /* those that take a receive */
	uint64_t adds;
	uint32_t len[SLOTS]; /* of the operation in the slot, by wr_id % SLOTS */
	uint8_t opcode[SLOTS];
	uint32_t msg_len[64]; /* of the n-th message that takes a receive */
	uint8_t msg_imm[64];
	uint64_t msg_seed[64];
};

static const enum ibv_wr_opcode ops[] = {
	IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD,
};

/*
 * A buffer: SLOTS slots for sends' sources and reads' destinations, SLOTS for receives, SLOTS for
 * the peer's writes and reads. The last area is filled once for reads; writes go there too, so a
 * read of a slot never overlaps a write on it: slots are chosen by parity.
 */
static uint32_t random_length(struct sr_rng *rng)
{
	switch (sr_rng_below(rng, 4)) {
	case 0:
		return (uint32_t)sr_rng_below(rng, 16);
	case 1:
		return (uint32_t)sr_rng_below(rng, SLOT);
	case 2:
		return SLOT;
	default:
		return (uint32_t)sr_rng_below(rng, 3) * 256;
	}
}

static void post_one(struct pair *p, int e, struct direction *d)
{
	struct end *me = &p->end[e], *peer = &p->end[!e];
	enum ibv_wr_opcode op = ops[sr_rng_below(&d->rng, 6)];
	uint32_t slot = (uint32_t)(d->next_wr % SLOTS), len = random_length(&d->rng);
	struct ibv_sge list[2];
	struct ibv_send_wr wr = send_wr(op, d->next_wr, list, 1);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		len = 8;
	list[0] = make_sge(me, slot * SLOT, len);
	if (len > 1 && len != 8) {
		list[0].length = len / 2;
		list[1] = make_sge(me, slot * SLOT + len / 2, len - len / 2);
		wr.num_sge = 2;
	}
	d->len[slot] = len;
	d->opcode[slot] = (uint8_t)op;
	if (sr_rng_below(&d->rng, 8) == 0)
		wr.send_flags |= IBV_SEND_FENCE;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		set_remote_address(&wr, peer, COUNTER);
		wr.wr.atomic.compare_add = 1;
		d->adds++;
	} else if (op == IBV_WR_RDMA_READ) {
		memset(me->buf + slot * SLOT, 0xee, len);
		set_remote_address(&wr, peer, (2 * SLOTS + slot) * SLOT);
	} else {
		fill_random(me->buf + slot * SLOT, len, d->next_wr * 2 + (uint64_t)e);
		set_remote_address(&wr, peer, (2 * SLOTS + slot) * SLOT);
	}
	if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM) {
		uint64_t n = d->sent_msgs++ % 64;

		wr.imm_data = (uint32_t)d->sent_msgs;
		d->msg_len[n] = len;
		d->msg_imm[n] = (uint8_t)op;
		d->msg_seed[n] = d->next_wr * 2 + (uint64_t)e;
	}
	CHECK_INT(post_wr(p, e, &wr), 0);
	d->next_wr++;
}

static void check_sent(struct pair *p, int e, struct direction *d, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)(d->next_done % SLOTS);
	struct end *me = &p->end[e], *peer = &p->end[!e];

	CHECK_INT(wc->status, IBV_WC_SUCCESS);
	CHECK_INT(wc->wr_id, d->next_done);
	if (d->opcode[slot] == IBV_WR_RDMA_READ || d->opcode[slot] == IBV_WR_RDMA_WRITE)
		CHECK(!memcmp(me->buf + slot * SLOT, peer->buf + (2 * SLOTS + slot) * SLOT,
			      d->len[slot]));
	if (d->opcode[slot] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		uint64_t before;

		memcpy(&before, me->buf + slot * SLOT, 8);
		CHECK(before < d->adds);
	}
	d->next_done++;
}

static void repost_recv(struct pair *p, int e, struct direction *d)
{
	CHECK_INT(post_recv(&p->end[e], d->recv_posted, (SLOTS + d->recv_posted % SLOTS) * SLOT,
			    SLOT),
		  0);
	d->recv_posted++;
}

/* from: the direction of the peer whose messages arrive here. */
static void check_received(struct pair *p, int e, struct direction *here, struct direction *from,
			   const struct ibv_wc *wc)
{
	uint64_t n = here->recv_done % 64;
	uint8_t expected[SLOT];
	bool write = from->msg_imm[n] == IBV_WR_RDMA_WRITE_WITH_IMM;

	CHECK_INT(wc->status, IBV_WC_SUCCESS);
	CHECK_INT(wc->wr_id, here->recv_done);
	CHECK(here->recv_done < from->sent_msgs);
	CHECK_INT(wc->byte_len, from->msg_len[n]);
	CHECK_INT(wc->opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	if (from->msg_imm[n] != IBV_WR_SEND)
		CHECK_INT(wc->imm_data, (uint32_t)(here->recv_done + 1));
	if (!write) {
		fill_random(expected, wc->byte_len, from->msg_seed[n]);
		CHECK(!memcmp(expected, p->end[e].buf + (SLOTS + wc->wr_id % SLOTS) * SLOT,
			      wc->byte_len));
	}
	here->recv_done++;
}

static void pump_end(struct pair *p, int e, struct direction *d)
{
	struct end *me = &p->end[e];
	struct ibv_wc wc;

	while (sr_cq_poll(me->scq, 1, &wc) == 1)
		check_sent(p, e, &d[e], &wc);
	while (sr_cq_poll(me->rcq, 1, &wc) == 1) {
		check_received(p, e, &d[e], &d[!e], &wc);
		if (sr_rng_below(&d[e].rng, 4)) /* sometimes late, so that RNR NAKs happen */
			repost_recv(p, e, &d[e]);
	}
	while (d[e].next_wr < MESSAGES && d[e].next_wr - d[e].next_done < SLOTS &&
	       d[e].sent_msgs - d[!e].recv_done < 64)
		post_one(p, e, &d[e]);
	if (d[e].recv_posted == d[e].recv_done || sr_rng_below(&d[e].rng, 64) == 0)
		while (d[e].recv_posted - d[e].recv_done < SLOTS)
			repost_recv(p, e, &d[e]);
}

static void run_seed(uint64_t seed)
{
	struct options opt = default_options;
	struct sr_rng rng = { seed };
	struct direction d[2] = { { .rng = { seed * 3 + 1 } }, { .rng = { seed * 3 + 2 } } };
	struct pair p;
	uint64_t count;

	opt.seed = seed;
	opt.mtu = (enum ibv_mtu)(1 + sr_rng_below(&rng, 5));
	opt.timeout = 8; /* 1 ms */
	opt.psn[0] = 0xfffff0;
	opt.psn[1] = (uint32_t)sr_rng_below(&rng, 1 << 24);
	opt.rd_atomic = opt.dest_rd_atomic = (uint8_t)(1 + sr_rng_below(&rng, 16));
	opt.max_inflight = (uint32_t)(uint32_t[]) { 0, 1, 5, 16, 64 }[sr_rng_below(&rng, 5)];
	opt.use_srq = seed & 1;
	pair_open(&p, &opt);
	pair_connect(&p, IBV_QPS_RTS);
	for (int e = 0; e < 2; e++) {
		struct sr_fault_dir *f = &sr_memwire_faults(p.end[e].port)->tx;

		f->drop_ppm = (uint32_t)sr_rng_below(&rng, 60000);
		f->dup_ppm = (uint32_t)sr_rng_below(&rng, 60000);
		f->reorder_ppm = (uint32_t)sr_rng_below(&rng, 60000);
		f->jitter_ns = sr_rng_below(&rng, 5000);
		sr_memwire_faults(p.end[e].port)->rx.dup_ppm = (uint32_t)sr_rng_below(&rng, 20000);
		fill_random(p.end[e].buf + 2 * SLOTS * SLOT, SLOTS * SLOT, seed);
	}
	while (d[0].next_done < MESSAGES || d[1].next_done < MESSAGES ||
	       d[0].recv_done < d[1].sent_msgs || d[1].recv_done < d[0].sent_msgs) {
		pump_end(&p, 0, d);
		pump_end(&p, 1, d);
		CHECK(sr_memwire_now(p.mw) < 100000000000ull);
		CHECK(sr_memwire_step(p.mw));
	}
	for (int e = 0; e < 2; e++) {
		memcpy(&count, p.end[!e].buf + COUNTER, 8);
		CHECK_INT(count, d[e].adds);
		CHECK_INT(p.end[e].n_events, 0);
	}
	pair_close(&p);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
		 n = argc > 2 ? strtoull(argv[2], NULL, 0) : 300;

	for (uint64_t seed = first; seed < first + n; seed++) {
		if (argc > 1)
			fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
		run_seed(seed);
	}
	return 0;
}
