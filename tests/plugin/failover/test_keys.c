/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that are given up are not sent any more. They were once, as zeros, in the rail's next
 * incarnation, for receives of the one before; where the socket was slow they came behind the keys
 * of that incarnation and voided them: the sender waited for ever (ha sim, seed 15849).
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/connect/ctx.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/bundle.h"

#include <pthread.h>
#include <stdlib.h>

#define RAIL 1

static struct ha_ctx ctx = { .clock = &ha_clock_live };

/* A receiver that has announced seven receives without the keys of this rail. */
static struct ha_bundle *receiver(void)
{
	struct ha_recv *c = calloc(1, sizeof(*c));
	struct ha_control *k;

	CHECK(c);
	c->b.ctx = &ctx;
	c->b.nrails = 2;
	c->b.terms.flags = HA_FLAG_FAILOVER;
	for (unsigned i = 0; i < c->b.nrails; i++)
		c->b.rail[i].index = (uint8_t)i;
	pthread_mutex_init(&c->b.registered.lock, NULL);
	pthread_mutex_init(&c->b.registered.list_lock, NULL);
	c->head = 7;
	k = &c->b.failover.ctl[RAIL];
	k->keys.end = 7;
	k->out.due = k->out.sent = HA_SEND(RAIL_KEYS);
	return &c->b;
}

int main(void)
{
	struct ha_bundle *b = receiver();
	struct ha_control *k = &b->failover.ctl[RAIL];

	ha_messages_send(b, ha_clock_now(ctx.clock));
	CHECK(k->out.repeat_at);                /* nobody has acknowledged them */
	CHECK(k->out.due & HA_SEND(RAIL_KEYS)); /* nor is there anything to carry them */

	ha_keys_forget(b, &b->rail[RAIL]);
	CHECK(!(k->out.due & HA_SEND(RAIL_KEYS)));
	ha_messages_send(b, k->out.repeat_at);
	CHECK(!(k->out.due & HA_SEND(RAIL_KEYS)));
	CHECK_INT(k->out.repeat_at, 0);
	free(b);
	return 0;
}
