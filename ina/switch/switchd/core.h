/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - one core of the switch: a thread that polls its ports' queues, and a whole slot core of
 * its own
 *
 * Whose is a packet? Slots belong to (group, worker): the slot core checks that a frame's slot is
 * one of its worker's. So all packets of a worker of a group go to one core, which is chosen by
 * group and worker alone, and two cores never look at the same slot. A core that receives another's
 * packet passes it on through that one's ring. A group with as many workers as there are cores is
 * on all of them; a group with one worker is on one.
 *
 * Shared by all cores: where the ranks are (one word each), which incarnations have been ended by
 * an abort (one word for each group), the bridge's table. What a controller says reaches each core
 * as a command, which it carries out between two rounds.
 */
#ifndef INA_SWITCHD_CORE_H
#define INA_SWITCHD_CORE_H

#include "ina/frame/port/eal.h"
#include "ina/frame/port/idle.h"
#include "ina/frame/port/spread.h"
#include "ina/frame/port/tx.h"
#include "ina/switch/switch.h"
#include "ina/switch/switchd/faults.h"
#include "ina/switch/switchd/mac_table.h"
#include "ina/switch/switchd/mark.h"
#include "ina/switch/switchd/predict.h"

/* X(name, "what it was"): packets that the slot core does not see, and what becomes of answers. */
#define INA_CORE_COUNTERS(X)                                                                 \
	X(received, "Packets that came in.")                                                 \
	X(passed, "Packets passed on to the core whose slots they are for.")                 \
	X(pass_dropped, "Packets dropped because another core's ring was full.")             \
	X(predicted, "Contributions that began as predicted from the rank's last one.")      \
	X(answers, "Answers made.")                                                          \
	X(answers_nowhere, "Answers not made, for the rank has not sent anything yet.")      \
	X(no_packet, "Packets not made or copied, for the pool was empty.")                  \
	X(marked, "Packets marked for congestion (CE).")                                     \
	X(wred_dropped, "Packets dropped for congestion, for they cannot be marked.")        \
	X(forwarded, "Packets forwarded to one port.")                                       \
	X(flooded, "Packets sent to all other ports.")                                       \
	X(stayed, "Packets whose destination is behind the port that they came from.")       \
	X(reserved, "Packets to addresses that a bridge does not forward, and runts.")       \
	X(arp, "ARP requests for the switch, answered.")                                     \
	X(not_spoken, "Packets to the switch in a protocol that it does not support.")       \
	X(lost, "Packets dropped because --fault said so.")                                  \
	X(repeated, "Packets repeated because --fault said so.")                             \
	X(reordered, "Packets held back because --fault said so.")                           \
	X(rounds, "Rounds of the polling loop.")                                             \
	X(busy_rounds, "Rounds in which something was done.")                                \
	X(busy_cycles, "Cycles of the time-stamp counter that those took.")                  \
	X(short_packets,                                                                     \
	  "Packets of rounds shorter than 100 us: nobody else had the processor meanwhile.") \
	X(short_cycles, "Cycles of the time-stamp counter that those rounds took.")

struct ina_core_counts {
#define X(name, help) uint64_t name;
	INA_CORE_COUNTERS(X)
#undef X
	uint64_t reason[INA_REASONS]; /* of the slot core's verdicts */
	uint64_t fault[INA_FAULTS];   /* of frames to this switch that are none */
};

/* What all cores have in common. */
struct ina_cores {
	uint32_t addr;
	uint8_t mac[6];
	unsigned nports, ncores, nslots;
	struct ina_port port[INA_PORTS_MAX];
	struct rte_mempool *pool;
	struct ina_spread spread;
	struct ina_mac_table macs;
	ina_place where[INA_GROUPS][INA_RANKS_MAX];
	/*
	 * 1 << 32 | epoch of the incarnation that has ended. Written with release before the
	 * abort's answers leave, read with acquire with every packet.
	 */
	_Atomic uint64_t over[INA_GROUPS];
	struct ina_mark_config mark;
	struct ina_faults_config faults;
	unsigned queue, idle_us;
	bool shared; /* others need the cores' processors, too */
	/* nothing is added: contributions go back as they are, to whom they come from */
	bool reflect;
	_Atomic bool stop;
	/*
	 * The command: written, then its number raised; each core carries it out and says so in
	 * done. One at a time.
	 */
	void (*command)(void *arg, struct ina_switch *sw, unsigned core);
	void *command_arg;
	_Atomic uint64_t command_number;
	struct ina_core *core[INA_THREADS_MAX];
};

#define INA_SPARES 256
#define INA_CORE_LINE 128 /* bytes that two processors do not share */

struct ina_core;
typedef void ina_aggregate_fn(struct ina_core *core, struct rte_mbuf **m, unsigned n);
typedef unsigned ina_aggregate_predicted_fn(struct ina_core *core, struct rte_mbuf **m, unsigned n,
					    int port);

struct ina_core {
	struct ina_cores *all;
	ina_aggregate_fn *aggregate; /* for this processor, both */
	ina_aggregate_predicted_fn *aggregate_predicted;
	unsigned index;
	struct ina_switch sw;
	struct ina_slot *slot;
	ina_prediction_row *prediction;
	struct ina_tx tx[INA_PORTS_MAX];
	struct ina_mark egress[INA_PORTS_MAX], ingress;
	struct ina_spreader spreader;
	struct ina_faults_state faults;
	struct ina_idle idle;
	struct {
		uint16_t port, queue;
	} rx[INA_PORTS_MAX * 4];
	unsigned nrx;
	/*
	 * packets that were taken in, for the answers of the next sums: they need not go through
	 * the pool
	 */
	struct rte_mbuf *spare[INA_SPARES];
	unsigned nspare;
	uint64_t now;                 /* ns, of this round */
	uint64_t short_cycles;        /* of a round that nobody interrupted */
	uint32_t depth;               /* packets that wait to be looked at, as far as it is known */
	uint8_t seen[INA_GROUPS];     /* packets have come; taken back by whoever asks */
	struct ina_core_counts count; /* others read it while it is written: each number is whole */
	_Alignas(INA_CORE_LINE) _Atomic uint64_t done; /* the last command that was carried out */
};

/* Everything of `all` up to queue is set, ports are open. 0, or a negative errno and why. */
int ina_cores_open(struct ina_cores *all, char *why, size_t size);
void ina_cores_close(struct ina_cores *all);
/* What a thread does until all->stop. arg: struct ina_core. */
int ina_core_run(void *core);
/* Each core does this between two rounds, and then this returns. Not from a core. */
void ina_cores_command(struct ina_cores *all,
		       void (*command)(void *arg, struct ina_switch *sw, unsigned core), void *arg);
/* The sums over all cores. */
void ina_cores_count(const struct ina_cores *all, struct ina_core_counts *sum);

/*
 * Packets of aggregation to this switch, at most INA_BURST, on their core (aggregate.c); their port
 * is the index of the one that they came from. m[] is used up.
 */
ina_aggregate_fn ina_aggregate_plain, ina_aggregate_avx2;
/*
 * Of any packets those whose heads are as predicted (predict.h); the others, how many it returns,
 * are m[0], m[1], ... then, in their order. port: the index of the one that all came from; -1: it
 * is in each.
 */
ina_aggregate_predicted_fn ina_aggregate_predicted_plain, ina_aggregate_predicted_avx2;
/* Any other packet (bridge.c). */
void ina_core_bridge(struct ina_core *core, struct rte_mbuf *m);

#endif
