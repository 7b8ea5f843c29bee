/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cwnd.h - how many packets a worker may have in flight, by what the network says: DCQCN (Zhu et
 * al., SIGCOMM 2015) for a window
 *
 * Once per interval in which answers came: was any marked, or anything lost, the window shrinks by
 * half of alpha, which follows how often that happens; else it grows. First it returns half-way to
 * where it was, five times (fast recovery), then the goal moves up by one packet each time
 * (additive increase), and after five of those faster and faster (hyper increase).
 */
#ifndef INA_CWND_H
#define INA_CWND_H

#include <stdbool.h>
#include <stdint.h>

#define INA_CWND_G (1.0 / 16) /* weight of the newest interval in alpha */
#define INA_CWND_RECOVERY 5   /* intervals of fast recovery, and of additive increase */
#define INA_CWND_ADDITIVE 1.0 /* packets */
#define INA_CWND_HYPER 5.0    /* packets, times the intervals of hyper increase */
/* so that the packets behind a lost one reveal it before a time-out does */
#define INA_CWND_MIN 8.0

struct ina_cwnd {
	double cwnd, target, alpha, max; /* packets; alpha in 0..1 */
	/* the window before a time-out of which nobody knows yet what was lost; 0: none */
	double before;
	uint64_t decreased_at, adjusted_at; /* ns */
	int count;                          /* intervals of growth; below 0: fast recovery */
	/* the window was full since the last change: what is not used does not grow */
	bool reached;
	bool answered, congested; /* since the last change; a mark, or a loss */
	uint64_t increases, decreases;
};

void ina_cwnd_init(struct ina_cwnd *c, uint32_t max, uint64_t now);
/* An answer came, marked or not. */
void ina_cwnd_answered(struct ina_cwnd *c, bool marked);
/* Something was lost on the way. */
void ina_cwnd_lost(struct ina_cwnd *c);
/* Nothing came for a whole time-out: from the least, to where it was. */
void ina_cwnd_timeout(struct ina_cwnd *c, uint64_t now);
/* Nothing was lost, others were late: the window is what it was before the time-out. */
void ina_cwnd_spurious(struct ina_cwnd *c);
/* in_flight: packets; interval: ns between two changes, about a round trip. */
void ina_cwnd_adjust(struct ina_cwnd *c, uint32_t in_flight, uint64_t interval, uint64_t now);

#endif
