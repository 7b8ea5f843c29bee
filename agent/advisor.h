/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * advisor.h - which hint a flow gets, and why
 *
 * First what a person set by hand (`ha agent set`), then the policy: a file of rules, the counters
 * of the ports, or nothing (all on SOUT).
 */
#ifndef HA_AGENT_ADVISOR_H
#define HA_AGENT_ADVISOR_H

#include "agent/congestion.h"
#include "agent/rules.h"
#include "agent/slots.h"

#include <time.h>

enum ha_advisor_policy { HA_ADVISOR_MANUAL, HA_ADVISOR_STATIC, HA_ADVISOR_CONGESTION };

struct ha_advisor {
	enum ha_advisor_policy policy;
	struct ha_slots *slots;
	struct ha_rules manual;
	struct ha_rules fixed; /* of `file` */
	char file[256];
	struct timespec changed; /* its time of change when it was last read */
	struct ha_ports ports;
	struct ha_congestion congestion[HA_PORTS_MAX];
	struct ha_share share[MPIB_HINT_MAX_ENTRIES];
	uint64_t now;
};

/* "manual", "static:FILE" or "congestion". NULL, or what is wrong with it. `sysfs`: agent/ports.h,
 * root. */
const char *ha_advisor_open(struct ha_advisor *a, struct ha_slots *slots, const char *policy,
			    const char *sysfs, uint64_t now);
void ha_advisor_close(struct ha_advisor *a);
const char *ha_advisor_policy_text(enum ha_advisor_policy policy);
/* Where a slot's hint comes from: "manual", "static", "congestion", "default", or "inherited" while
 * nobody has come back. */
const char *ha_advisor_source(const struct ha_advisor *a, unsigned at);
/* Look at the ports, or at the file, and write the hints that change. */
void ha_advisor_tick(struct ha_advisor *a, uint64_t now);
/* A rule by hand has changed: write what follows from it. */
void ha_advisor_rules_changed(struct ha_advisor *a);

#endif
