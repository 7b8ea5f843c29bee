/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work on a rail stands still, and it and the others are asked for a sign: who is given up, and
 * what proves that the path is sound.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/bundle.h"
#include "tests/plugin/idle_cq.h"

#include <stdlib.h>

#define US UINT64_C(1000)
#define RAILS 3

static unsigned words[RAILS];
static struct ibv_qp qp[RAILS];

static int count_word(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)wr;
	(void)bad;
	words[to - qp]++;
	return 0;
}

static const struct ha_verbs_hot hot = { .post_send = count_word, .poll_cq = poll_nothing };
static struct ha_ctx ctx = { .clock = &ha_clock_live };
static struct ha_device device[RAILS];
static const uint64_t start = 1000000 * US;

/* Rail 0 carries, and has stood still since `start`; a sign is asked for after a millisecond. */
static struct ha_send *sender(void)
{
	struct ha_send *s = calloc(1, sizeof(*s));
	struct ha_control *k;

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.is_send = true;
	s->b.nrails = RAILS;
	s->b.balance.ndata = 1;
	s->b.balance.weight[0] = 1024;
	s->b.active = (1 << RAILS) - 1;
	s->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_SIGNS;
	s->b.poll.most = 16;
	s->b.ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(s->b.ring);
	atomic_store(&s->b.attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < RAILS; i++) {
		ha_silence_init(&device[i].silence, 1000 * US);
		device[i].silence.known_at = 1;
		s->b.rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						  .hot = &hot,
						  .qp = &qp[i],
						  .sq_depth = 64,
						  .state = HA_RAIL_UP,
						  .dev = &device[i] };
		words[i] = 0;
	}
	k = &s->b.failover.ctl[0];
	k->beat.still_since = start;
	s->b.rail[0].sq_posted = 1;
	return s;
}

static void release(struct ha_send *s)
{
	free(s->b.ring);
	free(s);
}

static bool look(struct ha_send *s, uint64_t us)
{
	return ha_sign_step(&s->b, &s->b.rail[0], start + us * US);
}

/* It is asked for a sign, and rail 1 has given one. */
static struct ha_send *answered(void)
{
	struct ha_send *s = sender();
	struct ha_sign *sign = &s->b.failover.ctl[0].sign;

	CHECK(look(s, 999));
	CHECK_INT(sign->asked_at, 0);
	CHECK(look(s, 1000));
	CHECK_INT(sign->asked_at, start + 1000 * US);
	CHECK_INT(s->b.failover.ctl[0].out.due, HA_SEND(RAIL_ASK));
	for (unsigned i = 0; i < RAILS; i++)
		CHECK_INT(words[i], 1);
	CHECK(look(s, 1400));
	CHECK_INT(sign->answered_at, 0);
	s->b.rail[1].sq_retired++;
	CHECK(look(s, 1500));
	CHECK_INT(sign->answered_at, start + 1500 * US);
	CHECK_INT(sign->witness, 1);
	return s;
}

/* It has as much time as was asked for, and so has a standby, which must not carry next. */
static void given_up_with_those_that_are_as_silent(void)
{
	struct ha_send *s = answered();

	CHECK(look(s, 1999));
	CHECK(!look(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.failover.ctl[0].cause, HA_CAUSE_SILENCE);
	CHECK_INT(s->b.rail[1].state, HA_RAIL_UP);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.failover.ctl[2].cause, HA_CAUSE_SILENCE);
	CHECK_INT(s->b.failover.ctl[0].sign.alarm_at, start + 2000 * US);
	release(s);

	s = answered();
	s->b.rail[2].sq_retired++; /* this one gave its sign, too */
	CHECK(!look(s, 2000));
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);
	release(s);
}

/* The peer's words get over this rail: packets get lost on it, and all are asked anew. */
static void the_peer_gets_through(void)
{
	struct ha_send *s = answered();
	struct ha_sign *sign = &s->b.failover.ctl[0].sign;

	ha_sign_alive(&s->b, &s->b.rail[0], sign->number + 1); /* of another question */
	CHECK(!sign->alive);
	ha_sign_alive(&s->b, &s->b.rail[0], sign->number);
	CHECK(sign->alive);
	CHECK(look(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	CHECK_INT(sign->asked_at, start + 2000 * US);
	CHECK_INT(sign->answered_at, 0);
	CHECK(!sign->alive); /* what it said of the last question */
	CHECK_INT(sign->number, 2);
	CHECK(device[0].silence.lossy_until > start + 2000 * US);
	release(s);
}

static void it_moves_or_may_rest(void)
{
	struct ha_send *s = answered();

	s->b.rail[0].sq_retired++; /* a sign at the last moment */
	CHECK(look(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	release(s);

	s = answered(); /* a false alarm elsewhere: no question counts for a while */
	device[0].silence.rest_until = start + 9000 * US;
	CHECK(look(s, 2000));
	CHECK_INT(s->b.failover.ctl[0].sign.asked_at, 0);
	release(s);

	s = answered(); /* this process stood still itself: all are asked anew */
	CHECK(look(s, 3000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	CHECK_INT(s->b.failover.ctl[0].sign.asked_at, start + 3000 * US);
	release(s);
}

int main(void)
{
	given_up_with_those_that_are_as_silent();
	the_peer_gets_through();
	it_moves_or_may_rest();
	return 0;
}
