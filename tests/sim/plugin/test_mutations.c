/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mutations.c - each way to break the protocol (sim/plugin/mutation.h) is found by the
 * simulator
 *
 * By seeds; those that need a rare coincidence by a scenario that is written out, whose dice vary.
 * The sound core passes the latter, so that the finding is the defect's. docs/testing.md has the
 * list. Argument: "rare", those that are found after hundreds of runs, instead of all others.
 */
#include "base/check.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/hunt.h"
#include "sim/plugin/mutation.h"

#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static const struct {
	enum ha_mutation mutation;
	const char *faults; /* what the seeds draw from; NULL: the usual mix */
	unsigned seeds;
	bool rare; /* found after many seeds: in the long check */
} hunts[] = {
	{ HA_MUTATE_SKIP_FENCE, "storm", 1000 },
	{ HA_MUTATE_SKIP_DRAIN, NULL, 2000, .rare = true },
	{ HA_MUTATE_STATE_EARLY, "storm", 1000 },
	{ HA_MUTATE_REPLAY_SEEN, "storm", 200 },
	{ HA_MUTATE_REPLAY_OTHERS, "storm", 200 },
	{ HA_MUTATE_REPLAY_NONE, "storm", 200 },
	{ HA_MUTATE_WHOLE_MESSAGE, "storm", 200 },
	{ HA_MUTATE_DROP_EPOCH, "storm", 200 },
	{ HA_MUTATE_FORGET_CTS, "storm", 200 },
	{ HA_MUTATE_FORGET_SIZES, "storm", 200 },
	{ HA_MUTATE_FORGET_KEYS, NULL, 2000 },
	{ HA_MUTATE_FORGET_HOOKUP, "slow-connect,qp-error,quit", 500 },
	{ HA_MUTATE_STAY_PUT, "cut", 2000, .rare = true },
	{ HA_MUTATE_AVOID_DATA, "switch", 500 },
	{ HA_MUTATE_RECUT, "steer,qp-error,cut", 500 },
	{ HA_MUTATE_TAKE_EARLY, "storm", 200 },
	{ HA_MUTATE_FORGET_WINDOWS, NULL, 1000 },
	{ HA_MUTATE_KEEP_WINDOWS, "cut", 3000, .rare = true },
	{ HA_MUTATE_FORGET_RETURN, "return", 500 },
	{ HA_MUTATE_KEEP_OPENING, "return", 500 },
	{ HA_MUTATE_FORGET_COPY, "storm", 500 },
	{ HA_MUTATE_TRUST_COPY, "storm", 500 },
	{ HA_MUTATE_HOLD_COPY, "storm", 500 },
	{ HA_MUTATE_EARLY_RECORD, NULL, 200 },
};

static void hunt_mutation(enum ha_mutation mutation, const char *faults, unsigned seeds)
{
	struct sim_hunt h = { .start = 1,
			      .count = seeds,
			      .jobs = 2,
			      .mutation = SIM_PROTOCOL(mutation),
			      .quiet = true,
			      .first = true };
	struct sim_tally t;
	char bad[32];
	int kind = 1;

	h.allowed = faults ? sim_faults_parse(faults, bad) : 0;
	CHECK_INT(sim_hunt_run(&h, &t, stdout), 0);
	while (kind < SIM_FINDINGS && !t.by_finding[kind])
		kind++;
	printf("%-18s %s after %llu seeds\n", sim_mutation_name(h.mutation, NULL),
	       kind < SIM_FINDINGS ? sim_finding_name((enum sim_finding)kind) : "NOTHING",
	       (unsigned long long)t.seeds);
	CHECK(t.findings > 0);
}

/* ---- written out ---- */

static void make_base(struct sim_scenario *sc, uint64_t key)
{
	char bad[32];

	sim_scenario_make(sc, key, sim_faults_parse("storm", bad));
	sc->nfaults = 0;
	sc->ndevices[0] = sc->ndevices[1] = 6;
	sc->settings.timeout = 11;
	for (unsigned h = 0; h < 2; h++)
		sc->host[h] = (struct sim_host_spec) {
			.backup = true, .heartbeat_ms = 200, .rto_ms = 1000, .max_retries = 6
		};
	sc->conn[0] = (struct sim_conn_spec) {
		.key = key * UINT64_C(0x9e3779b97f4a7c15),
		.nrails = { 1, 1 },
		.messages = 60,
		.window = 8,
		.max_size = 8000,
		.group_max = 1,
	};
}

static struct sim_fault *add_fault(struct sim_scenario *sc, const char *name, unsigned host,
				   unsigned dev, uint64_t at, uint64_t len)
{
	struct sim_fault *f = &sc->fault[sc->nfaults++];
	char bad[32];

	*f = (struct sim_fault) { .class = (unsigned)__builtin_ctz(sim_faults_parse(name, bad)),
				  .host = host,
				  .dev = dev,
				  .at = at,
				  .len = len };
	return f;
}

/* Optional receives of many small stripes, whose notifications are often lost when their data is
 * not. */
static void use_optional_receives(struct sim_scenario *sc, uint64_t key)
{
	struct sim_conn_spec *c = &sc->conn[0];

	sc->limits.mtu = IBV_MTU_4096;
	sc->wire.reorders = true;
	c->nrails[0] = c->nrails[1] = 6;
	for (unsigned i = 0; i < 6; i++) {
		c->rail[0][i] = c->rail[1][i] = i;
		add_fault(sc, "loss", 0, i, 500 * US, 20 * MS)->amount = 50000;
	}
	c->max_size = 90000;
	c->optional = true;
	for (unsigned i = 0; i < 8; i++)
		add_fault(sc, "qp-error", i % 2, i % 6,
			  500 * US + key % 700 * 7 * US + i * 1200 * US, 0);
}

/* What the receiver's NIC says is lost for a while, a count of HA_NCCL_ACK=memory with it. */
static void last_count(struct sim_scenario *sc, uint64_t key)
{
	sc->host[0].ack_memory = true;
	sc->oob.latency_ns = 20 * US;
	sc->oob.jitter_ns = 0;
	sc->oob.piece = 0;
	sc->conn[0].window = 1; /* the next send waits for the word about this one */
	sc->conn[0].think_ns = 200 * US;
	add_fault(sc, "black-hole", 1, 0, 300 * US + key * 20 * US, 500 * MS);
}

static void not_placed(struct sim_scenario *sc, uint64_t key)
{
	sc->host[0].ack_memory = true;
	add_fault(sc, "kill-acked", 1, 0, 300 * US + key * 5 * US, 100 * US);
}

/* Messages in any order, and several counts on their way at once; nothing fails. The next eight
 * messages wait for the last of them. */
static void overtaken_count(struct sim_scenario *sc, uint64_t key)
{
	struct sim_conn_spec *c = &sc->conn[0];

	sc->limits.unordered = sc->host[0].ooo_rq = sc->host[1].ooo_rq = true;
	sc->host[0].ack_memory = true;
	sc->wire.latency_ns = 2 * US;
	sc->thread.gap_min_ns = 200;
	sc->thread.gap_max_ns = 2 * US;
	c->messages = 80;
	c->max_size = 64;
	c->batches = true;
}

/* Without failover one rail of two ends the connection, while data still comes over the other. */
static void other_rail(struct sim_scenario *sc, uint64_t key)
{
	struct sim_conn_spec *c = &sc->conn[0];

	sc->host[0].backup = sc->host[1].backup = false;
	c->nrails[0] = c->nrails[1] = 2;
	c->rail[0][1] = c->rail[1][1] = 1;
	c->messages = 500;
	add_fault(sc, "qp-error", 1, 1, 500 * US + key * 20 * US, 0);
}

/* A device comes back, and the other one dies between two posts: the standby carries, for which the
 * peer's keys are known from before, and ours are not yet. The next message's slot has carried a
 * copied send, and the message is none. */
static void copied_before(struct sim_scenario *sc, uint64_t key)
{
	struct sim_conn_spec *c = &sc->conn[0];

	sc->thread.gap_max_ns = 5 * US;
	c->messages = 4000;
	c->max_size = 200;
	sc->host[0].copy_max = 64;
	add_fault(sc, "return", 0, 0, 2 * MS, 3 * MS);
	add_fault(sc, "doorbell", 0, 1, 20 * MS + key * 50 * US, 0)->amount = 1 + key % 5;
}

static void written_out(enum ha_mutation mutation, void (*make)(struct sim_scenario *, uint64_t),
			uint64_t keys)
{
	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;

		make_base(&sc, key);
		make(&sc, key);
		sim_run_apart(&sc, SIM_PROTOCOL(mutation), &r);
		if (r.finding == SIM_NOTHING)
			continue;
		printf("%-18s %s after %llu scenarios\n",
		       sim_mutation_name(SIM_PROTOCOL(mutation), NULL), sim_finding_name(r.finding),
		       (unsigned long long)key);
		sim_run_apart(&sc, SIM_SOUND, &r);
		CHECK_INT(r.finding, SIM_NOTHING);
		return;
	}
	printf("%-18s NOTHING\n", sim_mutation_name(SIM_PROTOCOL(mutation), NULL));
	CHECK(!"found");
}

static void hunt_usual(void)
{
	written_out(HA_MUTATE_IGNORE_SUPERSEDED, use_optional_receives, 1500);
	written_out(HA_MUTATE_FORGET_COUNT, last_count, 1000);
	written_out(HA_MUTATE_ACK_NIC, not_placed, 200);
	written_out(HA_MUTATE_EARLY_ERROR, other_rail, 200);
	written_out(HA_MUTATE_KEEP_COPY, copied_before, 500);
	written_out(HA_MUTATE_OLDER_COUNT, overtaken_count, 500);
}

int main(int argc, char **argv)
{
	bool rare = argc > 1 && !strcmp(argv[1], "rare");

	for (size_t i = 0; i < sizeof(hunts) / sizeof(hunts[0]); i++)
		if (hunts[i].rare == rare)
			hunt_mutation(hunts[i].mutation, hunts[i].faults, hunts[i].seeds);
	if (rare)
		written_out(HA_MUTATE_IGNORE_DOUBT, use_optional_receives, 1500);
	else
		hunt_usual();
	return 0;
}
