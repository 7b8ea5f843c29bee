/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiver not ready: every timer code is waited out as table 45 says, and the retry count means
 * what it says. */
#include "tests/softroce/engine_pair.h"
#include <string.h>

/* IBTA vol. 1, table 45, in units of 10 us. */
static const uint64_t table[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

struct counted {
	int naks;
	uint64_t requests;
	uint64_t at[16]; /* when requests left */
	const struct pair *p;
};

static bool count_rnr(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	struct counted *c = arg;

	if (from == c->p->end[0].port) {
		if (c->requests < 16)
			c->at[c->requests] = sr_memwire_now(c->p->mw);
		c->requests++;
	} else if (packet[0] == 0x11 && (packet[12] & 0x60) == 0x20) {
		c->naks++;
	}
	return true;
}

static void open_pair(struct pair *p, struct counted *c, uint8_t code, uint8_t rnr_retry)
{
	struct options opt = default_options;

	opt.min_rnr_timer = code;
	opt.rnr_retry = rnr_retry;
	opt.timeout = 0;
	pair_open(p, &opt);
	pair_connect(p, IBV_QPS_RTS);
	*c = (struct counted) { .p = p };
	sr_memwire_set_tap(p->mw, count_rnr, c);
}

static void post_send_to(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, 10);
	struct ibv_send_wr wr = send_wr(opcode, 1, &list, 1);

	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

/* The time between the first and the second attempt is the code's, plus the round trip and nothing
 * more. */
static void timer_code(uint8_t code)
{
	struct counted c;
	struct pair p;
	uint64_t waited;

	open_pair(&p, &c, code, 7);
	post_send_to(&p, code & 1 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM);
	while (c.requests < 2)
		CHECK(sr_memwire_step(p.mw));
	waited = c.at[1] - c.at[0];
	CHECK(waited >= table[code] * 10000 && waited < table[code] * 10000 + 10000);
	CHECK_INT(post_recv(&p.end[1], 5, 100, 10), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	expect_status(&p, p.end[1].rcq, 5, IBV_WC_SUCCESS);
	pair_close(&p);
}

static void check_rnr_retries(uint8_t n)
{
	struct counted c;
	struct pair p;

	open_pair(&p, &c, 1, n);
	post_send_to(&p, IBV_WR_SEND);
	post_send_to(&p, IBV_WR_SEND);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(c.naks, n + 1);
	CHECK_INT(sr_qp_state(p.end[0].qp), IBV_QPS_ERR);
	CHECK_INT(sr_qp_state(p.end[1].qp), IBV_QPS_RTS);
	CHECK_INT(sr_nic_counters(p.end[0].nic)->retry_rnr_exceeded_err, 1);
	CHECK_INT(sr_nic_counters(p.end[0].nic)->rcvd_rnr_err, n + 1);
	CHECK_INT(sr_nic_counters(p.end[1].nic)->send_rnr_err, n + 1);
	pair_close(&p);
}

/* Seven is for ever, and a count is full again after a message got through. */
static void forever_and_refill(void)
{
	struct counted c;
	struct pair p;

	open_pair(&p, &c, 1, 7);
	post_send_to(&p, IBV_WR_SEND);
	run_for(&p, 20000000); /* some 1600 attempts */
	CHECK(c.naks > 1000);
	CHECK_INT(post_recv(&p.end[1], 5, 100, 10), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	pair_close(&p);

	open_pair(&p, &c, 1, 3);
	for (int i = 0; i < 5; i++) {
		post_send_to(&p, IBV_WR_SEND);
		while (c.naks < 3 * (i + 1))
			CHECK(sr_memwire_step(p.mw));
		CHECK_INT(post_recv(&p.end[1], 5, 100, 10), 0);
		expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

int main(void)
{
	for (uint8_t code = 0; code < 32; code++)
		timer_code(code);
	for (uint8_t n = 0; n < 7; n++)
		check_rnr_retries(n);
	forever_and_refill();
	return 0;
}
