/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roles.c - who carries and who stands by, and against what that protects, for the operator
 */
#include "base/log.h"
#include "plugin/balance/policy.h"
#include "plugin/balance/share.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/protection.h"
#include "plugin/failover/spares.h"
#include "plugin/report/journal.h"
#include "rdma/topo/leaf.h"

#include <stdio.h>

/* The rail that the first one is protected by, as far as anybody can say in one line. */
static const struct ha_rail *find_protector(const struct ha_bundle *b)
{
	const struct ha_rail *r = &b->rail[b->balance.first], *other = NULL;

	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && i != r->index &&
		    (!other || (b->rail[i].dev != r->dev && other->dev == r->dev)))
			other = &b->rail[i];
	return other;
}

/* The leaf switches are known, and it is the fabric that leaves no better choice. Once: the other
 * connections are much the same. */
static void report_shared_switch(struct ha_bundle *b, enum ha_status_against now)
{
	uint32_t place = now == HA_AGAINST_NIC ? ha_protection_shared_place(b, b->active) : 0;
	char text[160];

	if (!place || b->ctx->shared_switch_reported || ha_spares_crossed(b))
		return;
	b->ctx->shared_switch_reported = true;
	HA_WARN(b->name,
		"no standby avoids the leaf switch %s: if it fails, other NICs must be connected "
		"first; a data path between two switches needs a NIC on a third at each end "
		"(`ha topo`), or HA_NCCL_STANDBYS=0",
		ha_leaf_text(b->ctx->topo, place, text, sizeof(text)));
}

static void report_protection(struct ha_bundle *b)
{
	enum ha_status_against now = ha_protection(b, b->active);
	const struct ha_rail *other;
	char text[160];

	if (now == b->against || b->abort->error || b->peer_closed ||
	    !(b->terms.flags & HA_FLAG_FAILOVER))
		return;
	b->against = (uint8_t)now;
	if (now == HA_AGAINST_NOTHING) {
		ha_journal_event(b->ctx, &(struct ha_event) { .kind = HA_EVENT_NOT_PROTECTED,
							      .cause = HA_CAUSE_RAIL_LOST,
							      .bundle = b });
		return;
	}
	report_shared_switch(b, now);
	other = find_protector(b);
	snprintf(text, sizeof(text),
		 b->balance.weight[other->index] ? "%.40s ⇄ %.40s, against %s"
						 : "%.40s ⇄ standby %.40s, against %s",
		 ha_device_name(b->rail[b->balance.first].dev), ha_device_name(other->dev),
		 ha_protection_text(now));
	ha_journal_event(b->ctx, &(struct ha_event) {
					 .kind = HA_EVENT_PROTECTED, .bundle = b, .text = text });
}

void ha_roles_update(struct ha_bundle *b)
{
	ha_share_roles(b);
	report_protection(b);
}

void ha_roles_take(struct ha_bundle *b, struct ha_rail *r)
{
	bool fused = !ha_policy_one_device(b, (1u << b->balance.ndata) - 1);
	bool back = b->ctx->config.enable_failback || fused || !ha_share_spare_carries(b);
	unsigned i = r->index;

	if (!b->balance.share[i] || !back || b->balance.weight[i] == b->balance.share[i])
		return;
	b->balance.weight[i] = b->balance.share[i];
	for (unsigned k = 0; k < b->nrails; k++)
		if (k != i && !b->balance.share[k])
			b->balance.weight[k] = 0;
	ha_journal_event(b->ctx, &(struct ha_event) {
					 .kind = HA_EVENT_FAILED_BACK, .bundle = b, .rail = r });
}
