/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/host/backend/rig.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIME_LIMIT_NS (60 * HA_NS_PER_S)

void rig_pause(unsigned us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&t, NULL);
}

/* ---- backends ---- */

static void *serve_backend(void *arg)
{
	struct rig_host *h = arg;

	while (!atomic_load(&h->stop))
		ha_backend_serve(h->backend, 10);
	return NULL;
}

static struct ha_group_defaults defaults_of(const struct rig *r, bool old_frames)
{
	return (struct ha_group_defaults) {
		.workers = r->workers, .extended = !old_frames, .slots = 1024, .lease_ms = 300
	};
}

void rig_host_start(struct rig *r, unsigned host)
{
	struct rig_host *h = &r->host[host];
	struct ha_backend_options o = { .limits = { .peer_ns = 10 * HA_NS_PER_S,
						    .switch_ns = r->switch_ms * HA_NS_PER_MS,
						    .idle_ns = 50 * HA_NS_PER_US,
						    .loop = r->loop_worker },
					.loop = r->loop_balancer,
					.server = { .path = h->path } };
	struct ha_group_defaults defaults = defaults_of(r, false);
	struct ha_net *net;
	struct ha_authority *a;
	char why[256] = "";

	net = r->fabric ? fabric_net(r->fabric, RIG_ADDR(host), r->workers)
			: ha_net_loopback_open(r->workers, RIG_ADDR(host), why, sizeof(why));
	CHECK(net);
	a = r->fabric ? fabric_authority(r->fabric) : ha_authority_local_open(&defaults, net);
	CHECK(a);
	h->backend = ha_backend_open(&o, net, a, why, sizeof(why));
	if (!h->backend)
		fprintf(stderr, "%s\n", why);
	CHECK(h->backend);
	atomic_store(&h->stop, false);
	CHECK(!pthread_create(&h->thread, NULL, serve_backend, h));
	h->running = true;
}

void rig_host_stop(struct rig *r, unsigned host)
{
	struct rig_host *h = &r->host[host];

	if (!h->running)
		return;
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
	ha_backend_close(h->backend);
	h->running = false;
}

void rig_open(struct rig *r, const struct rig_options *o)
{
	struct ha_group_defaults defaults;

	memset(r, 0, sizeof(*r));
	r->hosts = o->hosts ? o->hosts : 1;
	r->workers = o->workers ? o->workers : 2;
	r->switch_ms = o->switch_ms ? o->switch_ms : 60000;
	r->loop_worker = o->loop_worker;
	r->loop_balancer = o->loop_balancer;
	strcpy(r->dir, "/tmp/hawser-backend-XXXXXX");
	CHECK(mkdtemp(r->dir));
	defaults = defaults_of(r, o->old_frames);
	if (!o->loopback)
		r->fabric = fabric_open(&defaults);
	for (unsigned i = 0; i < r->hosts; i++) {
		strcpy(r->host[i].path, r->dir);
		strcat(r->host[i].path, (const char[]) { '/', (char)('0' + i), 0 });
		rig_host_start(r, i);
	}
}

void rig_adopt(struct rig *r, char *const *path, unsigned hosts)
{
	memset(r, 0, sizeof(*r));
	r->hosts = hosts;
	CHECK(hosts <= RIG_HOSTS);
	for (unsigned i = 0; i < hosts; i++) {
		CHECK(strlen(path[i]) < sizeof(r->host[i].path));
		strcpy(r->host[i].path, path[i]);
	}
}

void rig_close(struct rig *r)
{
	for (unsigned i = 0; i < r->hosts; i++) {
		rig_host_stop(r, i);
		unlink(r->host[i].path);
	}
	if (r->fabric)
		fabric_close(r->fabric);
	rmdir(r->dir);
}

/* ---- clients ---- */

void rig_attach(struct rig *r, unsigned host, struct rig_client *c)
{
	char why[256] = "";

	memset(c, 0, sizeof(*c));
	if (ina_shm_client_open(&c->shm, r->host[host].path, 4, NULL, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	CHECK(c->shm.memory.map);
	CHECK(c->shm.address == RIG_ADDR(host));
}

void rig_detach(struct rig_client *c)
{
	ina_shm_client_close(&c->shm);
}

/* 1: a message; 0: none yet; -1: the end. */
static int receive_message(struct rig_client *c, struct ina_shm_message *m, int timeout_ms)
{
	struct pollfd p = { c->shm.fd, POLLIN, 0 };
	const char *why = "";
	int file, got;

	poll(&p, 1, timeout_ms);
	got = ina_shm_message_receive(c->shm.fd, m, false, &file, &why);
	if (got < 0)
		return -1;
	if (got && m->type == INA_SHM_STATE) {
		c->state = m->state;
		c->states++;
	}
	return got;
}

bool rig_ask(struct rig_client *c, struct ina_shm_message *m)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + TIME_LIMIT_NS;
	struct ina_shm_message got;
	int n;

	m->serial = ++c->serial;
	CHECK(!ina_shm_message_send(c->shm.fd, m, -1));
	while (ha_clock_now(&ha_clock_live) < until) {
		n = receive_message(c, &got, 100);
		if (n < 0)
			return false;
		if (n && got.serial == c->serial) {
			*m = got;
			return true;
		}
	}
	CHECK(!"an answer came");
	return false;
}

bool rig_receive(struct rig_client *c, struct ina_shm_message *m)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + TIME_LIMIT_NS;
	int n = 0;

	while (n >= 0 && ha_clock_now(&ha_clock_live) < until) {
		n = receive_message(c, m, 100);
		if (n > 0 && m->serial)
			return true;
	}
	return false;
}

static int check_answer(struct rig_client *c, const struct ina_shm_message *m, uint32_t wanted)
{
	if (m->type == wanted)
		return 0;
	CHECK(m->type == INA_SHM_REFUSED);
	c->state = m->state;
	return m->state.result;
}

int rig_create(struct rig_client *c, const uint32_t *member, unsigned ranks,
	       uint8_t ticket[HA_INA_TICKET])
{
	struct ina_shm_message m = { .type = INA_SHM_CREATE,
				     .create = { .ranks = ranks, .name = "test" } };
	int err;

	memcpy(m.create.member, member, ranks * sizeof(*member));
	CHECK(rig_ask(c, &m));
	err = check_answer(c, &m, INA_SHM_TICKET);
	if (!err)
		memcpy(ticket, m.ticket, HA_INA_TICKET);
	return err;
}

int rig_join(struct rig_client *c, const uint8_t ticket[HA_INA_TICKET], unsigned rank,
	     uint32_t *handle)
{
	struct ina_shm_message m = { .type = INA_SHM_JOIN, .join = { .rank = rank } };
	int err;

	memcpy(m.join.ticket, ticket, HA_INA_TICKET);
	CHECK(rig_ask(c, &m));
	err = check_answer(c, &m, INA_SHM_JOINED);
	if (err)
		return err;
	CHECK(m.joined.rank == rank && m.joined.handle);
	*handle = m.joined.handle;
	return 0;
}

int rig_leave(struct rig_client *c, uint32_t handle)
{
	struct ina_shm_message m = { .type = INA_SHM_LEAVE, .leave = { .handle = handle } };

	CHECK(rig_ask(c, &m));
	return check_answer(c, &m, INA_SHM_LEFT);
}

uint64_t rig_post(struct rig_client *c, const struct rig_request *q)
{
	struct ina_shm_request r = { .sequence = ++c->sequence,
				     .offset = q->offset,
				     .bytes = q->bytes,
				     .group = q->handle,
				     .coll = q->coll,
				     .type = q->type,
				     .root = q->root };

	CHECK(!ina_shm_ring_push(&c->shm.memory.requests, &r));
	ina_shm_client_bell(&c->shm);
	return r.sequence;
}

struct ina_shm_response rig_response(struct rig_client *c)
{
	uint64_t turns = RIG_TURNS;
	struct ina_shm_response r = { 0 };
	int got;

	while (!(got = ina_shm_ring_pop(&c->shm.memory.responses, &r)) && turns--)
		rig_pause(RIG_TURN_US);
	CHECK_INT(got, 1);
	return r;
}

bool rig_await_state(struct rig_client *c)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + TIME_LIMIT_NS;
	struct ina_shm_message m;
	unsigned before = c->states;

	while (c->states == before && ha_clock_now(&ha_clock_live) < until)
		if (receive_message(c, &m, 100) < 0)
			return false;
	return c->states != before;
}

bool rig_await_end(struct rig_client *c)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + TIME_LIMIT_NS;
	struct ina_shm_message m;

	while (ha_clock_now(&ha_clock_live) < until)
		if (receive_message(c, &m, 100) < 0)
			return true;
	return false;
}
