/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics whose answers get lost: each is executed once, the repeated request is answered with the
 * stored result. And repeated reads are read again, from what is in memory then.
 */
#include "tests/softroce/engine_pair.h"
#include <string.h>

#define N 200

struct loss {
	struct pair *p;
	struct sr_rng rng;
	uint32_t ppm;
	uint64_t lost;
	bool first_response_only;
};

static bool lose_answers(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	struct loss *l = arg;

	if (from != l->p->end[1].port || sr_rng_below(&l->rng, 1000000) >= l->ppm)
		return true;
	l->lost++;
	if (l->first_response_only)
		l->ppm = 0;
	return false;
}

static void count_exactly(uint8_t outstanding, uint64_t seed)
{
	struct options opt = default_options;
	struct loss loss = { .rng = { seed }, .ppm = 150000 };
	struct pair p;
	uint64_t v;

	opt.rd_atomic = opt.dest_rd_atomic = outstanding;
	opt.timeout = 6;
	opt.psn[0] = 0xffffff - N / 2;
	loss.p = &p;
	pair_open(&p, &opt);
	pair_connect(&p, IBV_QPS_RTS);
	sr_memwire_set_tap(p.mw, lose_answers, &loss);
	for (uint64_t i = 0; i < N; i++) {
		struct ibv_sge list = make_sge(&p.end[0], 8 * i, 8);
		struct ibv_send_wr wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, i, &list, 1);

		if (i % 16 == 5) {
			/* of what is there now, into one more */
			wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
			set_remote_address(&wr, &p.end[1], 64);
			wr.wr.atomic.compare_add = i;
			wr.wr.atomic.swap = i + 1;
		} else {
			set_remote_address(&wr, &p.end[1], 64);
			wr.wr.atomic.compare_add = 1;
		}
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		if (i % 32 == 31)
			for (uint64_t j = i - 31; j <= i; j++)
				expect_status(&p, p.end[0].scq, j, IBV_WC_SUCCESS);
	}
	for (uint64_t j = N / 32 * 32; j < N; j++)
		expect_status(&p, p.end[0].scq, j, IBV_WC_SUCCESS);
	memcpy(&v, p.end[1].buf + 64, 8);
	CHECK_INT(v, N);
	for (uint64_t i = 0; i < N; i++) {
		memcpy(&v, p.end[0].buf + 8 * i, 8);
		CHECK_INT(v, i);
	}
	CHECK(loss.lost > N / 16);
	CHECK(sr_nic_counters(p.end[1].nic)->duplicate_request > 0);
	pair_close(&p);
}

static void read_again(void)
{
	struct loss loss = { .ppm = 1000000, .first_response_only = true };
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	loss.p = &p;
	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	sr_memwire_set_tap(p.mw, lose_answers, &loss);
	list = make_sge(&p.end[0], 0, 100);
	wr = send_wr(IBV_WR_RDMA_READ, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	memset(p.end[1].buf, 1, 100);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	while (!loss.lost)
		CHECK(sr_memwire_step(p.mw));
	memset(p.end[1].buf, 2, 100);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK(p.end[0].buf[0] == 2 && p.end[0].buf[99] == 2);
	pair_close(&p);
}

int main(void)
{
	for (uint64_t seed = 1; seed < 20; seed++) {
		count_exactly(1, seed);
		count_exactly(4, seed);
		count_exactly(16, seed);
	}
	read_again();
	return 0;
}
