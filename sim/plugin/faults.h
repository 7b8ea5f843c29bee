/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults.h - everything that may go wrong in a simulation, by name, and what is expected of the
 * core then
 */
#ifndef HA_SIM_FAULTS_H
#define HA_SIM_FAULTS_H

#include "base/rng.h"
#include "sim/plugin/scenario.h"

struct sim_world;

/* What it does to paths (promise.h). */
enum sim_effect {
	/* Even a connection without failover survives these, as long as they do not add up. */
	SIM_STEERED,      /* the shares of rails change, nothing else */
	SIM_LOSSY,        /* packets suffer, the path holds */
	SIM_SHORT_OUTAGE, /* nothing passes for less than a queue pair's window */
	SIM_HELD,         /* a device says nothing for a while */
	SIM_HOST_PAUSE,   /* a host's thread stands still */
	SIM_SOCKET_PAUSE, /* and the sockets */
	/* Failover survives these where another path is left, or soon back. */
	SIM_OUTAGE,
	SIM_CONNECTING, /* what is up stays up; nothing new comes up */
	SIM_BREAK,      /* at one moment; the next incarnation may be sound */
	SIM_DEATH,      /* of the device, for good, at the end of the fault's time */
	SIM_DYING,      /* the same, at an unknown moment, or never */
	SIM_RETURN,     /* SIM_DEATH at the beginning of its time, and another device at its end */
	SIM_SOCKETS_LOST,
	/* Nobody survives these: both ends get an error, in time. */
	SIM_PEER_END,
};
#define SIM_GENTLE(effect) ((effect) <= SIM_SOCKET_PAUSE)

struct sim_fault_class {
	const char *name, *help;
	enum sim_effect effect;
	void (*make)(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng);
	void (*begin)(struct sim_world *w, struct sim_fault *f);
	void (*end)(struct sim_world *w, struct sim_fault *f); /* NULL: nothing is to be undone */
};

extern const struct sim_fault_class sim_fault_classes[];
extern const unsigned sim_fault_nclasses;

/* Is this port one of those that suffer? A switch's are many, at both hosts. */
bool sim_fault_hits(const struct sim_scenario *sc, const struct sim_fault *f, unsigned host,
		    unsigned dev);
/*
 * Mask of the classes in a list of names, "loss,reorder"; "all" is every one. 0: a name is unknown,
 * *bad is it.
 */
uint32_t sim_faults_parse(const char *list, char bad[32]);
/*
 * in a mask; "storm" in a list: packets get lost all the time, and every millisecond a rail fails
 */
#define SIM_STORM (1u << 31)
void sim_faults_storm(struct sim_scenario *sc, struct sr_rng *rng);
/* Draw the faults of a scenario. */
void sim_faults_make(struct sim_scenario *sc, struct sr_rng *rng, uint32_t allowed);
void sim_fault_print(const struct sim_fault *f, unsigned index, FILE *out);
/* "survived", "survived with another path", "clean error". */
const char *sim_effect_expected(enum sim_effect effect);
/* From its beginning until what it took can be there again, ns. */
uint64_t sim_fault_lasts(const struct sim_fault *f);
/* A port is new: what acts on it at this moment does. */
void sim_faults_apply(struct sim_world *w, unsigned host, unsigned dev);
/* When the last one is over, ns from the start. */
uint64_t sim_faults_over(const struct sim_scenario *sc);

/* Ask the wire for the calls that begin and end each fault. */
void sim_faults_schedule(struct sim_world *w);
/*
 * How long it takes to connect a queue pair of this device now, beyond the usual, ns; *fails: in
 * vain.
 */
uint64_t sim_faults_connecting(const struct sim_world *w, unsigned host, unsigned dev, bool *fails);
/* The tap's question: is this packet lost to a fault that looks into packets? */
bool sim_faults_eat(struct sim_world *w, const struct sr_memwire_port *from, const uint8_t *packet);

#endif
