/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may be inside a connection: the owner while the driver has not claimed it, the driver while
 * the owner is outside; an owner that cannot enter leaves no trace. */
#include "plugin/transfer/guard.h"

#include "base/check.h"
#include "plugin/ctx.h"
#include "tests/plugin/ends.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned rounds;
static struct ha_bundle *driven;

static void make_round(struct ha_ctx *ctx)
{
	(void)ctx;
	CHECK(!atomic_load(&driven->inside)); /* the driver may claim it */
	rounds++;
}

static struct ha_ctx ctx = { .progress = make_round, .loop.threaded = true };

static struct ha_bundle *make_bundle(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	s->b.ctx = &ctx;
	driven = &s->b;
	rounds = 0;
	return &s->b;
}

static void the_owner(bool own_barrier)
{
	struct ha_bundle *b = make_bundle();

	b->own_barrier = own_barrier;
	CHECK_INT(ha_bundle_enter(b), HA_ENTERED);
	CHECK(atomic_load(&b->inside));
	ha_bundle_leave(b);
	CHECK(!atomic_load(&b->inside));
	atomic_store(&b->attention, HA_ATTN_DRIVE);
	CHECK_INT(ha_bundle_enter(b), HA_ENTERED_LOOK);
	CHECK(atomic_load(&b->inside));
	ha_bundle_leave(b);
	CHECK_INT(rounds, 0); /* the service thread makes them */
	free(b);
}

static void the_driver(void)
{
	struct ha_bundle *b = make_bundle();

	atomic_store(&b->attention, HA_ATTN_DRIVE);
	ha_bundle_claim(b);
	CHECK_INT(atomic_load(&b->attention), HA_ATTN_DRIVE | HA_ATTN_HELD);
	ha_guard_barrier(&ctx);
	CHECK(ha_bundle_claimed(b));
	CHECK_INT(ha_bundle_enter(b), HA_NOT_NOW);
	CHECK(!atomic_load(&b->inside));
	CHECK_INT(atomic_load(&b->attention), HA_ATTN_DRIVE | HA_ATTN_HELD);
	ha_bundle_give(b);
	CHECK_INT(atomic_load(&b->attention), HA_ATTN_DRIVE);
	CHECK_INT(ha_bundle_enter(b), HA_ENTERED_LOOK);
	ha_bundle_claim(b); /* while the owner is inside, and stays there */
	CHECK(!ha_bundle_claimed(b));
	CHECK_INT(atomic_load(&b->attention), HA_ATTN_DRIVE);
	CHECK(atomic_load(&b->inside));
	ha_bundle_leave(b);
	free(b);
}

/* Without a service thread the owner's call is where rounds are made: one, before it is inside. */
static void without_a_driver(void)
{
	struct ha_bundle *b = make_bundle();

	ctx.loop.threaded = false;
	CHECK_INT(ha_bundle_enter(b), HA_ENTERED);
	ha_bundle_leave(b);
	CHECK_INT(rounds, 0);
	atomic_store(&b->attention, HA_ATTN_DRIVE);
	CHECK_INT(ha_bundle_enter(b), HA_ENTERED_LOOK);
	CHECK_INT(rounds, 1);
	CHECK(atomic_load(&b->inside));
	ha_bundle_leave(b);
	ctx.loop.threaded = true;
	free(b);
}

int main(void)
{
	/* or the machine has none, and owners pay */
	CHECK_INT(ha_guard_init(),
		  !syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
	the_owner(false);
	the_owner(true);
	the_driver();
	without_a_driver();
	return 0;
}
