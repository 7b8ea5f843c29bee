/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A silent peer: a request is repeated retry_cnt times, each after 4.096 us * 2^timeout of nothing,
 * and fails when the last of these waits is over: after (retry_cnt + 1) of them in all. A timeout
 * of 0 waits for ever.
 */
#include "tests/softroce/engine_pair.h"
#include <string.h>

static uint64_t sent;

static bool drop_packet(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	sent++;
	return false;
}

static void write_to_nobody(struct pair *p, uint8_t timeout, uint8_t retry_cnt)
{
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct ibv_sge list;

	opt.timeout = timeout;
	opt.retry_cnt = retry_cnt;
	pair_open(p, &opt);
	pair_connect(p, IBV_QPS_RTS);
	sr_memwire_set_tap(p->mw, drop_packet, NULL);
	sent = 0;
	list = make_sge(&p->end[0], 0, 10);
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
	wr.wr_id = 2;
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

static void check_retry_window(uint8_t timeout, uint8_t retry_cnt)
{
	uint64_t expected = (retry_cnt + 1ull) * (4096ull << timeout);
	struct pair p;
	uint64_t start, took;

	write_to_nobody(&p, timeout, retry_cnt);
	start = sr_memwire_now(p.mw);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	took = sr_memwire_now(p.mw) - start;
	CHECK_INT(took, expected); /* virtual time: to the nanosecond */
	expect_status(&p, p.end[0].scq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(sent, 2u * (retry_cnt + 1u));
	CHECK_INT(sr_nic_counters(p.end[0].nic)->retry_exceeded_err, 1);
	CHECK_INT(sr_nic_counters(p.end[0].nic)->completer_retry_err, retry_cnt);
	CHECK_INT(sr_nic_deadline(p.end[0].nic), UINT64_MAX); /* nothing left to wait for */
	pair_close(&p);
}

/* What was acknowledged pushes the timer back and fills the count again. */
static bool only_every_seventh(void *arg, struct sr_memwire_port *from, uint8_t *packet,
			       uint32_t *len)
{
	const struct pair *p = arg;

	return from != p->end[0].port || ++sent % 7 == 0;
}

static void progress_refills_retries(void)
{
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	opt.retry_cnt = 6;
	opt.max_inflight = 1;
	pair_open(&p, &opt);
	pair_connect(&p, IBV_QPS_RTS);
	sr_memwire_set_tap(p.mw, only_every_seventh, &p);
	sent = 0;
	list = make_sge(&p.end[0], 0, 10 * 1024);
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS); /* six losses in a row, ten times */
	CHECK_INT(sent, 70);
	pair_close(&p);
}

static void zero_timeout_is_never(void)
{
	struct ibv_wc wc;
	struct pair p;

	write_to_nobody(&p, 0, 0);
	CHECK(!wait_cq(&p, p.end[0].scq, &wc, 1000000000000ull));
	CHECK_INT(sent, 2);
	CHECK_INT(sr_nic_deadline(p.end[0].nic), UINT64_MAX);
	pair_close(&p);
}

int main(void)
{
	for (uint8_t timeout = 1; timeout < 32; timeout++)
		for (uint8_t retry_cnt = 0; retry_cnt < 8; retry_cnt++)
			check_retry_window(timeout, retry_cnt);
	progress_refills_retries();
	zero_timeout_is_never();
	return 0;
}
