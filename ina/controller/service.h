/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - the controller without its network: settings, groups, what is kept of them, counters
 *
 * What changes in memory is written by the same call; nothing of it may be sent before
 * ha_service_commit. When that fails, memory is thrown away and loaded again, as after a restart:
 * what was not kept has not happened.
 */
#ifndef HA_INA_SERVICE_H
#define HA_INA_SERVICE_H

#include "ina/controller/settings.h"

struct ha_store;

#define HA_SERVICE_COUNTERS(X)                                                              \
	X(created, "Groups made.")                                                          \
	X(repeated, "Requests for a group that were a repetition of an earlier one.")       \
	X(refused_full, "Groups refused: no range of that length.")                         \
	X(refused_numbers, "Groups refused: no group number.")                              \
	X(refused_quota, "Groups refused: the client's quota.")                             \
	X(refused_unreached, "Groups refused: no switch serves all members.")               \
	X(refused_away, "Groups refused: the switch is silent.")                            \
	X(invalid, "Requests that make no sense.")                                          \
	X(denied, "Requests of clients that may not.")                                      \
	X(renewed, "Heartbeats of members of live groups.")                                 \
	X(joined, "Ranks that have joined their group.")                                    \
	X(joined_before, "Ranks refused because another incarnation had joined.")           \
	X(seen, "Leases of clients that cannot renew, renewed because their packets came.") \
	X(destroyed, "Groups ended by a client.")                                           \
	X(expired, "Groups ended because nobody renewed.")                                  \
	X(forgotten, "Quarantines that are over.")                                          \
	X(switch_heartbeats, "Heartbeats of switches.")                                     \
	X(switch_restarts, "Switches that had lost their memory.")                          \
	X(store_failures, "Transactions that could not be written.")

struct ha_service_counters {
#define X(name, help) uint64_t name;
	HA_SERVICE_COUNTERS(X)
#undef X
};

struct ha_service {
	const struct ha_settings *settings;
	struct ha_groups groups;
	struct ha_store *store; /* NULL: nothing is kept (tests, fuzzers) */
	bool dirty;
	struct ha_service_counters count;
};

/* Who asks. */
struct ha_caller {
	char tenant[HA_TENANT_NAME];
	uint32_t address; /* IPv4 of its connection, 0 = another kind */
	bool admin, registrar;
};

/* store: may be NULL; not closed by the service. 0, or negative errno and why. */
int ha_service_open(struct ha_service *s, const struct ha_settings *settings,
		    struct ha_store *store, uint64_t now, char *why, size_t size);
void ha_service_close(struct ha_service *s);

/* Leases and quarantines that are over. */
void ha_service_tick(struct ha_service *s, uint64_t now);
/* true: all that has happened since the last time is kept. false: none of it has happened, and *why
 * says what is wrong; *fatal: and what was kept cannot be read either. */
bool ha_service_commit(struct ha_service *s, uint64_t now, char *why, size_t size, bool *fatal);

/* As ha_groups_join(). */
bool ha_service_join(struct ha_service *s, struct ha_group *group, unsigned rank,
		     uint64_t incarnation, uint64_t now);
struct ha_group *ha_service_create(struct ha_service *s, const struct ha_group_spec *spec,
				   uint64_t now, struct ha_refusal *why);
void ha_service_end(struct ha_service *s, struct ha_group *group, const char *why, uint64_t now);
/* NULL, and why: there are too many. */
struct ha_switch *ha_service_switch(struct ha_service *s, const struct ha_switch_info *info,
				    uint64_t incarnation, uint64_t now);

#endif
