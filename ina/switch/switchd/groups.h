/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.h - the groups of the switch: from a controller or from a file to every core's slot core
 */
#ifndef INA_SWITCHD_GROUPS_H
#define INA_SWITCHD_GROUPS_H

#include "ina/switch/follow.h"
#include "ina/switch/switchd/core.h"

#include <pthread.h>

struct ina_groups {
	struct ina_cores *all;
	pthread_mutex_t lock; /* of all that follows, and of commands to the cores */
	struct ina_group_config config[INA_GROUPS];
	bool live[INA_GROUPS], from_file[INA_GROUPS];
	uint64_t installs, ends, removes;
};

struct ina_groups_figures {
	unsigned live, over; /* over: of those that are live, have ended */
	uint64_t installs, ends;
};

void ina_groups_open(struct ina_groups *g, struct ina_cores *all);
void ina_groups_close(struct ina_groups *g);
/* What a follower calls. */
struct ina_follow_ops ina_groups_ops(struct ina_groups *g);

/*
 * The groups of a file (ina/switch/group_file.h). Again: those that are as they were go on, those
 * that are not there any more end, those of another epoch begin anew. 0, or a negative errno and
 * why: of a file that cannot be read (*read is false) none changes, and of one with groups that
 * cannot be, all others are as it says.
 */
int ina_groups_load(struct ina_groups *g, const char *path, bool *read, char *why, size_t size);

void ina_groups_count(struct ina_groups *g, struct ina_groups_figures *figures);

/* With the lock. 1 << 32 is set in what is in all->over: it has been ended. */
bool ina_groups_is_over(const struct ina_groups *g, uint8_t id);

#endif
