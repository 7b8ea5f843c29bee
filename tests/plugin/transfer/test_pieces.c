/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are more than one work request for each rail: in which pieces they go, how many
 * those are, and what a refusal in their middle leaves.
 */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/transfer/stripe.h"
#include "tests/plugin/transfer/recorder.h"

#include <errno.h>
#include <stdlib.h>

/* More work requests than one call of the NIC takes. */
static void many_pieces(void)
{
	struct ha_send *s = make_sender();

	s->b.active = 1;
	ha_policy_update(&s->b);
	s->b.rail[0].max_msg = LARGE / 4;
	ha_send_prepare_rail(s, &s->b.rail[0]);
	announce_receive(s, 8, LARGE);
	for (unsigned m = 0; m < 8; m++)
		CHECK(send_member(s, m, LARGE));
	for (unsigned m = 0; m < 8; m++)
		check_bytes(m, LARGE);
	CHECK_INT(posted, 33);
	CHECK_INT(s->b.rail[0].sq_posted, 33);
	for (unsigned w = 0; w < posted; w++) {
		bool last = w == 32, ends_buffer = w % 4 == 3;

		CHECK_INT(work[w].opcode, last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
		/* each piece but a buffer's last shows that the rail moves */
		CHECK_INT(work[w].flags & IBV_SEND_SIGNALED,
			  last || !ends_buffer ? IBV_SEND_SIGNALED : 0);
		if (work[w].flags & IBV_SEND_SIGNALED)
			CHECK_INT(work[w].id >> 32, w + 1);
	}
	free_sender(s);
}

/* A long stripe goes in steps: of 8 MiB, or of more where the queue is short, so that half of it
 * takes all of them; multiples of 128 bytes, but for the last. */
static void steps_of_a_stripe(void)
{
	static const struct {
		unsigned depth;
		uint64_t size, step;
	} cases[] = {
		{ 1024, UINT64_C(40) << 20, 8 << 20 },
		{ 1024, (UINT64_C(40) << 20) + 1, 8 << 20 },
		{ 6, UINT64_C(40) << 20, ((40 << 20) / 3 + 128) & ~127 },
		{ 9, UINT64_C(40) << 20, (40 << 20) / 4 + 128 },
		{ 10, UINT64_C(40) << 20, (40 << 20) / 5 + 128 },
	};

	for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct ha_send *s = make_sender();
		uint64_t at = 0;

		s->b.active = 1;
		ha_policy_update(&s->b);
		s->b.rail[0].sq_depth = cases[k].depth;
		announce_receive(s, 1, cases[k].size);
		CHECK(send_member(s, 0, cases[k].size));
		for (unsigned w = 0; w + 1 < posted; w++) {
			uint64_t left = cases[k].size - at;

			CHECK_INT(work[w].to, THERE + at);
			CHECK_INT(work[w].length, left < cases[k].step ? left : cases[k].step);
			at += work[w].length;
		}
		CHECK_INT(at, cases[k].size);
		CHECK_INT(work[posted - 1].imm, ha_imm_make(0, 0, 1, true));
		free_sender(s);
	}
}

/* So many work requests does a stripe need; the last one has the lengths. */
static void cost_of_a_stripe(void)
{
	static const uint64_t sizes[] = { 0, 1, 8 << 20, (8 << 20) + 1, 16 << 20 };
	static const unsigned costs[] = { 1, 2, 2, 3, 3 };
	struct ha_send *s = make_sender();
	struct ha_stripe st = { .slot = &s->slot[0], .mask = 2, .index = 1 };

	st.weight = s->slot[0].weight;
	s->slot[0].weight[1] = 1024;
	for (unsigned n = 1; n < 3; n++)
		for (unsigned k = 0; k < 5; k++) {
			s->slot[0].n = (uint8_t)n;
			s->slot[0].req.size = sizes[k];
			s->slot[0].more[0].size = sizes[k];
			CHECK_INT(ha_stripe_cost(&st, &s->b.rail[1]), n * (costs[k] - 1) + 1);
		}
	free_sender(s);
}

/* A stripe that is all that one work request may carry goes with its immediate. */
static void as_much_as_goes(void)
{
	for (unsigned more = 0; more < 2; more++) {
		struct ha_send *s = make_sender();

		for (unsigned i = 0; i < RAILS; i++) {
			s->b.rail[i].max_msg = LARGE / 8;
			ha_send_prepare_rail(s, &s->b.rail[i]);
		}
		announce_receive(s, 1, LARGE);
		CHECK(send_member(s, 0, LARGE / 4 + more));
		check_bytes(0, LARGE / 4 + more);
		CHECK_INT(posted, more ? 5 : 2);
		s->b.active = 1;
		ha_policy_update(&s->b);
		announce_receive(s, 1, LARGE);
		CHECK(send_member(s, 0, LARGE / 8 + more));
		check_bytes(0, LARGE / 8 + more);
		CHECK_INT(posted, more ? 3 : 1);
		free_sender(s);
	}
}

/* The same of a message in many pieces: none is posted behind the first that was refused. */
static void refused_pieces(void)
{
	static const int refusals[] = { EIO, -EIO };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_send *s = make_sender();

		s->b.peer_closed = true; /* no event */
		atomic_store(&s->b.attention, HA_ATTN_DRIVE);
		s->b.rail[0].max_msg = s->b.rail[1].max_msg = LARGE / 32;
		announce_receive(s, 2, LARGE);
		CHECK(send_member(s, 0, LARGE));
		refusal = refusals[i];
		refused = 0;
		CHECK(send_member(s, 1, LARGE));
		CHECK_INT(refused, 2); /* once on each rail */
		CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
		CHECK_INT(s->b.rail[1].state, HA_RAIL_FENCING);
		CHECK_INT(s->slot[0].pending, 3);
		CHECK_INT(s->head, 1);
		free_sender(s);
	}
}

int main(void)
{
	many_pieces();
	steps_of_a_stripe();
	cost_of_a_stripe();
	as_much_as_goes();
	refused_pieces();
	return 0;
}
