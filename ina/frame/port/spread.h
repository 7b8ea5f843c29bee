/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spread.h - packets from the threads that receive to the threads that they are for: a ring each
 *
 * What the device does not steer is received by somebody and passed on. Each thread's ring has one
 * reader, and one or many writers. The order of the packets that one writer passes to one reader is
 * kept. A full ring drops, and counts.
 */
#ifndef INA_PORT_SPREAD_H
#define INA_PORT_SPREAD_H

#include "ina/frame/port/port.h"

#include <rte_ring.h>

#define INA_SPREAD_MAX 64

struct ina_spread {
	struct rte_ring *ring[INA_SPREAD_MAX]; /* by reader */
	unsigned readers;
};

/* What one writer has collected: one each for every thread that passes packets on. */
struct ina_spreader {
	struct ina_spread *spread;
	uint16_t n[INA_SPREAD_MAX];
	uint64_t passed, dropped;
	struct rte_mbuf *packet[INA_SPREAD_MAX][INA_BURST];
};

/* name: unlike any other's. size: packets in each ring, a power of two. 0, or a negative errno. */
int ina_spread_open(struct ina_spread *s, const char *name, unsigned readers, unsigned size,
		    bool many_writers);
/* What lies in the rings is freed. */
void ina_spread_close(struct ina_spread *s);
/* Passes on what was collected; call it after every burst. */
void ina_spreader_flush(struct ina_spreader *w);

void ina_spreader_send(struct ina_spreader *w, unsigned reader); /* what is collected for one */

static inline void ina_spreader_put(struct ina_spreader *w, unsigned reader, struct rte_mbuf *m)
{
	w->packet[reader][w->n[reader]++] = m;
	if (w->n[reader] == INA_BURST)
		ina_spreader_send(w, reader);
}

static inline unsigned ina_spread_receive(struct ina_spread *s, unsigned reader,
					  struct rte_mbuf **m, unsigned n)
{
	return rte_ring_sc_dequeue_burst(s->ring[reader], (void **)m, n, NULL);
}

/* Packets that wait for a reader. */
static inline unsigned ina_spread_depth(const struct ina_spread *s, unsigned reader)
{
	return rte_ring_count(s->ring[reader]);
}

/*
 * One burst from a queue of a port, where nobody steers: worker w's packets to reader w, by their
 * DSCP; all others, and those of workers that there are not, to other().
 * How many came.
 */
unsigned ina_spread_burst(struct ina_spreader *w, const struct ina_port *p, uint16_t queue,
			  void (*other)(void *arg, struct rte_mbuf *m), void *arg);

#endif
