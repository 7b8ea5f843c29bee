/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h - what each data rail of a connection carries when all is well: HA_NCCL_POLICY
 *
 * Shares are parts per 1024 and add up to that. A rail with share 0 carries data only while no
 * other does. Each sender cuts its messages by its own shares; the two ends need not agree.
 */
#ifndef HA_PLUGIN_SHARE_H
#define HA_PLUGIN_SHARE_H

#include "plugin/core.h"

struct ha_bundle;

#define HA_SHARE_ALL 1024

/* HA_NCCL_WEIGHTS as an operator writes it. */
struct ha_weights {
	unsigned n; /* 0: none are given */
	uint16_t of[HA_MAX_RAILS];
};

/* "512,512": one number from 0 to 1024 per rail, not all 0. -EINVAL: it is not that. The empty text
 * is no weights. */
int ha_weights_parse(const char *text, struct ha_weights *weights);

/* Shares in the proportion of `part`. All parts 0: equal shares. */
void ha_share_out(const uint32_t *part, unsigned n, uint16_t *share);

/* Fills balance.share of its data rails, and says in balance.moves whether they may change. */
void ha_share_rails(struct ha_bundle *b);
/* From now on. Owner (inside) or driver (bundle taken); for data rails on several devices. */
void ha_share_change(struct ha_bundle *b, const uint16_t share[HA_MAX_RAILS]);

/* A port has another speed now. Driver, with the bundle taken. */
void ha_share_again(struct ha_bundle *b);

/* The mask of rails that are up has changed, or the shares: who carries what. */
void ha_share_roles(struct ha_bundle *b);
/* A spare carries data. */
bool ha_share_spare_carries(const struct ha_bundle *b);
/* The rails of the mask get the weight, and no others. The caller updates what depends on it, by
 * ha_share_roles or ha_policy_update. */
void ha_share_carry(struct ha_bundle *b, unsigned mask);
/* Does this context's configuration ask for an agent's hints? */
bool ha_share_advised(const struct ha_ctx *ctx);

#endif
