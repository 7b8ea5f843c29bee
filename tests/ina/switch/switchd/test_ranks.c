/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ranks.c - four ranks with four workers each (ina/host/worker.h, as hosts have them) through
 * a living ha-switch: every sum is right
 *
 * Usage: test_switchd_ranks HA-SWITCH CORES [OPTION...]   with these options of the switch, such as
 *                                                         --fault=loss=0.02
 */
#include "base/check.h"
#include "base/clock.h"
#include "ina/frame/bytes.h"
#include "ina/host/worker.h"
#include "tests/ina/switch/switchd/rig.h"

#include <inttypes.h>
#include <unistd.h>

#define RANKS 4
#define WORKERS 4
#define EACH 32u /* slots of a worker */
#define PACKETS 600u
#define LIMIT_NS (60 * HA_NS_PER_S)

static struct switch_rig r;

struct rank {
	struct ina_worker w;
	struct ina_entry entry[EACH];
	struct ina_op op;
	uint8_t rank, worker, taken[PACKETS];
	uint32_t total;
	bool done;
};
static struct rank ranks[RANKS][WORKERS];

static int32_t value_of(unsigned rank, unsigned worker, uint32_t index, unsigned word)
{
	return (int32_t)(rank * 1000003u + worker * 7919u + index * 64u + word) - 500000;
}

static void bring_words(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	const struct rank *k = arg;

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)value_of(k->rank, k->worker, index, i));
	*block = (struct ina_block) { 0 };
}

static void take_words(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	struct rank *k = arg;

	CHECK_INT(k->taken[index]++, 0);
	k->total++;
	for (unsigned i = 0; i < INA_WORDS; i++) {
		int32_t sum = 0;

		for (unsigned rank = 0; rank < RANKS; rank++)
			sum += value_of(rank, k->worker, index, i);
		CHECK_INT((int32_t)ina_get32(words + 4 * i), sum);
	}
	CHECK_INT(block.flags, 0);
}

static void record_end(void *arg, int err)
{
	struct rank *k = arg;

	if (err)
		fprintf(stderr, "rank %u worker %u: %s\n", k->rank, k->worker, k->w.why);
	CHECK_INT(err, 0);
	k->done = true;
}

static void send_frame(void *arg, const struct ina_frame *f)
{
	struct rank *k = arg;
	struct rte_mbuf *m = ina_packet_make(&r.port[k->rank], r.pool, f);

	if (m)
		ina_tx_send(&r.tx[k->rank], m);
}

static void begin_rank(unsigned rank, unsigned worker)
{
	static const struct ina_op_ops ops = { bring_words, take_words, record_end };
	struct rank *k = &ranks[rank][worker];
	struct ina_worker_ops out = { send_frame, k };
	struct ina_worker_config c = { .addr = 0x0a000001u + rank,
				       .switch_addr = RIG_ADDR,
				       .mac = { 2, 1, 1, 1, 1, (uint8_t)rank },
				       .switch_mac = { 2, 0, 10, 0, 0, 0xfe },
				       .group = 9,
				       .rank = (uint8_t)rank,
				       .ranks = RANKS,
				       .worker = (uint8_t)worker,
				       .workers = WORKERS,
				       .extended = true,
				       .base = 128,
				       .len = EACH * WORKERS,
				       .epoch = 3 };
	const char *why;

	ina_worker_defaults(&c);
	c.peer_ns = c.switch_ns = 30 * HA_NS_PER_S;
	k->rank = (uint8_t)rank;
	k->worker = (uint8_t)worker;
	CHECK_INT(ina_worker_init(&k->w, &c, &ha_clock_live, &out, k->entry, EACH, &why), 0);
	k->op = (struct ina_op) {
		.ops = &ops, .arg = k, .coll = INA_ALL_REDUCE, .packets = PACKETS
	};
	CHECK_INT(ina_worker_post(&k->w, &k->op), 0);
}

static void receive_frames(unsigned port)
{
	struct rte_mbuf *m[INA_BURST];
	unsigned n = ina_port_receive(&r.port[port], 0, m, INA_BURST);

	for (unsigned i = 0; i < n; i++) {
		struct ina_frame f;

		CHECK_INT(ina_packet_decode(m[i], &f), INA_FAULT_NONE);
		CHECK(f.worker < WORKERS);
		ina_worker_receive(&ranks[port][f.worker].w, &f);
		rte_pktmbuf_free(m[i]);
	}
}

static bool round_of(void)
{
	bool all = true;

	for (unsigned rank = 0; rank < RANKS; rank++) {
		receive_frames(rank);
		for (unsigned w = 0; w < WORKERS; w++) {
			ina_worker_poll(&ranks[rank][w].w);
			all &= ranks[rank][w].done;
		}
		ina_tx_flush(&r.tx[rank]);
	}
	return all;
}

int main(int argc, char **argv)
{
	const char *options[RIG_ARGS] = { NULL };
	char cores[32];
	uint64_t end, lost, again = 0;

	CHECK(argc >= 3 && argc < 20);
	snprintf(cores, sizeof(cores), "--cores=%s", argv[2]);
	options[0] = cores;
	for (int i = 3; i < argc; i++)
		options[i - 2] = argv[i];
	switch_rig_make(&r, argv[1], RANKS);
	switch_rig_groups(&r, "group 9 epoch 3 slots 128 128 workers 4 members 10.0.0.1 10.0.0.2 "
			      "10.0.0.3 10.0.0.4\n");
	switch_rig_start(&r, options);
	switch_rig_connect(&r);
	switch_rig_await_up(&r);
	for (unsigned i = 0; i < RANKS * WORKERS; i++)
		begin_rank(i / WORKERS, i % WORKERS);
	for (end = ha_clock_now(&ha_clock_live) + LIMIT_NS; !round_of(); usleep(20))
		CHECK(ha_clock_now(&ha_clock_live) < end);
	for (unsigned i = 0; i < RANKS * WORKERS; i++) {
		CHECK_INT(ranks[i / WORKERS][i % WORKERS].total, PACKETS);
		again += ranks[i / WORKERS][i % WORKERS].w.count.again_words;
	}
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_frames_total{reason=\"complete\"}"),
		  PACKETS * WORKERS);
	lost = switch_rig_metric(&r, "hawser_switch_lost_total");
	printf("%u sums of %d ranks; passed on %" PRIu64 ", lost %" PRIu64 ", repeated %" PRIu64
	       ", held back %" PRIu64 ", words sent again %" PRIu64 "\n",
	       PACKETS * WORKERS, RANKS, switch_rig_metric(&r, "hawser_switch_passed_total"), lost,
	       switch_rig_metric(&r, "hawser_switch_repeated_total"),
	       switch_rig_metric(&r, "hawser_switch_reordered_total"), again);
	if (argc > 3)
		CHECK(lost > 50 && switch_rig_metric(&r, "hawser_switch_repeated_total") > 50 &&
		      switch_rig_metric(&r, "hawser_switch_reordered_total") > 50 && again > 20);
	else
		CHECK(!lost);
	if (strcmp(argv[2], "1"))
		CHECK(switch_rig_metric(&r, "hawser_switch_passed_total") > PACKETS * WORKERS);
	switch_rig_end(&r);
	return 0;
}
