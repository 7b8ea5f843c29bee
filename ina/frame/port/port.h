/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - one port of DPDK's: opened with its queues, received from and sent to in bursts
 *
 * Set-up is port.c. What is done per packet is here and in tx.h.
 */
#ifndef INA_PORT_PORT_H
#define INA_PORT_PORT_H

#include <rte_ethdev.h>
#include <rte_spinlock.h>
#include <stdatomic.h>

#define INA_BURST 32
#define INA_PORT_QUEUES 64
/* bytes of a packet that a pool's mbuf has room for; jumbo frames come in several */
#define INA_PACKET_ROOM 2048

struct ina_port_config {
	/* as many as the device has, at most these; 0 = 1 */
	unsigned rx_queues, tx_queues;
	/* of each queue; 0 = 1024, or what the device can */
	unsigned rx_descriptors, tx_descriptors;
	struct rte_mempool *pool; /* for what is received */
	/* take what is not for the port's own address, too */
	bool promiscuous;
};

/* Of a memif's client: idle -> busy (an alarm of DPDK's will dial) -> idle; at its end stopped. */
enum ina_dial { INA_DIAL_IDLE, INA_DIAL_BUSY, INA_DIAL_STOPPED };

struct ina_port {
	uint16_t id, rx_queues, tx_queues;
	bool checksum; /* the device makes IPv4 checksums (packet.h) */
	bool segments; /* it sends packets of several mbufs */
	bool open;
	char name[RTE_ETH_NAME_MAX_LEN];
	char driver[32];
	uint8_t mac[6];
	uint16_t mtu;      /* bytes of IPv4 */
	bool memif, dials; /* its driver; as a client */
	char socket[108];  /* then: where its server listens */
	/* ns; written by whoever starts the device, read while `dial` is idle */
	uint64_t dialled_at;
	_Atomic unsigned dial;                   /* enum ina_dial */
	_Atomic bool away;                       /* being dialled: nobody touches the device */
	rte_spinlock_t tx_lock[INA_PORT_QUEUES]; /* of a queue that several threads send to */
};

/*
 * Bytes of memory that a packet takes, with all that belongs to it: a page each, where a driver
 * wants that (no hugepages, and not ina_eal_copies()).
 */
unsigned ina_packet_bytes(void);
/* mbufs of INA_PACKET_ROOM for n packets. name: unlike any other pool's. NULL and why. */
struct rte_mempool *ina_pool_create(const char *name, unsigned n, char *why, size_t size);

/* spec: as in struct ina_eal_options. 0, or a negative errno and why. */
int ina_port_open(struct ina_port *p, const char *spec, const struct ina_port_config *config,
		  char *why, size_t size);
/* Stops the device; packets in its queues are freed. */
void ina_port_close(struct ina_port *p);
/* Is the link up? Asks the driver; not for every packet. */
bool ina_port_linked(const struct ina_port *p);
/*
 * The same, and if it does not, and the port is a memif's client, dials, at most ten times a
 * second. To be called now and then by one thread, which may poll the port or not.
 */
bool ina_port_up(struct ina_port *p);
/* What the driver has counted; 0 where it does not. */
struct ina_port_counts {
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
	uint64_t rx_missed; /* no room in the device's queue */
	uint64_t rx_errors, tx_errors;
	uint64_t no_mbuf; /* the pool was empty */
};
void ina_port_count(const struct ina_port *p, struct ina_port_counts *counts);

static inline uint16_t ina_port_receive(const struct ina_port *p, uint16_t queue,
					struct rte_mbuf **m, uint16_t n)
{
	if (unlikely(atomic_load_explicit(&p->away, memory_order_relaxed)))
		return 0;
	return rte_eth_rx_burst(p->id, queue, m, n);
}

#endif
