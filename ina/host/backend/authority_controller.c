/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/authority_controller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(((struct ha_group_facts *)0)->switch_name) == HA_SWITCH_NAME,
	      "names of switches");

struct controller {
	struct ha_authority authority;
	struct ha_group_defaults defaults;
	struct ha_ina_client *client;
};

static struct controller *to_controller(struct ha_authority *a)
{
	return (struct controller *)a;
}

static int explain_error(struct controller *c, int err, char *why, size_t size)
{
	snprintf(why, size, "%s", ha_ina_client_error(c->client));
	return err;
}

static struct ha_ina_lease lease_of(const struct ha_group_facts *g)
{
	struct ha_ina_lease lease = { .id = g->id, .key = g->key };

	memcpy(lease.switch_name, g->switch_name, sizeof(lease.switch_name));
	return lease;
}

static int create(struct ha_authority *a, const struct ina_shm_create *spec,
		  struct ha_group_facts *g, char *why, size_t size)
{
	struct controller *c = to_controller(a);
	struct ha_ina_group_spec w = { .member = spec->member,
				       .members = spec->ranks,
				       .length = c->defaults.slots,
				       .lease_ms = c->defaults.lease_ms,
				       .workers = c->defaults.workers,
				       .extended = c->defaults.extended,
				       .name = spec->name };
	struct ha_ina_lease lease;
	int err = ha_ina_client_create(c->client, &w, &lease);

	if (err)
		return explain_error(c, err, why, size);
	if (!lease.id) {
		snprintf(why, size, "no group, do without the switch: %s", lease.message);
		return -EAGAIN;
	}
	memset(g, 0, sizeof(*g));
	g->id = lease.id;
	g->ranks = (uint8_t)spec->ranks;
	g->workers = (uint8_t)c->defaults.workers;
	g->extended = c->defaults.extended;
	g->base = (uint16_t)lease.agg_addr;
	g->len = lease.agg_len;
	g->epoch = lease.epoch;
	g->lease_ms = lease.lease_ms;
	g->switch_addr = lease.switch_address;
	g->key = lease.key;
	memcpy(g->switch_name, lease.switch_name, sizeof(g->switch_name));
	memcpy(g->member, spec->member, spec->ranks * sizeof(g->member[0]));
	return 0;
}

/* Does the ticket say what the controller says? NULL, or what not. */
static const char *find_difference(const struct ha_group_facts *g,
				   const struct ha_ina_group_info *i)
{
	if (g->epoch != i->epoch)
		return "the switch has lost its memory since the ticket was made: ask for another "
		       "group";
	if (!i->workers || g->workers != i->workers || g->extended != i->extended ||
	    g->ranks != i->ranks || g->base != i->base || g->len != i->len ||
	    g->switch_addr != i->switch_address ||
	    memcmp(g->member, i->member, i->ranks * sizeof(i->member[0])))
		return "the ticket is not what the controller knows of this group: somebody has "
		       "changed it";
	return NULL;
}

static int join(struct ha_authority *a, struct ha_group_facts *g, unsigned rank,
		uint64_t incarnation, char *why, size_t size)
{
	struct controller *c = to_controller(a);
	struct ha_ina_lease lease = lease_of(g);
	struct ha_ina_group_info info;
	struct ha_ina_heartbeat heartbeat;
	const char *wrong;
	int err = ha_ina_client_join(c->client, &lease, rank, incarnation, &info, &heartbeat);

	if (err)
		return explain_error(c, err, why, size);
	wrong = heartbeat.live ? find_difference(g, &info) : heartbeat.message;
	if (wrong) {
		snprintf(why, size, "group %u: %s", g->id, wrong);
		return heartbeat.live ? -EINVAL : -ECANCELED;
	}
	g->lease_ms = info.lease_ms;
	return 0;
}

static int renew(struct ha_authority *a, const struct ha_group_facts *g, unsigned rank,
		 uint64_t incarnation, char *why, size_t size)
{
	struct controller *c = to_controller(a);
	struct ha_ina_lease lease = lease_of(g);
	struct ha_ina_heartbeat heartbeat;
	int err = ha_ina_client_renew(c->client, &lease, (int)rank, &heartbeat);
	uint32_t silent;

	if (err) /* the controller's silence is not the group's end, which -ETIMEDOUT says here */
		return explain_error(c, err == -ETIMEDOUT ? -EAGAIN : err, why, size);
	silent = heartbeat.silent & ~(1u << rank);
	if (!heartbeat.live)
		snprintf(why, size, "group %u, rank %u: the controller says: %s", g->id, rank,
			 heartbeat.message);
	else if (heartbeat.epoch != g->epoch)
		snprintf(why, size,
			 "group %u, rank %u: switch %s has lost its memory; what was under way has "
			 "to be done again in another group",
			 g->id, rank, g->switch_name);
	else if (silent)
		snprintf(why, size,
			 "group %u, rank %u: the host of rank %d (%u.%u.%u.%u) has been silent for "
			 "%u ms",
			 g->id, rank, __builtin_ctz(silent), g->member[__builtin_ctz(silent)] >> 24,
			 g->member[__builtin_ctz(silent)] >> 16 & 255,
			 g->member[__builtin_ctz(silent)] >> 8 & 255,
			 g->member[__builtin_ctz(silent)] & 255, heartbeat.lease_ms);
	else
		return 0;
	return heartbeat.live && heartbeat.epoch == g->epoch ? -ETIMEDOUT : -ECANCELED;
}

static int leave(struct ha_authority *a, const struct ha_group_facts *g, unsigned rank,
		 uint64_t incarnation)
{
	struct ha_ina_lease lease = lease_of(g);
	struct ha_ina_heartbeat heartbeat;

	return ha_ina_client_leave(to_controller(a)->client, &lease, rank, incarnation, &heartbeat);
}

static void close_it(struct ha_authority *a)
{
	ha_ina_client_close(to_controller(a)->client);
	free(to_controller(a));
}

static const struct ha_authority_ops ops = {
	.create = create, .join = join, .renew = renew, .leave = leave, .close = close_it
};

struct ha_authority *ha_authority_controller_open(const struct ha_group_defaults *defaults,
						  const struct ha_ina_client_options *client,
						  char *why, size_t size)
{
	struct controller *c = calloc(1, sizeof(*c));

	if (!c) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	c->authority.ops = &ops;
	c->defaults = *defaults;
	c->client = ha_ina_client_open(client, why, size);
	if (c->client)
		return &c->authority;
	free(c);
	return NULL;
}
