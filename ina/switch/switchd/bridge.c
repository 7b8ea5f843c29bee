/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bridge.c - what is not ours: forwarded as a learning bridge does (IEEE 802.1D), and the switch's
 * own address answers ARP
 *
 * No spanning tree: a loop of cables is the operator's to avoid.
 */
#include "ina/frame/bytes.h"
#include "ina/frame/frame.h"
#include "ina/switch/switchd/core.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERNET_MIN 60
#define ARP_BYTES 28 /* RFC 826, of Ethernet and IPv4 */
#define SECOND 1000000000ull

/* 802.1D: 01:80:c2:00:00:00 to 0f stay on their cable */
static const uint8_t reserved[5] = { 0x01, 0x80, 0xc2, 0x00, 0x00 };

/* ---- congestion ---- */

enum mark_result { MARK_NONE, MARK_DONE, MARK_DROP };

/* CE in an IPv4 header that can bear it, with its checksum (RFC 1624). */
static enum mark_result mark_ce(struct rte_mbuf *m)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, INA_ETHERNET_BYTES);
	uint16_t before, after;
	uint32_t sum;

	if (m->data_len < INA_ETHERNET_BYTES + INA_IP_BYTES || ina_get16(ip - 2) != ETHERTYPE_IPV4)
		return MARK_NONE;
	if ((ip[1] & 3) == INA_CE)
		return MARK_NONE;
	if ((ip[1] & 3) == INA_NOT_ECT)
		return MARK_DROP;
	if (rte_mbuf_refcnt_read(m) > 1)
		return MARK_NONE;
	before = ina_get16(ip);
	ip[1] |= INA_CE;
	after = ina_get16(ip);
	sum = (uint16_t)~ina_get16(ip + 10) + (uint16_t)~before + after;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ina_put16(ip + 10, (uint16_t)~sum);
	return MARK_DONE;
}

static void forward_packet(struct ina_core *c, uint16_t port, struct rte_mbuf *m)
{
	if (unlikely(m->nb_segs > 1) && !c->all->port[port].segments &&
	    (m->pkt_len > INA_PACKET_ROOM || rte_pktmbuf_linearize(m))) {
		c->count.no_packet++;
		rte_pktmbuf_free(m);
		return;
	}
	if (unlikely(ina_mark_packet(&c->egress[port], ina_tx_depth(&c->tx[port])))) {
		enum mark_result r = mark_ce(m);

		if (r == MARK_DROP) {
			c->count.wred_dropped++;
			rte_pktmbuf_free(m);
			return;
		}
		c->count.marked += r == MARK_DONE;
	}
	ina_tx_send(&c->tx[port], m);
}

/* ---- ARP ---- */

/* A request for our address becomes its answer. */
static bool is_for_us(const struct ina_core *c, const struct rte_mbuf *m)
{
	const uint8_t *arp = rte_pktmbuf_mtod_offset(m, const uint8_t *, INA_ETHERNET_BYTES);

	return m->data_len >= INA_ETHERNET_BYTES + ARP_BYTES &&
	       ina_get16(arp - 2) == ETHERTYPE_ARP && ina_get16(arp) == 1 &&
	       ina_get16(arp + 2) == ETHERTYPE_IPV4 && arp[4] == 6 && arp[5] == 4 &&
	       ina_get16(arp + 6) == 1 && ina_get32(arp + 24) == c->all->addr;
}

static void answer_arp(struct ina_core *c, struct rte_mbuf *m)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *), *arp = eth + INA_ETHERNET_BYTES;

	memcpy(eth, arp + 8, 6);
	memcpy(eth + 6, c->all->mac, 6);
	ina_put16(arp + 6, 2);
	memcpy(arp + 18, arp + 8, 10);
	memcpy(arp + 8, c->all->mac, 6);
	ina_put32(arp + 14, c->all->addr);
	c->count.arp++;
	ina_tx_send(&c->tx[m->port], m);
}

/* ---- forwarding ---- */

static void flood_packet(struct ina_core *c, struct rte_mbuf *m)
{
	uint16_t from = m->port;

	c->count.flooded++;
	for (unsigned p = 0; p < c->all->nports; p++) {
		struct rte_mbuf *copy;

		if (p == from)
			continue;
		copy = rte_pktmbuf_clone(m, c->all->pool);
		if (copy)
			forward_packet(c, (uint16_t)p, copy);
		else
			c->count.no_packet++;
	}
	rte_pktmbuf_free(m);
}

static void drop_packet(struct rte_mbuf *m, uint64_t *counter)
{
	(*counter)++;
	rte_pktmbuf_free(m);
}

void ina_core_bridge(struct ina_core *c, struct rte_mbuf *m)
{
	struct ina_cores *all = c->all;
	const uint8_t *eth = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t now = (uint32_t)(c->now / SECOND);
	uint16_t to;

	if (m->data_len < INA_ETHERNET_BYTES || (!memcmp(eth, reserved, 5) && eth[5] < 16)) {
		drop_packet(m, &c->count.reserved);
		return;
	}
	ina_mac_learn(&all->macs, eth + 6, m->port, now);
	if (is_for_us(c, m)) {
		answer_arp(c, m);
		return;
	}
	if (!memcmp(eth, all->mac, 6)) {
		drop_packet(m, &c->count.not_spoken);
		return;
	}
	to = eth[0] & 1 ? INA_MAC_NOWHERE : ina_mac_find(&all->macs, eth, now);
	if (to == INA_MAC_NOWHERE) {
		flood_packet(c, m);
	} else if (to == m->port) {
		drop_packet(m, &c->count.stayed);
	} else {
		c->count.forwarded++;
		forward_packet(c, to, m);
	}
}
