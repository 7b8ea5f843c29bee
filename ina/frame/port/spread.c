/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/spread.h"

#include "ina/frame/port/packet.h"

#include <errno.h>
#include <rte_errno.h>
#include <stdio.h>
#include <string.h>

int ina_spread_open(struct ina_spread *s, const char *name, unsigned readers, unsigned size,
		    bool many_writers)
{
	char ring[RTE_RING_NAMESIZE];

	memset(s, 0, sizeof(*s));
	if (readers > INA_SPREAD_MAX)
		return -EINVAL;
	for (s->readers = 0; s->readers < readers; s->readers++) {
		snprintf(ring, sizeof(ring), "%.16s-%u", name, s->readers);
		s->ring[s->readers] = rte_ring_create(
			ring, size, SOCKET_ID_ANY,
			RING_F_SC_DEQ | (many_writers ? 0 : RING_F_SP_ENQ) | RING_F_EXACT_SZ);
		if (!s->ring[s->readers]) {
			int err = rte_errno;

			ina_spread_close(s);
			return err ? -err : -ENOMEM;
		}
	}
	return 0;
}

void ina_spread_close(struct ina_spread *s)
{
	struct rte_mbuf *m;

	for (unsigned i = 0; i < s->readers; i++) {
		while (!rte_ring_dequeue(s->ring[i], (void **)&m))
			rte_pktmbuf_free(m);
		rte_ring_free(s->ring[i]);
	}
	s->readers = 0;
}

void ina_spreader_send(struct ina_spreader *w, unsigned reader)
{
	unsigned n = w->n[reader], taken;

	taken = rte_ring_enqueue_burst(w->spread->ring[reader], (void **)w->packet[reader], n,
				       NULL);
	w->passed += taken;
	w->n[reader] = 0;
	if (likely(taken == n))
		return;
	w->dropped += n - taken;
	rte_pktmbuf_free_bulk(&w->packet[reader][taken], n - taken);
}

void ina_spreader_flush(struct ina_spreader *w)
{
	for (unsigned i = 0; i < w->spread->readers; i++)
		if (w->n[i])
			ina_spreader_send(w, i);
}

unsigned ina_spread_burst(struct ina_spreader *w, const struct ina_port *p, uint16_t queue,
			  void (*other)(void *arg, struct rte_mbuf *m), void *arg)
{
	struct rte_mbuf *m[INA_BURST];
	unsigned n = ina_port_receive(p, queue, m, INA_BURST);

	for (unsigned i = 0; i < n; i++) {
		int worker = ina_packet_worker(m[i]);

		if (worker >= 0 && (unsigned)worker < w->spread->readers)
			ina_spreader_put(w, (unsigned)worker, m[i]);
		else
			other(arg, m[i]);
	}
	if (n)
		ina_spreader_flush(w);
	return n;
}
