/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_regressions.c - what the simulator has found, each as a scenario of its own
 *
 * Written out, not as seeds, whose meaning changes with the generator. Several keys each, because the dice of the two
 * threads decide whether a race is met.
 */
#include "sim/faults.h"
#include "sim/hunt.h"
#include "tests/base/check.h"

#define KEYS 24
#define US 1000u
#define MS 1000000u

/* Two hosts with a device each, one connection between them. */
static void plain(struct sim_scenario *sc, uint64_t key)
{
	memset(sc, 0, sizeof(*sc));
	sc->seed = key;
	sc->ndevices[0] = sc->ndevices[1] = 1;
	sc->limits = (struct sim_limits){ .max_qp_wr = 8192, .max_srq_wr = 4096, .max_qp = 4096, .mtu = IBV_MTU_1024 };
	sc->timeout = 10;
	sc->retry = 7;
	sc->poll_batch = 32;
	sc->poll_max = 32;
	sc->wr_per_conn = 64;
	sc->connect_timeout_ms = 5000;
	sc->latency_ns = 5 * US;
	sc->bytes_per_us = 12500;
	sc->oob_latency_ns = 20 * US;
	sc->keepalive_ns = UINT64_C(3000) * MS;
	sc->gap_min_ns = 500;
	sc->gap_max_ns = 50 * US;
	sc->message_cap = UINT32_MAX;
	sc->nconns = 1;
	sc->conn[0] = (struct sim_conn_spec){
		.key = key * UINT64_C(0x9e3779b97f4a7c15),
		.nrails = { 1, 1 },
		.messages = 20,
		.window = 4,
		.max_size = 4096,
		.group_max = 1,
	};
}

static void add_fault(struct sim_scenario *sc, const char *name, unsigned host, uint64_t at, uint64_t len)
{
	char bad[32];

	sc->fault[sc->nfaults++] = (struct sim_fault){
		.class = (unsigned)__builtin_ctz(sim_faults_parse(name, bad)), .host = host, .at = at, .len = len
	};
}

static void must_hold(const struct sim_scenario *sc, const char *what)
{
	struct sim_result r;

	sim_run_apart(sc, SIM_SOUND, &r);
	if (r.finding == SIM_NOTHING)
		return;
	fprintf(stderr, "%s, key %llu: %s: %s\n", what, (unsigned long long)sc->seed, sim_finding_name(r.finding),
		r.text);
	sim_scenario_print(sc, stderr);
	exit(1);
}

/* The sender is done and says farewell while the receiver still waits for the flush of the last message. */
static void flush_outlives_farewell(uint64_t key)
{
	struct sim_scenario sc;

	plain(&sc, key);
	sc.conn[0].gpu = true;
	sc.oob_latency_ns = 1 * US;
	sc.gap_max_ns = 100 * US;
	must_hold(&sc, "a flush at the peer's farewell");
}

/* A sender that waits for its first clear-to-send has no request to test; its receiver's machine dies, the socket says
 * nothing. */
static void probe_without_requests(uint64_t key)
{
	struct sim_scenario sc;

	plain(&sc, key);
	sc.conn[0].start_ns[0] = 0;
	add_fault(&sc, "power", 1, 150 * US + key * 10 * US, 0);
	must_hold(&sc, "a probe without requests");
}

int main(void)
{
	static void (*const found[])(uint64_t key) = {
		flush_outlives_farewell,
		probe_without_requests,
	};

	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		for (uint64_t key = 1; key <= KEYS; key++)
			found[i](key);
	return 0;
}
