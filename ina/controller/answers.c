/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/answers.h"

#include "base/clock.h"
#include "ina/frame/address.h"
#include "netccl.pb-c.h"

#include <stdlib.h>
#include <string.h>

bool ha_answer_pack(struct ha_reply *reply, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);

	reply->bytes = malloc(len ? len : 1);
	if (!reply->bytes)
		return false;
	reply->len = protobuf_c_message_pack(message, reply->bytes);
	return true;
}

/* ---- CreateGroup ---- */

/* The two forms of the answer differ in their members only, and those have different types. */
#define CREATE_FILL(to, from)                                           \
	do {                                                            \
		(to)->groupid = (from)->id;                             \
		(to)->aggaddr = (from)->base;                           \
		(to)->agglen = (from)->len;                             \
		(to)->epoch = (from)->epoch;                            \
		(to)->key = (from)->key;                                \
		(to)->leasems = (from)->lease_ms;                       \
		(to)->switch_ = (char *)(uintptr_t)(from)->switch_name; \
		(to)->n_member = (from)->members;                       \
	} while (0)

static bool create_text(struct ha_reply *reply, const struct ha_group *group, Inc__Reason reason,
			const char *message)
{
	Inc__CreateGroupTextResponse r = INC__CREATE_GROUP_TEXT_RESPONSE__INIT;
	Inc__MemberText one = INC__MEMBER_TEXT__INIT, *member[HA_GROUP_MEMBERS_MAX];
	char address[HA_ADDRESS_TEXT];

	for (unsigned i = 0; i < HA_GROUP_MEMBERS_MAX; i++)
		member[i] = &one;
	r.member = member;
	r.reason = reason;
	r.message = (char *)(uintptr_t)message;
	if (group) {
		one.ip = (char *)(uintptr_t)ha_address_text(group->home->info.address, address);
		CREATE_FILL(&r, &group->r);
	}
	return ha_answer_pack(reply, &r.base);
}

static bool create_number(struct ha_reply *reply, const struct ha_group *group, Inc__Reason reason,
			  const char *message)
{
	Inc__CreateGroupResponse r = INC__CREATE_GROUP_RESPONSE__INIT;
	Inc__MemberInfo one = INC__MEMBER_INFO__INIT, *member[HA_GROUP_MEMBERS_MAX];

	for (unsigned i = 0; i < HA_GROUP_MEMBERS_MAX; i++)
		member[i] = &one;
	r.member = member;
	r.reason = reason;
	r.message = (char *)(uintptr_t)message;
	if (group) {
		one.ip = group->home->info.address;
		CREATE_FILL(&r, &group->r);
	}
	return ha_answer_pack(reply, &r.base);
}

bool ha_answer_create(struct ha_reply *reply, const struct ha_group *group,
		      const struct ha_refusal *why, bool text)
{
	static const Inc__Reason reasons[] = {
		[HA_REFUSAL_NONE] = INC__REASON__GRANTED,
		[HA_REFUSAL_FULL] = INC__REASON__FULL,
		[HA_REFUSAL_IDS] = INC__REASON__NUMBERS,
		[HA_REFUSAL_QUOTA] = INC__REASON__QUOTA,
		[HA_REFUSAL_UNREACHED] = INC__REASON__UNREACHED,
		[HA_REFUSAL_AWAY] = INC__REASON__AWAY,
	};
	const char *message = group ? "" : why->text;
	Inc__Reason reason = group ? INC__REASON__GRANTED : reasons[why->kind];

	return (text ? create_text : create_number)(reply, group, reason, message);
}

/* ---- groups and switches in lists ---- */

struct group_box {
	Inc__GroupInfo info;
	Inc__MemberInfo member[HA_GROUP_MEMBERS_MAX], *members[HA_GROUP_MEMBERS_MAX];
};

static void group_fill(struct group_box *box, const struct ha_group *group, uint64_t now)
{
	Inc__GroupInfo *i = &box->info;

	inc__group_info__init(i);
	for (unsigned k = 0; k < group->r.members; k++) {
		inc__member_info__init(&box->member[k]);
		box->member[k].ip = group->r.member[k];
		box->members[k] = &box->member[k];
	}
	i->n_member = group->r.members;
	i->member = box->members;
	i->serial = group->r.serial;
	i->switch_ = (char *)(uintptr_t)group->r.switch_name;
	i->groupid = group->r.id;
	i->epoch = group->r.epoch;
	i->aggaddr = group->r.base;
	i->agglen = group->r.len;
	i->state = (Inc__State)group->r.state;
	i->leasems = group->r.lease_ms;
	i->switchip = group->home->info.address;
	i->workers = group->r.workers;
	i->extended = group->r.extended;
	i->leftms = group->due > now ? (group->due - now) / HA_NS_PER_MS : 0;
	i->tenant = (char *)(uintptr_t)group->r.tenant;
	i->name = (char *)(uintptr_t)group->r.name;
	i->created = group->r.created;
	i->silent = ha_groups_silent(group, now);
	if (group->why)
		i->why = (char *)(uintptr_t)group->why;
}

struct switch_box {
	Inc__SwitchInfo info;
	char text[HA_SWITCH_PREFIXES][HA_PREFIX_TEXT], *serves[HA_SWITCH_PREFIXES];
};

static void switch_fill(struct switch_box *box, const struct ha_groups *g,
			const struct ha_switch *s, uint64_t now)
{
	Inc__SwitchInfo *i = &box->info;

	inc__switch_info__init(i);
	i->name = (char *)(uintptr_t)s->info.name;
	i->ip = s->info.address;
	i->slots = s->buddy.slots;
	i->free = s->buddy.free;
	i->longest = ha_buddy_longest(&s->buddy);
	i->up = ha_groups_switch_up(g, s, now);
	i->registers = s->info.registers;
	i->n_serves = s->info.nserves;
	i->serves = box->serves;
	for (unsigned k = 0; k < s->info.nserves; k++)
		box->serves[k] =
			(char *)(uintptr_t)ha_prefix_text(&s->info.serves[k], box->text[k]);
}

bool ha_answer_joined(struct ha_reply *reply, Inc__HeartbeatResponse *r,
		      const struct ha_group *group, uint64_t now)
{
	struct group_box box;

	group_fill(&box, group, now);
	r->group = &box.info;
	return ha_answer_pack(reply, &r->base);
}

/* ---- List ---- */

static int by_serial(const void *a, const void *b)
{
	const struct ha_group *x = *(struct ha_group *const *)a, *y = *(struct ha_group *const *)b;

	return x->r.serial < y->r.serial ? -1 : x->r.serial > y->r.serial;
}

struct page {
	const struct ha_group **found; /* after `after`, sorted */
	struct group_box *group;
	Inc__GroupInfo *groups[HA_LIST_PAGE];
	struct switch_box sw[HA_GROUPS_SWITCHES];
	Inc__SwitchInfo *switches[HA_GROUPS_SWITCHES];
};

static bool list_fill(struct ha_reply *reply, struct page *p, const struct ha_groups *g,
		      uint64_t after, uint64_t now)
{
	Inc__ListResponse r = INC__LIST_RESPONSE__INIT;
	const struct ha_group *group;
	size_t n = 0;

	LIST_FOREACH(group, &g->all, link)
		if (group->r.serial > after)
			p->found[n++] = group;
	qsort(p->found, n, sizeof(p->found[0]), by_serial);
	r.more = n > HA_LIST_PAGE;
	r.n_group = r.more ? HA_LIST_PAGE : n;
	r.group = p->groups;
	for (size_t i = 0; i < r.n_group; i++) {
		group_fill(&p->group[i], p->found[i], now);
		p->groups[i] = &p->group[i].info;
	}
	r.switch_ = p->switches;
	for (unsigned i = 0; i < g->nsw && !after; i++) {
		if (g->sw[i]->gone)
			continue;
		switch_fill(&p->sw[i], g, g->sw[i], now);
		p->switches[r.n_switch_++] = &p->sw[i].info;
	}
	return ha_answer_pack(reply, &r.base);
}

bool ha_answer_list(struct ha_reply *reply, const struct ha_groups *g, uint64_t after, uint64_t now)
{
	struct page *p = calloc(1, sizeof(*p));
	bool done = false;

	if (!p)
		return false;
	p->found = calloc(g->live + g->closed + 1, sizeof(p->found[0]));
	p->group = calloc(HA_LIST_PAGE, sizeof(p->group[0]));
	if (p->found && p->group)
		done = list_fill(reply, p, g, after, now);
	free(p->found);
	free(p->group);
	free(p);
	return done;
}

/* ---- a switch's table ---- */

bool ha_answer_table(struct ha_reply *reply, const struct ha_groups *g, const struct ha_switch *s,
		     uint64_t version, uint64_t now)
{
	Inc__SwitchHeartbeatResponse r = INC__SWITCH_HEARTBEAT_RESPONSE__INIT;
	struct group_box *box = calloc(HA_GROUP_IDS, sizeof(*box));
	Inc__GroupInfo *groups[HA_GROUP_IDS];
	bool done;

	if (!box)
		return false;
	r.version = s->version;
	r.changed = s->version != version;
	r.silencems = (uint32_t)(g->limits.silence_ns / HA_NS_PER_MS);
	r.group = groups;
	for (unsigned id = 0; id < HA_GROUP_IDS && r.changed; id++) {
		if (!s->group[id] || s->group[id]->r.state != HA_GROUP_LIVE)
			continue;
		group_fill(&box[r.n_group], s->group[id], now);
		groups[r.n_group] = &box[r.n_group].info;
		r.n_group++;
	}
	done = ha_answer_pack(reply, &r.base);
	free(box);
	return done;
}
