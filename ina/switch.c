/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch.h"

#include "ina/mutation.h"

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

void ina_switch_init(struct ina_switch *sw, uint32_t addr, const uint8_t mac[6], struct ina_slot *slot, uint32_t nslots)
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

static int check_config(const struct ina_switch *sw, const struct ina_group_config *c, const char **why)
{
	*why = NULL;
	if (!c->id)
		*why = "group 0 is none: it tells hosts to fall back";
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

static bool overlaps(const struct ina_group_config *a, const struct ina_group_config *b)
{
	return a->base < b->base + b->len && b->base < a->base + a->len;
}

int ina_switch_install(struct ina_switch *sw, const struct ina_group_config *c, const char **why)
{
	struct ina_group *g = &sw->group[c->id];
	uint32_t each;
	int err = check_config(sw, c, why);

	if (err)
		return err;
	if (g->lived && (int32_t)(c->epoch - g->config.epoch) <= 0) {
		*why = "the epoch must be above that of the group's last life";
		return -ESTALE;
	}
	for (unsigned i = 1; i < INA_GROUPS; i++)
		if (i != c->id && sw->group[i].installed && overlaps(c, &sw->group[i].config)) {
			*why = "another group has some of these slots";
			return -EEXIST;
		}
	*g = (struct ina_group){ .config = *c, .installed = true, .lived = true };
	each = c->len / c->workers;
	for (unsigned w = 0; w < c->workers; w++)
		ina_slots_open(sw->slot + c->base + w * each, each, c->first_psn);
	return 0;
}

static int find(struct ina_switch *sw, uint8_t id, uint32_t epoch, struct ina_group **g)
{
	*g = &sw->group[id];
	if (!(*g)->installed)
		return -ENOENT;
	return (*g)->config.epoch == epoch ? 0 : -ESTALE;
}

int ina_switch_renew(struct ina_switch *sw, uint8_t id, uint32_t epoch, uint64_t lease_until)
{
	struct ina_group *g;
	int err = find(sw, id, epoch, &g);

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
	int err = find(sw, id, epoch, &g);

	if (!err)
		g->installed = false;
	return err;
}

/* ---- packets ---- */

/* Is it one of this group's ranks that speaks, as this group speaks? */
static enum ina_reason check_sender(const struct ina_switch *sw, const struct ina_group *g, const struct ina_frame *f)
{
	const struct ina_group_config *c = &g->config;

	if (f->dst != sw->addr)
		return INA_REASON_NOT_HERE;
	if (!g->installed)
		return INA_REASON_NO_GROUP;
	if (f->extended != c->extended)
		return INA_REASON_KIND;
	if (f->flags & INA_F_ANSWER)
		return INA_REASON_ANSWER;
	if (f->rank >= c->ranks || f->root >= c->ranks || f->worker >= c->workers)
		return INA_REASON_NO_RANK;
	if (f->src != c->member[f->rank].addr && !INA_MUTATION(NO_SOURCE))
		return INA_REASON_STRANGER;
	return INA_REASON_TAKEN;
}

/* The life that it belongs to. */
static enum ina_reason check_life(struct ina_group *g, uint64_t now, const struct ina_frame *f)
{
	int32_t ahead = (int32_t)(f->epoch - g->config.epoch);

	if (f->extended && ahead && !INA_MUTATION(NO_EPOCH))
		return ahead < 0 ? INA_REASON_OLD_EPOCH : INA_REASON_NEW_EPOCH;
	if (now >= g->config.lease_until)
		g->over = true;
	if (g->over)
		return INA_REASON_OVER;
	if (f->flags & INA_F_ABORT) {
		g->over = true;
		return INA_REASON_ABORT;
	}
	return INA_REASON_TAKEN;
}

/* The one slot that this psn has. NULL: the frame names another. */
static struct ina_slot *slot_of(struct ina_switch *sw, const struct ina_group_config *c, const struct ina_frame *f, uint32_t *each)
{
	uint32_t first, at;

	*each = c->len / c->workers;
	first = c->base + f->worker * *each;
	at = first + (f->psn & (*each - 1));
	if (at != f->agg_addr)
		return NULL;
	if (INA_MUTATION(SINGLE_POOL)) {
		*each /= 2;
		at = first + (f->psn & (*each - 1));
	}
	return &sw->slot[at];
}

/* A frame for the slot as it is: what it says, and what that changes. */
static enum ina_reason contribute(struct ina_slot *s, enum ina_age age, const struct ina_frame *f, unsigned ranks)
{
	bool probe = f->flags & INA_F_PROBE;
	bool fresh = age == INA_NEXT || !s->seen;

	if (!probe && !f->words == ina_coll_brings(f->coll, f->root, f->rank))
		return INA_REASON_WORDS;
	if (!fresh && (f->coll != s->coll || f->root != s->root))
		return INA_REASON_OTHER;
	if (!fresh && s->done)
		return INA_REASON_AGAIN;
	if (!fresh && s->seen >> f->rank & 1 && !INA_MUTATION(NO_BITMAP))
		return INA_REASON_HELD;
	if (probe)
		return INA_REASON_NEED;
	if (fresh)
		ina_slot_take(s, f);
	return ina_slot_add(s, f, ranks) ? INA_REASON_COMPLETE : INA_REASON_TAKEN;
}

static enum ina_reason enter(struct ina_switch *sw, const struct ina_group *g, const struct ina_frame *f, struct ina_slot **s)
{
	uint32_t each;
	enum ina_age age;

	*s = slot_of(sw, &g->config, f, &each);
	if (!*s)
		return INA_REASON_WRONG_SLOT;
	age = ina_slot_age(*s, f->psn, each);
	if (age == INA_STALE)
		return INA_REASON_STALE;
	if (age == INA_EARLY)
		return INA_REASON_EARLY;
	return contribute(*s, age, f, g->config.ranks);
}

/* What all answers have in common: the frame turned round. */
static void turn_round(const struct ina_switch *sw, const struct ina_frame *f, struct ina_frame *answer)
{
	*answer = *f;
	answer->src = sw->addr;
	memcpy(answer->src_mac, sw->mac, 6);
	answer->ecn = f->ecn == INA_CE ? INA_CE : INA_ECT1;
	answer->flags = f->extended ? INA_F_ANSWER : 0;
	answer->exponent = 0;
	answer->words = NULL;
}

static void put_sum(const struct ina_slot *s, struct ina_frame *answer)
{
	if (s->marked)
		answer->ecn = INA_CE;
	answer->flags |= s->flags;
	answer->exponent = s->exponent;
	answer->words = (const uint8_t *)s->word;
}

/*
 * The old frame has words for none of these: silence, and the rank's own time limit. The epoch stays the packet's: an abort names the life that is over, so
 * that the answer to a straggler from the last life does not end the present one.
 */
static enum ina_action answer_extended(const struct ina_group *g, struct ina_verdict *v)
{
	struct ina_frame *answer = &v->answer;

	if (!g->config.extended)
		return INA_DROP;
	switch (v->reason) {
	case INA_REASON_HELD:
		answer->flags |= INA_F_HELD;
		return INA_ANSWER_ONE;
	case INA_REASON_NEED:
		answer->flags |= INA_F_NEED;
		return INA_ANSWER_ONE;
	case INA_REASON_OVER:
	case INA_REASON_OLD_EPOCH:
		answer->flags |= INA_F_ABORT;
		return INA_ANSWER_ONE;
	case INA_REASON_ABORT:
		answer->flags |= INA_F_ABORT;
		return INA_ANSWER_ALL;
	default:
		return INA_DROP;
	}
}

void ina_switch_step(struct ina_switch *sw, uint64_t now, const struct ina_frame *f, struct ina_verdict *v)
{
	struct ina_group *g = &sw->group[f->group];
	struct ina_slot *s = NULL;

	v->reason = check_sender(sw, g, f);
	if (v->reason == INA_REASON_TAKEN)
		v->reason = check_life(g, now, f);
	if (v->reason == INA_REASON_TAKEN)
		v->reason = enter(sw, g, f, &s);
	switch (v->reason) {
	case INA_REASON_COMPLETE:
	case INA_REASON_AGAIN:
		turn_round(sw, f, &v->answer);
		put_sum(s, &v->answer);
		v->action = v->reason == INA_REASON_COMPLETE ? INA_ANSWER_ALL : INA_ANSWER_ONE;
		break;
	case INA_REASON_HELD:
	case INA_REASON_NEED:
	case INA_REASON_OVER:
	case INA_REASON_OLD_EPOCH:
	case INA_REASON_ABORT:
		turn_round(sw, f, &v->answer);
		v->action = answer_extended(g, v);
		break;
	default:
		v->action = INA_DROP;
	}
}

void ina_switch_answer(const struct ina_switch *sw, const struct ina_verdict *v, uint8_t rank, struct ina_frame *f)
{
	const struct ina_member *to = &sw->group[v->answer.group].config.member[rank];

	*f = v->answer;
	f->rank = rank;
	f->dst = to->addr;
	memcpy(f->dst_mac, to->mac, 6);
	if (!f->words || ina_coll_gets(f->coll, f->root, rank))
		return;
	f->words = NULL;
	f->exponent = 0;
	f->flags &= (uint8_t)~(INA_F_OVERFLOW | INA_F_NONFINITE);
}
