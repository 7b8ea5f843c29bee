/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rto.h - the soft time-out of a connection's rails, which learns from false alarms
 *
 * A soft time-out takes a rail down after so much time without progress. When the rail then answers
 * again almost at once, it was alive all the time, only slow: a false alarm. Three of them in a row
 * widen the time-out by half. Rails that fail in another way (an error completion, a port event)
 * show nothing about the time-out and are not reported.
 *
 * Arithmetic alone: the caller brings the time and owns the structure.
 */
#ifndef HA_PLUGIN_RTO_H
#define HA_PLUGIN_RTO_H

#include <stdbool.h>
#include <stdint.h>

#define HA_RTO_FALSE_ALARMS 3 /* in a row, until the time-out is widened */
/* a recovery in less time than this is a false alarm */
#define HA_RTO_QUICK_NS UINT64_C(100000000)
/* widening ends here, or at the base where that is larger */
#define HA_RTO_MOST_NS UINT64_C(5000000000)

struct ha_rto {
	uint64_t rto_ns;    /* in force */
	uint64_t base_ns;   /* as configured; rto_ns is never below */
	uint64_t failed_at; /* the last failure, while `failed` */
	int false_alarms;   /* in a row, since the last widening */
	bool failed;        /* a soft time-out took the rail down, and it has not come back */
};

void ha_rto_init(struct ha_rto *rto, uint64_t base_ns);
/* A soft time-out has just taken the rail down. */
void ha_rto_failed(struct ha_rto *rto, uint64_t now);
/*
 * The rail carries traffic again, whatever took it down. True: the time-out has just been widened;
 * log it. A caller that waits before it tries a lost rail again has to begin before HA_RTO_QUICK_NS
 * have passed, or nothing is ever a false alarm.
 */
bool ha_rto_recovered(struct ha_rto *rto, uint64_t now);

#endif
