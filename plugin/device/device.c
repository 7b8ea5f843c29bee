/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/device.h"

#include "base/clamp.h"
#include "base/clock.h"
#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/device/budget.h"
#include "plugin/device/send_queue.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <string.h>

#define MAX_MSG (1u << 30) /* bytes of one work request; the port's limit may be smaller */
#define SEND_DEPTH_MIN 64

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Receives that a connection may consume at once (opening.c). */
#define PROMISE (HA_SLOTS + HA_REFILL)

static void compute_budget(struct ha_device *dev)
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

	dev->address = (struct ha_address) { .gid = topo->address.gid,
					     .gid_index = topo->address.gid_index,
					     .lid = topo->address.lid,
					     .mtu = (uint8_t)topo->address.mtu };
	dev->up = topo->up;
	dev->speed_mbps = topo->speed_now;
}

void ha_device_refresh(struct ha_device *dev)
{
	int err = ha_topo_refresh(dev->ctx->topo, &dev->ctx->config, dev->index);

	pthread_mutex_lock(&dev->lock);
	take_address(dev);
	if (err < 0)
		dev->up = false;
	pthread_mutex_unlock(&dev->lock);
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
	ha_topo_device_label(topo, dev->name, sizeof(dev->name));
	pthread_mutex_init(&dev->lock, NULL);
	take_address(dev);
	dev->speed_followed = dev->speed_mbps;
	atomic_init(&dev->relaxed, topo->relaxed_ordering);
	compute_budget(dev);
	ha_silence_init(&dev->silence, (uint64_t)config->silence_ms * HA_NS_PER_MS);
	dev->send_depth = (uint32_t)min_int(
		max_int(config->wr_per_conn * config->max_recvs, SEND_DEPTH_MIN), max_wr);
	/* Clear-to-sends ask for a completion only every so often. */
	if (ha_mpib_wanted(config))
		cts_signal = config->mpib_cts_signal_interval;
	dev->recv_depth = (uint32_t)min_int(max_int(config->wr_per_conn, 4 * cts_signal), max_wr);
	dev->srq_depth = (uint32_t)min_int(max_int(dev->max_comms * PROMISE, HA_SRQ_DEPTH_MIN),
					   topo->attr.max_srq_wr);
	atomic_init(&dev->portion, HA_REFILL);
	for (int i = 0; i < HA_REFILL; i++)
		dev->refill[i].next = i + 1 < HA_REFILL ? &dev->refill[i + 1] : NULL;
}

struct ha_opening *ha_device_take(struct ha_device *dev)
{
	struct ha_opening *now;

	pthread_mutex_lock(&dev->lock);
	now = ha_opening_take(dev->now);
	pthread_mutex_unlock(&dev->lock);
	return now;
}

int ha_device_failed(const struct ha_device *dev)
{
	int err = atomic_load_explicit(&dev->failed, memory_order_acquire);

	if (err)
		HA_WARN(dev->name,
			"the device has failed; no connection can use it until it is back");
	return err;
}

struct ibv_srq *ha_device_srq(struct ha_device *dev)
{
	struct ibv_srq *srq;

	pthread_mutex_lock(&dev->lock);
	srq = dev->now->srq;
	pthread_mutex_unlock(&dev->lock);
	return srq;
}

void ha_device_close(struct ha_device *dev)
{
	if (dev->now)
		ha_opening_close(dev->now);
	dev->now = NULL;
	pthread_mutex_destroy(&dev->lock);
}

uint32_t ha_device_max_msg(const struct ha_device *dev)
{
	uint32_t port = dev->topo->port_attr.max_msg_sz & ~(uint32_t)4095;

	return port && port < MAX_MSG ? port : MAX_MSG;
}

uint32_t ha_device_place(const struct ha_device *dev)
{
	return ha_leaf(dev->topo);
}

const char *ha_device_system_label(const struct ha_device *dev, char *buf, size_t len)
{
	snprintf(buf, len, "%s:%d", dev->topo->system_name, dev->topo->port);
	return buf;
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
		.pci_path = *topo->place.card_path ? topo->place.card_path : NULL,
		.guid = topo->guid,
		.port = topo->port + topo->place.card_port,
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
		.rail_id = topo->place.rail_id,
		.plane_id = topo->place.plane_id,
		.max_p2p_bytes = max_message(dev),
		.max_coll_bytes = max_message(dev),
	};
}
