/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ina_traffic.h"

#include "base/check.h"
#include "ina/frame/bytes.h"

#define GROUP_AT 43
#define RANK_AT 44
#define SLOT_AT 46
#define PSN_AT 48

static const uint8_t sizes[INA_TRAFFIC_SIZES] = { 2, 4, 8, 16, 32 };

unsigned ina_traffic_case(const char *name)
{
	unsigned i = 0;

	while (i < INA_TRAFFIC_SIZES && atoi(name) != sizes[i])
		i++;
	if (i < INA_TRAFFIC_SIZES)
		return i;
	if (!strcmp(name, "forward"))
		return INA_TRAFFIC_FORWARD;
	return !strcmp(name, "reflect") ? INA_TRAFFIC_REFLECT : INA_TRAFFIC_CASES;
}

const char *ina_traffic_name(unsigned which)
{
	static char name[16];

	if (which >= INA_TRAFFIC_SIZES)
		return which == INA_TRAFFIC_FORWARD ? "forward" : "reflect";
	snprintf(name, sizeof(name), "%u ranks", sizes[which]);
	return name;
}

struct ina_group_config ina_traffic_group(unsigned which)
{
	struct ina_group_config c = { .id = (uint8_t)(which + 1),
				      .ranks = sizes[which],
				      .workers = 1,
				      .extended = true,
				      .base = which * 2 * INA_TRAFFIC_IN_FLIGHT,
				      .len = 2 * INA_TRAFFIC_IN_FLIGHT / sizes[which],
				      .epoch = 1,
				      .lease_until = UINT64_MAX };

	for (unsigned k = 0; k < c.ranks; k++)
		c.member[k].addr = 0x0a000001u + k;
	return c;
}

static void make_sample(struct ina_traffic *t, unsigned k)
{
	uint8_t words[INA_PAYLOAD_BYTES];
	struct ina_frame f = { .dst_mac = INA_TRAFFIC_MAC,
			       .src_mac = { 2, 1, 1, 1, 1, (uint8_t)k },
			       .dst = INA_TRAFFIC_ADDR + t->forward,
			       .src = 0x0a000001u + k,
			       .ecn = INA_ECT1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = (uint8_t)t->group,
			       .rank = (uint8_t)k,
			       .epoch = 1,
			       .words = words };

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, k * 1000 + i);
	if (t->forward)
		memcpy(f.dst_mac, (const uint8_t[6]) { 2, 1, 1, 1, 1, (uint8_t)(k ^ 1) }, 6);
	CHECK(ina_frame_encode(&f, t->sample[k]) == INA_TRAFFIC_BYTES);
}

static unsigned find_size(unsigned which)
{
	if (which == INA_TRAFFIC_FORWARD)
		return 0;
	return which == INA_TRAFFIC_REFLECT ? INA_TRAFFIC_SIZES - 1 : which;
}

void ina_traffic_make(struct ina_traffic *t, unsigned which, struct ina_port port[2],
		      struct ina_tx tx[2])
{
	struct ina_group_config g = ina_traffic_group(find_size(which));

	*t = (struct ina_traffic) { .port = port,
				    .tx = tx,
				    .ranks = g.ranks,
				    .window = g.len / 2,
				    .base = g.base,
				    .group = g.id,
				    .forward = which == INA_TRAFFIC_FORWARD };
	for (unsigned k = 0; k < t->ranks; k++)
		make_sample(t, k);
}

/* The next one of rank k, in this packet. */
static void send_sample(struct ina_traffic *t, struct rte_mbuf *m, unsigned k)
{
	uint8_t *b = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t psn = t->psn[k]++;

	memcpy(b, t->sample[k], INA_TRAFFIC_BYTES);
	ina_put16(b + SLOT_AT, (uint16_t)(t->base + psn % (2 * t->window)));
	ina_put32(b + PSN_AT, psn);
	m->data_len = INA_TRAFFIC_BYTES;
	m->pkt_len = INA_TRAFFIC_BYTES;
	ina_tx_send(&t->tx[k % 2], m);
}

void ina_traffic_send(struct ina_traffic *t, struct rte_mempool *pool, unsigned rank)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	CHECK(m);
	send_sample(t, m, rank);
}

/*
 * Who sends for what came at this port: an answer's rank; of a forwarded packet the one that it
 * came to.
 */
static unsigned next_rank(const struct ina_traffic *t, unsigned port, const struct rte_mbuf *m)
{
	return t->forward ? port : rte_pktmbuf_mtod(m, const uint8_t *)[RANK_AT];
}

/* Not a late one of the case before. */
static bool is_of_now(const struct ina_traffic *t, const struct rte_mbuf *m)
{
	return t->forward || rte_pktmbuf_mtod(m, const uint8_t *)[GROUP_AT] == t->group;
}

unsigned ina_traffic_answer(struct ina_traffic *t, unsigned port, bool go_on)
{
	struct rte_mbuf *m[INA_BURST];
	unsigned n = ina_port_receive(&t->port[port], 0, m, INA_BURST);

	for (unsigned i = 0; i < n; i++) {
		if (go_on && is_of_now(t, m[i]))
			send_sample(t, m[i], next_rank(t, port, m[i]));
		else
			rte_pktmbuf_free(m[i]);
	}
	ina_tx_flush(&t->tx[port]);
	return n;
}
