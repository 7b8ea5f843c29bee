/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switch.h"

#include "ina/switch/enter.h"
#include "ina/switch/step.h"

#include <errno.h>
#include <string.h>

const char *ina_reason_name(enum ina_reason reason, const char **help)
{
	static const char *const table[INA_REASONS][2] = {
#define X(id, name, help) { name, help },
		INA_REASON_LIST(X)
#undef X
	};
	bool known = (unsigned)reason < INA_REASONS;

	if (help)
		*help = known ? table[reason][1] : "?";
	return known ? table[reason][0] : "?";
}

void ina_switch_init(struct ina_switch *sw, uint32_t addr, const uint8_t mac[6],
		     struct ina_slot *slot, uint32_t nslots)
{
	memset(sw, 0, sizeof(*sw));
	sw->addr = addr;
	memcpy(sw->mac, mac, 6);
	sw->slot = slot;
	sw->nslots = nslots;
}

/* ---- what the controller says ---- */

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static int check_config(const struct ina_switch *sw, const struct ina_group_config *c,
			const char **why)
{
	*why = NULL;
	if (!c->id)
		*why = "group 0 is none: it makes hosts fall back";
	else if (c->ranks < 2 || c->ranks > INA_RANKS_MAX)
		*why = "a group has 2 to 32 ranks";
	else if (!power_of_two(c->workers) || c->workers > INA_WORKERS_MAX)
		*why = "the workers of a rank must be a power of two, at most 64";
	else if (!power_of_two(c->len) || c->len / c->workers < 2)
		*why = "the slots of a group must be a power of two, at least two for each worker";
	if (*why)
		return -EINVAL;
	if (c->len > sw->nslots || c->base > sw->nslots - c->len) {
		*why = "the switch has not so many slots";
		return -ENOSPC;
	}
	return 0;
}

static bool have_common_slots(const struct ina_group_config *a, const struct ina_group_config *b)
{
	return a->base < b->base + b->len && b->base < a->base + a->len;
}

bool ina_group_config_same(const struct ina_group_config *a, const struct ina_group_config *b)
{
	if (a->ranks != b->ranks || a->workers != b->workers || a->extended != b->extended ||
	    a->base != b->base || a->len != b->len || a->epoch != b->epoch ||
	    a->first_psn != b->first_psn)
		return false;
	for (unsigned i = 0; i < a->ranks; i++)
		if (a->member[i].addr != b->member[i].addr ||
		    memcmp(a->member[i].mac, b->member[i].mac, sizeof(a->member[i].mac)))
			return false;
	return true;
}

int ina_switch_check(const struct ina_switch *sw, const struct ina_group_config *c,
		     const char **why)
{
	const struct ina_group *g = &sw->group[c->id];
	int err = check_config(sw, c, why);

	if (err)
		return err;
	if (g->lived && (int32_t)(c->epoch - g->config.epoch) <= 0) {
		*why = "the epoch must be above that of the group's last incarnation";
		return -ESTALE;
	}
	for (unsigned i = 1; i < INA_GROUPS; i++)
		if (i != c->id && sw->group[i].installed &&
		    have_common_slots(c, &sw->group[i].config)) {
			*why = "another group has some of these slots";
			return -EEXIST;
		}
	return 0;
}

static void count_change(struct ina_switch *sw)
{
	if (!++sw->changes)
		sw->changes = 1;
}

int ina_switch_install(struct ina_switch *sw, const struct ina_group_config *c, const char **why)
{
	uint32_t each;
	int err = ina_switch_check(sw, c, why);

	if (err)
		return err;
	count_change(sw);
	sw->group[c->id] = (struct ina_group) { .config = *c, .installed = true, .lived = true };
	each = c->len / c->workers;
	for (unsigned w = 0; w < c->workers; w++)
		ina_slots_open(sw->slot + c->base + w * each, each, c->first_psn);
	return 0;
}

static int find_group(struct ina_switch *sw, uint8_t id, uint32_t epoch, struct ina_group **g)
{
	*g = &sw->group[id];
	if (!(*g)->installed)
		return -ENOENT;
	return (*g)->config.epoch == epoch ? 0 : -ESTALE;
}

int ina_switch_renew(struct ina_switch *sw, uint8_t id, uint32_t epoch, uint64_t lease_until)
{
	struct ina_group *g;
	int err = find_group(sw, id, epoch, &g);

	if (err)
		return err;
	if (g->over)
		return -ETIME;
	g->config.lease_until = lease_until;
	return 0;
}

int ina_switch_remove(struct ina_switch *sw, uint8_t id, uint32_t epoch)
{
	struct ina_group *g;
	int err = find_group(sw, id, epoch, &g);

	if (err)
		return err;
	count_change(sw);
	g->installed = false;
	return 0;
}

int ina_switch_end(struct ina_switch *sw, uint8_t id, uint32_t epoch)
{
	struct ina_group *g;
	int err = find_group(sw, id, epoch, &g);

	if (!err)
		g->over = true;
	return err;
}

/* ---- packets ---- */

void ina_switch_step(struct ina_switch *sw, uint64_t now, const struct ina_frame *f,
		     struct ina_verdict *v)
{
	struct ina_slot *s = NULL;
	uint32_t each;
	uint8_t flags;

	v->reason = ina_step_find(sw, now, f, &s, &each);
	if (v->reason == INA_REASON_TAKEN)
		v->reason = ina_enter(s, each, f, sw->group[f->group].config.ranks);
	v->action = ina_step_action(v->reason, f->extended, &flags);
	if (v->action == INA_DROP)
		return;
	ina_step_turn_round(sw, f, flags, &v->answer);
	if (v->reason == INA_REASON_COMPLETE || v->reason == INA_REASON_AGAIN)
		ina_step_put_sum(s, &v->answer);
}

void ina_switch_answer(const struct ina_switch *sw, const struct ina_verdict *v, uint8_t rank,
		       struct ina_frame *f)
{
	const struct ina_member *to = &sw->group[v->answer.group].config.member[rank];

	*f = v->answer;
	f->rank = rank;
	f->dst = to->addr;
	memcpy(f->dst_mac, to->mac, 6);
	if (f->words && !ina_coll_gets(f->coll, f->root, rank))
		ina_step_leave_out(f);
}
