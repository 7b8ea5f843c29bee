/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * take.c - one-sided: the receiver's half
 *
 * All slots are open. A message that has arrived whole is taken when its turn comes, its slot is
 * opened for the next message that will use it, and only then may the room be sent to the sender:
 * nothing of the next message can arrive before its slot expects it.
 */
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/one_sided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_RAIL 0xff /* no clear-to-send is under way for it */

int ha_one_sided_new(struct ha_bundle *b)
{
	if (b->is_send)
		((struct ha_send *)b)->puts = calloc(1, sizeof(struct ha_puts));
	else
		((struct ha_recv *)b)->takes = calloc(1, sizeof(struct ha_takes));
	return (b->is_send ? (void *)((struct ha_send *)b)->puts
			   : (void *)((struct ha_recv *)b)->takes)
		       ? 0
		       : -ENOMEM;
}

void ha_one_sided_free(struct ha_bundle *b)
{
	if (b->is_send) {
		struct ha_puts *p = ((struct ha_send *)b)->puts;

		free(p ? p->window : NULL);
		free(p);
	} else {
		struct ha_takes *t = ((struct ha_recv *)b)->takes;

		free(t ? t->offered : NULL);
		free(t);
	}
}

static void open_slot(struct ha_recv_slot *slot, uint64_t idx)
{
	slot->idx = idx;
	slot->imm = slot->common = ha_imm_identity(idx);
	slot->busy = HA_SLOT_WIRE;
	slot->n = 1;
	slot->seen = slot->missing = slot->sized = 0;
	slot->cts_rail = NO_RAIL;
	slot->cts_parked = false;
	slot->bytes = 0;
	slot->req.done = 0;
}

void ha_takes_prepare(struct ha_recv *c)
{
	for (unsigned e = 0; e < HA_SLOTS; e++)
		open_slot(&c->slot[e], e);
	c->head = HA_SLOTS;
}

/* The next message that has a record. Those without are nobody's business once they have arrived.
 */
static bool take_next(struct ha_recv *c, void *record)
{
	struct ha_takes *t = c->takes;

	while (t->taken < c->done) {
		struct ha_recv_slot *slot = &c->slot[t->taken % HA_SLOTS];
		const uint8_t *from =
			(const uint8_t *)((const struct ha_sizes *)c->b.ring + t->taken % HA_SLOTS);
		bool has = slot->sized && from[0];

		if (has)
			memcpy(record, from, HA_RECORD_SIZE);
		open_slot(slot, t->taken + HA_SLOTS);
		t->taken++;
		c->head++;
		if (has)
			return true;
	}
	return false;
}

int ha_take(struct ha_recv *c, void *record, bool *got)
{
	bool round = false;
	int err = 0;

	*got = false;
	if (!c->takes)
		return -EINVAL;
	if (ha_bundle_enter(&c->b) == HA_NOT_NOW)
		return 0; /* an error too: what came before it has not been taken */
	*got = take_next(c, record);
	if (!*got) {
		ha_bundle_poll(&c->b);
		*got = take_next(c, record);
	}
	if (!*got) {
		err = c->b.error;
		if (++c->b.poll.idle >= c->b.poll.idle_limit)
			round = ha_bundle_look_around(&c->b);
	}
	ha_bundle_delivery(&c->b);
	ha_bundle_leave(&c->b);
	if (round)
		c->b.ctx->progress(c->b.ctx);
	return err;
}

/* ---- windows ---- */

int ha_offer(struct ha_recv *c, uint32_t window, struct ha_mr *mr)
{
	struct ha_takes *t = c->takes;
	int err = 0;

	if (!t || window >= HA_WINDOWS_MAX)
		return -EINVAL;
	pthread_mutex_lock(&c->b.registered.list_lock);
	if (t->noffered == t->room) {
		unsigned room = t->room ? 2 * t->room : 8;
		struct ha_offered *larger =
			room <= HA_WINDOWS_MAX ? realloc(t->offered, room * sizeof(*larger)) : NULL;

		err = larger ? 0 : -ENOMEM;
		t->offered = larger ? larger : t->offered;
		t->room = larger ? room : t->room;
	}
	if (!err)
		t->offered[t->noffered++] = (struct ha_offered) { window, mr };
	pthread_mutex_unlock(&c->b.registered.list_lock);
	ha_bundle_drive_soon(&c->b);
	return err;
}

void ha_withdraw(struct ha_recv *c, uint32_t window)
{
	struct ha_takes *t = c->takes;

	pthread_mutex_lock(&c->b.registered.list_lock);
	for (unsigned i = 0; i < t->noffered; i++)
		if (t->offered[i].window == window)
			t->offered[i].mr = NULL;
	pthread_mutex_unlock(&c->b.registered.list_lock);
}
