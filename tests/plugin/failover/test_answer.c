/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer asks whether what this end writes on a rail is acknowledged: some words are written, and
 * the first acknowledgement after the question is reported; nothing is after ten milliseconds.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/failover/failover.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/idle_cq.h"

#include <stdlib.h>

#define US UINT64_C(1000)
#define NUMBER 4

static unsigned writes;

static int count_write(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	writes++;
	return 0;
}

static const struct ha_verbs_hot hot = { .post_send = count_write, .poll_cq = poll_nothing };
static struct ha_ctx ctx = { .clock = &ha_clock_live };
static const uint64_t now = 1000000 * US;

static struct ha_send *make_asked(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.is_send = true;
	s->b.nrails = 1;
	s->b.active = 1;
	s->b.poll.most = 16;
	s->b.ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(s->b.ring);
	s->b.rail[0] = (struct ha_rail) {
		.hot = &hot, .sq_depth = 64, .state = HA_RAIL_UP, .sq_posted = 7, .sq_retired = 6
	};
	writes = 0;
	ha_answer_asked(&s->b, &s->b.rail[0], NUMBER, now);
	CHECK_INT(writes, 1);
	return s;
}

static void free_sender(struct ha_send *s)
{
	free(s->b.ring);
	free(s);
}

static void run_step(struct ha_send *s, uint64_t at)
{
	s->b.schedule->due = UINT64_MAX;
	ha_answer_step(&s->b, &s->b.rail[0], at);
}

static void a_write_is_acknowledged(void)
{
	struct ha_send *s = make_asked();
	struct ha_control *k = &s->b.failover->ctl[0];

	ha_answer_asked(&s->b, &s->b.rail[0], NUMBER, now); /* over another carrier */
	CHECK_INT(writes, 1);
	s->b.rail[0].sq_retired = 7; /* what was written before the question proves nothing */
	run_step(s, now + 499 * US);
	CHECK_INT(writes, 1);
	CHECK_INT(s->b.schedule->due, now + 500 * US);
	run_step(s, now + 500 * US);
	CHECK_INT(writes, 2);
	CHECK_INT(s->b.schedule->due, now + 1000 * US);
	CHECK_INT(k->out.due, 0);
	s->b.rail[0].sq_retired = 8;
	run_step(s, now + 600 * US);
	CHECK_INT(k->out.due, HA_SEND(RAIL_ALIVE));
	k->out.due = 0;
	run_step(s, now + 5000 * US); /* once */
	CHECK_INT(k->out.due, 0);
	CHECK_INT(writes, 2);
	ha_answer_asked(&s->b, &s->b.rail[0], NUMBER + 1, now + 6000 * US); /* the next question */
	CHECK_INT(writes, 3);
	free_sender(s);
}

static void none_is(void)
{
	struct ha_send *s = make_asked();

	run_step(s, now + 9999 * US);
	CHECK_INT(writes, 2);
	run_step(s, now + 10000 * US);
	CHECK_INT(writes, 2);
	CHECK(s->b.schedule->due == UINT64_MAX);
	s->b.rail[0].sq_retired = 9;
	run_step(s, now + 10001 * US); /* too late */
	CHECK_INT(s->b.failover->ctl[0].out.due, 0);
	free_sender(s);
}

/* A queue that is half full of work that stands still gets no more. */
static void little_room(void)
{
	struct ha_send *s = make_asked();

	s->b.rail[0].sq_posted = s->b.rail[0].sq_retired + 32;
	run_step(s, now + 500 * US);
	CHECK_INT(writes, 1);
	s->b.rail[0].sq_retired++;
	run_step(s, now + 1000 * US);
	CHECK_INT(s->b.failover->ctl[0].out.due, 0);
	free_sender(s);

	s = make_asked();
	s->b.rail[0].state = HA_RAIL_FENCING; /* it is given up meanwhile */
	s->b.rail[0].sq_retired = 8;
	run_step(s, now + 500 * US);
	CHECK_INT(s->b.failover->ctl[0].out.due, 0);
	ha_answer_asked(&s->b, &s->b.rail[0], NUMBER + 1, now);
	CHECK_INT(writes, 1);
	free_sender(s);
}

int main(void)
{
	a_write_is_acknowledged();
	none_is();
	little_room();
	return 0;
}
