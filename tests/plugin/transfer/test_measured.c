/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are measured: which stripe is timed, on which rail, and that its completion is
 * reported to whoever asked (balance/gate.h, balance/lag.h, balance/adaptive.h).
 */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "tests/plugin/transfer/recorder.h"

#include <errno.h>
#include <stdlib.h>

static bool is_timed(unsigned w)
{
	return (work[w].id >> 16 & 0xffff) == HA_WR_TIMED;
}

/* The work request is done, on its rail. */
static void complete_posted(struct ha_send *s, unsigned w)
{
	static struct ibv_cq any;
	struct ha_rail *r = &s->b.rail[work[w].rail];

	r->cq = &any;
	arriving = (struct ibv_wc) { .opcode = IBV_WC_RDMA_WRITE, .wr_id = work[w].id };
	arrivals = 1;
	CHECK_INT(ha_rail_poll(&s->b, r), 1);
	CHECK_INT(r->sq_retired, work[w].id >> 32);
}

/* The gate: an empty probe, and the data behind it, of the rail after the one that was measured
 * last. */
static void for_the_gate(unsigned last)
{
	struct ha_send *s = make_sender();
	struct ha_gate *g = &s->b.balance.gate;
	struct ha_request *req;
	bool over = false;

	g->rail = (uint8_t)last;
	g->on = true;
	g->wanted = 1;
	g->tries = 9;
	announce_receive(s, 1, LARGE);
	req = send_member(s, 0, LARGE);
	CHECK(req && g->probe_out && g->data_out);
	CHECK_INT(posted, 3);
	CHECK_INT(g->rail, !last);
	CHECK_INT(g->entry, 0);
	CHECK_INT(g->length, LARGE / 2);
	CHECK_INT(work[0].rail, !last);
	for (unsigned w = 0; w < posted; w++) {
		CHECK_INT(is_timed(w), w && work[w].rail != last);
		CHECK_INT(g->data_out, !over);
		complete_posted(s, w);
		over |= is_timed(w);
	}
	CHECK(!g->probe_out && !g->data_out);
	CHECK(g->path[g->rail].rtt_ns);
	CHECK(req->done);
	CHECK_INT(s->slot[0].pending, 0);
	free_sender(s);
}

/* The device refuses the probe: its rail has failed, and what was to be measured is posted all the
 * same. */
static void for_no_gate(void)
{
	struct ha_send *s = make_sender();
	struct ha_gate *g = &s->b.balance.gate;

	s->b.peer_closed = true; /* no event */
	atomic_store(&s->b.attention, HA_ATTN_DRIVE);
	g->on = true;
	g->wanted = 1;
	g->tries = 9;
	refusal = EIO;
	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, LARGE));
	CHECK_INT(s->b.rail[1].state, HA_RAIL_FENCING);
	CHECK(!g->probe_out && !g->data_out);
	CHECK_INT(s->slot[0].pending, 3);
	free_sender(s);
}

static struct ha_send *make_sampled(void)
{
	struct ha_send *s = make_sender();

	s->b.balance.lag.armed = true;
	s->b.balance.lag.home = 3;
	return s;
}

/* A message for the comparison of two paths goes over one of them, whoever carries the others. */
static void for_a_comparison(void)
{
	for (unsigned rail = 0; rail < 2; rail++) {
		struct ha_send *s = make_sampled();
		struct ha_lag *g = &s->b.balance.lag;
		struct ha_request *req;
		struct work timed;

		g->state = rail ? HA_LAG_AWAY : HA_LAG_WATCH;
		g->other = 1;
		announce_receive(s, 1, LARGE);
		req = send_member(s, 0, LARGE);
		CHECK(req);
		CHECK_INT(posted, 1);
		CHECK_INT(work[0].rail, rail);
		CHECK_INT(work[0].id, ha_wr_id(HA_WR_TIMED, ha_wr_data_entry(0, rail), 1));
		timed = work[0];
		check_bytes(0, LARGE);
		CHECK_INT(s->slot[0].mask, 1 << rail);
		CHECK_INT(s->slot[0].pending, 1 << rail);
		CHECK(g->out && !g->armed);
		CHECK_INT(g->rail, rail);
		CHECK_INT(g->queued, LARGE);
		announce_receive(s, 1, LARGE);
		CHECK(send_member(s, 0, LARGE)); /* as usual again */
		CHECK_INT(posted, 2);
		CHECK(!is_timed(0) && !is_timed(1));
		work[0] = timed;
		complete_posted(s, 0);
		CHECK(!g->out);
		CHECK(req->done);
		free_sender(s);
	}
}

/* An empty message, a group, one for which the rail has no room: not measured. */
static void for_no_comparison(void)
{
	struct ha_send *s = make_sampled();

	s->b.balance.stripe_min = 0;
	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, 0));
	announce_receive(s, 2, LARGE);
	CHECK(send_member(s, 0, LARGE));
	CHECK(send_member(s, 1, LARGE));
	s->b.rail[0].sq_posted = s->b.rail[0].sq_depth;
	announce_receive(s, 1, LARGE);
	CHECK(!send_member(s, 0, LARGE));
	CHECK_INT(posted, 0);
	s->b.rail[0].sq_posted--;
	CHECK(s->b.balance.lag.armed && !s->b.balance.lag.out);
	CHECK(send_member(s, 0, LARGE));
	CHECK_INT(posted, 1);
	CHECK(is_timed(0));
	CHECK(s->b.balance.lag.out);
	free_sender(s);
}

/* Where the shares follow the rates every stripe is timed. */
static void for_the_shares(unsigned members)
{
	struct ha_send *s = make_sender();
	struct ha_adaptive *a = &s->b.balance.adaptive;
	unsigned immediates = 0;

	a->on = true;
	announce_receive(s, members, LARGE);
	for (unsigned m = 0; m < members; m++)
		CHECK(send_member(s, m, LARGE));
	for (unsigned m = 0; m < members; m++)
		check_bytes(m, LARGE);
	for (unsigned w = 0; w < posted; w++) {
		bool last = work[w].opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

		CHECK_INT(is_timed(w), last);
		if (last)
			CHECK_INT(work[w].id,
				  ha_wr_id(HA_WR_TIMED, ha_wr_data_entry(0, work[w].rail),
					   s->b.rail[work[w].rail].sq_posted));
		immediates += last;
	}
	CHECK_INT(immediates, 2);
	CHECK_INT(a->out[0] + a->out[1], members * (uint64_t)LARGE);
	for (unsigned w = 0; w < posted; w++)
		if (is_timed(w)) {
			CHECK(a->out[work[w].rail]);
			complete_posted(s, w);
			CHECK_INT(a->out[work[w].rail], 0);
		}
	CHECK_INT(s->slot[0].pending, 0);
	free_sender(s);
}

int main(void)
{
	for_the_gate(0);
	for_the_gate(1);
	for_no_gate();
	for_a_comparison();
	for_no_comparison();
	for_the_shares(1);
	for_the_shares(2);
	return 0;
}
