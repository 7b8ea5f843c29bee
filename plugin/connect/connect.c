/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - the connecting end: dial, HELLO, WELCOME, READY
 *
 * Our queue pair exists before we dial, so that HELLO can name it. The listener's is ready to
 * receive and to send when WELCOME comes; ours follows, and READY says so. The queue pair in the
 * handle belongs to the first connector only; what counts is WELCOME's.
 *
 * READY is sent by the call of ha_connect that returns the connection, and by nothing else. Where
 * several GPUs of a host share connections (PXN), NCCL connects to several listeners of a peer at
 * once, takes the first connection that it gets, and never asks for the others again; the peer
 * takes what its first ha_accept returns. The two must be the same.
 */
#include "base/clock.h"
#include "base/log.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/pending.h"
#include "plugin/connect/setup.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/subnet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A peer that is not up yet refuses, or its host is not reachable yet: dial again, after 20 ms,
 * then twice that, and so on. */
#define REDIAL_MIN_MS 20
#define REDIAL_MAX_MS 1000
/* A refusal comes from a living host on which nobody listens (any more); a backlog that overflows
 * is the only other reason, and passes. Everything else may last as long as
 * HA_NCCL_CONNECT_TIMEOUT_MS. */
#define REFUSED_MS 3000

static bool is_worth_reconnecting(int err)
{
	return err == -ECONNREFUSED || err == -ETIMEDOUT || err == -EHOSTUNREACH ||
	       err == -ENETUNREACH || err == -ECONNRESET || err == -EADDRNOTAVAIL;
}

static int schedule_reconnect(struct ha_pending *p, int err)
{
	uint64_t pause = (uint64_t)REDIAL_MIN_MS << (p->dials < 8 ? p->dials : 8);

	uint64_t now = ha_clock_now(p->ctx->clock);

	if (!is_worth_reconnecting(err))
		return err;
	if (err != -ECONNREFUSED)
		p->refused_since = 0;
	else if (!p->refused_since)
		p->refused_since = now;
	if (pause > REDIAL_MAX_MS)
		pause = REDIAL_MAX_MS;
	p->dials++;
	p->dial_error = err;
	ha_pending_why(p, err,
		       "%s, %u times; is that process alive, and its port not firewalled "
		       "(NCCL_SOCKET_IFNAME)?",
		       strerror(-err), p->dials);
	p->dial_at = now + pause * HA_NS_PER_MS;
	ha_stream_close(p->stream);
	p->stream = NULL;
	if (p->refused_since && now - p->refused_since >= REFUSED_MS * HA_NS_PER_MS)
		return err;
	return HA_PENDING_DIAL;
}

static int step_start(struct ha_pending *p)
{
	int err;

	p->opts.ordered = !(p->handle.flags & HA_FLAG_UNORDERED);
	err = ha_bundle_new(p->ctx, true, p->dev, &p->opts, &p->bundle);
	if (err) {
		p->explained = true;
		return err;
	}
	p->bundle->terms.nonce = p->handle.nonce;
	p->bundle->balance.advised.across =
		p->ctx->mpib.on && ha_mpib_across(p->ctx, &p->handle.oob);
	snprintf(p->bundle->name, sizeof(p->bundle->name), "%s -> %s",
		 ha_device_name(p->bundle->rail[0].dev), p->who);
	return HA_PENDING_DIAL;
}

static int step_connect_oob(struct ha_pending *p)
{
	struct ha_ctx *ctx = p->ctx;
	struct ha_oob_conn *conn;
	int err;

	if (ha_clock_now(ctx->clock) < p->dial_at)
		return -EAGAIN;
	err = ctx->oob.ops->connect(ctx->oob.net, &p->handle.oob, &conn);
	if (!err)
		err = ha_stream_new(ctx, conn, true, ha_pending_ready, p, &p->stream);
	return err ? schedule_reconnect(p, err) : HA_PENDING_DIALLING;
}

static int step_dialling(struct ha_pending *p)
{
	struct ha_msg_hello hello;
	int err = ha_stream_connected(p->stream);

	if (err == -EAGAIN)
		return err;
	if (err)
		return schedule_reconnect(p, err);
	p->dial_error = 0;
	p->why[0] = 0;
	ha_bundle_describe(p->bundle, HA_MSG_HELLO, &hello);
	err = ha_stream_put(p->stream, &hello);
	return err && err != -EAGAIN ? err : HA_PENDING_HELLO_OUT;
}

static int step_hello_out(struct ha_pending *p)
{
	int err = ha_stream_flush(p->stream);

	return err ? err : HA_PENDING_WELCOME_IN;
}

static int take_welcome(struct ha_pending *p, const struct ha_msg_hello *welcome)
{
	int err;

	if (welcome->nonce != p->handle.nonce)
		return ha_pending_why(p, -EPROTO,
				      "its WELCOME is for another connection (nonce); does another "
				      "job use that port?");
	err = ha_bundle_agree(p->bundle, welcome, ha_pending_connected, p, p->why, sizeof(p->why));
	if (err) {
		p->explained = !p->why[0];
		return err;
	}
	ha_pending_why(p, 0,
		       "they are not ready in time; can this device's address reach the peer's "
		       "(NCCL_IB_GID_INDEX, `ha topo`)?");
	return HA_PENDING_OURS;
}

static int step_ours(struct ha_pending *p)
{
	int err = ha_bundle_connected(p->bundle);

	p->explained = err && err != -EAGAIN;
	if (err)
		return err;
	p->why[0] = 0;
	return HA_PENDING_OFFERED;
}

/* What nobody takes ends with the listener, or at the time limit: no fault, unless ha_connect asks
 * for it afterwards. */
static int step_offered(struct ha_pending *p)
{
	struct ha_msg_ready ready = {
		.header = { HA_MSG_MAGIC, HA_WIRE_VERSION_MIN, HA_MSG_READY, sizeof(ready), 0 },
		.nonce = p->handle.nonce,
	};
	const union ha_message *m;
	int err;

	if (!p->taken) {
		err = ha_stream_get(p->stream, &m);
		return err ? err : -EPROTO;
	}
	err = ha_stream_put(p->stream, &ready);
	return err && err != -EAGAIN ? err : HA_PENDING_READY_OUT;
}

static int step_welcome_in(struct ha_pending *p)
{
	const union ha_message *m;
	int err = ha_stream_get(p->stream, &m);

	if (err)
		return err;
	switch (m->header.type) {
	case HA_MSG_WELCOME:
		return take_welcome(p, &m->hello);
	case HA_MSG_REFUSE:
		return ha_pending_why(p, -EPROTO, "the peer refused: %s", m->refuse.text);
	default:
		return -EPROTO;
	}
}

static int step_ready_out(struct ha_pending *p)
{
	int err = ha_stream_flush(p->stream);

	return err ? err : HA_PENDING_UP;
}

static const struct ha_pending_side connecting = {
	.state = {
		[HA_PENDING_START] = { step_start, "making the queue pairs" },
		[HA_PENDING_DIAL] = { step_connect_oob, "reaching its out-of-band port" },
		[HA_PENDING_DIALLING] = { step_dialling, "reaching its out-of-band port" },
		[HA_PENDING_HELLO_OUT] = { step_hello_out, "sending HELLO" },
		[HA_PENDING_WELCOME_IN] = { step_welcome_in, "waiting for WELCOME" },
		[HA_PENDING_OURS] = { step_ours, "connecting the queue pairs" },
		[HA_PENDING_OFFERED] = { step_offered, "waiting for NCCL to take it" },
		[HA_PENDING_READY_OUT] = { step_ready_out, "sending READY" },
	},
};

/* ---- what NCCL calls ---- */

static struct ha_pending *find_pending(struct ha_ctx *ctx, const void *key, uint64_t nonce)
{
	struct ha_pending *p;

	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(p, &ctx->setup.connects, entry)
		if (p->key == key && p->handle.nonce == nonce)
			break;
	pthread_mutex_unlock(&ctx->lock);
	return p;
}

static void name_listener(const struct ha_wire_addr *a, char *name, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->ip, ip, sizeof(ip));
	snprintf(name, size, a->family == 4 ? "%s:%u" : "[%s]:%u", ip, a->port);
}

/* Where the listener's NICs lie; the device that NCCL names may not reach them. */
static int near_listener(struct ha_ctx *ctx, int dev, const struct ha_wire_handle *h)
{
	union ibv_gid peer[2] = { 0 };

	if (h->qp.link_layer != IBV_LINK_LAYER_ETHERNET)
		return dev;
	memcpy(&peer[0], h->qp.gid, sizeof(peer[0]));
	memcpy(&peer[1], h->second_gid, sizeof(peer[1]));
	return ha_subnet_choose(ctx, dev, peer, 2);
}

static int begin_connect(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts,
			 const void *handle)
{
	struct ha_comm_opts all = opts ? *opts : (struct ha_comm_opts) { .traffic_class = -1 };
	struct ha_wire_handle h;
	const char *why;
	struct ha_pending *p;
	int err = ha_wire_check_handle(handle, &why);

	if (err) {
		HA_WARN(NULL, "cannot connect with this handle: %s", why);
		return err;
	}
	memcpy(&h, handle, sizeof(h));
	dev = near_listener(ctx, dev, &h);
	err = ha_fused_resolve(ctx, &dev, &h.oob, &all);
	if (err)
		return err;
	p = ha_pending_new(ctx, &connecting, HA_PENDING_START,
			   (uint64_t)ctx->config.connect_timeout_ms);
	if (!p)
		return -ENOMEM;
	p->handle = h;
	p->key = handle;
	p->dev = dev;
	p->opts = all;
	name_listener(&p->handle.oob, p->who, sizeof(p->who));
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->setup.connects, p, entry);
	LIST_INSERT_HEAD(&ctx->setup.incoming, p, driven);
	pthread_mutex_unlock(&ctx->lock);
	ha_loop_wake(&ctx->loop);
	return 0;
}

void ha_connect_abandon(struct ha_ctx *ctx, const void *handle)
{
	struct ha_wire_handle h;
	struct ha_pending *p;

	memcpy(&h, handle, sizeof(h));
	pthread_mutex_lock(&ctx->drive);
	p = find_pending(ctx, handle, h.nonce);
	if (p) {
		pthread_mutex_lock(&ctx->lock);
		LIST_REMOVE(p, entry);
		ha_pending_forget(p);
		pthread_mutex_unlock(&ctx->lock);
		if (atomic_load_explicit(&p->state, memory_order_relaxed) == HA_PENDING_UP)
			ha_bundle_retire(p->bundle);
		ha_stream_close(p->stream);
		p->stream = NULL;
	}
	pthread_mutex_unlock(&ctx->drive);
	if (p)
		ha_pending_free(p);
}

/* An offered connection is taken. Acquire: pairs with the driver's release; once the state is
 * final, the bundle and everything in it are ours. */
static int take_offered(struct ha_pending *p)
{
	int state = atomic_load_explicit(&p->state, memory_order_acquire);

	if (state != HA_PENDING_OFFERED)
		return state;
	pthread_mutex_lock(&p->ctx->drive);
	state = atomic_load_explicit(&p->state, memory_order_relaxed);
	if (state == HA_PENDING_OFFERED) {
		p->taken = true;
		ha_pending_push(p);
	}
	pthread_mutex_unlock(&p->ctx->drive);
	/* The round that the new bundle waits for. */
	ha_loop_wake(&p->ctx->loop);
	p->ctx->progress(p->ctx);
	return atomic_load_explicit(&p->state, memory_order_acquire);
}

int ha_connect(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts, const void *handle,
	       struct ha_send **out)
{
	struct ha_wire_handle h;
	struct ha_pending *p;
	int state, err;

	*out = NULL;
	memcpy(&h, handle, sizeof(h));
	p = find_pending(ctx, handle, h.nonce);
	if (!p)
		return begin_connect(ctx, dev, opts, handle);
	ctx->progress(ctx);
	state = take_offered(p);
	if (state < HA_PENDING_UP)
		return 0;
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(p, entry);
	pthread_mutex_unlock(&ctx->lock);
	err = p->error;
	if (err && p->untaken)
		HA_WARN(NULL, "connecting to %s failed while NCCL did not ask for it: %s", p->who,
			strerror(-err));
	*out = (struct ha_send *)p->bundle;
	p->bundle = NULL;
	ha_pending_free(p);
	return err;
}
