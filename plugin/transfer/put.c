/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put.c - one-sided: the sender's half
 *
 * The slot keeps window, offset and record until the receiver has said, by its count, that it has
 * taken the message: until then a fence may have it posted again, with the keys of that time.
 */
#include "plugin/transfer/guard.h"
#include "plugin/transfer/one_sided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ha_puts_grow(struct ha_puts *p, uint32_t window)
{
	unsigned n = p->nwindows ? p->nwindows : 8;
	struct ha_peer_window *larger;

	if (window < p->nwindows)
		return 0;
	while (n <= window)
		n *= 2;
	larger = realloc(p->window, n * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	memset(larger + p->nwindows, 0, (n - p->nwindows) * sizeof(*larger));
	p->window = larger;
	p->nwindows = n;
	return 0;
}

/* The peer has sent this window's keys, and has room for one message more. */
static bool can_post_put(struct ha_send *s, const struct ha_put *put)
{
	struct ha_puts *p = s->puts;

	if (s->head >= p->room)
		p->room = ha_delivery_count(s) + HA_SLOTS;
	if (s->head >= p->room)
		return false;
	return !put->size || (put->window < p->nwindows && p->window[put->window].size);
}

static void fill_slot(struct ha_send *s, struct ha_send_slot *slot, const struct ha_put *put)
{
	struct ha_put_slot *to = &s->puts->slot[s->head % HA_SLOTS];
	struct ha_request *req = &slot->req;

	to->window = put->window;
	to->offset = put->offset;
	if (put->record)
		memcpy(to->record, put->record, HA_RECORD_SIZE);
	else
		to->record[0] = 0;
	slot->idx = s->head;
	slot->n = 1;
	req->done = 0;
	req->data = put->data;
	req->size = put->size;
	req->mr = put->mr;
}

static int post_put(struct ha_send *s, const struct ha_put *put, struct ha_request **req)
{
	struct ha_send_slot *slot = &s->slot[s->head % HA_SLOTS];
	const struct ha_peer_window *w;

	if (!can_post_put(s, put)) {
		ha_bundle_poll(&s->b);
		ha_send_not_yet(s);
		return 0;
	}
	w = &s->puts->window[put->window];
	if (put->size && (put->offset > w->size || put->size > w->size - put->offset))
		return -ERANGE;
	if (slot->held | slot->pending)
		return ha_send_not_now(s);
	fill_slot(s, slot, put);
	if (ha_send_post_put(s, slot, put->record != NULL)) {
		slot->n = 0; /* nothing was posted: the fence must not count it */
		return ha_send_not_now(s);
	}
	s->head++;
	slot->held = 1;
	*req = &slot->req;
	return 0;
}

int ha_put(struct ha_send *s, const struct ha_put *put, struct ha_request **req)
{
	enum ha_entry entry;
	int err;

	*req = NULL;
	if (!s->puts || (put->record && !*(const uint8_t *)put->record) || (put->size && !put->mr))
		return -EINVAL;
	entry = ha_bundle_enter(&s->b);
	if (entry == HA_NOT_NOW)
		return ha_bundle_shut(&s->b);
	err = entry == HA_ENTERED ? 0 : s->b.error;
	if (!err)
		err = post_put(s, put, req);
	ha_bundle_leave(&s->b);
	return err;
}
