/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow.h - the groups of a switch, as the controller has them: a thread that sends heartbeats
 * and hands on what begins and what ends
 *
 * For a switch of any make. While the controller cannot be reached all groups go on as they are. A
 * group that is no longer in the controller's table is ended first (its ranks receive abort), and
 * removed LINGER_S later, or when another needs its slots.
 */
#ifndef INA_FOLLOW_H
#define INA_FOLLOW_H

#include "ina/controller/client.h"
#include "ina/switch/switch.h"

struct ina_follow_options {
	struct ha_ina_client_options client; /* deadline_ms: 0, or more than a second */
	/* of the switch: the controller's settings have it, or it registers */
	const char *name;
	uint32_t addr, slots;
	const char *const *serves; /* to register: prefixes of the hosts, "10.0.0.0/24" */
	size_t nserves;
	uint8_t workers; /* of a group whose creator did not say; 0 = 1 */
};

struct ina_follow_seen {
	uint8_t id;
	uint32_t epoch;
};

/* All are called from the follower's thread. */
struct ina_follow_ops {
	/*
	 * A group begins, or begins a new incarnation; the members' MAC addresses are 0: the switch
	 * finds them. 0; -EAGAIN: not yet, it is asked again soon; any other negative errno, with
	 * *why: said once, and tried again when the table changes.
	 */
	int (*install)(void *arg, const struct ina_group_config *config, const char **why);
	/* Its ranks shall receive abort from now on. */
	void (*end)(void *arg, uint8_t id, uint32_t epoch);
	void (*remove)(void *arg, uint8_t id, uint32_t epoch);
	/* Whose packets have come since the last call; at most 255. NULL: not known. */
	size_t (*seen)(void *arg, struct ina_follow_seen *seen);
	void *arg;
};

struct ina_follow;
/*
 * Returns at once, whether there is a controller or not. NULL and why. Everything in options must
 * live as long as the follower.
 */
struct ina_follow *ina_follow_start(const struct ina_follow_options *options,
				    const struct ina_follow_ops *ops, char *why, size_t size);
/* Takes up to half a second, two where the controller is away. */
void ina_follow_stop(struct ina_follow *f);
/* Has the controller answered since the start? */
bool ina_follow_answered(const struct ina_follow *f);

#endif
