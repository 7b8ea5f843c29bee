/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob.h - the out-of-band streams of a simulation: memory, with virtual latency, short counts and
 * broken connections
 *
 * Bytes carry the time at which they arrive; nothing needs an event, because the core asks again
 * and again.
 */
#ifndef HA_SIM_OOB_H
#define HA_SIM_OOB_H

#include "base/rng.h"
#include "plugin/channel/oob.h"

#include <sys/queue.h>

#define SIM_HOSTS 2

struct sim_oob; /* both hosts' */

LIST_HEAD(sim_oob_conns, ha_oob_conn);

struct sim_oob_net { /* one host's: goes into ha_ctx_params.oob_net */
	struct sim_oob *all;
	unsigned host;
	bool gone; /* the process has died: what its context still calls leads nowhere */
};

struct sim_oob {
	uint64_t (*now)(void *arg);
	void *arg;
	struct sr_rng rng;
	uint64_t latency_ns, jitter_ns;
	uint32_t piece; /* most bytes taken or given at once; 0 = no limit */
	/* after so long without an answer from the peer's machine a stream ends with ETIMEDOUT */
	uint64_t keepalive_ns;
	uint64_t sick_until; /* nothing is given before */
	struct sim_oob_net net[SIM_HOSTS];
	struct sim_oob_conns listeners, streams;
	uint16_t next_port;
	unsigned open; /* listeners and streams that exist */
	/* what streams have taken in all: messages of the control protocol (their headers), and
	 * bytes */
	uint64_t messages, bytes;
};

extern const struct ha_oob_ops sim_oob_ops;

void sim_oob_init(struct sim_oob *oob, uint64_t seed, uint64_t (*now)(void *arg), void *arg);
/* Frees what is left. */
void sim_oob_fini(struct sim_oob *oob);

/*
 * Every established stream is reset at both ends (`both`), or at the end of `host` alone, whose
 * peer receives nothing.
 */
void sim_oob_reset(struct sim_oob *oob, unsigned host, bool both);
/* Both directions of every stream go silent; the ends learn of it by keep-alive only. */
void sim_oob_silence(struct sim_oob *oob);
/* The process of `host` dies. power: its machine does, so nobody says anything to the peer. */
void sim_oob_die(struct sim_oob *oob, unsigned host, bool power);

#endif
