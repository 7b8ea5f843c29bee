/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * windows.c - one-sided: the receiver sends which windows there are, with their keys on each rail
 * (WINDOWS)
 *
 * For each rail by itself, in the order in which windows were offered, one message at a time,
 * repeated until it is acknowledged. What the peer knows of a rail is forgotten with the device
 * that its keys are of (ha_keys_forget), at the other end as well (ha_keys_void); so it is sent
 * anew, on whichever rail has it registered.
 */
#include "plugin/failover/failover.h"

#include "plugin/device/mr.h"
#include "plugin/transfer/one_sided.h"

#include <errno.h>
#include <string.h>

void ha_windows_step(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	const struct ha_takes *t = b->is_send ? NULL : ((struct ha_recv *)b)->takes;
	unsigned n;

	if (!t || r->state != HA_RAIL_UP || !(b->registered.rails >> r->index & 1) ||
	    k->keys.stage != HA_KEYS_IDLE || k->windows.sent != k->windows.known)
		return;
	pthread_mutex_lock(&b->registered.list_lock);
	n = t->noffered;
	pthread_mutex_unlock(&b->registered.list_lock);
	if (k->windows.known < n)
		k->out.due |= HA_SEND(WINDOWS);
}

void ha_windows_fill(struct ha_bundle *b, const struct ha_rail *r, struct ha_msg_windows *m)
{
	struct ha_window_counts *counts = &b->failover->ctl[r->index].windows;
	const struct ha_takes *t = ((struct ha_recv *)b)->takes;
	unsigned i = counts->known;

	pthread_mutex_lock(&b->registered.list_lock);
	for (; i < t->noffered && m->n < HA_WINDOWS_SENT; i++) {
		const struct ha_mr *mr = t->offered[i].mr;

		m->window[m->n++] = (struct ha_wire_window) { .window = t->offered[i].window,
							      .key = mr ? mr->rkey[r->index] : 0,
							      .addr = mr ? (uintptr_t)mr->addr : 0,
							      .size = mr ? mr->size : 0 };
	}
	pthread_mutex_unlock(&b->registered.list_lock);
	m->next = counts->sent = i;
}

void ha_windows_take(struct ha_bundle *b, const struct ha_rail *r, const struct ha_msg_windows *m)
{
	struct ha_puts *p = b->is_send ? ((struct ha_send *)b)->puts : NULL;

	if (!p)
		return;
	for (unsigned i = 0; i < m->n; i++) {
		const struct ha_wire_window *from = &m->window[i];

		if (ha_puts_grow(p, from->window)) {
			ha_bundle_abort(b, -ENOMEM, HA_CAUSE_NONE,
					"no memory for the peer's window %u", from->window);
			return;
		}
		p->window[from->window].addr = from->addr;
		p->window[from->window].size = from->size;
		p->window[from->window].rkey[r->index] = from->key;
	}
	b->failover->ctl[r->index].windows.known = m->next;
	b->failover->ctl[r->index].out.due |= HA_SEND(WINDOWS_ACK);
}

void ha_windows_known(struct ha_bundle *b, const struct ha_rail *r, uint64_t next)
{
	struct ha_window_counts *counts = &b->failover->ctl[r->index].windows;

	if (!b->is_send && next > counts->known && next <= counts->sent)
		counts->known = counts->sent = (unsigned)next;
}

void ha_windows_void(struct ha_bundle *b, const struct ha_rail *r)
{
	struct ha_puts *p = ((struct ha_send *)b)->puts;

	for (unsigned i = 0; p && i < p->nwindows; i++)
		p->window[i].rkey[r->index] = 0;
}
