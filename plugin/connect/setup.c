/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/setup.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/balance/policy.h"
#include "plugin/channel/inbox.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/rooms.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/rail.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/protection.h"
#include "plugin/report/journal.h"
#include "plugin/transfer/one_sided.h"
#include "rdma/topo/device.h"
#include "rdma/topo/gid.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static_assert(offsetof(struct ha_send, b) == 0 && offsetof(struct ha_recv, b) == 0,
	      "a bundle is where its owner is");

static void touch_pages(volatile char *at, size_t size)
{
	for (size_t i = 0; i < size; i += 4096)
		at[i] = 0;
}

static size_t ring_size(const struct ha_bundle *b)
{
	if (!b->is_send)
		return HA_RECV_RING_SIZE;
	return b->ctx->config.copy_max ? HA_SEND_RING_SIZE : HA_SEND_COPIES;
}

static int ring_new(struct ha_bundle *b)
{
	b->ring_size = ring_size(b);
	/* Pages of its own, so that a fork that loses registered pages takes nothing else with
	 * them. */
	b->ring = mmap(NULL, b->ring_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (b->ring != MAP_FAILED) {
		/* What every connection uses is there before the first message; the rest takes no
		 * memory until it is used. */
		touch_pages(b->ring, b->is_send ? HA_SEND_COPIES : HA_RECV_INLINE_SIZE);
		return 0;
	}
	b->ring = NULL;
	HA_WARN(b->name, "no memory for the rings (%zu bytes)", b->ring_size);
	return -ENOMEM;
}

static bool devices_exist(const struct ha_ctx *ctx, const struct ha_comm_opts *opts)
{
	for (int i = 0; i < opts->nmore && i < HA_MAX_RAILS - 1; i++)
		if (opts->more[i] < 0 || opts->more[i] >= ctx->ndevices)
			return false;
	return opts->nmore >= 0 && opts->nmore < HA_MAX_RAILS;
}

/* Every port can: a spare may be on any of them, also on one that was down at first. */
static bool may_be_unordered(const struct ha_ctx *ctx, const struct ha_comm_opts *opts)
{
	if (!ctx->config.ib_ooo_rq || opts->ordered || atomic_load(&ctx->ordered))
		return false;
	for (int i = 0; i < ctx->nports; i++)
		if (!ctx->devices[i].topo->unordered)
			return false;
	return true;
}

static int open_each(struct ha_bundle *b, int dev, const struct ha_comm_opts *opts)
{
	int err = 0;

	for (int i = 0; i <= opts->nmore && !err; i++) {
		b->rail[i].index = (uint8_t)i;
		err = ha_rail_open(b, &b->rail[i], &b->ctx->devices[i ? opts->more[i - 1] : dev]);
		if (!err)
			b->nrails = (uint8_t)(i + 1);
	}
	return err;
}

/* What a rail that could not be opened has made goes too. */
static void close_each(struct ha_bundle *b)
{
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		ha_rail_close(b, &b->rail[i]);
	b->nrails = 0;
}

static int rails_open(struct ha_bundle *b, int dev, const struct ha_comm_opts *opts)
{
	int err;

	if (!devices_exist(b->ctx, opts)) {
		HA_WARN(b->name,
			"a connection of %d rails was asked for, on devices of which there are %d",
			opts->nmore + 1, b->ctx->ndevices);
		return -EINVAL;
	}
	b->terms.unordered = may_be_unordered(b->ctx, opts);
	err = open_each(b, dev, opts);
	if (!err || !b->terms.unordered)
		return err;
	/* The driver says that it can, and nobody has tried yet with a shared receive queue. */
	close_each(b);
	b->terms.unordered = false;
	err = open_each(b, dev, opts);
	if (!err && !atomic_exchange(&b->ctx->ordered, true))
		HA_WARN(b->name,
			"NCCL_IB_OOO_RQ=1: queue pairs whose messages may arrive in any order "
			"cannot be made here; from now on they arrive in order");
	return err;
}

static uint32_t what_it_offers(const struct ha_bundle *b)
{
	const struct ha_config *config = &b->ctx->config;
	uint32_t offers = config->ack == HA_ACK_MEMORY ? HA_FLAG_ACK_MEMORY : 0;

	if (b->terms.unordered)
		offers |= HA_FLAG_UNORDERED;
	if (!config->enable_backup)
		return offers;
	if (b->nrails < HA_MAX_RAILS && ha_policy_one_device(b, (1u << b->nrails) - 1) &&
	    b->rail[0].dev->ports > 1)
		offers |= HA_FLAG_DUAL_PATH;
	return offers | HA_FLAG_FAILOVER | HA_FLAG_BATCHES | HA_FLAG_MOVES | HA_FLAG_PAIRS |
	       HA_FLAG_SIGNS | HA_FLAG_SWITCHES;
}

/* A software NIC stands still, or needs a thread to be woken, while nobody polls it. */
static bool polls_always(const struct ha_bundle *b)
{
	int wanted = b->ctx->config.poll_always;

	return wanted < 0 ? b->rail[0].dev->topo->place.is_soft : wanted;
}

int ha_bundle_new(struct ha_ctx *ctx, bool is_send, int dev, const struct ha_comm_opts *opts,
		  struct ha_bundle **bundle)
{
	struct ha_bundle *b = ha_rooms_new(is_send);
	int err;

	*bundle = NULL;
	if (!b)
		return -ENOMEM;
	b->ctx = ctx;
	b->is_send = is_send;
	b->own_barrier = ctx->own_barrier;
	b->poll.idle_limit = (uint16_t)(ctx->config.poll_standby_interval < UINT16_MAX
						? ctx->config.poll_standby_interval
						: UINT16_MAX);
	ha_rto_init(&b->failover->rto, ha_config_rto_ns(&ctx->config));
	b->poll.batch = (uint16_t)ctx->config.poll_batch;
	b->poll.most = (uint16_t)ctx->config.test_max_poll;
	b->terms.traffic_class = opts->traffic_class;
	pthread_mutex_init(&b->registered.lock, NULL);
	pthread_mutex_init(&b->registered.list_lock, NULL);
	snprintf(b->name, sizeof(b->name), "%s", ha_device_name(&ctx->devices[dev]));
	err = ring_new(b);
	if (!err && opts->one_sided)
		err = ha_one_sided_new(b);
	if (!err)
		err = rails_open(b, dev, opts);
	if (err) {
		ha_bundle_free(b);
		return err;
	}
	b->poll.always = polls_always(b);
	b->terms.offers = what_it_offers(b) | (opts->one_sided ? HA_FLAG_ONE_SIDED : 0);
	*bundle = b;
	return 0;
}

void ha_bundle_describe(const struct ha_bundle *b, enum ha_msg_type type,
			struct ha_msg_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->header = (struct ha_msg_header) {
		.magic = HA_MSG_MAGIC,
		.version = HA_WIRE_VERSION_MIN,
		.type = (uint16_t)type,
		.length = (uint32_t)(offsetof(struct ha_msg_hello, rail) +
				     b->nrails * sizeof(hello->rail[0])),
		.ports = b->rail[0].dev->ports,
	};
	hello->nonce = b->terms.nonce;
	hello->ring_addr = (uintptr_t)b->ring;
	hello->flags = b->terms.offers;
	hello->version = HA_WIRE_VERSION;
	hello->version_min = HA_WIRE_VERSION_MIN;
	hello->nrails = b->nrails;
	hello->slots = HA_SLOTS;
	hello->pid = (uint32_t)getpid();
	hello->context = b->ctx->peers.own_id;
	gethostname(hello->host, sizeof(hello->host) - 1);
	for (unsigned i = 0; i < b->nrails; i++) {
		ha_rail_describe_whole(&b->rail[i], &hello->rail[i]);
		/* An old sender compares what WELCOME has in `keys` with the count in the first
		 * answer. */
		if (type == HA_MSG_HELLO)
			hello->rail[i].keys = ha_wire_hello_keys(ha_device_place(b->rail[i].dev));
		else if (b->terms.flags & HA_FLAG_PAIRS)
			hello->rail[i].keys = ha_sent_place(b, b->rail[i].dev) << 8;
	}
}

/* Rails that share a device here do so there. */
static bool same_turns(const struct ha_bundle *b, const struct ha_msg_hello *peer)
{
	for (unsigned i = 1; i < b->nrails && i < peer->nrails; i++) {
		const struct ha_wire_rail *one = &peer->rail[i - 1], *two = &peer->rail[i];
		bool there = !memcmp(one->qp.gid, two->qp.gid, sizeof(one->qp.gid)) &&
			     one->qp.lid == two->qp.lid &&
			     !strncmp(one->name, two->name, sizeof(one->name));

		if ((b->rail[i].dev == b->rail[i - 1].dev) != there)
			return false;
	}
	return true;
}

/* Both ends compute the same from the two messages. */
static int negotiate_terms(struct ha_bundle *b, const struct ha_msg_hello *peer, char *why,
			   size_t why_size)
{
	uint16_t version = peer->version < HA_WIRE_VERSION ? peer->version : HA_WIRE_VERSION;

	if (version < HA_WIRE_VERSION_MIN || version < peer->version_min) {
		snprintf(why, why_size,
			 "protocol versions %u to %u here, %u to %u there; install one version",
			 HA_WIRE_VERSION_MIN, HA_WIRE_VERSION, peer->version_min, peer->version);
		return -EPROTO;
	}
	if ((b->terms.offers ^ peer->flags) & HA_FLAG_ONE_SIDED) {
		snprintf(why, why_size,
			 "one end wants a one-sided connection, the other does not; install one "
			 "version");
		return -EPROTO;
	}
	if (peer->slots != HA_SLOTS) {
		snprintf(why, why_size, "rings of %u slots here, %u there; install one version",
			 HA_SLOTS, peer->slots);
		return -EPROTO;
	}
	for (unsigned i = 0; i < b->nrails && i < peer->nrails; i++) {
		bool ethernet = peer->rail[i].qp.link_layer == IBV_LINK_LAYER_ETHERNET;

		if (ethernet == b->rail[i].dev->topo->is_ethernet)
			continue;
		snprintf(why, why_size, "%s is %s here, %s is %s there; see NCCL_IB_HCA",
			 ha_device_name(b->rail[i].dev), ethernet ? "InfiniBand" : "RoCE",
			 peer->rail[i].name, ethernet ? "RoCE" : "InfiniBand");
		return -EPROTO;
	}
	if (!same_turns(b, peer)) {
		snprintf(why, why_size,
			 "queue pairs lie on the devices in another way there; set "
			 "NCCL_IB_QPS_PER_CONNECTION, "
			 "MPIB_SOUT_QP and MPIB_SUP_QP alike");
		return -EPROTO;
	}
	b->link->peer_context = peer->context;
	b->failover->spares.peer_ports =
		peer->header.ports < UINT8_MAX ? (uint8_t)peer->header.ports : UINT8_MAX;
	b->terms.version = version;
	b->terms.flags = b->terms.offers & peer->flags;
	b->terms.flags |= (b->terms.offers | peer->flags) & HA_FLAG_ACK_MEMORY;
	b->peer_ring = peer->ring_addr;
	return 0;
}

/* A listener makes its queue pairs before it knows the peer, so those of any order may be wrong for
 * this one. A connector has named its own by then. */
static int settle_order(struct ha_bundle *b, char *why, size_t why_size)
{
	int err = 0;

	if (!b->terms.unordered || b->terms.flags & HA_FLAG_UNORDERED)
		return 0;
	if (b->is_send) {
		snprintf(why, why_size,
			 "its queue pairs take messages in order, its handle said in any; set "
			 "NCCL_IB_OOO_RQ=0");
		return -EPROTO;
	}
	b->terms.unordered = false;
	for (unsigned i = 0; i < b->nrails && !err; i++) {
		ha_rail_close(b, &b->rail[i]);
		err = ha_rail_open(b, &b->rail[i], b->rail[i].dev);
	}
	return err;
}

/* The peer has fewer rails than we: ours beyond them go. */
static void close_extra_rails(struct ha_bundle *b, unsigned nrails)
{
	while (b->nrails > nrails)
		ha_rail_close(b, &b->rail[--b->nrails]);
}

int ha_bundle_agree(struct ha_bundle *b, const struct ha_msg_hello *peer, void (*done)(void *arg),
		    void *arg, char *why, size_t why_size)
{
	int err;

	why[0] = 0;
	err = negotiate_terms(b, peer, why, why_size);
	if (err)
		return err;
	snprintf(b->name, sizeof(b->name), "%s %s %.31s[%u] %.23s", ha_device_name(b->rail[0].dev),
		 b->is_send ? "->" : "<-", peer->host, peer->pid, peer->rail[0].name);
	close_extra_rails(b, peer->nrails);
	err = settle_order(b, why, why_size);
	if (err)
		return err;
	for (unsigned i = 0; i < b->nrails; i++) {
		err = ha_rail_connect(b, &b->rail[i], &peer->rail[i], done, arg);
		if (err)
			return err;
		if (!b->is_send)
			b->rail[i].setup.peer.keys = ha_wire_keys_of_hello(peer->rail[i].keys);
	}
	return 0;
}

int ha_bundle_connected(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		int err = b->rail[i].hookup ? ha_rail_connected(b, &b->rail[i]) : 0;

		if (err)
			return err;
	}
	return 0;
}

void ha_bundle_unhook(struct ha_bundle *b)
{
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		ha_rail_unhook(b, &b->rail[i]);
}

static void report_launched(const struct ha_bundle *b)
{
	char rails[HA_MAX_RAILS * 128] = "", ours[HA_GID_TEXT_MAX], theirs[HA_GID_TEXT_MAX];
	size_t at = 0;

	for (unsigned i = 0; i < b->nrails && at < sizeof(rails); i++) {
		const struct ha_rail *r = &b->rail[i];
		union ibv_gid gid;

		memcpy(&gid, r->setup.peer.qp.gid, sizeof(gid));
		at += (size_t)snprintf(rails + at, sizeof(rails) - at,
				       "; rail %u: %s GID %d %s to %s GID %s, MTU %d", i,
				       ha_device_name(r->dev), r->dev->topo->address.gid_index,
				       ha_gid_text(&r->dev->topo->address.gid, ours),
				       r->setup.peer.name, ha_gid_text(&gid, theirs),
				       ha_rail_mtu_bytes(r));
	}
	ha_journal_eventf(b->ctx, &(struct ha_event) { .kind = HA_EVENT_CONNECTED, .bundle = b },
			  "protocol %u, flags 0x%x%s%s", b->terms.version, b->terms.flags,
			  b->terms.unordered ? ", messages in any order" : "", rails);
}

void ha_bundle_launch(struct ha_bundle *b, struct ha_stream *stream)
{
	struct ha_ctx *ctx = b->ctx;

	if (b->is_send)
		ha_send_prepare((struct ha_send *)b);
	else
		ha_recv_prepare((struct ha_recv *)b);
	b->link->stream = stream;
	stream->owner = b;
	stream->watch.ready = ha_inbox_ready;
	LIST_INSERT_HEAD(&ctx->bundles, b, entry);
	ha_schedule_join(b);
	ha_peer_join(b);
	report_launched(b);
	ha_failover_launch(b);
	ha_advice_join(b);
	ha_adaptive_join(b);
}

void ha_bundle_retire(struct ha_bundle *b)
{
	ha_advice_leave(b);
	ha_journal_forget(b);
	atomic_store(&b->closing, true);
	ha_bundle_unhook(b);
	LIST_REMOVE(b, entry);
	ha_schedule_leave(b);
	ha_peer_leave(b);
	if (b->link->stream && !b->link->stream->read_stopped)
		ha_loop_remove(&b->ctx->loop, &b->link->stream->watch);
}

/* What has arrived but nobody has asked for (optional receives) counts as arrived. */
static void take_arrivals(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		for (int k = 0; k < HA_SLOTS && !b->error && ha_rail_poll(b, &b->rail[i]) > 0; k++)
			;
}

/* The socket stays behind for a moment: closed with something unread in it, it would take BYE with
 * it. */
static void send_bye(struct ha_bundle *b)
{
	struct ha_msg_bye bye = {
		.header = { HA_MSG_MAGIC, HA_WIRE_VERSION_MIN, HA_MSG_BYE, sizeof(bye), 0 },
		.done = b->is_send ? ((struct ha_send *)b)->head : ((struct ha_recv *)b)->done,
	};

	pthread_mutex_lock(&b->ctx->drive);
	ha_stream_leave(b->link->stream, &bye);
	pthread_mutex_unlock(&b->ctx->drive);
	b->link->stream = NULL;
}

void ha_bundle_free(struct ha_bundle *b)
{
	atomic_store(&b->closing, true);
	if (b->link->stream) {
		b->peer_closed = true; /* what fails from here on is nobody's news */
		take_arrivals(b);
		send_bye(b);
	}
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		ha_rail_close(b, &b->rail[i]);
	ha_bundle_free_mrs(b);
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		ha_rail_unbind(&b->rail[i]);
	ha_one_sided_free(b);
	ha_inbox_drop(b);
	ha_journal_flush(b->ctx); /* what was found since it retired */
	if (b->ring)
		munmap(b->ring, b->ring_size);
	pthread_mutex_destroy(&b->registered.lock);
	pthread_mutex_destroy(&b->registered.list_lock);
	free(b);
}
