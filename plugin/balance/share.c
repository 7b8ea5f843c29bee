/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/share.h"

#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ha_weights_parse(const char *text, struct ha_weights *weights)
{
	bool any = false;

	*weights = (struct ha_weights) { 0 };
	while (*text) {
		char *end;
		unsigned long value = strtoul(text, &end, 10);

		if (end == text || *text < '0' || *text > '9' || value > HA_SHARE_ALL ||
		    weights->n == HA_MAX_RAILS || (*end && (*end != ',' || !end[1])))
			return -EINVAL;
		weights->of[weights->n++] = (uint16_t)value;
		any |= value > 0;
		text = *end ? end + 1 : end;
	}
	return weights->n && !any ? -EINVAL : 0;
}

/* The share of all parts up to and with this one, rounded; what a rail gets is the difference to
 * the one before. */
void ha_share_out(const uint32_t *part, unsigned n, uint16_t *share)
{
	uint64_t all = 0, below = 0;
	unsigned given = 0;

	for (unsigned i = 0; i < n; i++)
		all += part[i];
	for (unsigned i = 0; i < n; i++) {
		unsigned upto;

		below += all ? part[i] : 1;
		upto = (unsigned)((below * HA_SHARE_ALL + (all ? all : n) / 2) / (all ? all : n));
		share[i] = (uint16_t)(upto - given);
		given = upto;
	}
}

/* Device by device, each part is for all of its rails: they take turns. */
static void share_devices(struct ha_bundle *b, const uint32_t *part)
{
	uint16_t share[HA_MAX_RAILS];
	unsigned n = 0;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		n += b->balance.lead[i] == i;
	ha_share_out(part, n, share);
	n = 0;
	for (unsigned i = 0; i < b->balance.ndata; i++)
		b->balance.share[i] =
			b->balance.lead[i] == i ? share[n++] : b->balance.share[b->balance.lead[i]];
}

static void by_speed(struct ha_bundle *b)
{
	uint32_t speed[HA_MAX_RAILS] = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		if (b->balance.lead[i] == i) {
			int mbps = ha_device_speed(b->rail[i].dev);

			speed[n++] = mbps > 0 ? (uint32_t)mbps : 0;
		}
	share_devices(b, speed);
}

/* As the operator says. False: of these rails none would have any. */
static bool by_weights(struct ha_bundle *b, const struct ha_weights *weights)
{
	uint32_t part[HA_MAX_RAILS] = { 0 }, all = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		n += b->balance.lead[i] == i;
	for (unsigned i = 0; i < n && i < weights->n; i++)
		all += part[i] = weights->of[i];
	if (all)
		share_devices(b, part);
	return all;
}

bool ha_share_advised(const struct ha_ctx *ctx)
{
	if (ctx->mpib.on)
		return ctx->config.mpib_mode && (ctx->config.policy == HA_POLICY_AUTO ||
						 ctx->config.policy == HA_POLICY_AGENT);
	return ctx->config.policy == HA_POLICY_AGENT;
}

void ha_share_rails(struct ha_bundle *b)
{
	const struct ha_ctx *ctx = b->ctx;
	int policy = ctx->config.policy;

	b->balance.moves = !ha_policy_one_device(b, (1u << b->balance.ndata) - 1) &&
			   (ha_share_advised(ctx) || policy == HA_POLICY_ADAPTIVE);
	if (ctx->mpib.on &&
	    (policy == HA_POLICY_AUTO || (policy == HA_POLICY_AGENT && !ctx->config.mpib_mode))) {
		uint32_t part[2];

		ha_mpib_parts(b, part);
		share_devices(b, part);
		return;
	}
	if (policy == HA_POLICY_AUTO)
		policy = ctx->weights.n ? HA_POLICY_STATIC : HA_POLICY_TOPOLOGY;
	if (policy == HA_POLICY_PRIMARY)
		share_devices(b, (uint32_t[HA_MAX_RAILS]) { 1 });
	else if (policy != HA_POLICY_STATIC || !by_weights(b, &ctx->weights))
		by_speed(b);
}

void ha_share_again(struct ha_bundle *b)
{
	uint16_t share[HA_MAX_RAILS];

	if (b->balance.moves || ha_policy_one_device(b, (1u << b->balance.ndata) - 1))
		return; /* what moves finds out by itself, and one device carries all */
	ha_share_rails(b);
	memcpy(share, b->balance.share, sizeof(share));
	ha_share_change(b, share);
}

static bool any_weight(const struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && b->balance.weight[i])
			return true;
	return false;
}

bool ha_share_spare_carries(const struct ha_bundle *b)
{
	for (unsigned i = b->balance.ndata; i < b->nrails; i++)
		if (b->active >> i & 1 && b->balance.weight[i])
			return true;
	return false;
}

void ha_share_carry(struct ha_bundle *b, unsigned mask)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		uint16_t share = b->balance.share[i] ? b->balance.share[i] : HA_SHARE_ALL;

		b->balance.weight[i] = mask & b->active & 1u << i ? share : 0;
	}
}

void ha_share_roles(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (!(b->active >> i & 1))
			b->balance.weight[i] = 0;
	/* No spare carries, or not any more: all those do that should, also one that stood by for
	 * the spare while others were down; else the first that can. */
	if (!ha_share_spare_carries(b))
		for (unsigned i = 0; i < b->balance.ndata; i++)
			b->balance.weight[i] = b->active >> i & 1 ? b->balance.share[i] : 0;
	for (unsigned i = 0; i < b->nrails && !any_weight(b); i++)
		if (b->active >> i & 1)
			b->balance.weight[i] = 1024;
	ha_policy_update(b);
}

void ha_share_change(struct ha_bundle *b, const uint16_t share[HA_MAX_RAILS])
{
	bool any = false;

	for (unsigned i = 0; i < b->balance.ndata; i++) {
		b->balance.share[i] = share[i];
		b->balance.weight[i] = b->active >> i & 1 ? share[i] : 0;
		any |= b->balance.weight[i] != 0;
	}
	for (unsigned i = b->balance.ndata; any && i < b->nrails; i++)
		b->balance.weight[i] = 0;
	ha_share_roles(b);
}
