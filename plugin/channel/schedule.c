/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/schedule.h"

#include "base/loop.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"

void ha_due(struct ha_bundle *b, uint64_t at)
{
	if (at < b->schedule->due)
		b->schedule->due = at;
}

void ha_due_now(struct ha_bundle *b)
{
	b->schedule->due = b->ctx->round.due = 0;
}

void ha_bundle_drive_soon(struct ha_bundle *b)
{
	/* Release: what the owner saw is there for the driver that finds the bit, and the bit for
	 * who finds the call. */
	if (atomic_fetch_or_explicit(&b->attention, HA_ATTN_DRIVE, memory_order_release) &
	    HA_ATTN_DRIVE)
		return;
	/* Who called first has woken the driver, which has not begun its round since: it looks for
	 * bits only after it has taken the call. */
	if (!atomic_exchange_explicit(&b->ctx->round.called, true, memory_order_acq_rel))
		ha_loop_wake(&b->ctx->loop);
}
