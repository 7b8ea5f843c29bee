/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/plugin/plain.h"

#include "sim/plugin/faults.h"

#include <string.h>

void sim_plain(struct sim_scenario *sc, uint64_t key)
{
	memset(sc, 0, sizeof(*sc));
	sc->seed = key;
	sc->ndevices[0] = sc->ndevices[1] = 1;
	sc->limits = (struct sim_limits) {
		.max_qp_wr = 8192, .max_srq_wr = 4096, .max_qp = 4096, .mtu = IBV_MTU_1024
	};
	sc->settings.timeout = 10;
	sc->settings.retry = 7;
	sc->settings.poll_batch = 32;
	sc->settings.poll_max = 32;
	sc->settings.wr_per_conn = 64;
	sc->settings.connect_timeout_ms = 5000;
	sc->wire.latency_ns = 5 * US;
	sc->wire.bytes_per_us = 12500;
	sc->oob.latency_ns = 20 * US;
	sc->oob.keepalive_ns = UINT64_C(3000) * MS;
	sc->thread.gap_min_ns = 500;
	sc->thread.gap_max_ns = 50 * US;
	sc->thread.service_ns = MS;
	sc->shrunk.message_cap = UINT32_MAX;
	for (unsigned h = 0; h < 2; h++)
		sc->host[h] = (struct sim_host_spec) {
			.backup = true, .heartbeat_ms = 200, .rto_ms = 1000, .max_retries = 5
		};
	sc->nconns = 1;
	sc->conn[0] = (struct sim_conn_spec) {
		.key = key * UINT64_C(0x9e3779b97f4a7c15),
		.nrails = { 1, 1 },
		.messages = 20,
		.window = 4,
		.max_size = 4096,
		.group_max = 1,
	};
}

void sim_plain_fault(struct sim_scenario *sc, const char *name, unsigned host, uint64_t at,
		     uint64_t len)
{
	char bad[32];

	sc->fault[sc->nfaults++] =
		(struct sim_fault) { .class = (unsigned)__builtin_ctz(sim_faults_parse(name, bad)),
				     .host = host,
				     .at = at,
				     .len = len };
}
