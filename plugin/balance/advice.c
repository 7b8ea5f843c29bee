/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/advice.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/balance/policy.h"
#include "plugin/balance/share.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/report/journal.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <string.h>

#define LOOK_NS (MPIB_HINT_BEAT_MS * HA_NS_PER_MS)
#define ANSWER_NS HA_NS_PER_MS /* how soon an answer is looked for, at first */

enum reported {
	REPORTED_NOTHING,
	REPORTED_FOLLOWED,
	REPORTED_ABSENT,
	REPORTED_REFUSED,
	REPORTED_STALE
};

void ha_advice_open(struct ha_ctx *ctx, const struct mpib_hint_shm *hints)
{
	struct ha_advice *a = &ctx->advice;
	const struct ha_config *config = &ctx->config;

	if (!ha_share_advised(ctx))
		return;
	if (ha_hints_open(&a->hints, config->agent_hints,
			  (uint64_t)config->agent_stale_ms * HA_NS_PER_MS) ||
	    ha_agent_client_open(&a->client, config->agent_socket)) {
		HA_WARN(NULL, "HA_NCCL_AGENT_HINTS or HA_NCCL_AGENT_SOCKET is too long a path; no "
			      "hint is followed");
		return;
	}
	a->open = true;
	a->borrowed = hints != NULL;
	atomic_store_explicit(&a->hints.shm, hints, memory_order_release);
}

void ha_advice_close(struct ha_ctx *ctx)
{
	struct ha_advice *a = &ctx->advice;

	if (!a->open)
		return;
	ha_agent_client_close(&a->client);
	ha_hints_close(&a->hints);
	a->open = false;
}

/* ---- connections ---- */

/* IPv4 in network byte order; 0: the rail has no such address. */
static uint32_t ipv4_of_gid(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint32_t ip = 0;

	if (!memcmp(gid, mapped, sizeof(mapped)))
		memcpy(&ip, gid + 12, sizeof(ip));
	return ip;
}

/* The first rail of the second device; 0: the data rails are not on two. */
static unsigned second_device(const struct ha_bundle *b)
{
	unsigned devices = 0, second = 0;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		if (b->balance.lead[i] == i && ++devices == 2)
			second = i;
	return devices == 2 ? second : 0;
}

void ha_advice_join(struct ha_bundle *b)
{
	struct ha_advice *a = &b->ctx->advice;
	struct ha_advised *d = &b->balance.advised;
	unsigned second = second_device(b);
	const struct ha_rail *sout = &b->rail[0], *sup = &b->rail[second];

	if (!a->open || !b->is_send || !second)
		return; /* nothing to choose between */
	d->flow.sout_src = ipv4_of_gid(sout->setup.self.gid.raw);
	d->flow.sout_dst = ipv4_of_gid(sout->setup.peer.qp.gid);
	d->flow.sup_src = ipv4_of_gid(sup->setup.self.gid.raw);
	d->flow.sup_dst = ipv4_of_gid(sup->setup.peer.qp.gid);
	if (!d->flow.sout_src || !d->flow.sout_dst) {
		HA_INFO(b->name, "no agent can advise it: its rails have no IPv4 addresses");
		return;
	}
	memcpy(d->without, b->balance.share, sizeof(d->without));
	for (unsigned i = 0; i < b->balance.ndata; i++)
		if (b->balance.lead[i] == second)
			d->sup |= (uint8_t)(1u << i);
	d->hint = d->reported = HA_HINT_NONE;
	d->gated = b->ctx->config.agent_gate && (d->across || !b->ctx->mpib.on);
	d->on = true;
	ha_policy_update(b);
	if (a->borrowed) {
		atomic_store_explicit(&d->flow.slot, MPIB_NO_SLOT, memory_order_relaxed);
		return;
	}
	a->flows++;
	a->look_at = 0;
	ha_agent_add(&a->client, &d->flow);
}

void ha_advice_leave(struct ha_bundle *b)
{
	struct ha_advice *a = &b->ctx->advice;

	if (!b->balance.advised.on || a->borrowed || !b->balance.advised.flow.list)
		return;
	ha_agent_remove(&a->client, &b->balance.advised.flow);
	a->flows--;
}

/* What is wrong with the agent as a whole is logged once, not by each connection. */
static void report_hint(struct ha_bundle *b, enum ha_hint hint)
{
	struct ha_advised *d = &b->balance.advised;
	bool agent_gone = !atomic_load_explicit(&b->ctx->advice.hints.shm, memory_order_relaxed);

	if (hint == d->reported || (hint == HA_HINT_NONE && agent_gone))
		return;
	d->reported = (uint8_t)hint;
	ha_journal_eventf(b->ctx,
			  &(struct ha_event) { .kind = HA_EVENT_ADVICE,
					       .bundle = b,
					       .cause = hint == HA_HINT_OK ? HA_CAUSE_FOLLOWED
									   : HA_CAUSE_BAD_HINT },
			  hint == HA_HINT_OK ? "the agent's hint is %s"
					     : "the agent's hint is %s: it is not followed",
			  ha_hint_text(hint));
}

void ha_advice_follow(struct ha_send *s, enum ha_hint hint, uint32_t sup_bw)
{
	struct ha_bundle *b = &s->b;
	struct ha_advised *d = &b->balance.advised;
	uint16_t share[HA_MAX_RAILS];

	memcpy(share, d->without, sizeof(share));
	for (unsigned i = 0; hint == HA_HINT_OK && i < b->balance.ndata; i++)
		share[i] = (uint16_t)(d->sup >> i & 1 ? sup_bw : HA_SHARE_ALL - sup_bw);
	d->hint = (uint8_t)hint;
	d->sup_bw = sup_bw;
	ha_share_change(b, share);
	report_hint(b, hint);
}

/* ---- the agent ---- */

static void report_agent_state(struct ha_ctx *ctx, enum ha_hints_state state)
{
	struct ha_advice *a = &ctx->advice;
	static const struct {
		uint8_t reported;
		enum ha_event_cause cause;
	} as[] = {
		[HA_HINTS_ABSENT] = { REPORTED_ABSENT, HA_CAUSE_NO_AGENT },
		[HA_HINTS_REFUSED] = { REPORTED_REFUSED, HA_CAUSE_NO_AGENT },
		[HA_HINTS_FRESH] = { REPORTED_FOLLOWED, HA_CAUSE_FOLLOWED },
		[HA_HINTS_STALE] = { REPORTED_STALE, HA_CAUSE_AGENT_STALE },
	};
	bool one_more_loss = a->reported > REPORTED_FOLLOWED &&
			     as[state].reported > REPORTED_FOLLOWED && state != HA_HINTS_REFUSED;

	/* A file that is found, or without a heartbeat so far, says nothing; nor does an agent that
	 * was lost already. */
	if (state == HA_HINTS_WAITING || as[state].reported == a->reported || one_more_loss)
		return;
	a->reported = as[state].reported;
	ha_journal_eventf(ctx,
			  &(struct ha_event) { .kind = HA_EVENT_ADVICE, .cause = as[state].cause },
			  "hints of %s: %s%s%s", a->hints.path, ha_hints_state_text(state),
			  *a->hints.why ? ": " : "", a->hints.why);
}

/* Its slots are all taken, or it does not want some flows. They are asked for again every five
 * seconds; one event, until all have one. */
static void report_refused(struct ha_ctx *ctx)
{
	struct ha_advice *a = &ctx->advice;
	uint32_t status = MPIB_STATUS_OK;
	int n = ha_agent_refused(&a->client, &status);

	if (n < 0 || (n > 0) == a->reported_refused)
		return;
	a->reported_refused = n > 0;
	if (n)
		ha_journal_eventf(
			ctx,
			&(struct ha_event) { .kind = HA_EVENT_ADVICE, .cause = HA_CAUSE_NO_SLOT },
			"ha-agent has no slot for %d of %u connections (%s): they keep the shares "
			"that they have without an agent, and "
			"ask again every 5 s",
			n, a->flows,
			status == MPIB_STATUS_NO_SLOT ? "all are taken" : "it calls them invalid");
	else
		ha_journal_eventf(ctx,
				  &(struct ha_event) { .kind = HA_EVENT_ADVICE,
						       .cause = HA_CAUSE_FOLLOWED },
				  "ha-agent has slots for all connections again");
}

/* An answer is there within microseconds, or the agent hangs: look more and more rarely. */
static uint64_t client_due(const struct ha_agent_client *c, uint64_t now)
{
	uint64_t due = ha_agent_due(c), since, look;

	if (c->fd < 0 || !c->asked)
		return due;
	since = now - c->question[c->first].at;
	look = now + (since / 2 > ANSWER_NS ? since / 2 : ANSWER_NS);
	return look < due ? look : due;
}

uint64_t ha_advice_round(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_advice *a = &ctx->advice;
	uint64_t due;

	if (!a->open || a->borrowed)
		return UINT64_MAX;
	if (a->flows && now >= a->look_at) {
		(void)ha_hints_look(&a->hints, now);
		report_agent_state(ctx, a->hints.state);
		a->look_at = now + LOOK_NS;
	}
	if (ha_agent_round(&a->client, now))
		HA_INFO(NULL, "ha-agent at %s: %s", a->client.path,
			ha_agent_state_text(a->client.state));
	report_refused(ctx);
	due = client_due(&a->client, now);
	return a->flows && a->look_at < due ? a->look_at : due;
}
