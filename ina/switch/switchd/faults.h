/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults.h - a bad network, on request: packets of aggregation are lost, repeated and held back,
 * on their way in and on their way out
 *
 * For demonstrations and tests. What is held back, and every second copy, comes between 1 us and
 * `delay` later: behind others.
 */
#ifndef INA_SWITCHD_FAULTS_H
#define INA_SWITCHD_FAULTS_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

#define INA_FAULTS_HELD 1024

struct ina_faults_config {
	bool on;
	double loss, duplicate, reorder; /* probabilities of a packet, each way */
	uint64_t delay_ns, seed;
};

/* One thread's. */
struct ina_faults_state {
	const struct ina_faults_config *config;
	uint64_t dice;
	unsigned held;
	struct ina_faults_packet {
		struct rte_mbuf *m;
		uint64_t due; /* ns */
		int out;      /* the port that it goes to; -1: it comes in */
	} packet[INA_FAULTS_HELD];
	uint64_t lost, repeated, reordered;
};

void ina_faults_open(struct ina_faults_state *s, const struct ina_faults_config *config,
		     uint64_t thread);
void ina_faults_close(struct ina_faults_state *s);
/* m goes on now: true. False: it is lost, or comes later. */
bool ina_faults_pass(struct ina_faults_state *s, struct rte_mbuf *m, int out, uint64_t now);
/* One that is due, or NULL. */
struct rte_mbuf *ina_faults_due(struct ina_faults_state *s, uint64_t now, int *out);

#endif
