/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/device.h"

#include "base/clamp.h"
#include "base/clock.h"
#include "base/log.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/budget.h"
#include "plugin/device/mr.h"
#include "plugin/transfer/bundle.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <string.h>

#define MAX_MSG (1u << 30) /* bytes of one work request; the port's limit may be smaller */
#define SRQ_DEPTH_MIN 256
#define SEND_DEPTH_MIN 64

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/*
 * What one connection may consume from the shared queue before it gives receives back: an immediate
 * for every slot, since a receiver that completes early (optional) may not poll until its slots run
 * out, and what it gives back in portions. With many connections the queue is shorter than the sum;
 * then those that poll carry the others, and a moment without receives is a pause of the sender
 * (receiver not ready), not a fault.
 */
static uint32_t promise(void)
{
	return HA_SLOTS + HA_REFILL;
}

static void budget(struct ha_device *dev)
{
	const struct ha_config *config = &dev->ctx->config;
	int qps = config->ib_qps_per_connection;
	struct ha_budget b = {
		.max_qp = dev->topo->attr.max_qp,
		.max_cqe = dev->topo->attr.max_cqe,
		/* Each channel has that many queue pairs, and work in flight on each. */
		.channels = config->expected_channels * (int)ha_clamp(qps, 1, HA_MAX_RAILS),
		.wr = config->wr_per_conn,
		.recvs = config->max_recvs,
	};

	ha_budget_compute(&b);
	dev->max_comms = b.max_comms;
	if (dev->index >= dev->ctx->ndevices)
		return; /* NCCL does not learn of it */
	HA_INFO(dev->name,
		"maxComms %d = min(max_qp %d / (2 x %d channels) = %d, max_cqe %d / ((%d x %d + "
		"%d) x 2 x %d) = %d, %d), "
		"at least 1; maxRecvs %d",
		b.max_comms, b.max_qp, b.channels, b.by_qp, b.max_cqe, b.wr, b.recvs, b.wr,
		b.channels, b.by_cqe, HA_BUDGET_MOST, b.recvs);
}

/* The topology's entry is the driver's; ours, under the lock, is everybody's. */
static void take_address(struct ha_device *dev)
{
	const struct ha_topo_device *topo = dev->topo;

	dev->address = (struct ha_address) { .gid = topo->gid,
					     .gid_index = topo->gid_index,
					     .lid = topo->lid,
					     .mtu = (uint8_t)topo->mtu };
	dev->up = topo->up;
	dev->speed_mbps = topo->speed_now;
}

bool ha_device_refresh(struct ha_device *dev)
{
	struct ha_address before = dev->address; /* nobody else writes it */
	int err = ha_topo_refresh(dev->ctx->topo, &dev->ctx->config, dev->index);

	pthread_mutex_lock(&dev->lock);
	take_address(dev);
	if (err < 0)
		dev->up = false;
	pthread_mutex_unlock(&dev->lock);
	return dev->up &&
	       (before.lid != dev->address.lid || before.gid_index != dev->address.gid_index ||
		memcmp(&before.gid, &dev->address.gid, sizeof(before.gid)));
}

bool ha_device_usable(struct ha_device *dev)
{
	bool up;

	pthread_mutex_lock(&dev->lock);
	up = dev->up;
	pthread_mutex_unlock(&dev->lock);
	return up && !atomic_load_explicit(&dev->failed, memory_order_acquire);
}

int ha_device_speed(struct ha_device *dev)
{
	int speed;

	pthread_mutex_lock(&dev->lock);
	speed = dev->speed_mbps;
	pthread_mutex_unlock(&dev->lock);
	return speed;
}

struct ha_address ha_device_address(struct ha_device *dev)
{
	struct ha_address address;

	pthread_mutex_lock(&dev->lock);
	address = dev->address;
	pthread_mutex_unlock(&dev->lock);
	return address;
}

void ha_device_init(struct ha_device *dev, struct ha_ctx *ctx, const struct ha_topo_device *topo,
		    int index)
{
	const struct ha_config *config = &ctx->config;
	int max_wr = topo->attr.max_qp_wr, cts_signal = HA_CTS_SIGNAL;

	memset(dev, 0, sizeof(*dev));
	dev->ctx = ctx;
	dev->topo = topo;
	dev->index = index;
	dev->verbs = topo->context;
	dev->hot = topo->hot;
	dev->events.fd = -1;
	ha_topo_device_label(topo, dev->name, sizeof(dev->name));
	pthread_mutex_init(&dev->lock, NULL);
	take_address(dev);
	atomic_init(&dev->relaxed, topo->relaxed_ordering);
	budget(dev);
	ha_silence_init(&dev->silence, (uint64_t)config->silence_ms * HA_NS_PER_MS);
	dev->send_depth = (uint32_t)min_int(
		max_int(config->wr_per_conn * config->max_recvs, SEND_DEPTH_MIN), max_wr);
	/* Clear-to-sends ask for a completion only every so often. */
	if (ha_mpib_wanted(config))
		cts_signal = config->mpib_cts_signal_interval;
	dev->recv_depth = (uint32_t)min_int(max_int(config->wr_per_conn, 4 * cts_signal), max_wr);
	dev->srq_depth = (uint32_t)min_int(max_int(dev->max_comms * (int)promise(), SRQ_DEPTH_MIN),
					   topo->attr.max_srq_wr);
	atomic_init(&dev->portion, HA_REFILL);
	for (int i = 0; i < HA_REFILL; i++)
		dev->refill[i].next = i + 1 < HA_REFILL ? &dev->refill[i + 1] : NULL;
}

/* Less than what the device allows for one queue may still be too much for what is left of its
 * memory. */
static int open_srq(struct ha_device *dev)
{
	const struct ha_verbs_ops *v = dev->ctx->verbs;
	int err;

	for (;;) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = dev->srq_depth,
							    .max_sge = 1 } };

		err = v->create_srq(v, dev->pd, &init, &dev->srq);
		if (!err || dev->srq_depth / 2 < SRQ_DEPTH_MIN ||
		    (err != -ENOMEM && err != -EINVAL))
			break;
		dev->srq_depth /= 2;
	}
	if (err)
		dev->srq = NULL;
	return err;
}

static int open_locked(struct ha_device *dev)
{
	const struct ha_verbs_ops *v = dev->ctx->verbs;
	int err = v->alloc_pd(v, dev->verbs, &dev->pd);

	if (err) {
		HA_WARN(dev->name, "cannot allocate a protection domain: %s", strerror(-err));
		return err;
	}
	err = open_srq(dev);
	if (err) {
		HA_WARN(dev->name, "cannot create a shared receive queue of %u entries: %s",
			dev->srq_depth, strerror(-err));
		goto dealloc_pd;
	}
	dev->mr_cache = ha_mr_cache_new(dev, (unsigned)dev->ctx->config.mr_cache_entries);
	if (!dev->mr_cache) {
		err = -ENOMEM;
		goto destroy_srq;
	}
	dev->open = true;
	return 0;

destroy_srq:
	v->destroy_srq(v, dev->srq);
dealloc_pd:
	v->dealloc_pd(v, dev->pd);
	return err;
}

static bool post_refill(struct ha_device *dev, uint32_t n)
{
	struct ibv_recv_wr *bad;

	return dev->hot.post_srq_recv(dev->srq, ha_device_refill(dev, n), &bad) == 0;
}

/* As many receives as the connections here were promised, or as there is room for. */
static void post_promised(struct ha_device *dev)
{
	while (dev->srq_posted < dev->srq_promised && dev->srq_posted < dev->srq_depth) {
		uint32_t n = dev->srq_depth - dev->srq_posted;

		n = n < HA_REFILL ? n : HA_REFILL;
		if (!post_refill(dev, n))
			break;
		dev->srq_posted += n;
	}
}

/* The one before has failed. */
static int replace_locked(struct ha_device *dev)
{
	int err = open_srq(dev);

	if (err) {
		HA_WARN(dev->name, "cannot create another shared receive queue of %u entries: %s",
			dev->srq_depth, strerror(-err));
		return err;
	}
	dev->srq_posted = 0;
	post_promised(dev);
	HA_INFO(dev->name,
		"another shared receive queue of %u entries takes the place of the failed one",
		dev->srq_depth);
	return 0;
}

int ha_device_open(struct ha_device *dev)
{
	int err = atomic_load_explicit(&dev->failed, memory_order_acquire);

	if (err) {
		HA_WARN(dev->name, "the device has failed; no connection can use it");
		return err;
	}
	pthread_mutex_lock(&dev->lock);
	if (!dev->open)
		err = open_locked(dev);
	else if (!dev->srq)
		err = replace_locked(dev);
	pthread_mutex_unlock(&dev->lock);
	return err;
}

/* Those that no queue pair is on any more; others say so (EBUSY). */
static void destroy_failed_srqs(struct ha_device *dev)
{
	const struct ha_verbs_ops *v = dev->ctx->verbs;

	for (int i = 0; i < HA_FAILED_SRQS; i++)
		if (dev->failed_srq[i] && !v->destroy_srq(v, dev->failed_srq[i]))
			dev->failed_srq[i] = NULL;
}

/* Where a failed queue waits for its queue pairs to go. NULL: there are too many of them. */
static struct ibv_srq **failed_place(struct ha_device *dev)
{
	destroy_failed_srqs(dev);
	for (int i = 0; i < HA_FAILED_SRQS; i++)
		if (!dev->failed_srq[i])
			return &dev->failed_srq[i];
	return NULL;
}

struct ibv_srq *ha_device_srq(struct ha_device *dev)
{
	struct ibv_srq *srq;

	pthread_mutex_lock(&dev->lock);
	srq = dev->srq;
	pthread_mutex_unlock(&dev->lock);
	return srq;
}

bool ha_device_replace_srq(struct ha_device *dev, const struct ibv_srq *failed)
{
	struct ibv_srq **place;
	bool ours;

	pthread_mutex_lock(&dev->lock);
	ours = dev->open && dev->srq && dev->srq == failed;
	place = ours ? failed_place(dev) : NULL;
	if (ours && !place) {
		HA_WARN(dev->name,
			"%d shared receive queues have failed and are still in use: there is no "
			"other one; the device needs "
			"a reset",
			HA_FAILED_SRQS + 1);
	} else if (ours) {
		*place = dev->srq;
		dev->srq = NULL;
		(void)replace_locked(dev); /* or when the next queue pair asks for it */
	}
	pthread_mutex_unlock(&dev->lock);
	return ours;
}

void ha_device_close(struct ha_device *dev)
{
	const struct ha_verbs_ops *v = dev->ctx->verbs;

	if (dev->open) {
		ha_mr_cache_free(dev->mr_cache);
		destroy_failed_srqs(dev);
		if (dev->srq)
			v->destroy_srq(v, dev->srq);
		v->dealloc_pd(v, dev->pd);
		dev->open = false;
	}
	pthread_mutex_destroy(&dev->lock);
}

/*
 * What connections hold back must never be all that there is, or the queue is dry for good: each
 * waits for an immediate that finds no receive. A portion p is for at most depth / (4 p)
 * connections, which hold back less than depth / 4 together. Whoever took a larger portion when
 * there were fewer keeps it for a while: those with twice the portion are at most half as many, so
 * all of them hold back less than three quarters.
 */
static void set_portion(struct ha_device *dev)
{
	uint32_t p = HA_REFILL;

	while (p > 1 && dev->receivers * p > dev->srq_depth / 4)
		p /= 2;
	atomic_store_explicit(&dev->portion, p, memory_order_relaxed);
}

void ha_device_promise(struct ha_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->receivers++;
	set_portion(dev);
	dev->srq_promised += promise();
	if (dev->srq)
		post_promised(dev);
	if (dev->srq_posted < dev->srq_promised)
		HA_TRACE(dev->name,
			 "%u receives are shared by connections that may want %u at once",
			 dev->srq_posted, dev->srq_promised);
	pthread_mutex_unlock(&dev->lock);
}

void ha_device_unpromise(struct ha_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->srq_promised -= promise();
	dev->receivers--;
	set_portion(dev);
	pthread_mutex_unlock(&dev->lock);
}

void ha_device_repay(struct ha_device *dev, struct ibv_srq *srq, uint32_t n)
{
	struct ibv_recv_wr one = { .next = NULL }, *bad;

	while (n-- && !dev->hot.post_srq_recv(srq, &one, &bad))
		;
}

uint32_t ha_device_max_msg(const struct ha_device *dev)
{
	uint32_t port = dev->topo->port_attr.max_msg_sz & ~(uint32_t)4095;

	return port && port < MAX_MSG ? port : MAX_MSG;
}

uint32_t ha_device_place(const struct ha_device *dev)
{
	int rail = dev->topo->rail_id, plane = dev->topo->plane_id;

	if (rail < 0 || rail >= HA_PLACE_MAX || plane >= HA_PLACE_MAX)
		return 0;
	return (uint32_t)(rail + 1) << 12 | (uint32_t)(plane < 0 ? 0 : plane + 1);
}

/* Bytes of one message that fit the send queue in the worst case: a group of the most buffers, all
 * of this size, one rail. */
static size_t max_message(const struct ha_device *dev)
{
	uint32_t pieces = (dev->send_depth - 1) / HA_MAX_RECVS;

	return (size_t)(pieces ? pieces : 1) * ha_device_max_msg(dev);
}

void ha_device_props(const struct ha_device *dev, struct ha_dev_props *props)
{
	const struct ha_topo_device *topo = dev->topo;

	*props = (struct ha_dev_props) {
		.name = topo->name,
		.pci_path = *topo->card_path ? topo->card_path : NULL,
		.guid = topo->guid,
		.port = topo->port + topo->card_port,
		.speed_mbps = topo->speed_mbps,
		.ptr_support = HA_MEM_HOST | (topo->peer_memory ? HA_MEM_CUDA : 0) |
			       (topo->dma_buf ? HA_MEM_DMABUF : 0),
		/* A handle holds the keys for the rails of one connection; it means nothing to
		 * another. */
		.reg_is_global = false,
		/* what says that data has come takes another way than the data */
		.force_flush = topo->data_direct,
		/* not measured: NCCL then takes its own estimate for the kind of network */
		.latency_us = 0,
		.max_comms = dev->max_comms,
		.max_recvs = dev->ctx->config.max_recvs,
		.rail_id = topo->rail_id,
		.plane_id = topo->plane_id,
		.max_p2p_bytes = max_message(dev),
		.max_coll_bytes = max_message(dev),
	};
}
