/* SPDX-License-Identifier: BSD-3-Clause */
/* users.h - who may connect to ha-agent: root and our own user always, others as listed */
#ifndef HA_AGENT_USERS_H
#define HA_AGENT_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#define HA_USERS_MAX 64

struct ha_users {
	bool all;
	unsigned n;
	uid_t uid[HA_USERS_MAX];
};

/* "*", or names and numbers with commas between them; "" = nobody else. NULL, or the first word
 * that is no user. */
const char *ha_users_parse(struct ha_users *users, const char *text);
bool ha_users_allow(const struct ha_users *users, uid_t uid);
/* Root or our own user: may change what the agent does. */
bool ha_users_rule(uid_t uid);

#endif
