/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/client.h"

#include "base/clock.h"
#include "base/random.h"
#include "ina/controller/call.h"
#include "netccl.pb-c.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEADLINE_MS 5000
#define AGAIN_MS 50 /* between two attempts to reach it */

/* gRPC's numbers that mean something to us. */
enum {
	DEADLINE = 4,
	INVALID = 3,
	DENIED = 7,
	EXHAUSTED = 8,
	PRECONDITION = 9,
	UNAVAILABLE = 14,
	UNAUTHENTICATED = 16
};

struct ha_ina_client {
	struct ha_ina_client_options options;
	struct ha_call_channel *channel;
	char *address;
	char error[512];
	/*
	 * A request for a group that had no answer yet, packed but for its number, and the number.
	 */
	uint8_t *spec, number[16];
	size_t spec_len;
};

struct ha_ina_client *ha_ina_client_open(const struct ha_ina_client_options *options, char *why,
					 size_t size)
{
	struct ha_ina_client *c = calloc(1, sizeof(*c));

	snprintf(why, size, "no memory");
	if (c) {
		c->options = *options;
		c->options.deadline_ms = options->deadline_ms ? options->deadline_ms : DEADLINE_MS;
		c->address = strdup(options->address);
	}
	if (c && c->address)
		c->channel = ha_call_open(c->address, &options->tls, why, size);
	if (c && c->channel)
		return c;
	if (c)
		free(c->address);
	free(c);
	return NULL;
}

void ha_ina_client_close(struct ha_ina_client *c)
{
	ha_call_close(c->channel);
	free(c->spec);
	free(c->address);
	free(c);
}

const char *ha_ina_client_error(const struct ha_ina_client *c)
{
	return c->error;
}

/* ---- one call ---- */

static int translate_status(struct ha_ina_client *c, const struct ha_call_answer *a)
{
	static const struct {
		int status, err;
	} table[] = { { DEADLINE, -ETIMEDOUT },    { INVALID, -EINVAL },
		      { DENIED, -EACCES },         { EXHAUSTED, -EAGAIN },
		      { PRECONDITION, -EINVAL },   { UNAVAILABLE, -ECONNREFUSED },
		      { UNAUTHENTICATED, -EACCES } };
	bool unreached = a->status == UNAVAILABLE && strstr(a->text, "connect");
	int err = -EPROTO;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].status == a->status)
			err = table[i].err;
	if (a->status == DEADLINE)
		snprintf(c->error, sizeof(c->error),
			 "controller %s: no answer within %u ms; it hangs, or the way there does",
			 c->address, c->options.deadline_ms);
	else
		snprintf(c->error, sizeof(c->error), "controller %s: %s%s", c->address,
			 *a->text ? a->text : "it ended the call and gave no reason",
			 unreached ? "; is ha-controller running there, and with the same TLS?"
				   : "");
	return err;
}

static unsigned left_ms(uint64_t until)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	return now < until ? (unsigned)((until - now) / HA_NS_PER_MS) : 0;
}

static void pause_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* 0, and *answer; every request of ours may be made twice. */
static int call_method(struct ha_ina_client *c, const char *method, const ProtobufCMessage *request,
		       const ProtobufCMessageDescriptor *kind, ProtobufCMessage **answer)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + c->options.deadline_ms * HA_NS_PER_MS;
	size_t len = protobuf_c_message_get_packed_size(request);
	uint8_t *bytes = malloc(len + 1);
	struct ha_call_answer a;

	if (!bytes) {
		snprintf(c->error, sizeof(c->error), "no memory");
		return -ENOMEM;
	}
	protobuf_c_message_pack(request, bytes);
	ha_call(c->channel, method, bytes, len, c->options.deadline_ms, false, &a);
	while (c->options.retry && a.status == UNAVAILABLE && left_ms(until) > AGAIN_MS) {
		struct ha_call_answer next;

		pause_ms(AGAIN_MS);
		ha_call(c->channel, method, bytes, len, left_ms(until), true, &next);
		if (next.status == DEADLINE) /* what was wrong says more than that time is up */
			break;
		a = next;
	}
	free(bytes);
	if (a.status)
		return translate_status(c, &a);
	*answer = protobuf_c_message_unpack(kind, NULL, a.len, a.bytes);
	free(a.bytes);
	if (*answer)
		return 0;
	snprintf(c->error, sizeof(c->error),
		 "controller %s: its answer makes no sense; is it a ha-controller?", c->address);
	return -EPROTO;
}

/* ---- requests ---- */

static void lease_take(struct ha_ina_lease *lease, const Inc__CreateGroupResponse *r)
{
	memset(lease, 0, sizeof(*lease));
	snprintf(lease->message, sizeof(lease->message), "%s", r->message);
	if (!r->groupid)
		return;
	lease->id = (uint8_t)r->groupid;
	lease->agg_addr = r->aggaddr;
	lease->agg_len = r->agglen;
	lease->epoch = r->epoch;
	lease->lease_ms = r->leasems;
	lease->key = r->key;
	lease->switch_address = r->n_member ? r->member[0]->ip : 0;
	snprintf(lease->switch_name, sizeof(lease->switch_name), "%s", r->switch_);
}

static bool answer_sound(const Inc__CreateGroupResponse *r)
{
	return r->groupid < HA_GROUP_IDS &&
	       (!r->groupid ||
		(r->n_member && ha_buddy_length_valid(r->agglen) &&
		 r->aggaddr <= HA_BUDDY_SLOTS - r->agglen && !(r->aggaddr % r->agglen)));
}

/* The number of this request: the one that it had when it got no answer, else a new one. */
static bool number_take(struct ha_ina_client *c, Inc__CreateGroupRequest *q)
{
	size_t len = inc__create_group_request__get_packed_size(q);
	uint8_t *spec = malloc(len + 1);

	if (!spec)
		return false;
	inc__create_group_request__pack(q, spec);
	if (!c->spec || c->spec_len != len || memcmp(c->spec, spec, len))
		ha_random_bytes(c->number, sizeof(c->number));
	free(c->spec);
	c->spec = spec;
	c->spec_len = len;
	q->requestid = (ProtobufCBinaryData) { sizeof(c->number), c->number };
	return true;
}

static void number_used(struct ha_ina_client *c)
{
	free(c->spec);
	c->spec = NULL;
}

int ha_ina_client_create(struct ha_ina_client *c, const struct ha_ina_group_spec *spec,
			 struct ha_ina_lease *lease)
{
	Inc__CreateGroupRequest q = INC__CREATE_GROUP_REQUEST__INIT;
	Inc__MemberInfo *box = calloc(spec->members + 1, sizeof(*box)),
			**member = calloc(spec->members + 1, sizeof(*member));
	ProtobufCMessage *m = NULL;
	int err = -ENOMEM;

	for (size_t i = 0; box && member && i < spec->members; i++) {
		inc__member_info__init(&box[i]);
		box[i].ip = spec->member[i];
		member[i] = &box[i];
	}
	q.n_member = spec->members;
	q.member = member;
	q.length = spec->length;
	q.leastlength = spec->least;
	q.leasems = spec->lease_ms;
	q.workers = spec->workers;
	q.extended = spec->extended;
	if (spec->name)
		q.name = (char *)(uintptr_t)spec->name;
	if (box && member && number_take(c, &q))
		err = call_method(c, "/inc.INC/CreateGroup", &q.base,
				  &inc__create_group_response__descriptor, &m);
	else
		snprintf(c->error, sizeof(c->error), "no memory");
	free(box);
	free(member);
	if (err)
		return err;
	if (answer_sound((const Inc__CreateGroupResponse *)m)) {
		lease_take(lease, (const Inc__CreateGroupResponse *)m);
		number_used(c);
	} else {
		snprintf(c->error, sizeof(c->error),
			 "controller %s: it gave a group that cannot be", c->address);
		err = -EPROTO;
	}
	protobuf_c_message_free_unpacked(m, NULL);
	return err;
}

static int send_heartbeat(struct ha_ina_client *c, const struct ha_ina_lease *lease,
			  Inc__HeartbeatRequest *q, struct ha_ina_heartbeat *heartbeat,
			  Inc__HeartbeatResponse **answer)
{
	const Inc__HeartbeatResponse *r;
	ProtobufCMessage *m = NULL;
	int err;

	q->groupid = lease->id;
	q->switch_ = (char *)(uintptr_t)lease->switch_name;
	q->key = lease->key;
	err = call_method(c, "/inc.INC/Heartbeat", &q->base, &inc__heartbeat_response__descriptor,
			  &m);
	if (err)
		return err;
	*answer = (Inc__HeartbeatResponse *)m;
	r = *answer;
	memset(heartbeat, 0, sizeof(*heartbeat));
	heartbeat->live = r->state == INC__STATE__LIVE;
	heartbeat->switch_away = r->switchaway;
	heartbeat->epoch = r->epoch;
	heartbeat->lease_ms = r->leasems;
	heartbeat->silent = r->silent;
	snprintf(heartbeat->message, sizeof(heartbeat->message), "%s", r->message);
	return 0;
}

int ha_ina_client_renew(struct ha_ina_client *c, const struct ha_ina_lease *lease, int rank,
			struct ha_ina_heartbeat *heartbeat)
{
	Inc__HeartbeatRequest q = INC__HEARTBEAT_REQUEST__INIT;
	Inc__HeartbeatResponse *r;
	int err;

	q.rank = (uint32_t)(rank + 1);
	err = send_heartbeat(c, lease, &q, heartbeat, &r);
	if (!err)
		inc__heartbeat_response__free_unpacked(r, NULL);
	return err;
}

static bool info_take(const Inc__GroupInfo *g, struct ha_ina_group_info *info)
{
	if (!g || !g->groupid || g->groupid >= HA_GROUP_IDS || g->n_member < HA_GROUP_MEMBERS_MIN ||
	    g->n_member > HA_GROUP_MEMBERS_MAX || g->workers > HA_GROUP_WORKERS_MAX ||
	    !ha_buddy_length_valid(g->agglen) || g->aggaddr > HA_BUDDY_SLOTS - g->agglen)
		return false;
	*info = (struct ha_ina_group_info) {
		.id = (uint8_t)g->groupid,
		.ranks = (uint8_t)g->n_member,
		.workers = (uint8_t)g->workers,
		.extended = g->extended,
		.base = g->aggaddr,
		.len = g->agglen,
		.epoch = g->epoch,
		.lease_ms = g->leasems,
		.switch_address = g->switchip,
	};
	for (size_t i = 0; i < g->n_member; i++)
		info->member[i] = g->member[i]->ip;
	return true;
}

int ha_ina_client_join(struct ha_ina_client *c, const struct ha_ina_lease *lease, unsigned rank,
		       uint64_t incarnation, struct ha_ina_group_info *info,
		       struct ha_ina_heartbeat *heartbeat)
{
	Inc__HeartbeatRequest q = INC__HEARTBEAT_REQUEST__INIT;
	Inc__HeartbeatResponse *r;
	int err;

	q.rank = rank + 1;
	q.joins = true;
	q.incarnation = incarnation;
	err = send_heartbeat(c, lease, &q, heartbeat, &r);
	if (err)
		return err;
	if (heartbeat->live && !info_take(r->group, info)) {
		snprintf(c->error, sizeof(c->error),
			 "controller %s: it does not say what the group is; is it older than this "
			 "program?",
			 c->address);
		err = -EPROTO;
	}
	inc__heartbeat_response__free_unpacked(r, NULL);
	return err;
}

int ha_ina_client_leave(struct ha_ina_client *c, const struct ha_ina_lease *lease, unsigned rank,
			uint64_t incarnation, struct ha_ina_heartbeat *heartbeat)
{
	Inc__HeartbeatRequest q = INC__HEARTBEAT_REQUEST__INIT;
	Inc__HeartbeatResponse *r;
	int err;

	q.rank = rank + 1;
	q.leaves = true;
	q.incarnation = incarnation;
	err = send_heartbeat(c, lease, &q, heartbeat, &r);
	if (!err)
		inc__heartbeat_response__free_unpacked(r, NULL);
	return err;
}

int ha_ina_client_destroy(struct ha_ina_client *c, uint32_t id, const char *switch_name,
			  uint64_t key, char *message)
{
	Inc__DestroyGroupRequest q = INC__DESTROY_GROUP_REQUEST__INIT;
	ProtobufCMessage *m = NULL;
	int err;

	q.groupid = id;
	if (switch_name)
		q.switch_ = (char *)(uintptr_t)switch_name;
	q.key = key;
	err = call_method(c, "/inc.INC/DestroyGroup", &q.base,
			  &inc__destroy_group_response__descriptor, &m);
	if (err)
		return err;
	snprintf(message, sizeof(((struct ha_ina_heartbeat *)0)->message), "%s",
		 ((const Inc__DestroyGroupResponse *)m)->message);
	protobuf_c_message_free_unpacked(m, NULL);
	return 0;
}

int ha_ina_client_list(struct ha_ina_client *c,
		       void (*page)(void *user, const struct Inc__ListResponse *list), void *user)
{
	Inc__ListRequest q = INC__LIST_REQUEST__INIT;
	bool more = true;

	while (more) {
		ProtobufCMessage *m = NULL;
		const Inc__ListResponse *r;
		int err = call_method(c, "/inc.INC/List", &q.base, &inc__list_response__descriptor,
				      &m);

		if (err)
			return err;
		r = (const Inc__ListResponse *)m;
		page(user, r);
		more = r->more && r->n_group && r->group[r->n_group - 1]->serial > q.after;
		if (more)
			q.after = r->group[r->n_group - 1]->serial;
		protobuf_c_message_free_unpacked(m, NULL);
	}
	return 0;
}

int ha_ina_client_switch(struct ha_ina_client *c, const struct Inc__SwitchHeartbeatRequest *request,
			 struct Inc__SwitchHeartbeatResponse **answer)
{
	ProtobufCMessage *m = NULL;
	int err = call_method(c, "/inc.INC/SwitchHeartbeat", &request->base,
			      &inc__switch_heartbeat_response__descriptor, &m);

	*answer = (struct Inc__SwitchHeartbeatResponse *)m;
	return err;
}
