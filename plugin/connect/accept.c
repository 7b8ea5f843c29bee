/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * accept.c - the listening end: an incoming connection, HELLO, WELCOME, READY
 *
 * Anybody can reach the port. Who does not show the nonce within HELLO_MS, or says anything else,
 * is turned away with a line (few lines when there are many); more than UNAUTHENTICATED_MAX at once
 * push the oldest out, so that silent ones cannot keep peers away. A peer that we cannot serve is
 * sent the reason (REFUSE).
 */
#include "plugin/connect/accept.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/setup.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/rail.h"
#include "plugin/device/subnet.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define HELLO_MS 10000
#define UNAUTHENTICATED_MAX 64
#define ACCEPTS_PER_ROUND 64
#define REFUSE_MS 2000 /* to get the refusal out */
#define MUTE_MS 100    /* how long listeners rest when descriptors have run out */

/* It has failed: out of its list, free. */
static void drop_pending(struct ha_pending *p)
{
	if (p->unauthenticated)
		p->listen->unauthenticated--;
	pthread_mutex_lock(&p->ctx->lock);
	LIST_REMOVE(p, entry);
	pthread_mutex_unlock(&p->ctx->lock);
	ha_pending_free(p);
}

static void count_ready(struct ha_listen *listen)
{
	atomic_fetch_add_explicit(&listen->ready, 1, memory_order_release);
}

/* ---- states ---- */

static int refuse_peer(struct ha_pending *p, int err, const char *text)
{
	struct ha_msg_refuse m = {
		.header = { HA_MSG_MAGIC, HA_WIRE_VERSION_MIN, HA_MSG_REFUSE, sizeof(m), 0 },
		.error = -err,
	};
	uint64_t end = ha_clock_now(p->ctx->clock) + REFUSE_MS * HA_NS_PER_MS;

	snprintf(m.text, sizeof(m.text), "%s", text);
	if (!p->explained)
		HA_WARN(p->bundle ? p->bundle->name : NULL, "refused %s: %s", p->who, text);
	p->explained = true;
	p->error = err;
	if (end < p->deadline)
		p->deadline = end;
	err = ha_stream_put(p->stream, &m);
	return err && err != -EAGAIN ? err : HA_PENDING_REFUSE_OUT;
}

/* The device that shares a subnet with the peer's, where that is wanted. */
static int near_peer(const struct ha_listen *l, const struct ha_msg_hello *hello)
{
	union ibv_gid peer[HA_MAX_RAILS] = { 0 };

	for (unsigned i = 0; i < hello->nrails; i++)
		if (hello->rail[i].qp.link_layer == IBV_LINK_LAYER_ETHERNET)
			memcpy(&peer[i], hello->rail[i].qp.gid, sizeof(peer[i]));
	return ha_subnet_choose(l->ctx, l->asked, peer, hello->nrails);
}

/* The one whose queue pair the handle names, or another. MPIB's peers of the same island have more
 * rails than the spare. */
static int take_bundle(struct ha_pending *p, const struct ha_msg_hello *hello)
{
	struct ha_listen *l = p->listen;
	struct ha_comm_opts opts = l->opts;
	int dev = near_peer(l, hello), err;

	if (dev != l->asked) {
		opts = (struct ha_comm_opts) { .traffic_class = l->opts.traffic_class,
					       .one_sided = l->opts.one_sided };
		err = ha_fused_resolve(l->ctx, &dev, NULL, &opts);
		return err ? err : ha_bundle_new(l->ctx, false, dev, &opts, &p->bundle);
	}
	dev = l->dev;
	if (l->ctx->mpib.on && hello->nrails > (unsigned)l->opts.nmore + 1) {
		ha_mpib_rails(&l->ctx->mpib, true, &dev, &opts);
		return ha_bundle_new(l->ctx, false, dev, &opts, &p->bundle);
	}
	p->bundle = l->spare;
	l->spare = NULL;
	return p->bundle ? 0 : ha_bundle_new(l->ctx, false, l->dev, &l->opts, &p->bundle);
}

static int step_hello_in(struct ha_pending *p)
{
	const union ha_message *m;
	int err = ha_stream_get(p->stream, &m);

	if (err == -EAGAIN && !ha_stream_received(p->stream) &&
	    ha_clock_now(p->ctx->clock) >= p->deadline && !p->why[0])
		ha_pending_why(p, 0, "it sent nothing for %d s", HELLO_MS / 1000);
	if (err == -EPIPE || err == -ECONNRESET)
		return ha_pending_why(p, err, "it disconnected before it identified itself");
	if (err)
		return err;
	if (m->header.type != HA_MSG_HELLO)
		return ha_pending_why(p, -EPROTO, "its first message is no HELLO");
	if (m->hello.nonce != p->listen->nonce)
		return ha_pending_why(p, -EPROTO,
				      "its nonce is not this listener's; a process of another job, "
				      "or of an earlier one on this port?");
	p->unauthenticated = false;
	p->listen->unauthenticated--;
	p->deadline = ha_clock_now(p->ctx->clock) +
		      (uint64_t)p->ctx->config.connect_timeout_ms * HA_NS_PER_MS;
	err = take_bundle(p, &m->hello);
	if (err) {
		p->explained = true;
		return refuse_peer(p, err, strerror(-err));
	}
	p->bundle->terms.nonce = p->listen->nonce;
	err = ha_bundle_agree(p->bundle, &m->hello, ha_pending_connected, p, p->why,
			      sizeof(p->why));
	if (err) {
		p->explained = !p->why[0];
		return refuse_peer(p, err, p->why[0] ? p->why : strerror(-err));
	}
	ha_pending_why(p, 0,
		       "they are not ready in time; can this device's address reach the peer's "
		       "(NCCL_IB_GID_INDEX, `ha topo`)?");
	return HA_PENDING_THEIRS;
}

static int step_theirs(struct ha_pending *p)
{
	struct ha_msg_hello welcome;
	int err = ha_bundle_connected(p->bundle);

	if (err == -EAGAIN)
		return err;
	p->why[0] = 0;
	if (err) {
		p->explained = true;
		return refuse_peer(p, err, strerror(-err));
	}
	ha_bundle_describe(p->bundle, HA_MSG_WELCOME, &welcome);
	err = ha_stream_put(p->stream, &welcome);
	return err && err != -EAGAIN ? err : HA_PENDING_WELCOME_OUT;
}

static int step_welcome_out(struct ha_pending *p)
{
	int err = ha_stream_flush(p->stream);

	return err ? err : HA_PENDING_READY_IN;
}

static int step_ready_in(struct ha_pending *p)
{
	const union ha_message *m;
	int err = ha_stream_get(p->stream, &m);

	if (err)
		return err;
	if (m->header.type != HA_MSG_READY || m->ready.nonce != p->listen->nonce)
		return -EPROTO;
	return HA_PENDING_UP;
}

static int step_refuse_out(struct ha_pending *p)
{
	int err = ha_stream_flush(p->stream);

	return err ? err : p->error;
}

static const struct ha_pending_side listening = {
	.state = {
		[HA_PENDING_HELLO_IN] = { step_hello_in, "waiting for HELLO" },
		[HA_PENDING_THEIRS] = { step_theirs, "connecting the queue pairs" },
		[HA_PENDING_WELCOME_OUT] = { step_welcome_out, "sending WELCOME" },
		[HA_PENDING_READY_IN] = { step_ready_in, "waiting for READY" },
		[HA_PENDING_REFUSE_OUT] = { step_refuse_out, "refusing it" },
	},
	.up = count_ready,
	.failed = drop_pending,
};

/* ---- incoming connections ---- */

/* The oldest unauthenticated peer goes: the last of the list that is still one. */
static void evict_oldest(struct ha_listen *l)
{
	struct ha_pending *p, *oldest = NULL;

	pthread_mutex_lock(&l->ctx->lock);
	LIST_FOREACH(p, &l->accepts, entry)
		if (p->unauthenticated && p->deadline)
			oldest = p;
	pthread_mutex_unlock(&l->ctx->lock);
	if (!oldest)
		return;
	/* Its next step times out, and this round takes the step. */
	ha_pending_why(oldest, 0, "it sent nothing, and %d connections like it are waiting",
		       UNAUTHENTICATED_MAX);
	oldest->deadline = 0;
	oldest->runnable = true;
}

static void take_connection(struct ha_listen *l, struct ha_oob_conn *conn)
{
	struct ha_ctx *ctx = l->ctx;
	struct ha_pending *p = ha_pending_new(ctx, &listening, HA_PENDING_HELLO_IN, HELLO_MS);

	if (!p) {
		ctx->oob.ops->close(conn);
		return;
	}
	ctx->oob.ops->peer(conn, p->who);
	if (ha_stream_new(ctx, conn, false, ha_pending_ready, p, &p->stream)) {
		ha_pending_free(p);
		return;
	}
	p->listen = l;
	p->unauthenticated = true;
	if (++l->unauthenticated > UNAUTHENTICATED_MAX)
		evict_oldest(l);
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&l->accepts, p, entry);
	pthread_mutex_unlock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->setup.driven, p, driven);
}

static struct ha_listen *first_listen(struct ha_ctx *ctx)
{
	struct ha_listen *l;

	/* New listeners come in front and none goes without ctx->drive, so the rest of the list may
	 * be walked unlocked. */
	pthread_mutex_lock(&ctx->lock);
	l = LIST_FIRST(&ctx->setup.listens);
	pthread_mutex_unlock(&ctx->lock);
	return l;
}

static void watch_all(struct ha_ctx *ctx, bool on)
{
	for (struct ha_listen *l = first_listen(ctx); l; l = LIST_NEXT(l, entry))
		(void)ha_loop_change(&ctx->loop, &l->watch, on ? EPOLLIN : 0);
}

void ha_listens_mute(struct ha_ctx *ctx)
{
	ctx->service.muted_until = ha_clock_now(ctx->clock) + MUTE_MS * HA_NS_PER_MS;
	watch_all(ctx, false);
}

uint64_t ha_listens_round(struct ha_ctx *ctx, uint64_t now)
{
	if (ctx->service.muted_until && now >= ctx->service.muted_until) {
		ctx->service.muted_until = 0;
		watch_all(ctx, true);
	}
	return ctx->service.muted_until ? ctx->service.muted_until : UINT64_MAX;
}

static void listen_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_listen *l = (struct ha_listen *)watch;
	struct ha_ctx *ctx = l->ctx;
	struct ha_oob_conn *conn;
	int err = 0;

	for (int i = 0; i < ACCEPTS_PER_ROUND && !err; i++) {
		err = ctx->oob.ops->accept(l->oob, &conn);
		if (!err)
			take_connection(l, conn);
	}
	if (err && err != -EAGAIN) {
		HA_WARN(NULL,
			"cannot accept a connection: %s; the next try is in a moment (ulimit -n?)",
			strerror(-err));
		ha_listens_mute(ctx);
	}
	(void)events;
}

/* The rails that it keeps for the first connection are of a device that has failed. */
static bool is_lost(const struct ha_bundle *b)
{
	for (unsigned i = 0; b && i < b->nrails; i++)
		if (ha_opening_lost(b->rail[i].opening))
			return true;
	return false;
}

void ha_listens_leave(struct ha_ctx *ctx)
{
	for (struct ha_listen *l = first_listen(ctx); l; l = LIST_NEXT(l, entry)) {
		if (!is_lost(l->spare))
			continue;
		ha_bundle_free(l->spare);
		l->spare = NULL;
	}
}

void ha_listens_poll(struct ha_ctx *ctx)
{
	for (struct ha_listen *l = first_listen(ctx); l; l = LIST_NEXT(l, entry))
		listen_ready(&l->watch, 0);
}

/* ---- what NCCL calls ---- */

/* A rail on another RoCE device than the first one's. */
static const struct ha_rail *second_device(const struct ha_bundle *b)
{
	for (unsigned i = 1; i < b->nrails; i++)
		if (b->rail[i].dev != b->rail[0].dev && b->rail[i].dev->topo->is_ethernet)
			return &b->rail[i];
	return NULL;
}

static void fill_handle(const struct ha_listen *l, const struct ha_wire_addr *addr, void *handle)
{
	struct ha_wire_handle h = {
		.magic = HA_WIRE_MAGIC,
		.flags = l->spare->terms.offers,
		.version = HA_WIRE_VERSION,
		.version_min = HA_WIRE_VERSION_MIN,
		.nonce = l->nonce,
		.oob = *addr,
	};
	const struct ha_rail *second;

	ha_rail_describe(&l->spare->rail[0], &h.qp);
	second = second_device(l->spare);
	if (second)
		memcpy(h.second_gid, &second->setup.self.gid, sizeof(h.second_gid));
	memset(handle, 0, HA_HANDLE_MAX);
	memcpy(handle, &h, sizeof(h));
}

static void link_listen(struct ha_listen *l)
{
	struct ha_ctx *ctx = l->ctx;

	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->setup.listens, l, entry);
	pthread_mutex_unlock(&ctx->lock);
}

/* The listener's address goes into *addr, and the loop watches it. */
static int open_oob(struct ha_listen *l, struct ha_wire_addr *addr)
{
	struct ha_ctx *ctx = l->ctx;
	const char *name = ha_device_name(&ctx->devices[l->dev]);
	int err = ctx->oob.ops->listen(ctx->oob.net, &l->oob, addr);

	if (err) {
		HA_WARN(name,
			"cannot listen for the peer over %s: %s; NCCL_SOCKET_IFNAME chooses the "
			"interface",
			ctx->oob.ops->name, strerror(-err));
		return err;
	}
	l->watch.ready = listen_ready;
	l->watch.fd = ctx->oob.ops->fd(l->oob);
	err = ha_loop_add(&ctx->loop, &l->watch, EPOLLIN);
	if (err) {
		HA_WARN(name, "cannot watch a listener: %s", strerror(-err));
		ctx->oob.ops->close(l->oob);
	}
	return err;
}

int ha_listen(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts, void *handle,
	      struct ha_listen **out)
{
	struct ha_comm_opts all = opts ? *opts : (struct ha_comm_opts) { .traffic_class = -1 };
	struct ha_wire_addr addr;
	struct ha_listen *l;
	int asked, err;

	*out = NULL;
	asked = dev;
	err = ha_fused_resolve(ctx, &dev, NULL, &all);
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->ctx = ctx;
	l->asked = asked;
	l->dev = dev;
	l->opts = all;
	l->nonce = ha_random_u64();
	err = ha_bundle_new(ctx, false, dev, &l->opts, &l->spare);
	if (err)
		goto free_listen;
	err = open_oob(l, &addr);
	if (err)
		goto free_bundle;
	fill_handle(l, &addr, handle);
	link_listen(l);
	*out = l;
	return 0;

free_bundle:
	ha_bundle_free(l->spare);
free_listen:
	free(l);
	return err;
}

int ha_accept(struct ha_listen *listen, struct ha_recv **out)
{
	struct ha_ctx *ctx = listen->ctx;
	struct ha_pending *p;

	*out = NULL;
	ctx->progress(ctx);
	/* Acquire: pairs with count_ready; one of the list is in its final state then. */
	if (!atomic_load_explicit(&listen->ready, memory_order_acquire))
		return 0;
	atomic_fetch_sub_explicit(&listen->ready, 1, memory_order_relaxed);
	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(p, &listen->accepts, entry)
		if (atomic_load_explicit(&p->state, memory_order_acquire) == HA_PENDING_UP)
			break;
	if (p)
		LIST_REMOVE(p, entry);
	pthread_mutex_unlock(&ctx->lock);
	if (!p)
		return 0;
	*out = (struct ha_recv *)p->bundle;
	p->bundle = NULL;
	ha_pending_free(p);
	return 0;
}

/* Ends every connection in the making here; those that were handed out live on. */
int ha_close_listen(struct ha_listen *l)
{
	struct ha_ctx *ctx = l->ctx;
	struct ha_pending *all, *next;

	pthread_mutex_lock(&ctx->drive);
	ha_loop_remove(&ctx->loop, &l->watch);
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(l, entry);
	all = LIST_FIRST(&l->accepts);
	LIST_INIT(&l->accepts);
	pthread_mutex_unlock(&ctx->lock);
	for (struct ha_pending *p = all; p; p = LIST_NEXT(p, entry)) {
		ha_pending_forget(p);
		/* An established one nobody asked for: its bundle is already in ctx->bundles. */
		if (atomic_load_explicit(&p->state, memory_order_relaxed) == HA_PENDING_UP)
			ha_bundle_retire(p->bundle);
		ha_stream_close(p->stream);
		p->stream = NULL;
	}
	pthread_mutex_unlock(&ctx->drive);
	/* Nobody else knows them now. */
	for (struct ha_pending *p = all; p; p = next) {
		next = LIST_NEXT(p, entry);
		ha_pending_free(p);
	}
	ctx->oob.ops->close(l->oob);
	if (l->spare)
		ha_bundle_free(l->spare);
	free(l);
	return 0;
}
