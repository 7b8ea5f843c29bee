/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/tx.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ina_tx_open(struct ina_tx *tx, struct ina_port *port, unsigned thread, unsigned threads,
		unsigned room)
{
	assert(room >= INA_BURST && !(room & (room - 1)));
	*tx = (struct ina_tx) { .port = port,
				.queue = (uint16_t)(thread % port->tx_queues),
				.shared = threads > port->tx_queues,
				.mask = room - 1,
				.flush_at = INA_BURST };
	tx->packet = calloc(room, sizeof(struct rte_mbuf *));
	return tx->packet ? 0 : -ENOMEM;
}

static void discard_packets(struct ina_tx *tx)
{
	while (tx->tail != tx->head)
		rte_pktmbuf_free(tx->packet[tx->tail++ & tx->mask]);
}

void ina_tx_close(struct ina_tx *tx)
{
	if (tx->packet)
		discard_packets(tx);
	free(tx->packet);
	memset(tx, 0, sizeof(*tx));
}

/* Up to the end of the array. */
static uint16_t send_burst(struct ina_tx *tx, uint16_t *wanted)
{
	uint32_t at = tx->tail & tx->mask, n = ina_tx_depth(tx), end = tx->mask + 1 - at;

	if (n > end)
		n = end;
	*wanted = (uint16_t)(n < 2 * INA_BURST ? n : 2 * INA_BURST);
	if (unlikely(atomic_load_explicit(&tx->port->away, memory_order_relaxed)))
		return 0;
	return rte_eth_tx_burst(tx->port->id, tx->queue, &tx->packet[at], *wanted);
}

/* The driver took nothing: is anybody there? */
static void drop_if_unlinked(struct ina_tx *tx)
{
	if (ina_port_linked(tx->port))
		return;
	tx->dropped += ina_tx_depth(tx);
	discard_packets(tx);
}

bool ina_tx_flush(struct ina_tx *tx)
{
	uint16_t taken = 1, wanted = 1;

	if (tx->shared)
		rte_spinlock_lock(&tx->port->tx_lock[tx->queue]);
	while (tx->tail != tx->head && taken == wanted) {
		taken = send_burst(tx, &wanted);
		tx->tail += taken;
		tx->sent += taken;
	}
	if (tx->shared)
		rte_spinlock_unlock(&tx->port->tx_lock[tx->queue]);
	if (unlikely(!taken))
		drop_if_unlinked(tx);
	tx->flush_at = tx->head + INA_BURST;
	return tx->tail == tx->head;
}
