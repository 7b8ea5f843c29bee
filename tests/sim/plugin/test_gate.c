/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gate.c - the size from which on messages are shared follows what the rails do: rate times
 * round trip, in virtual time
 *
 * Two rails, messages one after the other, of any size; the rates and the latency are the
 * scenario's, so what the gate should be is known. Then messages just below it and just above:
 * whether the second device sends anything is counted on the wire.
 */
#include "base/check.h"
#include "base/clamp.h"
#include "base/config.h"
#include "plugin/balance/gate.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#define KIB 1024.0
#define END_MS 240

static void one_by_one(struct sim_scenario *sc, uint64_t key, unsigned rate, unsigned latency_ns)
{
	struct sim_conn_spec *c = &sc->conn[0];

	sim_plain(sc, key);
	sc->limits.mtu = IBV_MTU_4096;
	sc->settings.timeout = 14;
	sc->thread.gap_max_ns = 1 * US;
	sc->thread.service_ns = 100 * US;
	sc->pace_ns = MS;
	sc->ndevices[0] = sc->ndevices[1] = 2;
	sc->wire.latency_ns = latency_ns;
	sc->wire.bytes_per_us = rate;
	c->nrails[0] = c->nrails[1] = 2;
	for (unsigned i = 0; i < 2; i++)
		c->rail[0][i] = c->rail[1][i] = i;
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].heartbeat_ms = 1;
		sc->host[h].policy = HA_POLICY_TOPOLOGY;
	}
	c->max_size = 512 << 10;
	c->window = 1;
	c->think_ns = 50 * US;
	c->messages = 600;
}

static void run_scenario(const struct sim_scenario *sc, struct sim_result *r)
{
	sim_run_apart(sc, SIM_SOUND, r);
	if (r->finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r->finding), r->text);
	CHECK_INT(r->finding, SIM_NOTHING);
}

/* Of the interval, or the last one before it in which something arrived. */
static double gate_at(const struct sim_result *r, unsigned ms)
{
	while (ms && !r->gate[ms])
		ms--;
	return r->gate[ms];
}

/* What the wire makes of it: the latency there and back, and the acknowledgement's own time. */
static double bandwidth_delay_product(unsigned rate, unsigned latency_ns)
{
	double bytes = rate * 2.0 * latency_ns / 1000;

	return (double)ha_clamp((int64_t)bytes, HA_GATE_LEAST, HA_GATE_MOST);
}

/* Measured in steps of a quarter, from what is polled: within these bounds, whatever the dice. */
static bool is_near(double gate, double should)
{
	return gate >= 0.6 * should && gate <= 1.6 * should;
}

static void check_gate(int policy, unsigned rate, unsigned latency_ns)
{
	struct sim_scenario sc;
	struct sim_result r;
	double gate, should = bandwidth_delay_product(rate, latency_ns);

	one_by_one(&sc, rate + latency_ns, rate, latency_ns);
	sc.host[0].policy = policy;
	run_scenario(&sc, &r);
	gate = gate_at(&r, 30);
	printf("policy %d, %5u MB/s, %5.1f us there: gate %6.1f KiB, product %6.1f KiB\n", policy,
	       rate, latency_ns / 1000.0, gate / KIB, should / KIB);
	CHECK(is_near(gate, should));
}

/*
 * An answer that takes 10 ms has waited behind something: that is no reason to leave messages of
 * 128 KiB on one of two slow rails. Found in the lab, where both machines sent and answers stood in
 * the queues of limited rails: the second carried 0.2 of the bytes, not 0.37.
 */
static void queue_is_no_distance(void)
{
	struct sim_scenario sc;
	struct sim_result r;
	double gate;

	one_by_one(&sc, 20, 20, 5 * MS);
	for (unsigned h = 0; h < 2; h++)
		/* with one always under way no rail is ever free to be measured */
		sc.host[h].heartbeat_ms = 50;
	run_scenario(&sc, &r);
	gate = gate_at(&r, END_MS);
	printf("answers after 10 ms at 20 MB/s: gate %5.1f KiB\n", gate / KIB);
	CHECK(gate == HA_GATE_LEAST);
}

/* Is every message on one rail, or on both? */
static void check_boundary(unsigned size, bool shared)
{
	struct sim_scenario sc;
	struct sim_result r;
	double second;

	one_by_one(&sc, size, 12500, 5 * US);
	sc.conn[0].whole = true;
	sc.conn[0].max_size = size;
	sc.conn[0].messages = 3000; /* the first few are sent before anything is known */
	run_scenario(&sc, &r);
	second = (double)r.sent[0][1] / (double)(r.sent[0][0] + r.sent[0][1]);
	printf("messages of %5.1f KiB, gate %5.1f KiB: the second device has %.4f of the bytes\n",
	       size / KIB, gate_at(&r, END_MS) / KIB, second);
	CHECK(shared ? second > 0.49 && second < 0.51 : second < 0.02);
}

/* A fault from 50 to 140 ms changes the rails: the gate before, meanwhile and afterwards. */
static void check_change(const char *what, const char *name, unsigned dev, uint64_t amount,
			 double should)
{
	double before, meanwhile, after, base = bandwidth_delay_product(5000, 5 * US);
	struct sim_scenario sc;
	struct sim_result r;

	one_by_one(&sc, 5, 5000, 5 * US);
	sc.conn[0].think_ns = 180 * US;
	sc.conn[0].messages = 4400;
	sim_plain_fault(&sc, name, 0, 50 * MS, 90 * MS);
	sc.fault[0].dev = dev;
	sc.fault[0].amount = amount;
	run_scenario(&sc, &r);
	before = gate_at(&r, 48);
	meanwhile = gate_at(&r, 138);
	after = gate_at(&r, 225);
	printf("%-35s: gate %5.1f KiB, then %5.1f, after it %5.1f; products %5.1f, %5.1f\n", what,
	       before / KIB, meanwhile / KIB, after / KIB, base / KIB, should / KIB);
	CHECK(is_near(before, base) && is_near(meanwhile, should) && is_near(after, base));
}

/* Noise: how often does the gate move once it is known? */
static void gate_is_steady(void)
{
	struct sim_scenario sc;
	struct sim_result r;
	unsigned changes = 0;

	one_by_one(&sc, 9, 5000, 5 * US);
	sc.conn[0].think_ns = 180 * US;
	sc.conn[0].messages = 1800;
	sim_plain_fault(&sc, "jitter", 0, 0, 1000 * MS);
	sc.fault[0].amount = 3 * US;
	run_scenario(&sc, &r);
	for (unsigned i = 31; i < END_MS && r.gate[i]; i++)
		changes += r.gate[i] != r.gate[i - 1] && r.gate[i - 1];
	printf("3 us of jitter on 10: gate %.1f KiB, moved %u times after 30 ms\n",
	       gate_at(&r, END_MS) / KIB, changes);
	CHECK(changes <= 4);
}

int main(void)
{
	check_gate(HA_POLICY_TOPOLOGY, 12500, 5 * US);
	check_gate(HA_POLICY_TOPOLOGY, 12500, 2 * US);
	check_gate(HA_POLICY_TOPOLOGY, 5000, 5 * US);
	check_gate(HA_POLICY_TOPOLOGY, 1000, 1 * US);
	check_gate(HA_POLICY_TOPOLOGY, 25000, 20 * US);
	check_gate(HA_POLICY_ADAPTIVE, 12500, 5 * US);
	check_gate(HA_POLICY_AGENT, 12500, 5 * US);
	queue_is_no_distance();
	check_boundary(60 << 10, false);
	check_boundary(88 << 10, false);
	check_boundary(170 << 10, true);
	check_boundary(300 << 10, true);
	check_change("the second rail takes 20 us longer", "delay", 1, 20 * US,
		     3 * bandwidth_delay_product(5000, 5 * US));
	check_change("the first rail at a third", "slow", 0, 3,
		     bandwidth_delay_product(5000 / 3, 5 * US));
	gate_is_steady();
	return 0;
}
