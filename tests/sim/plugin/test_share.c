/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_share.c - when one of N equal rails is lost, the others carry their whole share, and get it
 * back when it returns
 *
 * Bytes against virtual time, so the rates are exact and the same on every machine: a connection
 * streams 128 KiB messages over N rails of 250 MB/s, one port goes down for a while at either end,
 * and what arrives per millisecond is compared with what N - 1 rails carried of it before. And what
 * each device sends is what the weights say, however many rails it has.
 */
#include "base/check.h"
#include "base/config.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#define LINK_BYTES_PER_US 250
#define CUT_MS 40
#define CUT_LENGTH_MS 60
#define END_MS 220 /* the rail has been back since about 170: the back-off, three pongs */
#define LEAST 0.95

static void stream_over(struct sim_scenario *sc, unsigned rails)
{
	struct sim_conn_spec *c = &sc->conn[0];

	sim_plain(sc, rails);
	sc->limits.mtu = IBV_MTU_4096;
	sc->wire.bytes_per_us = LINK_BYTES_PER_US;
	sc->thread.gap_max_ns = 5 * US;
	sc->pace_ns = MS;
	sc->ndevices[0] = sc->ndevices[1] = rails;
	c->nrails[0] = c->nrails[1] = rails;
	for (unsigned i = 0; i < rails; i++)
		c->rail[0][i] = c->rail[1][i] = i;
	c->whole = true;
	c->max_size = 128 << 10;
	c->window = 16;
	c->messages = rails * END_MS * LINK_BYTES_PER_US / 131;
}

/* Bytes per virtual microsecond in the milliseconds [from, until). */
static double mean_rate(const struct sim_result *r, unsigned from, unsigned until)
{
	uint64_t bytes = 0;

	for (unsigned i = from; i < until; i++)
		bytes += r->pace[i];
	return (double)bytes / (until - from) / 1000;
}

static void lose_one(unsigned rails, unsigned host)
{
	struct sim_scenario sc;
	struct sim_result r;
	double before, after, share, back;

	stream_over(&sc, rails);
	sim_plain_fault(&sc, "cut", host, CUT_MS * MS, CUT_LENGTH_MS * MS);
	sc.fault[0].dev = rails - 1;
	sim_run_apart(&sc, SIM_SOUND, &r);
	if (r.finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r.finding), r.text);
	CHECK_INT(r.finding, SIM_NOTHING);
	CHECK(r.failovers > 0 && r.recoveries > 0);
	before = mean_rate(&r, 10, CUT_MS);
	after = mean_rate(&r, CUT_MS + 20, CUT_MS + CUT_LENGTH_MS);
	back = mean_rate(&r, 180, 190);
	share = after / (before * (rails - 1) / rails);
	printf("%u rails, one lost at the %s: %5.0f MB/s (%.3f of the wires), %5.0f after it (%.3f "
	       "of the share), "
	       "%5.0f when it is back\n",
	       rails, host ? "receiver" : "sender", before, before / (rails * LINK_BYTES_PER_US),
	       after, share, back);
	CHECK(before > 0.9 * rails * LINK_BYTES_PER_US);
	CHECK(share >= LEAST && share < 1.05);
	CHECK(back >= LEAST * before);
}

/* 2 rails on one device and 4 on the other, as MPIB lays them out; or 1 and 1; or 3, 3 and 2. */
static void check_weights(const unsigned *on, unsigned devices, const uint16_t *weight)
{
	struct sim_scenario sc;
	struct sim_conn_spec *c = &sc.conn[0];
	struct sim_result r;
	uint64_t all = 0, weights = 0;
	unsigned n = 0;

	stream_over(&sc, devices);
	c->messages = 600;
	sc.host[0].policy = HA_POLICY_STATIC;
	for (unsigned d = 0; d < devices; d++) {
		weights += sc.host[0].weights[d] = weight[d];
		for (unsigned i = 0; i < on[d]; i++, n++)
			c->rail[0][n] = c->rail[1][n] = d;
	}
	c->nrails[0] = c->nrails[1] = n;
	sim_run_apart(&sc, SIM_SOUND, &r);
	CHECK_INT(r.finding, SIM_NOTHING);
	for (unsigned d = 0; d < devices; d++)
		all += r.sent[0][d];
	for (unsigned d = 0; d < devices; d++) {
		double part = (double)r.sent[0][d] / (double)all,
		       should = (double)weight[d] / (double)weights;

		printf("%u rails on device %u of %u, weight %4u of %4u: %.4f of the bytes, should "
		       "be %.4f\n",
		       on[d], d, devices, weight[d], (unsigned)weights, part, should);
		CHECK(part > should - 0.01 && part < should + 0.01);
	}
}

int main(void)
{
	static const unsigned counts[] = { 2, 3, 4, 8 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		for (unsigned host = 0; host < 2; host++)
			lose_one(counts[i], host);
	check_weights((unsigned[]) { 2, 4 }, 2, (uint16_t[]) { 256, 768 });
	check_weights((unsigned[]) { 1, 1 }, 2, (uint16_t[]) { 646, 378 });
	check_weights((unsigned[]) { 4, 2 }, 2, (uint16_t[]) { 0, 1024 });
	check_weights((unsigned[]) { 3, 3, 2 }, 3, (uint16_t[]) { 512, 256, 256 });
	check_weights((unsigned[]) { 8 }, 1, (uint16_t[]) { 1 });
	return 0;
}
