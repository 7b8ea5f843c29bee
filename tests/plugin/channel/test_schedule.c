/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whoever asks for the driver wakes it, once: the connections of a lost device all ask at the same
 * moment, and each wake-up is a system call. What is asked for after the driver has taken the call
 * wakes it again.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define BUNDLES 64

/* Wake-ups since the last call: an eventfd adds up what is written to it. */
static unsigned count_wakes(struct ha_ctx *ctx)
{
	eventfd_t sum = 0;

	if (eventfd_read(ctx->loop.wake.fd, &sum))
		CHECK_INT(errno, EAGAIN);
	return (unsigned)sum;
}

static void ask_all(struct ha_send *sends)
{
	for (int i = 0; i < BUNDLES; i++)
		ha_bundle_drive_soon(&sends[i].b);
}

/* As the driver's round does: the call first, then the connections' bits. */
static void take_all(struct ha_ctx *ctx, struct ha_send *sends)
{
	CHECK(atomic_exchange(&ctx->round.called, false));
	for (int i = 0; i < BUNDLES; i++)
		CHECK(atomic_fetch_and(&sends[i].b.attention, ~(uint32_t)HA_ATTN_DRIVE) &
		      HA_ATTN_DRIVE);
}

/* When the driver looks at a connection: the sooner of two times, or at once. */
static void sooner_counts(void)
{
	struct ha_ctx *ctx = calloc(1, sizeof(*ctx));
	struct ha_send *s = new_send();

	CHECK(ctx && s);
	s->b.ctx = ctx;
	s->b.schedule->due = 50;
	ctx->round.due = 40;
	ha_due(&s->b, 60);
	CHECK_INT(s->b.schedule->due, 50);
	ha_due(&s->b, 49);
	CHECK_INT(s->b.schedule->due, 49);
	CHECK_INT(ctx->round.due, 40); /* of all: the driver's to compute */
	ha_due_now(&s->b);
	CHECK_INT(s->b.schedule->due, 0);
	CHECK_INT(ctx->round.due, 0);
	free(s);
	free(ctx);
}

int main(void)
{
	struct ha_ctx *ctx = calloc(1, sizeof(*ctx));
	struct ha_send *sends = calloc(BUNDLES, sizeof(*sends));

	CHECK(ctx && sends);
	CHECK_INT(ha_loop_open_wake(&ctx->loop), 0);
	ctx->loop.threaded = true;
	for (int i = 0; i < BUNDLES; i++)
		sends[i].b.ctx = ctx;
	for (int round = 0; round < 3; round++) {
		ask_all(sends);
		CHECK_INT(count_wakes(ctx), 1);
		ask_all(sends);
		CHECK_INT(count_wakes(ctx), 0);
		take_all(ctx, sends);
	}
	ha_loop_close(&ctx->loop);
	free(sends);
	free(ctx);
	sooner_counts();
	return 0;
}
