/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx.h - what one thread has to send to one port
 *
 * Packets are collected and handed to the driver in bursts; what the driver does not take waits
 * here, in order, and how many wait is the depth that congestion is judged by. When there is no
 * more room, or nobody at the other end of the cable, they are dropped, and counted. A queue of the
 * device that several threads have (fewer queues than threads) has a lock, which is taken once per
 * burst.
 */
#ifndef INA_PORT_TX_H
#define INA_PORT_TX_H

#include "ina/frame/port/port.h"

struct ina_tx {
	struct ina_port *port;
	uint16_t queue;
	bool shared;         /* with other threads */
	uint32_t head, tail; /* counted through: head - tail wait */
	uint32_t mask;       /* room - 1 */
	uint32_t flush_at;   /* head at which a burst is complete */
	struct rte_mbuf **packet;
	uint64_t sent, dropped;
};

/*
 * room: packets that may wait, a power of two, at least INA_BURST. thread: which of the port's
 * threads this is; threads: how many. 0 or -ENOMEM.
 */
int ina_tx_open(struct ina_tx *tx, struct ina_port *port, unsigned thread, unsigned threads,
		unsigned room);
/* What waits is freed. */
void ina_tx_close(struct ina_tx *tx);
/* Hands to the driver what it takes. True: nothing waits any more. */
bool ina_tx_flush(struct ina_tx *tx);

static inline uint32_t ina_tx_depth(const struct ina_tx *tx)
{
	return tx->head - tx->tail;
}

/*
 * m is the queue's from now on. It goes with its burst: call ina_tx_flush() before waiting for
 * anything.
 */
static inline void ina_tx_send(struct ina_tx *tx, struct rte_mbuf *m)
{
	if (unlikely(ina_tx_depth(tx) > tx->mask)) {
		ina_tx_flush(tx);
		if (ina_tx_depth(tx) > tx->mask) {
			tx->dropped++;
			rte_pktmbuf_free(m);
			return;
		}
	}
	tx->packet[tx->head++ & tx->mask] = m;
	if ((int32_t)(tx->head - tx->flush_at) >= 0)
		ina_tx_flush(tx);
}

#endif
