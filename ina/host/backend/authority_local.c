/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/authority.h"

#include "base/clock.h"
#include "ina/host/backend/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 1024u
#define GROUPS 256u

struct local {
	struct ha_authority authority;
	struct ha_group_defaults defaults;
	struct ha_net *net;
	struct {
		uint32_t epoch, joined, left; /* bit per rank */
		uint8_t ranks;                /* 0: there is no such group */
		uint64_t created;             /* ns */
	} group[GROUPS];
	uint8_t last;
};

static struct local *to_local(struct ha_authority *a)
{
	return (struct local *)a;
}

static void end_group(struct local *l, unsigned id)
{
	l->group[id].ranks = 0;
	if (l->net->loopback)
		ha_net_loopback_group(l->net, (uint8_t)id, 0);
}

/* Groups that nobody has joined within a lease: their creator has gone, or does without. */
static void end_forgotten(struct local *l, uint64_t now)
{
	for (unsigned id = 1; id < GROUPS; id++)
		if (l->group[id].ranks && !l->group[id].joined &&
		    now - l->group[id].created > l->defaults.lease_ms * HA_NS_PER_MS)
			end_group(l, id);
}

static int create(struct ha_authority *a, const struct ina_shm_create *spec,
		  struct ha_group_facts *g, char *why, size_t size)
{
	struct local *l = to_local(a);
	uint64_t now = ha_clock_now(&ha_clock_live);
	unsigned tries = GROUPS;

	end_forgotten(l, now);
	do
		l->last = (uint8_t)(l->last % (GROUPS - 1) + 1);
	while (l->group[l->last].ranks && --tries);
	if (!tries) {
		snprintf(why, size, "%u groups are in use: leave some", GROUPS - 1);
		return -EAGAIN;
	}
	memset(g, 0, sizeof(*g));
	g->id = l->last;
	g->ranks = (uint8_t)spec->ranks;
	g->workers = (uint8_t)l->defaults.workers;
	g->extended = l->defaults.extended;
	g->len = l->defaults.slots ? l->defaults.slots : SLOTS;
	g->epoch = ++l->group[g->id].epoch;
	g->switch_addr = l->net->addr;
	memcpy(g->switch_name, "loopback", 9);
	memcpy(g->member, spec->member, spec->ranks * sizeof(g->member[0]));
	l->group[g->id].ranks = g->ranks;
	l->group[g->id].created = now;
	l->group[g->id].joined = l->group[g->id].left = 0;
	if (l->net->loopback)
		ha_net_loopback_group(l->net, g->id, g->ranks);
	return 0;
}

static int join(struct ha_authority *a, struct ha_group_facts *g, unsigned rank,
		uint64_t incarnation, char *why, size_t size)
{
	struct local *l = to_local(a);

	if (l->group[g->id].ranks != g->ranks || l->group[g->id].epoch != g->epoch) {
		snprintf(why, size,
			 "there is no group %u of epoch %u here: with loopback a group is its "
			 "backend's alone, and nobody joined it for a lease",
			 g->id, g->epoch);
		return -EINVAL;
	}
	if (l->group[g->id].joined & 1u << rank) {
		snprintf(why, size,
			 "rank %u of group %u has joined before: a ticket is good once for each "
			 "rank, ask for another group",
			 rank, g->id);
		return -EEXIST;
	}
	l->group[g->id].joined |= 1u << rank;
	return 0;
}

static int renew(struct ha_authority *a, const struct ha_group_facts *g, unsigned rank,
		 uint64_t incarnation, char *why, size_t size)
{
	return 0;
}

/* Alone, as it was: whoever had joined and left them all ends the group. */
static int leave(struct ha_authority *a, const struct ha_group_facts *g, unsigned rank,
		 uint64_t incarnation)
{
	struct local *l = to_local(a);

	l->group[g->id].left |= 1u << rank;
	if (l->group[g->id].left == l->group[g->id].joined)
		end_group(l, g->id);
	return 0;
}

static void close_it(struct ha_authority *a)
{
	free(to_local(a));
}

static const struct ha_authority_ops ops = {
	.create = create, .join = join, .renew = renew, .leave = leave, .close = close_it
};

struct ha_authority *ha_authority_local_open(const struct ha_group_defaults *defaults,
					     struct ha_net *net)
{
	struct local *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->authority.ops = &ops;
	l->defaults = *defaults;
	l->net = net;
	return &l->authority;
}
