/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.h - everything that may go wrong in a simulation, by name, and what is expected of the core then */
#ifndef HA_SIM_FAULTS_H
#define HA_SIM_FAULTS_H

#include "sim/scenario.h"
#include "softroce/rng.h"

struct sim_world;

enum sim_expect {
	SIM_SURVIVES, /* every request completes */
	SIM_CLEAN,    /* requests may end with an error, at both ends and within the bound; no byte is wrong */
	SIM_LATER,    /* nothing is promised yet: drawn only when it is named */
};

struct sim_fault_class {
	const char *name, *help;
	enum sim_expect expect;
	bool outage; /* the wire is mute for a while: two of these, or one and lost packets, must not add up */
	void (*make)(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng);
	void (*begin)(struct sim_world *w, struct sim_fault *f);
	void (*end)(struct sim_world *w, struct sim_fault *f); /* NULL: nothing is to be undone */
};

extern const struct sim_fault_class sim_fault_classes[];
extern const unsigned sim_fault_nclasses;

/* Mask of the classes in a list of names, "loss,reorder"; "all" is every one. 0: a name is unknown, *bad is it. */
uint32_t sim_faults_parse(const char *list, char bad[32]);
/* Draw the faults of a scenario. */
void sim_faults_make(struct sim_scenario *sc, struct sr_rng *rng, uint32_t allowed);
void sim_fault_print(const struct sim_fault *f, unsigned index, FILE *out);
/* What is expected with these faults: the weakest promise of them all. */
enum sim_expect sim_faults_expect(const struct sim_scenario *sc);
/* When the last one is over, ns from the start. */
uint64_t sim_faults_over(const struct sim_scenario *sc);

/* Ask the wire for the calls that begin and end each fault. */
void sim_faults_schedule(struct sim_world *w);
/* The tap's question: is this packet lost to a fault that looks into packets? */
bool sim_faults_eat(struct sim_world *w, const struct sr_memwire_port *from, const uint8_t *packet);

#endif
