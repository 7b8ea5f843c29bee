/* SPDX-License-Identifier: BSD-3-Clause */
/* opening_users.c - who still uses an opening; apart, because registrations count as users and an
 * opening makes their cache */
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/opening.h"

struct ha_opening *ha_opening_take(struct ha_opening *o)
{
	/* Relaxed: there is a user already. */
	if (o)
		atomic_fetch_add_explicit(&o->users, 1, memory_order_relaxed);
	return o;
}

void ha_opening_put(struct ha_opening *o)
{
	struct ha_ctx *ctx;

	if (!o)
		return;
	ctx = o->dev->ctx; /* the driver may free it as soon as it has no user */
	/* Release, and acquire in returns.c: whoever closes it comes behind all of its users. */
	if (atomic_fetch_sub_explicit(&o->users, 1, memory_order_acq_rel) == 1)
		ha_loop_wake(&ctx->loop);
}
