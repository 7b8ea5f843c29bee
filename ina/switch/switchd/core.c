/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/core.h"

#include "base/clock.h"
#include "ina/frame/bytes.h"
#include "ina/frame/port/packet.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define RING 2048          /* packets that may wait for another core */
#define SHORT_ROUNDS 10000 /* in a second */
#define IP_AT INA_ETHERNET_BYTES
#define OLD_AT (IP_AT + INA_IP_BYTES)
#define EXTENDED_AT (OLD_AT + INA_EXTENSION_BYTES)

/* ---- whose it is ---- */

/* Group and worker decide, and nothing else. */
static unsigned owner_of(const struct ina_cores *all, uint8_t group, uint8_t worker)
{
	return all->ncores > 1 ? (unsigned)(group + worker) % all->ncores : 0;
}

/*
 * A frame of either kind, to our address, whole enough to have a group? Its slot, too, if it is
 * what it seems to be.
 */
static inline bool is_ours(const struct ina_cores *all, const struct rte_mbuf *m, int *worker,
			   uint8_t *group, uint32_t *slot)
{
	const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned at;

	*worker = ina_packet_worker(m);
	if (*worker < 0 || ina_get32(b + IP_AT + 16) != all->addr)
		return false;
	at = b[IP_AT + 9] == INA_PROTOCOL_EXTENDED ? EXTENDED_AT : OLD_AT;
	*group = *slot = 0;
	if (likely(m->data_len >= at + INA_HEADER_BYTES)) {
		*group = b[at + 1];
		*slot = ina_get16(b + at + 4);
	} else if (m->data_len > at + 1) {
		*group = b[at + 1];
	}
	return true;
}

/* It comes nearer; nothing else depends on it. */
static inline void fetch_slot(const struct ina_core *c, uint32_t slot)
{
	if (likely(slot < c->all->nslots))
		for (unsigned i = 0; i < INA_SLOT_BYTES; i += 64)
			rte_prefetch0((const uint8_t *)&c->slot[slot] + i);
}

/* ---- a round ---- */

/* Not when packets are lost, repeated or sent back on purpose. How many are left. */
static inline unsigned aggregate_predicted(struct ina_core *c, struct rte_mbuf **m, unsigned n,
					   int port)
{
	return unlikely(c->all->faults.on | c->all->reflect)
		       ? n
		       : c->aggregate_predicted(c, m, n, port);
}

/* True: it is for this core's slots. Else it is gone. */
static inline bool classify_packet(struct ina_core *c, struct rte_mbuf *m)
{
	struct ina_cores *all = c->all;
	uint32_t slot;
	uint8_t group;
	int worker;
	unsigned to;

	if (!is_ours(all, m, &worker, &group, &slot)) {
		ina_core_bridge(c, m);
		return false;
	}
	if (unlikely(all->faults.on) && !ina_faults_pass(&c->faults, m, -1, c->now))
		return false;
	to = owner_of(all, group, (uint8_t)worker);
	if (to == c->index) {
		fetch_slot(c, slot);
		return true;
	}
	ina_spreader_put(&c->spreader, to, m);
	return false;
}

/*
 * How many packets wait in a device's queue, where the driver says so: asked only when there was a
 * whole burst.
 */
static void look_behind(struct ina_core *c, uint16_t port, uint16_t queue)
{
	int n = rte_eth_rx_queue_count(c->all->port[port].id, queue);

	if (n > 0)
		c->depth += (uint32_t)n;
}

static unsigned receive_burst(struct ina_core *c, uint16_t port, uint16_t queue)
{
	struct rte_mbuf *m[INA_BURST];
	unsigned n = ina_port_receive(&c->all->port[port], queue, m, INA_BURST), left, mine = 0;

	if (n == INA_BURST)
		look_behind(c, port, queue);
	c->count.received += n;
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	left = aggregate_predicted(c, m, n, port);
	for (unsigned i = 0; i < left; i++) {
		m[i]->port = port;
		if (classify_packet(c, m[i]))
			m[mine++] = m[i];
	}
	if (mine)
		c->aggregate(c, m, mine);
	return n;
}

static unsigned take_passed(struct ina_core *c)
{
	struct rte_mbuf *m[INA_BURST];
	unsigned n = ina_spread_receive(&c->all->spread, c->index, m, INA_BURST), left;

	if (n == INA_BURST)
		c->depth += ina_spread_depth(&c->all->spread, c->index);
	left = aggregate_predicted(c, m, n, -1);
	if (left)
		c->aggregate(c, m, left);
	return n;
}

/* What was held back by --fault and is due. */
static unsigned take_held(struct ina_core *c)
{
	struct rte_mbuf *m;
	unsigned n = 0;
	int out;

	while ((m = ina_faults_due(&c->faults, c->now, &out))) {
		uint32_t slot;
		uint8_t group;
		int worker;

		n++;
		if (out >= 0) {
			ina_tx_send(&c->tx[out], m);
		} else if (is_ours(c->all, m, &worker, &group, &slot)) {
			unsigned to = owner_of(c->all, group, (uint8_t)worker);

			if (to == c->index)
				c->aggregate(c, &m, 1);
			else
				ina_spreader_put(&c->spreader, to, m);
		}
	}
	return n;
}

static bool flush_queues(struct ina_core *c)
{
	bool waiting = false;

	ina_spreader_flush(&c->spreader);
	for (unsigned p = 0; p < c->all->nports; p++)
		if (ina_tx_depth(&c->tx[p]))
			waiting |= !ina_tx_flush(&c->tx[p]);
	return waiting;
}

static void run_command(struct ina_core *c)
{
	uint64_t number = atomic_load_explicit(&c->all->command_number, memory_order_acquire);

	if (likely(number == atomic_load_explicit(&c->done, memory_order_relaxed)))
		return;
	c->all->command(c->all->command_arg, &c->sw, c->index);
	atomic_store_explicit(&c->done, number, memory_order_release);
}

static unsigned round_of(struct ina_core *c)
{
	unsigned n = 0;

	c->now = ha_clock_now(&ha_clock_live);
	c->depth = 0;
	if (c->all->ncores > 1)
		n += take_passed(c);
	for (unsigned i = 0; i < c->nrx; i++)
		n += receive_burst(c, c->rx[i].port, c->rx[i].queue);
	if (unlikely(c->all->faults.on))
		n += take_held(c);
	return n;
}

/* What a packet costs, with and without what other programs took of the processor. */
static void time_round(struct ina_core *c, unsigned n, uint64_t cycles)
{
	c->count.busy_rounds++;
	c->count.busy_cycles += cycles;
	if (cycles < c->short_cycles) {
		c->count.short_packets += n;
		c->count.short_cycles += cycles;
	}
}

int ina_core_run(void *arg)
{
	struct ina_core *c = arg;
	uint64_t from = rte_rdtsc(), to;

	ha_set_exact_sleeps();
	while (!atomic_load_explicit(&c->all->stop, memory_order_relaxed)) {
		unsigned n;
		bool waiting;

		run_command(c);
		n = round_of(c);
		waiting = flush_queues(c);
		c->count.rounds++;
		to = rte_rdtsc();
		if (n)
			time_round(c, n, to - from);
		/* With --fault something may be due any moment: no long sleep. */
		ina_idle_round(&c->idle, n || waiting || c->faults.held);
		from = n ? to : rte_rdtsc();
	}
	return 0;
}

/* ---- commands ---- */

void ina_cores_command(struct ina_cores *all,
		       void (*command)(void *arg, struct ina_switch *sw, unsigned core), void *arg)
{
	uint64_t number = atomic_load_explicit(&all->command_number, memory_order_relaxed) + 1;

	all->command = command;
	all->command_arg = arg;
	atomic_store_explicit(&all->command_number, number, memory_order_release);
	for (unsigned i = 0; i < all->ncores; i++)
		while (atomic_load_explicit(&all->core[i]->done, memory_order_acquire) != number &&
		       !atomic_load_explicit(&all->stop, memory_order_relaxed))
			sched_yield();
}

/* ---- set-up ---- */

static void *map_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_HUGEPAGE);
	return p;
}

/* What is made for this processor. */
static void choose_aggregate(struct ina_core *c)
{
	c->aggregate = ina_aggregate_plain;
	c->aggregate_predicted = ina_aggregate_predicted_plain;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		c->aggregate = ina_aggregate_avx2;
		c->aggregate_predicted = ina_aggregate_predicted_avx2;
	}
#endif
}

static void core_free(struct ina_core *c)
{
	if (c->slot)
		munmap(c->slot, c->all->nslots * sizeof(*c->slot));
	ina_predictions_close(c->prediction);
	free(c);
}

static struct ina_core *core_open(struct ina_cores *all, unsigned index)
{
	struct ina_core *c = aligned_alloc(INA_CORE_LINE, (sizeof(*c) + INA_CORE_LINE - 1) /
								  INA_CORE_LINE * INA_CORE_LINE);

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->all = all;
	c->index = index;
	choose_aggregate(c);
	c->slot = map_memory(all->nslots *
			     sizeof(*c->slot)); /* what no group uses is never touched */
	c->prediction = ina_predictions_open();
	if (!c->slot || !c->prediction) {
		core_free(c);
		return NULL;
	}
	ina_switch_init(&c->sw, all->addr, all->mac, c->slot, all->nslots);
	c->spreader.spread = &all->spread;
	c->idle.us = all->idle_us;
	c->idle.shared = all->shared;
	c->short_cycles = rte_get_tsc_hz() / SHORT_ROUNDS;
	ina_mark_open(&c->ingress, &all->mark, 0x9e3779b97f4a7c15ull * (index + 1));
	ina_faults_open(&c->faults, &all->faults, index);
	return c;
}

static int open_tx(struct ina_core *c)
{
	for (unsigned p = 0; p < c->all->nports; p++) {
		int err = ina_tx_open(&c->tx[p], &c->all->port[p], c->index, c->all->ncores,
				      c->all->queue);

		if (err)
			return err;
		ina_mark_open(&c->egress[p], &c->all->mark,
			      0xd1b54a32d192ed03ull * (c->index * INA_PORTS_MAX + p + 1));
	}
	return 0;
}

/* Each queue of each port has one reader. */
static int deal_queues(struct ina_cores *all)
{
	unsigned next = 0;

	for (unsigned p = 0; p < all->nports; p++)
		for (uint16_t q = 0; q < all->port[p].rx_queues; q++, next++) {
			struct ina_core *c = all->core[next % all->ncores];

			if (c->nrx == sizeof(c->rx) / sizeof(c->rx[0]))
				return -E2BIG;
			c->rx[c->nrx].port = (uint16_t)p;
			c->rx[c->nrx++].queue = q;
		}
	return 0;
}

int ina_cores_open(struct ina_cores *all, char *why, size_t size)
{
	int err = all->ncores > 1 ? ina_spread_open(&all->spread, "cores", all->ncores, RING, true)
				  : 0;

	for (unsigned i = 0; !err && i < all->ncores; i++) {
		all->core[i] = core_open(all, i);
		err = all->core[i] ? open_tx(all->core[i]) : -ENOMEM;
	}
	if (!err)
		err = deal_queues(all);
	if (err)
		snprintf(why, size, "%s",
			 err == -E2BIG ? "too many queues for so few cores"
				       : "no memory for the cores (--memory)");
	return err;
}

void ina_cores_close(struct ina_cores *all)
{
	for (unsigned i = 0; i < all->ncores; i++) {
		struct ina_core *c = all->core[i];

		if (!c)
			continue;
		for (unsigned p = 0; p < all->nports; p++)
			ina_tx_close(&c->tx[p]);
		ina_faults_close(&c->faults);
		while (c->nspare)
			rte_pktmbuf_free(c->spare[--c->nspare]);
		core_free(c);
		all->core[i] = NULL;
	}
	ina_spread_close(&all->spread);
}

/* Another thread's number, whole. */
static uint64_t read_count(const uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

void ina_cores_count(const struct ina_cores *all, struct ina_core_counts *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < all->ncores; i++) {
		const struct ina_core *c = all->core[i];
		const uint64_t *from = (const uint64_t *)&c->count;
		uint64_t *to = (uint64_t *)sum;

		for (size_t k = 0; k < sizeof(*sum) / sizeof(*to); k++)
			to[k] += read_count(&from[k]);
		sum->passed += read_count(&c->spreader.passed);
		sum->pass_dropped += read_count(&c->spreader.dropped);
		sum->lost += read_count(&c->faults.lost);
		sum->repeated += read_count(&c->faults.repeated);
		sum->reordered += read_count(&c->faults.reordered);
	}
}
