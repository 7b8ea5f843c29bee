/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often a device was tried in vain says nothing any more when a port has come back: it was
 * counted while that port was down. ha sim, seed 24030, tried for half a minute a device that could
 * not have a pair, because the one that could had failed more often, until its port was back.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/spares.h"
#include "plugin/transfer/bundle.h"

#include <stdlib.h>

int main(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = calloc(1, sizeof(*s));
	uint64_t now = ha_clock_now(ctx.clock);

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.is_send = true;
	for (int i = 0; i < 4; i++)
		ha_spares_tried(&s->b, 0, &device[0]);
	ha_spares_tried(&s->b, 0, &device[1]);
	CHECK_INT(ha_spares_pair(&s->b, 0, &device[0])->tries, 4);

	ha_spares_port_back(&s->b);
	for (int i = 0; i < 2; i++)
		CHECK_INT(ha_spares_pair(&s->b, 0, &device[i])->tries, 0);
	CHECK(s->b.failover.spares.improve);
	CHECK(s->b.failover.spares.improve_at > now);

	/* A path was given up for the spares that were added: the next wait is the first again. */
	s->b.failover.spares.added = 3;
	s->b.failover.spares.add_from = s->b.failover.spares.add_until = now + 1;
	ha_spares_added(&s->b);
	CHECK_INT(s->b.failover.spares.added, 0);
	CHECK_INT(s->b.failover.spares.add_from, 0);
	CHECK_INT(s->b.failover.spares.add_until, 0);
	free(s);
	return 0;
}
