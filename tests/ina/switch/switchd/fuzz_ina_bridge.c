/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is not the switch's, on three ports: the input is a list of packets, each with its port, the
 * time that passes before it, and its bytes.
 *
 * Whatever they are: a packet leaves as it came, or marked; never where it came from, but the
 * answer to an ARP request; to one port, or to all others; a sender that has just sent is found;
 * every packet is counted once, and none is lost.
 */
#include "base/check.h"
#include "ina/frame/bytes.h"
#include "ina/frame/frame.h"
#include "ina/switch/switchd/core.h"

#define PORTS 3u
#define PACKETS 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ina_cores all = { .addr = 0x0a0000fe,
				.mac = { 2, 0, 10, 0, 0, 0xfe },
				.nports = PORTS,
				.ncores = 1,
				.mark = { .min = 2, .max = 6, .probability = 0.5 } };
static struct ina_core *core;

static struct last {
	uint8_t mac[6];
	uint16_t port;
} last; /* who sent the packet before */

static void start_core(void)
{
	const struct ina_eal_options options = { .program = "fuzz", .threads = 1, .memory_mb = 32 };
	char why[256] = "";

	if (ina_eal_start(&options, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	all.pool = ina_pool_create("packets", PACKETS, why, sizeof(why));
	core = calloc(1, sizeof(*core));
	CHECK(all.pool && core);
	core->all = &all;
	for (unsigned p = 0; p < PORTS; p++) {
		all.port[p].tx_queues = 1;
		CHECK(!ina_tx_open(&core->tx[p], &all.port[p], 0, 1, 64));
		ina_mark_open(&core->egress[p], &all.mark, p);
	}
}

static bool is_arp_answer(const uint8_t *in, size_t n, const struct rte_mbuf *m)
{
	const uint8_t *out = rte_pktmbuf_mtod(m, const uint8_t *);

	return n >= 42 && ina_get16(in + 12) == 0x0806 && ina_get32(in + 38) == all.addr &&
	       !memcmp(out, in + 22, 6) && !memcmp(out + 6, all.mac, 6) &&
	       !memcmp(out + 22, all.mac, 6) && ina_get32(out + 28) == all.addr &&
	       ina_get16(out + 20) == 2;
}

/* As it came, or with CE and the checksum that goes with it. */
static bool is_same(const uint8_t *in, size_t n, const struct rte_mbuf *m)
{
	const uint8_t *out = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t before = 0, after = 0;

	if (m->data_len != n || m->nb_segs != 1)
		return false;
	if (!memcmp(in, out, n))
		return true;
	if (n < 34 || ina_get16(in + 12) != 0x0800 || !(in[15] & 3) || out[15] != (in[15] | 3))
		return false;
	for (size_t i = 14; i < 34;
	     i += 2) { /* the sum of the header stays what it was, right or wrong */
		before += ina_get16(in + i);
		after += ina_get16(out + i);
	}
	return !memcmp(in, out, 15) && !memcmp(in + 16, out + 16, 8) &&
	       !memcmp(in + 26, out + 26, n - 26) && before % 0xffff == after % 0xffff;
}

static uint64_t sum_counts(void)
{
	const struct ina_core_counts *c = &core->count;

	return c->forwarded + c->flooded + c->stayed + c->reserved + c->arp + c->not_spoken;
}

static void free_waiting(void)
{
	for (unsigned p = 0; p < PORTS; p++) {
		struct ina_tx *tx = &core->tx[p];

		while (tx->tail != tx->head)
			rte_pktmbuf_free(tx->packet[tx->tail++ & tx->mask]);
		tx->flush_at = tx->head + INA_BURST;
	}
}

static void bridge_packet(uint16_t port, const uint8_t *bytes, size_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(all.pool);
	uint64_t before = sum_counts(), floods = core->count.flooded;
	uint32_t head[PORTS];
	unsigned outs = 0, dropped = (unsigned)core->count.wred_dropped;
	bool found = n >= 14 && !(bytes[0] & 1) && !memcmp(bytes, last.mac, 6) &&
		     memcmp(bytes + 6, last.mac, 6);

	CHECK(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), bytes, n);
	m->port = port;
	for (unsigned p = 0; p < PORTS; p++)
		head[p] = core->tx[p].head;
	ina_core_bridge(core, m);
	CHECK_INT(sum_counts(), before + 1);
	for (uint16_t p = 0; p < PORTS; p++) {
		struct ina_tx *tx = &core->tx[p];
		const struct rte_mbuf *out = tx->packet[head[p] & tx->mask];

		CHECK(tx->head - head[p] <= 1);
		if (tx->head == head[p])
			continue;
		outs++;
		CHECK(p == port ? is_arp_answer(bytes, n, out) : is_same(bytes, n, out));
		CHECK(p == port || !found || p == last.port);
	}
	outs += (unsigned)core->count.wred_dropped - dropped;
	if (core->count.flooded > floods)
		CHECK(outs == PORTS - 1);
	else
		CHECK(outs <= 1);
	if (n >= 14 && !(bytes[6] & 1) && memcmp(bytes, "\x01\x80\xc2\0\0", 5)) {
		memcpy(last.mac, bytes + 6, 6);
		last.port = port;
	} else {
		memset(&last, 0xff, sizeof(last)); /* a group's address: no packet is to it alone */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!core)
		start_core();
	memset(&last, 0xff, sizeof(last));
	memset(&all.macs, 0, sizeof(all.macs));
	/* port and whether what waits leaves, seconds, length, bytes */
	while (size >= 3 && size - 3 >= data[2]) {
		core->now += data[1] * 1000000000ull;
		if (data[1])
			memset(&last, 0xff, sizeof(last));
		if (data[0] & 4 || ina_tx_depth(&core->tx[0]) + ina_tx_depth(&core->tx[1]) +
						   ina_tx_depth(&core->tx[2]) >
					   INA_BURST / 2)
			free_waiting();
		bridge_packet(data[0] % 4 % PORTS, data + 3, data[2]);
		size -= 3 + data[2];
		data += 3 + data[2];
	}
	free_waiting();
	CHECK_INT(rte_mempool_avail_count(all.pool), PACKETS);
	return 0;
}
