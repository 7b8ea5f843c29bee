/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - one run: a switch, the ranks of a group, the cables between them, a controller, virtual
 * time, and what was found
 *
 * The switch is ina_switch_step(), the ranks are struct ina_worker, as they are anywhere else;
 * every packet is bytes on its way. Time and events are those of the other simulator's wire
 * (sim/kit/memwire.h), faults of cables are softroce's.
 */
#ifndef INA_SIM_WORLD_H
#define INA_SIM_WORLD_H

#include "ina/host/worker.h"
#include "ina/switch/switch.h"
#include "sim/ina/mutation.h"
#include "sim/ina/scenario.h"
#include "sim/kit/memwire.h"

#include <sys/queue.h>

#define INA_SIM_PEER_NS UINT64_C(200000000) /* the workers' time limits */
#define INA_SIM_SWITCH_NS UINT64_C(100000000)
#define INA_SIM_OUTAGE_NS UINT64_C(40000000)
/* when a rank has given up, the others know, long before their own limit */
#define INA_SIM_ABORT_NS UINT64_C(100000000)
#define INA_SIM_SLOTS 1024u
#define INA_SIM_INCARNATIONS_MAX 8
#define INA_SIM_START_NS UINT64_C(1000000000) /* the wire's clock at its creation */

enum ina_sim_finding {
	INA_SIM_NOTHING,
	/* a word, a flag or an exponent is not what the ranks' contributions make */
	INA_SIM_WRONG,
	INA_SIM_DIFFERS, /* two ranks got different bytes for one packet */
	/* an answer was handed over twice, or words were asked for after their answer */
	INA_SIM_TWICE,
	INA_SIM_ERROR,    /* an operation failed, and nothing excuses it */
	INA_SIM_LATE,     /* an error came, but too late */
	INA_SIM_HANG,     /* somebody waits and will for ever */
	INA_SIM_UNSTEADY, /* a second run of the seed went another way */
	INA_SIM_FINDINGS
};

struct ina_sim_result {
	enum ina_sim_finding finding;
	char text[400];
	uint64_t at, ns, hash, steps, packets, lost, errors, incarnations;
	struct ina_counters count;    /* of all ranks, all incarnations */
	uint64_t reason[INA_REASONS]; /* what the switch made of packets */
};

struct ina_sim_world;
struct ina_sim_packet;

/* Who wants to see the windows: after every answer, ns from the start. */
struct ina_sim_watch {
	void (*window)(void *arg, unsigned rank, uint64_t ns, const struct ina_worker *w);
	void *arg;
};

/* One operation of one rank. */
struct ina_sim_job {
	struct ina_sim_rank *rank;
	unsigned number;
	struct ina_op op;
	bool taken[INA_SIM_PACKETS_MAX];
};

struct ina_sim_rank {
	struct ina_sim_world *world;
	unsigned index;
	bool dead, open, failed;
	unsigned incarnation;
	uint64_t failed_at, begins; /* begins: its thread */
	/* cables: when they are free, and their latest arrival */
	uint64_t up_free, up_last, down_free, down_last;
	uint64_t turn_at;          /* the next look at the worker; UINT64_MAX: none is asked for */
	unsigned posted, finished; /* operations */
	struct ina_worker worker;
	struct ina_entry entry[INA_SIM_SLOTS];
	struct ina_sim_job job[INA_SIM_OPS_MAX];
};

struct ina_sim_world {
	struct ha_clock clock; /* first: what the workers ask */
	struct ina_sim_scenario sc;
	struct sr_memwire *wire;
	struct sr_rng rng;
	struct ina_switch sw;
	struct ina_slot slot[INA_SIM_SLOTS];
	bool away;
	/* fault_at: the latest fault that excuses errors; 0: none */
	uint64_t incarnation_at, moved_at, fault_at;
	uint64_t excused_ns; /* after it; when all that can fail by it must have */
	uint64_t cut_until;  /* rank 1's cable upwards */
	uint32_t epoch;
	struct ina_sim_rank rank[INA_RANKS_MAX];
	/* a frame has come to a rank */
	void (*receive)(struct ina_sim_rank *r, const struct ina_frame *f);
	/* The bytes that the first rank to get them got: hashes. */
	uint64_t bytes[INA_SIM_OPS_MAX][INA_SIM_PACKETS_MAX];
	SLIST_HEAD(, ina_sim_packet) free, made;
	bool verbose;
	const struct ina_sim_watch *watch;
	struct ina_sim_result result;
};

void ina_sim_run(const struct ina_sim_scenario *sc, bool verbose, struct ina_sim_result *result);
void ina_sim_run_watched(const struct ina_sim_scenario *sc, const struct ina_sim_watch *watch,
			 struct ina_sim_result *result);
const char *ina_sim_finding_name(enum ina_sim_finding f);

/* ---- for the parts ---- */
/* report.c */
void ina_sim_report_finding(struct ina_sim_world *w, enum ina_sim_finding f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ina_sim_trace_line(const struct ina_sim_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static inline uint64_t ina_sim_now(const struct ina_sim_world *w)
{
	return sr_memwire_now(w->wire);
}
static inline bool ina_sim_has_finding(const struct ina_sim_world *w)
{
	return w->result.finding != INA_SIM_NOTHING;
}

/* fabric.c: the switch, the cables, the foreign sender */
void ina_sim_send_up(struct ina_sim_rank *r, const struct ina_frame *f);
void ina_sim_send_foreign(void *world);
void ina_sim_packets_free(struct ina_sim_world *w);
/* The longest that a packet can be on its way, ns. */
uint64_t ina_sim_packet_incarnation(const struct ina_sim_scenario *sc);

/* rank.c: what a rank does, and what it must get */
void ina_sim_rank_open(struct ina_sim_rank *r, unsigned resume);
/* It gives the group up. */
void ina_sim_rank_leave(struct ina_sim_rank *r);
void ina_sim_rank_receive(struct ina_sim_rank *r, const struct ina_frame *f);
bool ina_sim_rank_ended(const struct ina_sim_rank *r);
#define INA_SIM_SWITCH_ADDR 0x0a0000feu
#define INA_SIM_RANK_ADDR 0x0a000100u /* + rank */
#define INA_SIM_GROUP 7
#define INA_SIM_BASE 16

#endif
