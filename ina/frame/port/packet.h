/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.h - frames of aggregation straight in DPDK's packets: nothing lies between struct
 * ina_frame and the mbuf
 */
#ifndef INA_PORT_PACKET_H
#define INA_PORT_PACKET_H

#include "ina/frame/port/port.h"
#include "ina/frame/wire.h"

/* f->words point into m. A packet in several mbufs is brought into one first. */
static inline enum ina_fault ina_packet_decode(struct rte_mbuf *m, struct ina_frame *f)
{
	if (unlikely(m->nb_segs > 1) && (m->pkt_len > INA_PACKET_ROOM || rte_pktmbuf_linearize(m)))
		return INA_FAULT_LENGTH;
	return ina_wire_decode(rte_pktmbuf_mtod(m, const void *), m->data_len, f);
}

/*
 * A frame of so many bytes is in m. The device makes the checksum where it can; then it is 0 there.
 */
static inline void ina_packet_made(const struct ina_port *p, struct rte_mbuf *m, size_t bytes)
{
	if (p->checksum) {
		m->l2_len = INA_ETHERNET_BYTES;
		m->l3_len = INA_IP_BYTES;
		m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	}
	m->data_len = (uint16_t)bytes;
	m->pkt_len = m->data_len;
}

/* All but the words, which may be there already: how long it is. */
static inline size_t ina_packet_encode_head(const struct ina_port *p, const struct ina_frame *f,
					    struct rte_mbuf *m)
{
	size_t head = ina_wire_encode_head(f, !p->checksum, rte_pktmbuf_mtod(m, void *));

	ina_packet_made(p, m, head + (f->words ? INA_PAYLOAD_BYTES : 0));
	return head;
}

/* Into an empty mbuf of a pool of ina_pool_create(), for this port. */
static inline void ina_packet_encode(const struct ina_port *p, const struct ina_frame *f,
				     struct rte_mbuf *m)
{
	size_t head = ina_packet_encode_head(p, f, m);

	if (f->words)
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, head), f->words, INA_PAYLOAD_BYTES);
}

/* The same, and the mbuf from the pool; NULL when it is empty. */
static inline struct rte_mbuf *ina_packet_make(const struct ina_port *p, struct rte_mempool *pool,
					       const struct ina_frame *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (likely(m))
		ina_packet_encode(p, f, m);
	return m;
}

/*
 * The worker (DSCP) that a frame of aggregation of either kind is for, without looking further; -1:
 * another packet.
 */
static inline int ina_packet_worker(const struct rte_mbuf *m)
{
	const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *), *ip = b + INA_ETHERNET_BYTES;

	if (m->data_len < INA_ETHERNET_BYTES + INA_IP_BYTES || b[12] != 0x08 || b[13] != 0x00)
		return -1;
	return ip[9] == INA_PROTOCOL_OLD || ip[9] == INA_PROTOCOL_EXTENDED ? ip[1] >> 2 : -1;
}

#endif
