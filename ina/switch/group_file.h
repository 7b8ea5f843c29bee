/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_file.h - the groups of a switch without a controller, from a file; a statement per line
 *
 * A line begins with "group NUMBER"; behind it come, in any order and `members` last,
 *
 * - slots FIRST HOWMANY
 * - epoch N, frames extended|old, workers N, first PSN, lease MS: as wanted
 * - members ADDRESS...: in the order of ranks
 *
 * as in "group 7 epoch 1 slots 0 1024 workers 4 members 10.0.0.1 10.0.0.2". # begins a comment.
 */
#ifndef INA_GROUP_FILE_H
#define INA_GROUP_FILE_H

#include "ina/switch/switch.h"

/*
 * One line, which is cut to pieces; now: ns, from which a lease counts (without one the group does
 * not end by itself). config->id 0: nothing is in it.
 * NULL, or what is wrong with it.
 */
const char *ina_group_line(char *line, uint64_t now, struct ina_group_config *config);
/* wanted[INA_GROUPS], by number, id 0 where there is none. 0, or a negative errno and why. */
int ina_group_file(const char *path, uint64_t now, struct ina_group_config *wanted, char *why,
		   size_t size);

#endif
