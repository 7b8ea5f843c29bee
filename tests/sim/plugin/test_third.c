/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three or four devices at each end, and all but one are lost, whichever, in whatever order and at
 * whichever ends: the messages go over the one that is left. Also where a device reaches only its
 * like at the other end, and the pair that works must be found.
 */
#include "base/check.h"
#include "base/rng.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/hunt.h"
#include "sim/plugin/promise.h"
#include "tests/sim/plugin/plain.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__ /* ten times as slow */
#define KEYS 15
#else
#define KEYS 100
#endif

static void make_scenario(struct sim_scenario *sc, uint64_t key, bool apart)
{
	struct sr_rng rng = { key * UINT64_C(0x9e3779b97f4a7c15) };
	unsigned n = 3 + (unsigned)sr_rng_below(&rng, 2), left = (unsigned)sr_rng_below(&rng, n),
		 lost = 0;
	uint64_t at = 2 * MS, devices[4];

	sim_plain(sc, key);
	sc->ndevices[0] = sc->ndevices[1] = n;
	sc->wire.apart = apart;
	sc->conn[0].messages = 300;
	sc->conn[0].think_ns = 1 * MS;
	sc->conn[0].stays = !apart; /* in the end it is whole */
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].max_retries = 8;
		sc->host[h].eager = sr_rng_below(&rng, 2);
		sc->host[h].failback = sr_rng_below(&rng, 2);
	}
	for (unsigned d = 0; d < n; d++)
		devices[d] = d;
	for (unsigned d = n; d-- > 1;) {
		unsigned with = (unsigned)sr_rng_below(&rng, d + 1);
		uint64_t keep = devices[d];

		devices[d] = devices[with];
		devices[with] = keep;
	}
	for (unsigned i = 0; i < n; i++) {
		bool dies = sr_rng_below(&rng, 2), back = !dies && sr_rng_below(&rng, 4) == 0;
		uint64_t down_ns = back ? 20000 * MS : UINT64_C(1000000000000);

		if (devices[i] == left)
			continue;
		sim_plain_fault(sc, dies ? "kill" : "cut", (unsigned)sr_rng_below(&rng, 2), at,
				dies ? 0 : down_ns);
		sc->fault[lost++].dev = (unsigned)devices[i];
		at += sr_rng_below(&rng, 3) ? sr_rng_below(&rng, 30 * MS)
					    : sr_rng_below(&rng, 5000 * MS);
	}
}

static void must_hold(uint64_t key, bool apart)
{
	struct sim_scenario sc;
	struct sim_promise p;
	struct sim_result r;

	make_scenario(&sc, key, apart);
	sim_promise_make(&sc, 0, &p);
	CHECK(sim_promise_survives(&p));
	sim_run_apart(&sc, SIM_SOUND, &r);
	if (r.finding == SIM_NOTHING && !r.errors)
		return;
	fprintf(stderr, "key %llu%s: %s: %s, %llu errors\n", (unsigned long long)key,
		apart ? ", apart" : "", sim_finding_name(r.finding), r.text,
		(unsigned long long)r.errors);
	sim_scenario_print(&sc, stderr);
	exit(1);
}

int main(void)
{
	for (uint64_t key = 1; key <= KEYS; key++) {
		must_hold(key, false);
		must_hold(key, true);
	}
	return 0;
}
