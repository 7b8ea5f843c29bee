/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/net_dpdk.h"

#include "base/clock.h"
#include "base/log.h"
#include "ina/frame/port/eal.h"
#include "ina/frame/port/packet.h"
#include "ina/frame/port/spread.h"
#include "ina/frame/port/steer.h"
#include "ina/frame/port/tx.h"
#include "ina/host/backend/arp.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING 4096u      /* packets that wait for a worker, where the device does not steer */
#define SEND_ROOM 1024u /* packets that wait for the device */
#define ARP_TRIES 15
#define ARP_WAIT_MS 200

struct queue {
	_Alignas(128) struct ina_tx tx;
	struct rte_mbuf *held[HA_NET_BURST]; /* given to the worker until its next receive */
	unsigned nheld;
};

struct dpdk_net {
	struct ha_net net;
	struct ina_port port;
	struct rte_mempool *pool;
	bool steered;
	rte_spinlock_t receiving; /* not steered: who receives for all, and spreader */
	struct ina_spread spread;
	struct ina_spreader spreader;
	struct queue *queue;
	_Atomic bool ask;     /* a worker is to send a request for `wanted` */
	pthread_mutex_t lock; /* wanted, found, mac */
	uint32_t wanted;
	bool found;
	uint8_t mac[6];
};

/* Whoever receives what is no frame of aggregation. */
struct receiver {
	struct dpdk_net *d;
	unsigned worker;
};

static struct dpdk_net *to_dpdk(struct ha_net *net)
{
	return (struct dpdk_net *)net;
}

/* ---- ARP ---- */

static void send_arp(struct dpdk_net *d, unsigned worker, const struct ha_arp *a)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(d->pool);

	if (!m)
		return;
	ha_arp_encode(a, rte_pktmbuf_mtod(m, uint8_t *));
	m->data_len = HA_ARP_BYTES;
	m->pkt_len = HA_ARP_BYTES;
	ina_tx_send(&d->queue[worker].tx, m);
	ina_tx_flush(&d->queue[worker].tx);
}

static void on_arp(struct dpdk_net *d, unsigned worker, const struct ha_arp *packet)
{
	struct ha_arp answer = { .sender = d->net.addr, .target = packet->sender };

	pthread_mutex_lock(&d->lock);
	if (d->wanted && packet->sender == d->wanted) {
		memcpy(d->mac, packet->sender_mac, 6);
		d->found = true;
	}
	pthread_mutex_unlock(&d->lock);
	if (!packet->request || packet->target != d->net.addr)
		return;
	memcpy(answer.sender_mac, d->net.mac, 6);
	memcpy(answer.target_mac, packet->sender_mac, 6);
	send_arp(d, worker, &answer);
}

static void take_other(void *arg, struct rte_mbuf *m)
{
	struct receiver *r = arg;
	struct ha_arp packet;

	if (ha_arp_decode(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &packet))
		on_arp(r->d, r->worker, &packet);
	rte_pktmbuf_free(m);
}

static void ask_arp(struct dpdk_net *d, unsigned worker)
{
	struct ha_arp a = { .request = true, .sender = d->net.addr };

	if (likely(!atomic_load_explicit(&d->ask, memory_order_relaxed)) ||
	    !atomic_exchange(&d->ask, false))
		return;
	memcpy(a.sender_mac, d->net.mac, 6);
	pthread_mutex_lock(&d->lock);
	a.target = d->wanted;
	pthread_mutex_unlock(&d->lock);
	send_arp(d, worker, &a);
}

static bool arp_found(struct dpdk_net *d, uint8_t mac[6])
{
	bool found;

	pthread_mutex_lock(&d->lock);
	found = d->found;
	if (found)
		memcpy(mac, d->mac, 6);
	pthread_mutex_unlock(&d->lock);
	return found;
}

static int neighbour(struct ha_net *net, uint32_t addr, uint8_t mac[6], char *why, size_t size)
{
	struct dpdk_net *d = to_dpdk(net);

	pthread_mutex_lock(&d->lock);
	d->wanted = addr;
	d->found = false;
	pthread_mutex_unlock(&d->lock);
	for (unsigned ms = 0; ms < ARP_TRIES * ARP_WAIT_MS; ms += 5) {
		struct timespec nap = { .tv_nsec = 5000000 };

		if (ms % ARP_WAIT_MS == 0)
			atomic_store(&d->ask, true);
		nanosleep(&nap, NULL);
		if (arp_found(d, mac))
			return 0;
	}
	snprintf(why, size,
		 "no answer to ARP from the switch %u.%u.%u.%u on %s: look at the cable; behind a "
		 "router give --switch-mac",
		 addr >> 24, addr >> 16 & 255, addr >> 8 & 255, addr & 255, net->device);
	return -EHOSTUNREACH;
}

/* ---- packets ---- */

static void free_held(struct queue *q)
{
	for (unsigned i = 0; i < q->nheld; i++)
		rte_pktmbuf_free(q->held[i]);
	q->nheld = 0;
}

static unsigned receive_any(struct dpdk_net *d, unsigned worker, struct rte_mbuf **m, unsigned n)
{
	struct receiver r = { d, worker };

	if (d->steered)
		return ina_port_receive(&d->port, (uint16_t)worker, m, (uint16_t)n);
	if (rte_spinlock_trylock(&d->receiving)) {
		for (uint16_t q = 0; q < d->port.rx_queues; q++)
			ina_spread_burst(&d->spreader, &d->port, q, take_other, &r);
		rte_spinlock_unlock(&d->receiving);
	}
	return ina_spread_receive(&d->spread, worker, m, n);
}

static unsigned receive(struct ha_net *net, unsigned worker, struct ha_net_packet *packet,
			unsigned n)
{
	struct dpdk_net *d = to_dpdk(net);
	struct queue *q = &d->queue[worker];
	struct receiver r = { d, worker };
	struct rte_mbuf *m[HA_NET_BURST];
	unsigned got;

	free_held(q);
	ask_arp(d, worker);
	got = receive_any(d, worker, m, n < HA_NET_BURST ? n : HA_NET_BURST);
	for (unsigned i = 0; i < got; i++) {
		if (ina_packet_worker(m[i]) < 0) {
			take_other(&r, m[i]);
			continue;
		}
		if (m[i]->nb_segs > 1 && rte_pktmbuf_linearize(m[i])) {
			rte_pktmbuf_free(m[i]);
			continue;
		}
		packet[q->nheld] = (struct ha_net_packet) { rte_pktmbuf_mtod(m[i], const uint8_t *),
							    m[i]->data_len };
		q->held[q->nheld++] = m[i];
	}
	return q->nheld;
}

static void send_frame(struct ha_net *net, unsigned worker, const struct ina_frame *frame)
{
	struct dpdk_net *d = to_dpdk(net);
	struct rte_mbuf *m = ina_packet_make(&d->port, d->pool, frame);

	if (likely(m))
		ina_tx_send(&d->queue[worker].tx, m);
}

static void flush(struct ha_net *net, unsigned worker)
{
	struct queue *q = &to_dpdk(net)->queue[worker];

	if (ina_tx_depth(&q->tx))
		ina_tx_flush(&q->tx);
}

static int fd(struct ha_net *net, unsigned worker)
{
	return -1;
}

static uint64_t lost(struct ha_net *net)
{
	struct ina_port_counts c;

	ina_port_count(&to_dpdk(net)->port, &c);
	return c.rx_missed + c.rx_errors + c.no_mbuf + c.tx_errors;
}

/* A memif client dials. */
static void tick(struct ha_net *net)
{
	ina_port_up(&to_dpdk(net)->port);
}

/* ---- threads ---- */

static void begin(struct ha_net *net, unsigned worker)
{
	if (rte_thread_register())
		HA_INFO(net->device,
			"DPDK has no slot for worker %u's thread: its packets come without a "
			"cache, more slowly; fewer --workers would have one each",
			worker);
}

static void end(struct ha_net *net, unsigned worker)
{
	free_held(&to_dpdk(net)->queue[worker]);
	ina_tx_close(&to_dpdk(net)->queue[worker].tx);
	rte_thread_unregister();
}

/* ---- opening ---- */

static void close_it(struct ha_net *net)
{
	struct dpdk_net *d = to_dpdk(net);

	if (d->steered)
		ina_steer_close(&d->port);
	ina_port_close(&d->port);
	if (!d->steered)
		ina_spread_close(&d->spread);
	ina_eal_stop();
	pthread_mutex_destroy(&d->lock);
	free(d->queue);
	free(d);
}

static int start_eal(const char *port, unsigned memory_mb, char *why, size_t size)
{
	struct ina_eal_options o = { .program = "ha-backend",
				     .port = { port },
				     .nports = 1,
				     .threads = 1,
				     .memory_mb = memory_mb };
	int err = ina_eal_start(&o, why, size);

	if (!err)
		ina_eal_unbind_thread(); /* ours are not DPDK's, and pinned by ourselves */
	return err;
}

static int open_queues(struct dpdk_net *d, char *why, size_t size)
{
	char cannot[192] = "";
	unsigned n = d->net.workers;
	int err = 0;

	d->queue = aligned_alloc(128, n * sizeof(*d->queue));
	if (!d->queue)
		return -ENOMEM;
	memset(d->queue, 0, n * sizeof(*d->queue));
	for (unsigned i = 0; !err && i < n; i++)
		err = ina_tx_open(&d->queue[i].tx, &d->port, i, n, SEND_ROOM);
	if (err)
		return err;
	d->steered = !ina_steer_open(&d->port, 0, n, cannot, sizeof(cannot));
	if (d->steered)
		return 0;
	HA_INFO(d->net.device, "%s: workers pass packets on to each other", cannot);
	rte_spinlock_init(&d->receiving);
	d->spreader.spread = &d->spread;
	return ina_spread_open(&d->spread, "backend", n, RING, false);
}

static const struct ha_net_ops ops = {
	.name = "dpdk",
	.begin = begin,
	.end = end,
	.receive = receive,
	.send = send_frame,
	.flush = flush,
	.fd = fd,
	.neighbour = neighbour,
	.tick = tick,
	.lost = lost,
	.close = close_it,
};

/*
 * The device's queues, the workers' rings and what is on its way; no more than half of the memory,
 * the rest is the devices'.
 */
static unsigned choose_pool_size(unsigned workers, unsigned memory_mb)
{
	unsigned wanted = 4096 + workers * 8192,
		 room = ((memory_mb ? memory_mb : 256) << 20) / 2 / (INA_PACKET_ROOM + 512);

	return wanted < room ? wanted : room;
}

struct ha_net *ha_net_dpdk_open(unsigned workers, uint32_t addr, const char *port,
				unsigned memory_mb, char *why, size_t size)
{
	struct dpdk_net *d = calloc(1, sizeof(*d));
	struct ina_port_config config = { .rx_queues = workers, .tx_queues = workers };
	int err = d ? start_eal(port, memory_mb, why, size) : -ENOMEM;

	if (err) {
		free(d);
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	d->net = (struct ha_net) { .ops = &ops, .workers = workers, .addr = addr };
	d->pool = ina_pool_create("backend", choose_pool_size(workers, memory_mb), why, size);
	config.pool = d->pool;
	/* its two ends have to have the same number, and it steers nothing */
	if (!strncmp(port, "net_memif", 9))
		config.rx_queues = config.tx_queues = 1;
	if (!d->pool || ina_port_open(&d->port, port, &config, why, size))
		goto failed;
	snprintf(d->net.device, sizeof(d->net.device), "%.60s", d->port.name);
	memcpy(d->net.mac, d->port.mac, 6);
	d->net.node = rte_eth_dev_socket_id(d->port.id);
	err = open_queues(d, why, size);
	if (!err)
		return &d->net;
	snprintf(why, size, "%s: %s", d->net.device, strerror(-err));
failed:
	close_it(&d->net);
	return NULL;
}
