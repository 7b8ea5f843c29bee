/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - from handles to lanes, and the first decision
 *
 * Each rank dials its sending lanes and accepts its receiving ones; the first message on each says
 * which it is. Handles say which hosts have a backend, so all ranks know without a message whether
 * a switch is possible at all; whether there is one is agreed on (join.c). All ranks therefore
 * succeed together or fail together: with NCCL, a rank alone that fails would leave the others
 * waiting in their first operation.
 */
#include "plugin/collnet/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO_ROOM 256

struct ha_collnet_listen {
	struct ha_collnet_params params;
	int dev;
	struct ha_listen *listen;
	struct ha_ina *ina; /* the communicator's, once there is one */
	int *give_up;       /* and so is this */
	struct ha_collnet_handle mine;
};

/* An accepted connection that has not said yet which lane it is. */
struct incoming {
	struct ha_recv *comm;
	struct ha_mr *mr;
	struct ha_request *req;
	uint8_t *memory;
};

struct ha_collnet_connecting {
	struct ha_collnet_listen *listen;
	uint64_t deadline;
	/* the core knows a connection in the making by its handle's place */
	uint8_t handle[HA_COLLNET_LANES][HA_HANDLE_MAX];
	bool dialled[HA_COLLNET_LANES], greeted[HA_COLLNET_LANES];
	struct incoming incoming[HA_COLLNET_LANES];
	bool named;
};

static bool lane_used(const struct ha_collnet *c, unsigned lane)
{
	return c->ranks > 1 && (lane < c->rounds || lane == HA_COLLNET_DATA);
}

static unsigned lane_to(const struct ha_collnet *c, unsigned lane)
{
	return ((unsigned)c->rank + (lane == HA_COLLNET_DATA ? 1 : 1u << lane)) %
	       (unsigned)c->ranks;
}

static size_t lane_slot(unsigned lane)
{
	return lane == HA_COLLNET_DATA ? sizeof(struct ha_collnet_msg) + HA_COLLNET_PIECE + 24
				       : HA_COLLNET_CONTROL_SLOT;
}

/* ---- listening ---- */

int ha_collnet_listen(const struct ha_collnet_params *params, int dev, void *handle,
		      struct ha_collnet_listen **out)
{
	const struct ha_ina_ops *ops = params->ina;
	struct ha_collnet_listen *l = calloc(1, sizeof(*l));
	struct ha_ina_options options = { .backend = params->backend };
	char why[256] = "";
	int err;

	*out = NULL;
	if (!l || !(l->give_up = calloc(1, sizeof(*l->give_up)))) {
		free(l);
		return -ENOMEM;
	}
	options.give_up = l->give_up;
	l->params = *params;
	if (!l->params.clock)
		l->params.clock = &ha_clock_live;
	l->dev = dev;
	memset(handle, 0, HA_HANDLE_MAX);
	err = ha_listen(params->core, dev, &params->opts, handle, &l->listen);
	if (err) {
		free(l->give_up);
		free(l);
		return err;
	}
	l->mine = (struct ha_collnet_handle) { .magic = HA_COLLNET_MAGIC,
					       .version = HA_COLLNET_VERSION,
					       .nonce = ha_random_u64() };
	if (ops->open(&l->ina, &options, why, sizeof(why)))
		HA_INFO(NULL, "collnet: %s", why);
	else
		l->mine.address = ops->address(l->ina);
	memcpy((uint8_t *)handle + HA_COLLNET_HANDLE_AT, &l->mine, sizeof(l->mine));
	*out = l;
	return 0;
}

void ha_collnet_close_listen(struct ha_collnet_listen *l)
{
	if (!l)
		return;
	if (l->listen)
		ha_close_listen(l->listen);
	if (l->ina)
		l->params.ina->close(l->ina);
	free(l->give_up);
	free(l);
}

/* ---- dialling ---- */

static int connect_lane(struct ha_collnet *c, unsigned lane)
{
	struct ha_collnet_connecting *k = c->connecting;
	struct ha_send *send = NULL;
	struct ha_collnet_msg *m;
	int err = ha_connect(c->params.core, c->dev, &c->params.opts, k->handle[lane], &send);

	if (err || !send)
		return err;
	err = ha_lane_out_open(&c->out[lane], send, lane_slot(lane));
	if (err)
		return err;
	k->dialled[lane] = true;
	m = ha_lane_next(&c->out[lane], HA_COLLNET_HELLO, c->team.nonce);
	m->from = (uint32_t)c->rank;
	m->a = lane;
	m->b = HA_COLLNET_VERSION;
	ha_lane_send(&c->out[lane], 0);
	return 0;
}

/* ---- accepting ---- */

static void incoming_close(struct incoming *n)
{
	if (n->mr)
		ha_dereg_mr((struct ha_bundle *)n->comm, n->mr);
	if (n->comm)
		ha_close_recv(n->comm);
	free(n->memory);
	*n = (struct incoming) { 0 };
}

static int incoming_open(struct incoming *n, struct ha_recv *comm)
{
	int err;

	n->comm = comm;
	n->memory = aligned_alloc(HELLO_ROOM, HELLO_ROOM);
	if (!n->memory)
		return -ENOMEM;
	err = ha_reg_mr((struct ha_bundle *)comm, n->memory, HELLO_ROOM, HA_MEM_HOST, 0, -1, 0,
			&n->mr);
	return err;
}

/* -EAGAIN: it has said nothing yet. */
static int incoming_greeting(struct incoming *n)
{
	size_t room = HELLO_ROOM;
	void *data = n->memory;
	int err, done = 0, bytes = 0, tag = 0;

	if (!n->req) {
		err = ha_irecv(n->comm, 1, &data, &room, &tag, &n->mr, false, &n->req);
		if (err || !n->req)
			return err ? err : -EAGAIN;
	}
	err = ha_test(n->req, &done, &bytes);
	if (err || !done)
		return err ? err : -EAGAIN;
	return bytes == sizeof(struct ha_collnet_msg) ? 0 : -EPROTO;
}

static int take_greeting(struct ha_collnet *c, struct incoming *n)
{
	const struct ha_collnet_msg *m = (const struct ha_collnet_msg *)n->memory;
	unsigned lane = (unsigned)m->a, ranks = (unsigned)c->ranks;
	struct ha_recv *comm = n->comm;

	if (m->magic != HA_COLLNET_MAGIC || m->type != HA_COLLNET_HELLO ||
	    m->b != HA_COLLNET_VERSION || m->id != c->team.nonce || m->a >= HA_COLLNET_LANES ||
	    !lane_used(c, lane) || c->connecting->greeted[lane] || m->from >= ranks ||
	    (m->from + (lane == HA_COLLNET_DATA ? 1 : 1u << lane)) % ranks != (unsigned)c->rank)
		return -EPROTO;
	ha_dereg_mr((struct ha_bundle *)comm, n->mr);
	free(n->memory);
	*n = (struct incoming) { 0 };
	c->connecting->greeted[lane] = true;
	return ha_lane_in_open(&c->in[lane], comm, lane_slot(lane));
}

static int accept_lanes(struct ha_collnet *c)
{
	struct ha_collnet_connecting *k = c->connecting;
	struct ha_recv *comm = NULL;
	int err;

	for (unsigned i = 0; i < HA_COLLNET_LANES; i++) {
		struct incoming *n = &k->incoming[i];

		if (!n->comm) {
			err = ha_accept(k->listen->listen, &comm);
			if (err)
				return err;
			if (!comm)
				continue;
			err = incoming_open(n, comm);
			if (err)
				return err;
		}
		err = incoming_greeting(n);
		if (!err)
			err = take_greeting(c, n);
		if (err && err != -EAGAIN)
			return err;
	}
	return 0;
}

/* 0: all lanes are there. */
static int connect_lanes(struct ha_collnet *c)
{
	struct ha_collnet_connecting *k = c->connecting;
	bool all = true;
	int err = 0;

	for (unsigned i = 0; i < HA_COLLNET_LANES && !err; i++) {
		if (!lane_used(c, i))
			continue;
		if (!k->dialled[i])
			err = connect_lane(c, i);
		else
			ha_lane_out_step(&c->out[i]);
		all &= k->dialled[i] && k->greeted[i];
	}
	if (!err)
		err = accept_lanes(c);
	if (!err && !all)
		err = -EAGAIN;
	return err;
}

/* ---- the communicator ---- */

static int take_handles(struct ha_collnet *c, void *const *handles,
			const struct ha_collnet_listen *l)
{
	struct ha_collnet_handle h;

	c->team.backends = c->ranks > 1;
	for (int r = 0; r < c->ranks; r++) {
		if (!handles[r])
			return -EINVAL;
		memcpy(&h, (const uint8_t *)handles[r] + HA_COLLNET_HANDLE_AT, sizeof(h));
		if (h.magic != HA_COLLNET_MAGIC || h.version != HA_COLLNET_VERSION) {
			HA_WARN(NULL,
				"collnet: rank %d's handle is not ours: all ranks must load the "
				"same hawser",
				r);
			return -EPROTO;
		}
		if (r == c->rank && h.nonce != l->mine.nonce)
			return -EINVAL;
		if (!r)
			c->team.nonce = h.nonce;
		c->team.address[r] = h.address;
		c->team.backends &= h.address != 0;
	}
	for (unsigned i = 0; i < HA_COLLNET_LANES; i++)
		if (lane_used(c, i)) /* only the core's part of it */
			memcpy(c->connecting->handle[i], handles[lane_to(c, i)],
			       HA_COLLNET_HANDLE_AT);
	return 0;
}

static struct ha_collnet *collnet_new(struct ha_collnet_listen *l, int nranks, int rank)
{
	struct ha_collnet *c = calloc(1, sizeof(*c));
	struct ha_collnet_connecting *connecting = calloc(1, sizeof(*connecting));

	if (!c || !connecting) {
		free(c);
		free(connecting);
		return NULL;
	}
	c->params = l->params;
	c->dev = l->dev;
	c->ranks = nranks;
	c->rank = rank;
	while (1 << c->rounds < nranks)
		c->rounds++;
	c->oldest = 1;
	c->own.next = 1;
	c->group.from = UINT64_MAX;
	c->join.post_limit = UINT64_MAX;
	c->connecting = connecting;
	connecting->listen = l;
	connecting->deadline = ha_collnet_now(c) + c->params.timeout_ns;
	return c;
}

int ha_collnet_connect(struct ha_collnet_listen *l, void *const *handles, int nranks, int rank,
		       struct ha_collnet **out)
{
	struct ha_collnet *c;
	int err;

	*out = NULL;
	/* a listener is for one communicator */
	if (!l || !l->give_up || !handles || nranks < 1 || rank < 0 || rank >= nranks)
		return -EINVAL;
	if (nranks > HA_COLLNET_RANKS) {
		HA_INFO(NULL, "collnet: a switch adds for %d ranks at most, these are %d",
			HA_COLLNET_RANKS, nranks);
		return -ERANGE;
	}
	c = collnet_new(l, nranks, rank);
	if (!c)
		return -ENOMEM;
	err = take_handles(c, handles, l);
	if (err) {
		free(c->connecting);
		free(c);
		return err;
	}
	snprintf(c->name, sizeof(c->name), "collnet %08x.%d", (unsigned)c->team.nonce, rank);
	c->library.context = l->ina;
	c->library.give_up = l->give_up;
	l->ina = NULL;
	l->give_up = NULL;
	*out = c;
	return 0;
}

static bool is_flushed(const struct ha_collnet *c)
{
	for (unsigned i = 0; i < HA_COLLNET_LANES; i++)
		if (c->out[i].posted != c->out[i].head)
			return false;
	return true;
}

void ha_collnet_connecting_free(struct ha_collnet *c)
{
	struct ha_collnet_connecting *k = c->connecting;

	if (!k)
		return;
	for (unsigned i = 0; i < HA_COLLNET_LANES; i++) {
		/* the core looks for it by the handle's place, which goes */
		if (lane_used(c, i) && !k->dialled[i])
			ha_connect_abandon(c->params.core, k->handle[i]);
		incoming_close(&k->incoming[i]);
	}
	free(k);
	c->connecting = NULL;
}

static int finish_connecting(struct ha_collnet *c, int err)
{
	ha_collnet_connecting_free(c);
	c->connected = true;
	if (!err && c->mode == HA_COLLNET_RAILS && !c->team.backends)
		HA_INFO(c->name,
			"not every host has a backend: sums of %d ranks go over the rails "
			"(HA_NCCL_COLLNET=1)",
			c->ranks);
	return err;
}

/* With lanes: is there a switch? All ranks end here alike. */
static int decide_mode(struct ha_collnet *c)
{
	int err = ha_collnet_step(c);
	bool tried = c->join.attempt && c->join.state == HA_COLLNET_WAITING;

	if (err)
		return err;
	if (!is_flushed(c))
		return -EAGAIN;
	if (c->ranks == 1 || c->mode == HA_COLLNET_SWITCH)
		return finish_connecting(c, 0);
	if (c->team.backends && !tried)
		return -EAGAIN;
	return finish_connecting(c, c->params.always ? 0 : -ENOTCONN);
}

int ha_collnet_connect_step(struct ha_collnet *c)
{
	struct ha_collnet_connecting *k = c->connecting;
	int err;

	if (!k && c->error)
		return c->error;
	if (!k)
		return c->connected ? 0 : -EINVAL;
	if (k->named) {
		err = decide_mode(c); /* at its end k is no more */
	} else {
		err = connect_lanes(c);
		k->named = !err;
		err = err ? err : -EAGAIN;
	}
	if (err == -EAGAIN && ha_collnet_now(c) >= k->deadline) {
		HA_WARN(c->name,
			"not all of the %d ranks came within %.1f s (HA_NCCL_CONNECT_TIMEOUT_MS)",
			c->ranks, (double)c->params.timeout_ns / 1e9);
		err = -ETIMEDOUT;
	}
	return err;
}
