/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/requests.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "ina/controller/answers.h"
#include "ina/frame/address.h"
#include "netccl.pb-c.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct call {
	struct ha_service *s;
	const struct ha_caller *caller;
	const uint8_t *bytes;
	size_t len;
	uint64_t now;
	struct ha_reply *reply;
};

/* ---- replies ---- */

void ha_reply_free(struct ha_reply *reply)
{
	free(reply->bytes);
	reply->bytes = NULL;
	reply->len = 0;
}

void ha_reply_fail(struct ha_reply *reply, enum ha_call_status status, const char *fmt, ...)
{
	va_list ap;

	ha_reply_free(reply);
	reply->waits = false;
	reply->status = status;
	va_start(ap, fmt);
	vsnprintf(reply->message, sizeof(reply->message), fmt, ap);
	va_end(ap);
}

static void refuse_malformed(struct call *c)
{
	c->s->count.invalid++;
	ha_reply_fail(c->reply, HA_CALL_INVALID, "the bytes are no such request; see netccl.proto");
}

static void refuse_invalid(struct call *c, const char *what)
{
	c->s->count.invalid++;
	ha_reply_fail(c->reply, HA_CALL_INVALID, "%s", what);
}

/* packed: what a function of answers.h has returned. */
static void finish_reply(struct ha_reply *reply, bool packed)
{
	if (!packed)
		ha_reply_fail(reply, HA_CALL_INTERNAL, "the controller has no memory left");
}

/*
 * Text that goes back to others must be fit for a terminal, and be UTF-8, or their parsers throw it
 * out.
 */
static bool text_sound(const char *s)
{
	int n;

	for (; *s; s += n) {
		n = ha_utf8(s);
		if (!n || !ha_utf8_printable(s, n))
			return false;
	}
	return true;
}

/* ---- CreateGroup ---- */

static enum ha_call_status create_from_spec(struct call *c, struct ha_group_spec *w,
					    const char *name, bool text)
{
	struct ha_refusal why;
	struct ha_group *group;

	w->tenant = c->caller->tenant;
	w->name = name;
	w->created = (uint64_t)time(NULL);
	if (!text_sound(name)) {
		refuse_invalid(c, "the group's name is not printable UTF-8");
		return HA_CALL_INVALID;
	}
	group = ha_service_create(c->s, w, c->now, &why);
	if (!group && why.kind == HA_REFUSAL_INVALID) {
		ha_reply_fail(c->reply, HA_CALL_INVALID, "%s", why.text);
		return HA_CALL_INVALID;
	}
	finish_reply(c->reply, ha_answer_create(c->reply, group, &why, text));
	return c->reply->status;
}

/* A member of whom only the address as text is known. */
static void create_text(struct call *c, const void *request)
{
	const Inc__CreateGroupTextRequest *q = request;
	uint32_t member[HA_GROUP_MEMBERS_MAX];
	struct ha_group_spec w = { .member = member };
	bool sound = true;

	for (size_t i = 0; i < q->n_member && i < HA_GROUP_MEMBERS_MAX && sound; i++) {
		sound = ha_address_parse(q->member[i]->ip, &member[i]);
		if (!sound) {
			c->s->count.invalid++;
			ha_reply_fail(c->reply, HA_CALL_INVALID,
				      "'%.40s' of rank %zu is no IPv4 address",
				      text_sound(q->member[i]->ip) ? q->member[i]->ip : "?", i);
		}
	}
	w.members = q->n_member;
	w.length = q->length;
	w.least = q->leastlength;
	w.lease_ms = q->leasems;
	w.workers = q->workers;
	w.extended = q->extended;
	w.nonce = q->requestid.data;
	w.nonce_len = q->requestid.len;
	if (sound)
		create_from_spec(c, &w, q->name, true);
}

static void create_group(struct call *c, const void *request)
{
	const Inc__CreateGroupRequest *q = request;
	uint32_t member[HA_GROUP_MEMBERS_MAX];
	struct ha_group_spec w = { .member = member };

	for (size_t i = 0; i < q->n_member && i < HA_GROUP_MEMBERS_MAX; i++)
		member[i] = q->member[i]->ip;
	w.members = q->n_member;
	w.length = q->length;
	w.least = q->leastlength;
	w.lease_ms = q->leasems;
	w.workers = q->workers;
	w.extended = q->extended;
	w.nonce = q->requestid.data;
	w.nonce_len = q->requestid.len;
	create_from_spec(c, &w, q->name, false);
}

/* ---- which group is meant, and who may ---- */

static bool is_member(const struct ha_group *group, uint32_t address)
{
	for (unsigned i = 0; address && i < group->r.members; i++)
		if (group->r.member[i] == address)
			return true;
	return false;
}

static bool may_access_group(const struct ha_caller *who, const struct ha_group *group)
{
	return who->admin || !strcmp(who->tenant, group->r.tenant) ||
	       is_member(group, who->address);
}

enum which { NONE, ONE, SEVERAL, FORBIDDEN };

/*
 * LIVE ones first. A key says exactly which one; one that fits none is that of a group which is
 * over.
 */
static enum which which_group(const struct call *c, uint32_t id, const char *switch_name,
			      uint64_t key, struct ha_group **found)
{
	enum which result = NONE;

	*found = NULL;
	for (unsigned i = 0; id && id < HA_GROUP_IDS && i < c->s->groups.nsw; i++) {
		struct ha_group *group = c->s->groups.sw[i]->group[id];

		if (!group || (*switch_name && strcmp(switch_name, group->r.switch_name)))
			continue;
		if (key && key != group->r.key)
			continue;
		if (!key && !may_access_group(c->caller, group)) {
			result = result == NONE ? FORBIDDEN : result;
			continue;
		}
		if (*found && (*found)->r.state == HA_GROUP_LIVE) {
			if (group->r.state == HA_GROUP_LIVE)
				return SEVERAL;
			continue;
		}
		*found = group;
		result = ONE;
	}
	return result;
}

/* NULL: there is none, or the reply has failed and says why. */
static struct ha_group *find_group(struct call *c, uint32_t id, const char *switch_name,
				   uint64_t key)
{
	struct ha_group *found;

	switch (which_group(c, id, switch_name, key, &found)) {
	case ONE:
		return found;
	case SEVERAL:
		ha_reply_fail(c->reply, HA_CALL_PRECONDITION,
			      "several switches have a group %u of yours; name the switch or give "
			      "the key",
			      id);
		break;
	case FORBIDDEN:
		c->s->count.denied++;
		ha_reply_fail(c->reply, HA_CALL_DENIED, "group %u is not yours (%s); give its key",
			      id, c->caller->tenant);
		break;
	case NONE:
		break;
	}
	return NULL;
}

static void destroy_group(struct call *c, const void *request)
{
	const Inc__DestroyGroupRequest *q = request;
	Inc__DestroyGroupResponse r = INC__DESTROY_GROUP_RESPONSE__INIT;
	struct ha_group *group = find_group(c, q->groupid, q->switch_, q->key);
	char text[64] = "";

	if (c->reply->status)
		return;
	/*
	 * NetCCL destroys its groups when a process ends, and group 0 too: that what is gone is
	 * gone is no error.
	 */
	if (!group) {
		snprintf(text, sizeof(text), "there is no group %u%s", q->groupid,
			 q->key ? " of this key" : "");
	} else if (group->r.state == HA_GROUP_LIVE) {
		ha_service_end(c->s, group, "a client has ended it", c->now);
		c->s->count.destroyed++;
	} else {
		snprintf(text, sizeof(text), "group %u has ended before", q->groupid);
	}
	r.message = text;
	finish_reply(c->reply, ha_answer_pack(c->reply, &r.base));
}

/* A rank that begins, or is out of it. False: it may not, and the reply says why. */
static bool joins_or_leaves(struct call *c, const Inc__HeartbeatRequest *q, struct ha_group *group)
{
	unsigned rank = q->rank - 1;

	if (!q->joins && !q->leaves)
		return true;
	if (q->rank < 1 || q->rank > group->r.members ||
	    (q->joins && (q->leaves || !q->incarnation))) {
		refuse_invalid(c, "a rank of the group joins with an incarnation, or leaves");
		return false;
	}
	if (group->r.state != HA_GROUP_LIVE)
		return true;
	if (q->leaves && group->r.joined[rank] && group->r.joined[rank] != q->incarnation) {
		ha_reply_fail(c->reply, HA_CALL_PRECONDITION,
			      "another incarnation of rank %u has joined group %u: only that one "
			      "can leave it",
			      rank, q->groupid);
		return false;
	}
	if (q->leaves) {
		if (ha_groups_leave(group, rank))
			ha_service_end(c->s, group, "all ranks have left", c->now);
		return true;
	}
	if (ha_service_join(c->s, group, rank, q->incarnation, c->now))
		return true;
	ha_reply_fail(c->reply, HA_CALL_PRECONDITION,
		      "rank %u of group %u has joined before, and would meet what it has sent: "
		      "each rank joins once, ask for another group",
		      rank, q->groupid);
	return false;
}

static void renew_group(struct call *c, const Inc__HeartbeatRequest *q, struct ha_group *group,
			Inc__HeartbeatResponse *r)
{
	ha_groups_renew(group, (int)(q->rank <= HA_GROUP_MEMBERS_MAX ? q->rank : 0) - 1, c->now);
	c->s->count.renewed += group->r.state == HA_GROUP_LIVE;
	r->state = (Inc__State)group->r.state;
	r->epoch = group->r.epoch;
	r->leasems = group->r.lease_ms;
	r->switchaway = !ha_groups_switch_up(&c->s->groups, group->home, c->now);
	r->silent = ha_groups_silent(group, c->now);
}

static void handle_heartbeat(struct call *c, const void *request)
{
	const Inc__HeartbeatRequest *q = request;
	Inc__HeartbeatResponse r = INC__HEARTBEAT_RESPONSE__INIT;
	struct ha_group *other, *group = find_group(c, q->groupid, q->switch_, q->key);
	char text[160] = "";

	if (c->reply->status || (group && !joins_or_leaves(c, q, group)))
		return;
	if (group) {
		renew_group(c, q, group, &r);
		if (group->r.state != HA_GROUP_LIVE)
			snprintf(text, sizeof(text), "group %u has ended: %s", q->groupid,
				 group->why);
	} else if (q->key && which_group(c, q->groupid, q->switch_, 0, &other) != NONE) {
		snprintf(text, sizeof(text),
			 "the group of this key is over; group %u is another's now", q->groupid);
	} else {
		snprintf(text, sizeof(text), "there is no group %u", q->groupid);
	}
	r.message = text;
	if (group && q->joins && r.state == INC__STATE__LIVE)
		finish_reply(c->reply, ha_answer_joined(c->reply, &r, group, c->now));
	else
		finish_reply(c->reply, ha_answer_pack(c->reply, &r.base));
}

static void list_groups(struct call *c, const void *request)
{
	const Inc__ListRequest *q = request;

	finish_reply(c->reply, ha_answer_list(c->reply, &c->s->groups, q->after, c->now));
}

/* ---- switches ---- */

static bool info_fill(struct call *c, const Inc__SwitchHeartbeatRequest *q,
		      struct ha_switch_info *info)
{
	const struct ha_switch *same;

	if (!ha_switch_name_valid(q->name)) {
		refuse_invalid(
			c,
			"a switch's name has 1 to 31 letters, digits, dots, dashes or underscores");
		return false;
	}
	strcpy(info->name, q->name);
	info->address = q->ip;
	info->slots = q->slots;
	info->registers = true;
	if (q->slots < HA_BUDDY_UNIT || q->slots > HA_BUDDY_SLOTS || !q->ip || !q->n_serves ||
	    q->n_serves > HA_SWITCH_PREFIXES) {
		refuse_invalid(
			c,
			"a switch has an address, 16 to 65536 slots, and serves 1 to 16 prefixes");
		return false;
	}
	for (size_t i = 0; i < q->n_serves; i++)
		if (!ha_prefix_parse(q->serves[i], &info->serves[info->nserves++])) {
			refuse_invalid(
				c, "a prefix is like 10.0.0.0/24, without bits behind its length");
			return false;
		}
	same = ha_groups_switch_same(&c->s->groups, info, c->now);
	if (!same)
		return true;
	c->s->count.invalid++;
	ha_reply_fail(c->reply, HA_CALL_INVALID, "switch %s has this address", same->info.name);
	return false;
}

static bool info_from(struct call *c, const Inc__SwitchHeartbeatRequest *q,
		      struct ha_switch_info *info)
{
	const struct ha_switch *sw = ha_groups_switch_find(&c->s->groups, q->name);

	memset(info, 0, sizeof(*info));
	if (!c->caller->registrar && !c->caller->admin) {
		c->s->count.denied++;
		ha_reply_fail(
			c->reply, HA_CALL_DENIED,
			"%s may not send a switch's heartbeat; see 'register' in the settings",
			c->caller->tenant);
		return false;
	}
	if (!q->incarnation) {
		refuse_invalid(c, "Incarnation 0");
		return false;
	}
	if (sw && sw->info.configured && !sw->gone) { /* the settings know better */
		*info = sw->info;
		return true;
	}
	return info_fill(c, q, info);
}

/* Packets of a group have come: whoever cannot renew still runs. */
static void renew_seen_groups(struct call *c, const Inc__SwitchHeartbeatRequest *q,
			      struct ha_switch *sw)
{
	for (size_t i = 0; i < q->n_seen; i++) {
		struct ha_group *group =
			q->seen[i]->groupid < HA_GROUP_IDS ? sw->group[q->seen[i]->groupid] : NULL;

		if (!group || group->r.epoch != q->seen[i]->epoch || !group->r.plain)
			continue;
		ha_groups_renew(group, -1, c->now);
		c->s->count.seen++;
	}
}

static void switch_heartbeat(struct call *c, const void *request)
{
	const Inc__SwitchHeartbeatRequest *q = request;
	struct ha_switch_info info;
	struct ha_switch *sw;
	uint64_t wait, most;

	if (!info_from(c, q, &info))
		return;
	sw = ha_service_switch(c->s, &info, q->incarnation, c->now);
	if (!sw) {
		ha_reply_fail(c->reply, HA_CALL_EXHAUSTED,
			      "the controller knows %u switches already", HA_GROUPS_SWITCHES);
		return;
	}
	renew_seen_groups(c, q, sw);
	/* While it waits it says nothing. */
	most = c->s->settings->limits.silence_ns / 3;
	wait = q->waitms * HA_NS_PER_MS;
	c->reply->waits = true;
	c->reply->version = q->version;
	c->reply->until = c->now + (wait < most ? wait : most);
	strcpy(c->reply->switch_name, info.name);
}

bool ha_request_again(struct ha_service *s, struct ha_reply *reply, uint64_t now)
{
	const struct ha_switch *sw = ha_groups_switch_find(&s->groups, reply->switch_name);

	if (sw && sw->version == reply->version && now < reply->until)
		return false;
	reply->waits = false;
	if (!sw)
		ha_reply_fail(reply, HA_CALL_UNAVAILABLE,
			      "the switch is not known any more; repeat the heartbeat");
	else
		finish_reply(reply, ha_answer_table(reply, &s->groups, sw, reply->version, now));
	return true;
}

/* ---- methods ---- */

static void refused_method(struct call *c, const void *request)
{
	(void)request;
	c->s->count.denied++;
	ha_reply_fail(c->reply, HA_CALL_DENIED,
		      "no client may do that: groups end by DestroyGroup, the controller by its "
		      "administrator");
}

struct method {
	const char *name;
	const ProtobufCMessageDescriptor *request; /* NULL: nothing is read of it */
	void (*run)(struct call *c, const void *request);
};

/* Of several with a name that one runs whose request the bytes are. */
static const struct method methods[] = {
	{ "CreateGroup", &inc__create_group_request__descriptor, create_group },
	{ "CreateGroup", &inc__create_group_text_request__descriptor, create_text },
	{ "DestroyGroup", &inc__destroy_group_request__descriptor, destroy_group },
	{ "Heartbeat", &inc__heartbeat_request__descriptor, handle_heartbeat },
	{ "List", &inc__list_request__descriptor, list_groups },
	{ "SwitchHeartbeat", &inc__switch_heartbeat_request__descriptor, switch_heartbeat },
	{ "Stop", NULL, refused_method },
	{ "Init", NULL, refused_method },
};

/* False: the bytes are no request of this method. */
static bool run_method(const struct method *method, struct call *c)
{
	ProtobufCMessage *request;

	if (!method->request) {
		method->run(c, NULL);
		return true;
	}
	request = protobuf_c_message_unpack(method->request, NULL, c->len, c->bytes);
	if (!request)
		return false;
	method->run(c, request);
	protobuf_c_message_free_unpacked(request, NULL);
	return true;
}

void ha_request_handle(struct ha_service *s, const char *method, const struct ha_caller *caller,
		       const uint8_t *bytes, size_t len, uint64_t now, struct ha_reply *reply)
{
	struct call c = { s, caller, bytes, len, now, reply };
	const char *slash = strrchr(method, '/');
	bool known = false;

	memset(reply, 0, sizeof(*reply));
	method = slash ? slash + 1 : method;
	if (len > HA_REQUEST_MAX) {
		s->count.invalid++;
		ha_reply_fail(reply, HA_CALL_EXHAUSTED, "a request has %u bytes at most",
			      HA_REQUEST_MAX);
		return;
	}
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(method, methods[i].name))
			continue;
		if (run_method(&methods[i], &c))
			return;
		known = true;
	}
	if (known) {
		refuse_malformed(&c);
		return;
	}
	s->count.invalid++;
	ha_reply_fail(reply, HA_CALL_UNIMPLEMENTED, "there is no such method; see netccl.proto");
}
