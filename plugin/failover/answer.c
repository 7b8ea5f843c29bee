/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer.c - the peer waits for work on a rail: does what this end writes there get through?
 *
 * The other half of sign.c. A word that is posted after the peer has asked (RAIL_ASK) and whose
 * acknowledgement comes has crossed the path both ways since: RAIL_ALIVE. Words follow each other
 * for a while, since the loss of one, or of its acknowledgement, shows when the next arrives. No
 * answer is an answer too: the peer asks again if it still wants to know.
 */
#include "base/clock.h"
#include "plugin/channel/board.h"
#include "plugin/failover/failover.h"

#include <errno.h>

#define PAUSE_NS (HA_NS_PER_MS / 2) /* between two writes */
#define LAST_NS (10 * HA_NS_PER_MS) /* after the question */

static void write_heartbeat(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_answer *a = &b->failover->ctl[r->index].answer;
	int err = -EAGAIN;

	a->next = now + PAUSE_NS;
	if (ha_rail_room(r) > r->sq_depth / 2)
		err = ha_board_write(b, r, &ha_bundle_staged_board(b)->heartbeat[r->index].still,
				     ha_lag_heartbeat(b, r));
	if (err && err != -EAGAIN)
		ha_rail_failed(b, r, NULL, err);
}

void ha_answer_asked(struct ha_bundle *b, struct ha_rail *r, uint32_t number, uint64_t now)
{
	struct ha_answer *a = &b->failover->ctl[r->index].answer;

	/* A question comes over two carriers. */
	if (r->state != HA_RAIL_UP || a->number == number)
		return;
	*a = (struct ha_answer) {
		.number = number, .mark = r->sq_posted + 1, .due = true, .until = now + LAST_NS
	};
	write_heartbeat(b, r, now);
}

void ha_answer_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	struct ha_answer *a = &k->answer;

	if (!a->due || r->state != HA_RAIL_UP)
		return;
	ha_rail_poll(b, r);
	if ((int32_t)(r->sq_retired - a->mark) >= 0) {
		k->out.due |= HA_SEND(RAIL_ALIVE);
		a->due = false;
		return;
	}
	a->due = r->state == HA_RAIL_UP && now < a->until;
	if (!a->due)
		return;
	if (now >= a->next)
		write_heartbeat(b, r, now);
	ha_due(b, a->next);
}
