/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/port.h"

#include "base/clock.h"
#include "ina/frame/port/eal.h"
#include "ina/frame/port/peer.h"

#include <errno.h>
#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS 1024
#define DIAL_MS 100    /* between two attempts */
#define ANSWER_MS 2000 /* the same while a server has the connection, and may be busy */
#define ALARM_US 1000  /* threads that poll have left the device by then */

/*
 * Without hugepages DPDK gives each packet a page of its own, for a device must not find one on
 * two. Then all packets begin at the same place of their pages, share the same few sets of the
 * first cache, and throw each other out before they are sent. Drivers that copy can do without.
 */
static bool can_pack_packets(void)
{
	return rte_eal_has_hugepages() || ina_eal_copies();
}

unsigned ina_packet_bytes(void)
{
	return can_pack_packets() ? INA_PACKET_ROOM + 512 : 4096;
}

/*
 * Bytes between an mbuf and its packet's room. Where drivers copy packets, none begins at a
 * multiple of 16: from and to there rte_memcpy() goes round a loop, which takes a quarter
 * longer than what it does otherwise (308 bytes, DPDK 22.11 as Debian builds it).
 */
static uint16_t get_private_size(void)
{
	return ina_eal_copies() ? RTE_MBUF_PRIV_ALIGN : 0;
}

static struct rte_mempool *pool_make(const char *name, unsigned n)
{
	struct rte_pktmbuf_pool_private room = { .mbuf_data_room_size =
							 INA_PACKET_ROOM + RTE_PKTMBUF_HEADROOM,
						 .mbuf_priv_size = get_private_size() };
	struct rte_mempool *pool = rte_mempool_create_empty(
		name, n, sizeof(struct rte_mbuf) + room.mbuf_priv_size + room.mbuf_data_room_size,
		256, sizeof(room), SOCKET_ID_ANY,
		ina_eal_copies() ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0);

	if (!pool)
		return NULL;
	rte_pktmbuf_pool_init(pool, &room);
	if (rte_mempool_populate_default(pool) < 0) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

struct rte_mempool *ina_pool_create(const char *name, unsigned n, char *why, size_t size)
{
	struct rte_mempool *pool = pool_make(name, n);

	if (!pool && !rte_mempool_ops_table.num_ops) /* a library that nothing links */
		snprintf(why, size,
			 "DPDK has no pool of packets: its driver is not installed (Debian: "
			 "librte-meta-mempool, or librte-mempool-ring... alone)");
	else if (!pool)
		snprintf(why, size,
			 "no memory for %u packets (%u MiB): %s; give more memory or fewer packets",
			 n, (unsigned)((uint64_t)n * ina_packet_bytes() >> 20),
			 rte_strerror(rte_errno));
	return pool;
}

static int find_port(const char *spec, uint16_t *id)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, ","), spec);
	return rte_eth_dev_get_port_by_name(name, id);
}

/* Of a memif: where its server listens. */
static void find_socket(struct ina_port *p, const char *spec)
{
	static const char key[] = ",socket=";
	const char *at = strstr(spec, key);

	at = at ? at + strlen(key) : "/run/memif.sock"; /* the driver's own default */
	snprintf(p->socket, sizeof(p->socket), "%.*s", (int)strcspn(at, ","), at);
}

static uint16_t at_most(unsigned wanted, unsigned otherwise, unsigned max)
{
	if (!wanted)
		wanted = otherwise;
	return (uint16_t)(wanted < max ? wanted : max);
}

static int configure_port(struct ina_port *p, const struct ina_port_config *c,
			  const struct rte_eth_dev_info *info)
{
	struct rte_eth_conf conf = { 0 };
	unsigned most = INA_PORT_QUEUES;

	p->rx_queues =
		at_most(c->rx_queues, 1, info->max_rx_queues < most ? info->max_rx_queues : most);
	p->tx_queues =
		at_most(c->tx_queues, 1, info->max_tx_queues < most ? info->max_tx_queues : most);
	p->checksum = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	p->segments = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->checksum)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	if (p->segments)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->rx_queues > 1) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & RTE_ETH_RSS_IP;
		if (!conf.rx_adv_conf.rss_conf.rss_hf)
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	}
	return rte_eth_dev_configure(p->id, p->rx_queues, p->tx_queues, &conf);
}

static int set_queues(struct ina_port *p, const struct ina_port_config *c)
{
	uint16_t rx = at_most(c->rx_descriptors, DESCRIPTORS, UINT16_MAX),
		 tx = at_most(c->tx_descriptors, DESCRIPTORS, UINT16_MAX);
	int err = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx, &tx);

	for (uint16_t q = 0; !err && q < p->rx_queues; q++)
		err = rte_eth_rx_queue_setup(p->id, q, rx, SOCKET_ID_ANY, NULL, c->pool);
	for (uint16_t q = 0; !err && q < p->tx_queues; q++)
		err = rte_eth_tx_queue_setup(p->id, q, tx, SOCKET_ID_ANY, NULL);
	return err;
}

/*
 * DPDK's memif server aborts its process when a client has connected and is gone before the server
 * gets to say hello. So a client whose connection is not turned away gives it time, and an end that
 * may be on its way to the other waits for that to be over.
 */
static bool is_due(const struct ina_port *p)
{
	uint64_t since = ha_clock_now(&ha_clock_live) - p->dialled_at;

	if (since <= DIAL_MS * HA_NS_PER_MS)
		return false;
	return since > ANSWER_MS * HA_NS_PER_MS || !p->dials || !ina_peer_connected(p->socket);
}

static void wait_for_attempt(const struct ina_port *p)
{
	while (p->memif && !ina_port_linked(p) && !is_due(p))
		usleep(1000);
}

/* Some drivers, memif's among them, have no such switch and take everything. */
static int set_promiscuous(struct ina_port *p)
{
	int err = rte_eth_promiscuous_enable(p->id);

	return err == -ENOTSUP ? 0 : err;
}

static int start_port(struct ina_port *p, const struct ina_port_config *c,
		      const struct rte_eth_dev_info *info, const char **what)
{
	struct rte_ether_addr mac;
	int err;

	*what = "its queues cannot be configured";
	err = configure_port(p, c, info);
	if (!err)
		err = set_queues(p, c);
	if (err)
		return err;
	*what = "it does not start";
	p->dialled_at = ha_clock_now(&ha_clock_live);
	err = rte_eth_dev_start(p->id);
	if (err && p->dials)
		p->away = !(err = 0); /* nobody is there yet */
	if (err)
		return err;
	p->open = true;
	*what = "it cannot be made promiscuous";
	if (c->promiscuous)
		err = set_promiscuous(p);
	if (!err && !rte_eth_macaddr_get(p->id, &mac))
		memcpy(p->mac, mac.addr_bytes, 6);
	if (rte_eth_dev_get_mtu(p->id, &p->mtu))
		p->mtu = 1500;
	return err;
}

int ina_port_open(struct ina_port *p, const char *spec, const struct ina_port_config *c, char *why,
		  size_t size)
{
	struct rte_eth_dev_info info;
	const char *what = "the driver does not describe it";
	int err;

	memset(p, 0, sizeof(*p));
	for (unsigned q = 0; q < INA_PORT_QUEUES; q++)
		rte_spinlock_init(&p->tx_lock[q]);
	err = find_port(spec, &p->id);
	if (err) {
		snprintf(why, size,
			 "%s: no such port%s%s (for a card: has it a driver of DPDK? "
			 "dpdk-devbind.py --status)",
			 spec, *ina_eal_complaint() ? ": " : "", ina_eal_complaint());
		return err;
	}
	rte_eth_dev_get_name_by_port(p->id, p->name);
	err = rte_eth_dev_info_get(p->id, &info);
	if (!err) {
		snprintf(p->driver, sizeof(p->driver), "%s", info.driver_name);
		p->memif = !strcmp(p->driver, "net_memif");
		p->dials = p->memif && !strstr(spec, "role=server") && !strstr(spec, "role=master");
		if (p->dials)
			find_socket(p, spec);
		err = start_port(p, c, &info, &what);
	}
	if (err) {
		snprintf(why, size, "%s: %s: %s", spec, what, rte_strerror(-err));
		ina_port_close(p);
	}
	return err;
}

/*
 * What stops and starts a memif's client happens in DPDK's thread for interrupts, by its alarms:
 * that thread sets the client up, message by message, in the memory that a stop frees. Two alarms:
 * between them that thread forgets the old socket, so that no event of it is taken for the new
 * one's, which gets the same number.
 */

static void stop_later(void *port)
{
	struct ina_port *p = port;

	rte_eth_dev_stop(p->id);
	atomic_store_explicit(&p->dial, INA_DIAL_STOPPED, memory_order_release);
}

static void start_later(void *port)
{
	struct ina_port *p = port;

	p->dialled_at = ha_clock_now(&ha_clock_live);
	if (!rte_eth_dev_start(p->id))
		atomic_store_explicit(&p->away, false, memory_order_release);
	atomic_store_explicit(&p->dial, INA_DIAL_IDLE, memory_order_release);
}

static void connect_later(void *port)
{
	struct ina_port *p = port;

	/* This thread was busy with it and is through: it is set up now. */
	if (ina_port_linked(p)) {
		atomic_store_explicit(&p->away, false, memory_order_release);
		atomic_store_explicit(&p->dial, INA_DIAL_IDLE, memory_order_release);
		return;
	}
	rte_eth_dev_stop(p->id);
	if (rte_eal_alarm_set(ALARM_US, start_later, p))
		start_later(p);
}

/* No alarm of the port is waiting or running any more; the device is stopped. */
static void stop_connecting(struct ina_port *p)
{
	rte_eal_alarm_cancel(connect_later, p);
	rte_eal_alarm_cancel(start_later, p);
	wait_for_attempt(p);
	atomic_store_explicit(&p->dial, INA_DIAL_BUSY, memory_order_relaxed);
	if (rte_eal_alarm_set(ALARM_US, stop_later, p)) {
		stop_later(p);
		return;
	}
	while (atomic_load_explicit(&p->dial, memory_order_acquire) != INA_DIAL_STOPPED)
		usleep(ALARM_US);
}

/*
 * A memif of DPDK's (22.11 to 26.07) is left to the end of the process: closing it frees a listener
 * that the interrupt thread still looks at, and to stop a server can free a connection twice, when
 * its client leaves at the same time. A client is stopped, so that its server learns of it.
 */
void ina_port_close(struct ina_port *p)
{
	if (!p->open)
		return;
	p->open = false;
	if (p->dials)
		stop_connecting(p);
	else
		wait_for_attempt(p);
	if (p->memif)
		return;
	rte_eth_dev_stop(p->id);
	rte_eth_dev_close(p->id);
}

bool ina_port_linked(const struct ina_port *p)
{
	struct rte_eth_link link;

	return !rte_eth_link_get_nowait(p->id, &link) && link.link_status == RTE_ETH_LINK_UP;
}

/*
 * The driver dials when it is started, once. Threads that poll stay away meanwhile; one that is
 * just inside finds no connection there.
 */
static void schedule_connect(struct ina_port *p)
{
	atomic_store_explicit(&p->away, true, memory_order_relaxed);
	atomic_store_explicit(&p->dial, INA_DIAL_BUSY, memory_order_relaxed);
	if (rte_eal_alarm_set(ALARM_US, connect_later,
			      p)) /* no memory: the next call tries again */
		atomic_store_explicit(&p->dial, INA_DIAL_IDLE, memory_order_relaxed);
}

bool ina_port_up(struct ina_port *p)
{
	/*
	 * Linked and away: the thread that sets the client up is just through, and no queue sends
	 * yet.
	 */
	if (ina_port_linked(p) && !atomic_load_explicit(&p->away, memory_order_acquire))
		return true;
	if (!p->dials || atomic_load_explicit(&p->dial, memory_order_acquire) != INA_DIAL_IDLE)
		return false;
	if (is_due(p))
		schedule_connect(p);
	return false;
}

void ina_port_count(const struct ina_port *p, struct ina_port_counts *c)
{
	struct rte_eth_stats s;

	memset(c, 0, sizeof(*c));
	if (rte_eth_stats_get(p->id, &s))
		return;
	*c = (struct ina_port_counts) {
		.rx_packets = s.ipackets,
		.tx_packets = s.opackets,
		.rx_bytes = s.ibytes,
		.tx_bytes = s.obytes,
		.rx_missed = s.imissed,
		.rx_errors = s.ierrors,
		.tx_errors = s.oerrors,
		.no_mbuf = s.rx_nombuf,
	};
}
