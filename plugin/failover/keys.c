/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keys.c - buffers on the device of a rail that was a standby until now (HA_NCCL_MR_MODE=lazy)
 *
 * A standby's device knows no buffer until the rail is needed, or seems about to be (a rail that
 * carries data has fallen silent: what registering takes is over when the soft time-out is). Then
 * each end registers all buffers of the connection there; the receiver sends the keys of those
 * receives that it has announced without (RAIL_KEYS), by their absolute numbers. A clear-to-send is
 * never written again for it: that could land on a newer one. Until a key is known, a message waits
 * (send.c).
 *
 * Where a rail leaves a device, the keys of that one are no good any more, and the peer forgets
 * those that it has when RAIL_ANSWER comes. So that message waits until every clear-to-send with
 * such a key has been acknowledged: one that came later would bring it back.
 *
 * Two spares may come up in different orders at the two ends, which then carry over different ones.
 * The sender follows: it registers on the rail that the receiver has sent keys for.
 */
#include "base/clock.h"
#include "base/log.h"
#include "plugin/balance/share.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "plugin/device/rail.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/one_sided.h"

#include <errno.h>
#include <string.h>

#define BEHIND_LOOK_NS 100000u /* between two looks at clear-to-sends on their way */

static bool needs_registration(const struct ha_bundle *b, const struct ha_rail *r)
{
	return r->state == HA_RAIL_UP && !(b->registered.rails >> r->index & 1) &&
	       !b->abort->error && !b->peer_closed &&
	       (b->ctx->config.mr_mode == HA_MR_EAGER || b->balance.weight[r->index] ||
		b->balance.lag.keys >> r->index & 1 || b->registered.wanted >> r->index & 1 ||
		ha_heartbeat_missing(b));
}

/* A device that dies may refuse memory before anybody has learned of its end. */
static bool device_lost(struct ha_rail *r, int err)
{
	if (err != -EIO && err != -ENODEV && err != -ENXIO)
		return false;
	ha_device_refresh(r->dev);
	return !ha_device_usable(r->dev);
}

/* A rail that cannot must bring nothing into GPU memory, so it gets no keys. */
static bool can_flush(struct ha_bundle *b, struct ha_rail *r)
{
	bool wanted = atomic_load_explicit(&b->flushable, memory_order_relaxed) && !b->is_send;

	return !wanted || !r->connected || !ha_rail_prepare_flush(b, r);
}

bool ha_keys_register(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t start = ha_clock_now(b->ctx->clock);
	struct ha_mr *mr;
	int err = 0, failed = 0;

	if (!ha_bundle_try_mr(b))
		return false;
	k->keys.lost = false;
	for (mr = LIST_FIRST(&b->registered.list); mr && !k->keys.lost; mr = LIST_NEXT(mr, link)) {
		if (mr->entry[r->index])
			continue;
		err = ha_mr_cache_get(r->opening->mr_cache, &mr->want, &mr->entry[r->index]);
		if (err)
			mr->entry[r->index] = NULL;
		k->keys.lost = err && device_lost(r, err);
		if (err && !k->keys.lost) {
			HA_WARN(b->name,
				"cannot register %zu bytes at %p on %s: %s; this buffer cannot use "
				"that rail: %s",
				mr->size, mr->addr, ha_device_name(r->dev), strerror(-err),
				ha_mr_advice(mr));
			failed++;
		}
	}
	k->keys.lost = k->keys.lost || !can_flush(b, r);
	if (!k->keys.lost)
		b->registered.rails |= (uint8_t)(1u << r->index);
	pthread_mutex_unlock(&b->registered.lock);
	k->compare.registration_ns = ha_clock_now(b->ctx->clock) - start;
	k->keys.stage = HA_KEYS_REGISTERED;
	k->keys.refused = (unsigned)failed;
	HA_TRACE(b->name, "rail %u: buffers registered on %s in %.3f ms, %d could not be", r->index,
		 ha_device_name(r->dev), (double)k->compare.registration_ns / 1e6, failed);
	return true;
}

/* The rail whose failure made it necessary pays for the time, once; nobody does where it was over
 * before. */
static void charge_registration(struct ha_bundle *b, const struct ha_rail *r)
{
	uint64_t *spent = &b->failover->ctl[r->index].compare.registration_ns;

	for (unsigned i = 0; i < b->nrails; i++)
		if (i != r->index &&
		    (b->failover->ctl[i].compare.unreported ||
		     b->rail[i].state == HA_RAIL_FENCING || b->rail[i].state == HA_RAIL_FENCED))
			b->failover->ctl[i].compare.registration_ns += *spent;
	*spent = 0;
}

/* What to do about the first buffer that the rail's device does not have. */
static const char *refused_advice(struct ha_bundle *b, const struct ha_rail *r)
{
	const char *advice = "raise the limit of locked memory (ulimit -l)";
	const struct ha_mr *mr;

	pthread_mutex_lock(&b->registered.list_lock);
	LIST_FOREACH(mr, &b->registered.list, link)
		if (!mr->entry[r->index])
			break;
	if (mr)
		advice = ha_mr_advice(mr);
	pthread_mutex_unlock(&b->registered.list_lock);
	return advice;
}

/* A message waited for these keys, since the peer carries over this spare and we over another: ours
 * carries from now on. */
static void follow_peer(struct ha_bundle *b, const struct ha_rail *r)
{
	bool waited = b->registered.wanted >> r->index & 1;

	b->registered.wanted &= (uint8_t) ~(1u << r->index);
	if (!waited || r->index < b->balance.ndata || !ha_share_spare_carries(b))
		return;
	ha_share_carry(b, 1u << r->index);
	ha_share_roles(b);
}

static void publish_keys(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	struct ha_recv *c = (struct ha_recv *)b;
	struct ha_mr *mr;

	pthread_mutex_lock(&b->registered.list_lock);
	LIST_FOREACH(mr, &b->registered.list, link) {
		if (!mr->entry[r->index] || mr->lkey[r->index])
			continue;
		mr->lkey[r->index] = ha_mr_entry_mr(mr->entry[r->index])->lkey;
		mr->rkey[r->index] = ha_mr_entry_mr(mr->entry[r->index])->rkey;
	}
	pthread_mutex_unlock(&b->registered.list_lock);
	charge_registration(b, r);
	/* Another rail may carry them; without one their messages would wait for ever. */
	if (k->keys.refused && !(b->active & b->registered.rails & ~(1u << r->index)))
		ha_bundle_abort(b, -ENOMEM, HA_CAUSE_STANDBY_FAILED,
				"%u buffers cannot be registered on %s, the only rail left; %s",
				k->keys.refused, ha_device_name(r->dev), refused_advice(b, r));
	if (b->is_send)
		follow_peer(b, r);
	if (b->is_send || c->takes)
		return;
	k->keys.next = c->done;
	k->keys.end = c->head;
	if (k->keys.next < k->keys.end)
		k->out.due |= HA_SEND(RAIL_KEYS);
}

void ha_keys_step(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (k->keys.stage == HA_KEYS_REGISTERED) {
		k->keys.stage = HA_KEYS_IDLE;
		if (k->keys.lost)
			ha_rail_suspect(b, r, HA_CAUSE_WORK_REFUSED,
					"its device registers no memory any more, or has no queue "
					"pair left for flushes");
		else
			publish_keys(b, r);
	} else if (needs_registration(b, r)) {
		k->keys.stage = HA_KEYS_WANTED;
	}
}

/* Of what this rail had posted then, something may still arrive. */
static bool is_behind(const struct ha_rail *r, uint32_t mark)
{
	return (r->state == HA_RAIL_UP || r->state == HA_RAIL_FENCING) &&
	       (int32_t)(r->sq_retired - mark) < 0;
}

/* Clear-to-sends that are posted already have them. */
static void note_behind(struct ha_bundle *b, const struct ha_rail *r)
{
	struct ha_late_keys *keys = &b->failover->ctl[r->index].keys;

	if (b->is_send || !(b->registered.rails >> r->index & 1))
		return;
	for (unsigned i = 0; i < b->nrails; i++) {
		if (i == r->index || !is_behind(&b->rail[i], b->rail[i].sq_posted))
			continue;
		keys->behind |= (uint8_t)(1u << i);
		keys->mark[i] = b->rail[i].sq_posted;
	}
}

void ha_keys_follow(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_late_keys *keys = &b->failover->ctl[r->index].keys;

	for (unsigned left = keys->behind; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		struct ha_heartbeat_watch *heartbeat = &b->failover->ctl[i].heartbeat;

		if (b->rail[i].state == HA_RAIL_UP)
			ha_rail_poll(b, &b->rail[i]);
		if (!is_behind(&b->rail[i], keys->mark[i]))
			keys->behind &= (uint8_t) ~(1u << i);
		else if (!heartbeat->sent_at && heartbeat->at > now)
			heartbeat->at = now; /* most have no completion of their own */
	}
	if (keys->behind)
		ha_due(b, now + BEHIND_LOOK_NS);
}

void ha_keys_incarnation(struct ha_bundle *b, const struct ha_rail *r)
{
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		b->failover->ctl[i].keys.behind &= (uint8_t) ~(1u << r->index);
}

void ha_keys_forget(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	struct ha_mr *mr;

	note_behind(b, r);
	LIST_FOREACH(mr, &b->registered.list, link) {
		if (mr->entry[r->index])
			ha_mr_cache_put(mr->entry[r->index]);
		mr->entry[r->index] = NULL;
		mr->lkey[r->index] = mr->rkey[r->index] = 0;
	}
	b->registered.rails &= (uint8_t) ~(1u << r->index);
	b->registered.wanted &= (uint8_t) ~(1u << r->index);
	k->keys.stage = HA_KEYS_IDLE;
	k->keys.forgotten++;
	/* A message without keys, repeated in the next incarnation, would void there what a later
	 * one has brought. */
	k->keys.next = k->keys.end;
	k->out.due &= ~HA_SEND(RAIL_KEYS);
	k->windows = (struct ha_window_counts) { 0 };
}

void ha_keys_void(struct ha_bundle *b, const struct ha_rail *r)
{
	ha_windows_void(b, r);
	for (unsigned e = 0; e < HA_SLOTS; e++) {
		struct ha_cts *cts = ha_send_cts((struct ha_send *)b, e);

		for (unsigned m = 0; m < HA_MAX_RECVS; m++)
			__atomic_store_n(&cts[m].rkey[r->index], 0, __ATOMIC_RELAXED);
	}
}

/* ---- RAIL_KEYS ---- */

void ha_keys_fill(struct ha_bundle *b, const struct ha_rail *r, struct ha_msg_keys *m)
{
	const struct ha_control *k = &b->failover->ctl[r->index];
	const struct ha_recv *c = (const struct ha_recv *)b;
	uint64_t idx = k->keys.next > c->done ? k->keys.next : c->done;

	/* a buffer that is given back meanwhile is either not known or not gone */
	pthread_mutex_lock(&b->registered.list_lock);
	for (; idx < k->keys.end && m->n < HA_KEYS_MAX; idx++) {
		const struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];
		struct ha_wire_keys *to = &m->keys[m->n];

		if (slot->idx != idx || !(slot->busy & HA_SLOT_WIRE))
			continue;
		to->idx = idx;
		for (unsigned i = 0; i < slot->n; i++) {
			const struct ha_mr *mr = ha_recv_buffer(slot, i)->mr;

			to->key[i] = ha_mr_known(b, mr) ? mr->rkey[r->index] : 0;
		}
		m->n++;
	}
	pthread_mutex_unlock(&b->registered.list_lock);
	m->next = idx;
}

uint64_t ha_keys_take(struct ha_bundle *b, const struct ha_rail *r, const struct ha_msg_keys *m)
{
	struct ha_send *s = (struct ha_send *)b;

	for (unsigned i = 0; i < m->n; i++) {
		struct ha_cts *cts = ha_send_cts(s, m->keys[i].idx);

		if (__atomic_load_n(&cts->idx, __ATOMIC_ACQUIRE) == m->keys[i].idx + 1) {
			for (unsigned k = 0; k < cts->n && k < HA_MAX_RECVS; k++)
				if (__atomic_load_n(&cts[k].idx, __ATOMIC_ACQUIRE) ==
				    m->keys[i].idx + 1)
					cts[k].rkey[r->index] = m->keys[i].key[k];
				else
					return m->keys[i].idx; /* its line is on its way */
		} else if (m->keys[i].idx >= s->head) {
			/* so is all of it: it is repeated until we have it */
			return m->keys[i].idx;
		}
	}
	return m->next;
}
