/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/follow.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "netccl.pb-c.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 500      /* for a change of the table */
#define SOON_MS 10       /* while a group waits for something */
#define AWAY_MS 200      /* between two attempts to reach the controller */
#define DEADLINE_MS 2000 /* of an attempt */
#define LINGER_S 30

/* What the follower has installed in the switch under a number. */
struct followed {
	struct ina_group_config config;
	enum { NONE, WAITING, REFUSED, LIVE, ENDED } state;
	bool listed;
	uint64_t remove_at;
};

struct ina_follow {
	struct ina_follow_options options;
	struct ina_follow_ops ops;
	struct ha_ina_client *client;
	uint64_t incarnation, version;
	uint32_t wait_ms; /* that the controller's silence limit allows */
	bool away;        /* said so */
	struct followed group[INA_GROUPS];
	atomic_bool stop, answered; /* relaxed: flags only */
	pthread_t thread;
};

/* ---- one group ---- */

static void try_install(struct ina_follow *f, struct followed *l)
{
	const char *why = NULL;
	int err = f->ops.install(f->ops.arg, &l->config, &why);

	l->state = err == -EAGAIN ? WAITING : REFUSED;
	if (!err)
		l->state = LIVE;
	if (l->state == REFUSED)
		HA_WARN(f->options.name, "the controller's group %u is refused: %s", l->config.id,
			why ? why : strerror(-err));
}

static void remove_group(struct ina_follow *f, struct followed *l)
{
	if (l->state == LIVE || l->state == ENDED)
		f->ops.remove(f->ops.arg, l->config.id, l->config.epoch);
	l->state = NONE;
}

static void end_group(struct ina_follow *f, struct followed *l, uint64_t now)
{
	if (l->state == LIVE) {
		f->ops.end(f->ops.arg, l->config.id, l->config.epoch);
		l->state = ENDED;
		l->remove_at = now + LINGER_S * HA_NS_PER_S;
	} else if (l->state != ENDED) {
		l->state = NONE;
	}
}

static bool have_common_slots(const struct ina_group_config *a, const struct ina_group_config *b)
{
	return a->base < b->base + b->len && b->base < a->base + a->len;
}

/* Those that are over give way. */
static void make_room(struct ina_follow *f, const struct ina_group_config *c)
{
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (id != c->id && f->group[id].state == ENDED &&
		    have_common_slots(&f->group[id].config, c))
			remove_group(f, &f->group[id]);
}

/* false: this can be no group. */
static bool config_from(const struct ina_follow *f, const Inc__GroupInfo *info,
			struct ina_group_config *c)
{
	uint32_t workers = f->options.workers ? f->options.workers : 1;

	if (info->workers)
		workers = info->workers;
	if (!info->groupid || info->groupid >= INA_GROUPS || info->n_member > INA_RANKS_MAX ||
	    info->aggaddr > UINT16_MAX || workers > INA_WORKERS_MAX)
		return false;
	memset(c, 0, sizeof(*c));
	c->id = (uint8_t)info->groupid;
	c->ranks = (uint8_t)info->n_member;
	c->workers = (uint8_t)workers;
	c->extended = info->extended;
	c->base = (uint16_t)info->aggaddr;
	c->len = info->agglen;
	c->epoch = info->epoch;
	c->lease_until = UINT64_MAX;
	for (size_t i = 0; i < info->n_member; i++)
		c->member[i].addr = info->member[i]->ip;
	return true;
}

static void take_group(struct ina_follow *f, const Inc__GroupInfo *info)
{
	struct ina_group_config c;
	struct followed *l;

	if (!config_from(f, info, &c)) {
		HA_WARN(f->options.name,
			"the controller's group %u is refused: its number, aggregators, workers or "
			"members are out of range; run the controller and the switches from one "
			"version",
			info->groupid);
		return;
	}
	l = &f->group[c.id];
	l->listed = true;
	if (l->state != NONE && l->state != ENDED && ina_group_config_same(&l->config, &c)) {
		if (l->state == REFUSED)
			l->state = WAITING;
		return;
	}
	remove_group(f, l);
	l->config = c;
	l->state = WAITING;
}

/* ---- the table ---- */

static void take_table(struct ina_follow *f, const Inc__SwitchHeartbeatResponse *r, uint64_t now)
{
	for (unsigned id = 1; id < INA_GROUPS; id++)
		f->group[id].listed = false;
	for (size_t i = 0; i < r->n_group; i++)
		take_group(f, r->group[i]);
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (!f->group[id].listed)
			end_group(f, &f->group[id], now);
}

/* true: some group is still to come. */
static bool work_off(struct ina_follow *f, uint64_t now)
{
	bool waiting = false;

	for (unsigned id = 1; id < INA_GROUPS; id++) {
		struct followed *l = &f->group[id];

		if (l->state == ENDED && now >= l->remove_at)
			remove_group(f, l);
		if (l->state != WAITING)
			continue;
		make_room(f, &l->config);
		try_install(f, l);
		waiting |= l->state == WAITING;
	}
	return waiting;
}

/* ---- the thread ---- */

static void pause_ms(unsigned ms)
{
	struct timespec t = { 0, ms * 1000000L };

	nanosleep(&t, NULL);
}

/* What is said, and the room for it. */
struct words {
	Inc__SwitchHeartbeatRequest q;
	Inc__SeenGroup box[INA_GROUPS], *seen[INA_GROUPS];
};

static void fill_request(struct ina_follow *f, struct words *w, bool waiting)
{
	struct ina_follow_seen seen[INA_GROUPS];
	Inc__SwitchHeartbeatRequest *q = &w->q;

	inc__switch_heartbeat_request__init(q);
	q->name = (char *)(uintptr_t)f->options.name;
	q->ip = f->options.addr;
	q->slots = f->options.slots;
	q->serves = (char **)(uintptr_t)f->options.serves;
	q->n_serves = f->options.nserves;
	q->incarnation = f->incarnation;
	q->version = f->version;
	q->waitms = waiting ? SOON_MS : f->wait_ms;
	q->seen = w->seen;
	q->n_seen = f->ops.seen ? f->ops.seen(f->ops.arg, seen) : 0;
	for (size_t i = 0; i < q->n_seen; i++) {
		inc__seen_group__init(&w->box[i]);
		w->box[i].groupid = seen[i].id;
		w->box[i].epoch = seen[i].epoch;
		w->seen[i] = &w->box[i];
	}
}

static void take_response(struct ina_follow *f, const Inc__SwitchHeartbeatResponse *r)
{
	if (f->away || !atomic_load_explicit(&f->answered, memory_order_relaxed))
		HA_INFO(f->options.name, "the controller at %s answers", f->options.client.address);
	f->away = false;
	atomic_store_explicit(&f->answered, true, memory_order_relaxed);
	f->wait_ms = r->silencems && r->silencems / 3 < WAIT_MS ? r->silencems / 3 : WAIT_MS;
	if (!r->changed)
		return;
	f->version = r->version;
	take_table(f, r, ha_clock_now(&ha_clock_live));
}

static void *run_follower(void *arg)
{
	struct ina_follow *f = arg;
	struct words *w = &(struct words) { 0 };
	bool waiting = false;

	while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
		Inc__SwitchHeartbeatResponse *r = NULL;

		fill_request(f, w, waiting);
		if (ha_ina_client_switch(f->client, &w->q, &r)) {
			if (!f->away)
				HA_WARN(f->options.name, "%s; groups stay as they are",
					ha_ina_client_error(f->client));
			f->away = true;
			pause_ms(AWAY_MS);
		} else {
			take_response(f, r);
			inc__switch_heartbeat_response__free_unpacked(r, NULL);
		}
		waiting = work_off(f, ha_clock_now(&ha_clock_live));
	}
	return NULL;
}

struct ina_follow *ina_follow_start(const struct ina_follow_options *options,
				    const struct ina_follow_ops *ops, char *why, size_t size)
{
	struct ina_follow *f = calloc(1, sizeof(*f));

	snprintf(why, size, "no memory");
	if (!f)
		return NULL;
	f->options = *options;
	f->ops = *ops;
	f->wait_ms = WAIT_MS;
	while (!f->incarnation)
		ha_random_bytes(&f->incarnation, sizeof(f->incarnation));
	f->options.client.retry = true;
	if (!f->options.client.deadline_ms)
		f->options.client.deadline_ms = DEADLINE_MS;
	f->client = ha_ina_client_open(&f->options.client, why, size);
	if (f->client && !pthread_create(&f->thread, NULL, run_follower, f))
		return f;
	if (f->client) {
		snprintf(why, size, "no thread for the controller");
		ha_ina_client_close(f->client);
	}
	free(f);
	return NULL;
}

void ina_follow_stop(struct ina_follow *f)
{
	atomic_store_explicit(&f->stop, true, memory_order_relaxed);
	pthread_join(f->thread, NULL);
	ha_ina_client_close(f->client);
	free(f);
}

bool ina_follow_answered(const struct ina_follow *f)
{
	return atomic_load_explicit(&f->answered, memory_order_relaxed);
}
