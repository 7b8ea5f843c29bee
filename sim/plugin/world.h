/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - one run: two hosts with the production core, the wire between them, virtual time, and
 * what was found
 */
#ifndef HA_SIM_WORLD_H
#define HA_SIM_WORLD_H

#include "base/clock.h"
#include "base/config.h"
#include "include/mpib_agent_iface.h"
#include "plugin/core.h"
#include "sim/plugin/hookup.h"
#include "sim/plugin/memory.h"
#include "sim/plugin/oob.h"
#include "sim/plugin/scenario.h"

enum sim_finding {
	SIM_NOTHING,
	SIM_WRONG_BYTE,  /* a byte is not what was sent */
	SIM_STRAY_WRITE, /* a byte was written where nobody waits for one */
	/* a request reports another size than was sent, or completes out of turn */
	SIM_WRONG_SIZE,
	SIM_HANG,        /* nothing moves although it should, or no error comes */
	SIM_ERROR,       /* an error where none is allowed, or one that is not kept */
	SIM_UNPROTECTED, /* a rail does not come back, or does not carry what it should */
	SIM_LEAK,
	SIM_ENDLESS,  /* more steps than any scenario needs */
	SIM_CRASH,    /* the process running it died */
	SIM_UNSTEADY, /* a second run of the same seed went another way */
	SIM_FINDINGS
};

enum sim_mutation {
	SIM_SOUND, /* none */
	/* Deliberate defects. */
	SIM_DROP_IMM,
	SIM_DOUBLE_IMM,
	SIM_SHORTEN,
	SIM_CORRUPT,
	SIM_STRAY,
	SIM_LEAK_QP,
	SIM_MUTATIONS
	/* From here on: SIM_MUTATIONS + enum ha_mutation, the protocol's. */
};
#define SIM_PACE_MAX 256
#define SIM_PROTOCOL(mutation) ((enum sim_mutation)(SIM_MUTATIONS + (mutation)))

struct sim_result {
	enum sim_finding finding;
	char text[512];
	uint64_t at;   /* when it was found, ns from the start */
	uint64_t hash; /* of everything that happened */
	/* errors: connection ends that ended with one */
	uint64_t steps, ns, packets, messages, bytes, errors;
	/* rails lost whose work went on, and rails that came back; counted at both ends */
	uint64_t failovers, recoveries;
	uint64_t false_alarms;  /* of HA_NCCL_SILENCE_MS */
	uint64_t slow_moves;    /* from paths that were slow, */
	uint64_t failbacks;     /* and to paths that had been lost, or slow */
	uint64_t moved_over_ns; /* when the last loss or slow path was left, ns from the start */
	/* of a sender without any rail: pairs of devices that were being tried at one moment, at
	 * most */
	unsigned tried_at_once;
	uint64_t control_messages, control_bytes; /* control messages over the sockets */
	/* bytes that each device has put on the wire, headers and what was sent again too */
	uint64_t sent[SIM_HOSTS][SIM_DEVICES_MAX];
	/*
	 * of the first connection's sender (plugin/balance/gate.h), bytes, at the end of each
	 * interval
	 */
	uint32_t gate[SIM_PACE_MAX];
	/* bytes whose receives completed, by intervals of sim_scenario.pace_ns */
	uint64_t pace[SIM_PACE_MAX];
};

struct sim_conn;

struct sim_undo { /* what a placement overwrote, while the host has not looked */
	struct sim_device *dev;
	char *to;
	uint32_t len;
	uint8_t old[SR_MTU_MAX];
};
#define SIM_UNDO_MAX 64

struct sim_host {
	struct sim_world *world;
	unsigned index;
	struct sim_verbs *verbs;
	struct ha_ctx *ctx;
	struct ha_config config;
	struct sr_memwire_bus bus;
	struct mpib_hint_shm hints; /* HA_POLICY_AGENT */
	struct sr_rng rng;
	/* the queue pairs that it has connected, and those that it is connecting */
	SLIST_HEAD(, sim_hookup) hookups;
	uint64_t gap, moved_at, stalled_until, next_service, moves;
	bool dead;
	struct sim_undo *undo; /* NULL: the scenario needs none */
	unsigned nundo;
};

/* What faults do to hosts. */
struct sim_host_ops {
	/* The process, or the machine (power), dies. */
	void (*die)(struct sim_host *h, bool power);
	/* It ends its context in good order, with everything still open. */
	void (*quit)(struct sim_host *h);
	/* A device dies and takes with it what the host has not seen. */
	void (*forget)(struct sim_host *h, struct sim_device *dev);
	/* A dead device is back, under its old name or another. */
	void (*restore)(struct sim_host *h, unsigned dev, bool renamed);
};

struct sim_world {
	struct ha_clock clock; /* first: what the cores ask for the time */
	uint64_t held_ns;      /* for so long the present turn has been in the kernel */
	struct sim_scenario sc;
	struct sr_memwire *wire;
	struct sim_oob oob;
	struct sim_host host[SIM_HOSTS];
	const struct sim_host_ops *hosts;
	struct sim_conn *conn[SIM_CONNS_MAX];
	/* random: what the core gets for nonces and sequence numbers */
	struct sr_rng tap_rng, random;
	struct sim_pool pool;
	enum sim_mutation mutation;
	unsigned mutate_at;   /* the n-th occasion */
	uint64_t faults_over; /* absolute */
	bool sockets_lost;    /* at some time */
	bool verbose;
	struct sim_result result;
};

/*
 * Run a scenario to its end. Deterministic but for the host program's addresses, which decide
 * nothing.
 */
void sim_world_run(const struct sim_scenario *sc, enum sim_mutation mutation, bool verbose,
		   struct sim_result *result);
/* The last lines that the core logged in the last run. */
void sim_world_print_log(FILE *out);

const char *sim_finding_name(enum sim_finding f);
/* NULL behind the last; *help is NULL for the simulator's own. */
const char *sim_mutation_name(enum sim_mutation m, const char **help);

/* ---- for the parts of the simulation: report.c ---- */
uint64_t sim_now(const struct sim_world *w);
/* ns since the start */
uint64_t sim_elapsed(const struct sim_world *w);
/* The first finding ends the run. */
void sim_report_finding(struct sim_world *w, enum sim_finding finding, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static inline bool sim_has_finding(const struct sim_world *w)
{
	return w->result.finding != SIM_NOTHING;
}
/* Something happened that every run of the seed must repeat. */
static inline void sim_mix(struct sim_world *w, uint64_t what)
{
	w->result.hash = (w->result.hash ^ what) * UINT64_C(0x9e3779b97f4a7c15);
	w->result.hash ^= w->result.hash >> 29;
}
/* A line of the trace (-v). */
void sim_trace_line(const struct sim_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
