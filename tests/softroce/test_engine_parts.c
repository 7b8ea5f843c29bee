/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's small parts against simple models: sequence numbers, numbers for objects, timers,
 * faults, the wire. */
#include "softroce/engine/psn.h"
#include "softroce/engine/table.h"
#include "softroce/engine/timer.h"
#include "tests/softroce/engine_pair.h"
#include <string.h>

static void psns_wrap(void)
{
	CHECK_INT(sr_psn_add(0xffffff, 1), 0);
	CHECK_INT(sr_psn_add(0, 0xffffff), 0xffffff);
	CHECK_INT(sr_psn_diff(0, 0xffffff), 1);
	CHECK_INT(sr_psn_diff(0xffffff, 0), -1);
	CHECK_INT(sr_psn_diff(0x7fffff, 0), 0x7fffff);
	CHECK_INT(sr_psn_diff(0x800000, 0), -0x800000);
	CHECK_INT(sr_psn_diff(5, 5), 0);
}

static void object_numbers_differ(void)
{
	struct sr_rng rng = { 1 };
	struct sr_table table;
	uint32_t id[256], extra;
	int objects[256];

	sr_table_init(&table, 8, 24);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 256; i++)
			CHECK_INT(sr_table_add(&table, &objects[i], &rng, &id[i]), 0);
		CHECK_INT(sr_table_add(&table, &objects[0], &rng, &extra), -ENOMEM);
		for (int i = 0; i < 256; i++) {
			CHECK(sr_table_find(&table, id[i]) == &objects[i]);
			CHECK(id[i] >> 8 != 0 && id[i] >> 8 != 0xffff && id[i] < 1u << 24);
			CHECK(!sr_table_find(&table, id[i] ^ 1u << 20));
		}
		for (int i = 0; i < 256; i++) {
			sr_table_remove(&table, id[i]);
			CHECK(!sr_table_find(&table, id[i]));
		}
		CHECK_INT(table.used, 0);
	}
	sr_table_fini(&table);
	CHECK(!sr_table_find(&table, 0));
	/* Two numbers per slot in all: never the same twice in a row. */
	sr_table_init(&table, 8, 10);
	for (int i = 0; i < 64 * 50; i++) {
		CHECK_INT(sr_table_add(&table, &objects[0], &rng, &extra), 0);
		CHECK(i < 64 || id[extra & 63] != extra);
		id[extra & 63] = extra;
		sr_table_remove(&table, extra);
	}
	sr_table_fini(&table);
}

#define TIMERS 64

/* Random arming, stopping and expiring, against looking at all of them. */
static void timers_expire_in_time(void)
{
	struct sr_timer t[TIMERS] = { 0 }, *fired;
	struct sr_timers heap = { 0 };
	struct sr_rng rng = { 9 };
	uint64_t now = 0;

	for (int i = 0; i < TIMERS; i++) {
		CHECK_INT(sr_timers_reserve(&heap), 0);
		t[i].due = SR_NEVER;
	}
	for (int step = 0; step < 100000; step++) {
		struct sr_timer *timer = &t[sr_rng_below(&rng, TIMERS)];
		uint64_t first = SR_NEVER, n = 0, got = 0;

		switch (sr_rng_below(&rng, 4)) {
		case 0:
			sr_timer_stop(timer);
			break;
		case 1:
			sr_timers_release(&heap, timer);
			CHECK_INT(sr_timers_reserve(&heap), 0);
			break;
		default:
			sr_timer_arm(&heap, timer, now + sr_rng_below(&rng, 1000));
		}
		for (int i = 0; i < TIMERS; i++)
			first = t[i].due < first ? t[i].due : first;
		CHECK(sr_timers_next(&heap) <= first);
		now += sr_rng_below(&rng, 20);
		for (int i = 0; i < TIMERS; i++)
			n += t[i].due <= now;
		while ((fired = sr_timers_expired(&heap, now))) {
			CHECK_INT(fired->due, SR_NEVER);
			got++;
		}
		CHECK_INT(got, n);
	}
	sr_timers_fini(&heap);
}

static void faults_have_their_rates(void)
{
	struct sr_fault_dir dir = { 0 };
	struct sr_rng rng = { 3 };
	uint64_t state = rng.state;
	unsigned lost = 0, twice = 0, late = 0;
	struct sr_verdict v = sr_faults_decide(&dir, &rng);

	CHECK(v.copies == 1 && !v.reordered && !v.delay_ns);
	CHECK_INT(rng.state, state); /* a healthy link throws no dice */
	CHECK(!sr_faults_any(&dir));
	dir = (struct sr_fault_dir) { .drop_ppm = 100000,
				      .dup_ppm = 200000,
				      .reorder_ppm = 300000,
				      .delay_ns = 50,
				      .jitter_ns = 10 };
	CHECK(sr_faults_any(&dir));
	for (int i = 0; i < 100000; i++) {
		v = sr_faults_decide(&dir, &rng);
		lost += v.copies == 0;
		twice += v.copies == 2;
		late += v.reordered;
		if (v.copies) {
			uint64_t late_ns = v.reordered ? SR_REORDER_NS : 0;

			CHECK(v.delay_ns >= 50 + late_ns && v.delay_ns <= 60 + late_ns);
		}
	}
	CHECK(lost > 9000 && lost < 11000);
	CHECK(twice > 17000 && twice < 19000);
	CHECK(late > 25500 && late < 28500);
	dir = (struct sr_fault_dir) { .blackhole = 1 };
	CHECK(sr_faults_any(&dir) && !sr_faults_decide(&dir, &rng).copies);
}

static int calls[4], n_calls;

static void note_a(void *arg)
{
	calls[n_calls++] = *(int *)arg;
}

/* Calls come at their time, in the order they were asked for. */
static void scheduled_calls(void)
{
	struct sr_memwire *mw;
	int err, id[4] = { 0, 1, 2, 3 };
	uint64_t start;

	mw = sr_memwire_create(1, &err);
	start = sr_memwire_now(mw);
	CHECK(!sr_memwire_step(mw));
	sr_memwire_at(mw, start + 20, note_a, &id[0]);
	sr_memwire_at(mw, start + 10, note_a, &id[1]);
	sr_memwire_at(mw, start + 20, note_a, &id[2]);
	sr_memwire_at(mw, 0, note_a, &id[3]);
	sr_memwire_run_until(mw, start + 15);
	CHECK(n_calls == 2 && calls[0] == 3 && calls[1] == 1 && sr_memwire_now(mw) == start + 15);
	sr_memwire_run_until(mw, start + 100);
	CHECK(n_calls == 4 && calls[2] == 0 && calls[3] == 2 && sr_memwire_now(mw) == start + 100);
	CHECK_INT(sr_memwire_steps(mw), 4);
	sr_memwire_destroy(mw);
}

/* A link of 1000 bytes per us carries that much, and a faulty run repeats exactly. */
static void wire_repeats_exactly(void)
{
	uint64_t took[2], steps[2];

	for (int run = 0; run < 2; run++) {
		struct ibv_send_wr wr;
		struct ibv_sge list;
		struct pair p;
		uint64_t start;

		pair_open(&p, &default_options);
		pair_connect(&p, IBV_QPS_RTS);
		sr_memwire_set_link(p.end[0].port,
				    &(struct sr_memwire_link) { .latency_ns = 5000,
								.bytes_per_us = 1000 });
		list = make_sge(&p.end[0], 0, 1 << 20);
		wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
		set_remote_address(&wr, &p.end[1], 0);
		start = sr_memwire_now(p.mw);
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
		CHECK(sr_memwire_now(p.mw) - start > 1100000 &&
		      sr_memwire_now(p.mw) - start < 1150000);
		sr_memwire_faults(p.end[0].port)->tx = (struct sr_fault_dir) { .drop_ppm = 20000,
									       .reorder_ppm = 20000,
									       .jitter_ns = 3000 };
		start = sr_memwire_now(p.mw);
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
		took[run] = sr_memwire_now(p.mw) - start;
		steps[run] = sr_memwire_steps(p.mw);
		CHECK(took[run] > 1150000);
		pair_close(&p);
	}
	CHECK_INT(took[0], took[1]);
	CHECK_INT(steps[0], steps[1]);
}

/* A queue pair connected to itself: what never leaves the NIC meets none of the link's faults. */
static void loopback_meets_no_faults(void)
{
	const struct sr_fault_dir bad = { .drop_ppm = 300000,
					  .reorder_ppm = SR_PPM,
					  .reorder_ns = 9000000,
					  .delay_ns = 9000000 };
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;
	uint64_t start;

	opt.psn[1] = opt.psn[0];
	pair_open(&p, &opt);
	p.end[1].gid = p.end[0].gid; /* where the transition to RTR looks for the peer */
	pair_to_state(&p, 0, p.end[0].qp, sr_qp_num(p.end[0].qp), IBV_QPS_RTS);
	*sr_memwire_faults(p.end[0].port) = (struct sr_faults) { .tx = bad, .rx = bad };
	list = make_sge(&p.end[0], 0, 64);
	wr = send_wr(IBV_WR_RDMA_READ, 1, &list, 1);
	set_remote_address(&wr, &p.end[0], 4096);
	start = sr_memwire_now(p.mw);
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	CHECK(sr_memwire_now(p.mw) - start < 1000000);
	pair_close(&p);
}

/* Many queue pairs share the NIC: with equal work they finish at about the same time, whatever the
 * budget of a call. */
static void queue_pairs_share_evenly(void)
{
	struct sr_qp *qp[2][8];
	uint64_t done[8] = { 0 }, n = 0;
	struct ibv_wc wc;
	struct pair p;
	int err;

	pair_open(&p, &default_options);
	for (int i = 0; i < 8; i++) {
		for (int e = 0; e < 2; e++)
			qp[e][i] = pair_new_qp(&p, e, &err);
		for (int e = 0; e < 2; e++)
			pair_to_state(&p, e, qp[e][i], sr_qp_num(qp[!e][i]), IBV_QPS_RTS);
	}
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 20; j++) {
			struct ibv_sge list = make_sge(&p.end[0], 0, 50000);
			struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, (uint64_t)i, &list, 1),
					   *bad;

			set_remote_address(&wr, &p.end[1], 0);
			CHECK_INT(sr_qp_post_send(qp[0][i], sr_memwire_now(p.mw), &wr, &bad), 0);
		}
	CHECK(sr_nic_progress(p.end[0].nic, sr_memwire_now(p.mw), 3));
	CHECK_INT(sr_nic_counters(p.end[0].nic)->sent_pkts, 3);
	while (n < 160) {
		CHECK(wait_cq(&p, p.end[0].scq, &wc, 1000000000));
		CHECK_INT(wc.status, IBV_WC_SUCCESS);
		done[wc.wr_id]++;
		n++;
		for (int i = 0; i < 8; i++)
			CHECK(done[i] + 3 >= n / 8);
	}
	pair_close(&p);
}

int main(void)
{
	psns_wrap();
	object_numbers_differ();
	timers_expire_in_time();
	faults_have_their_rates();
	scheduled_calls();
	wire_repeats_exactly();
	loopback_meets_no_faults();
	queue_pairs_share_evenly();
	return 0;
}
