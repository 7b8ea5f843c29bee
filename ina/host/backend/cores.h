/* SPDX-License-Identifier: BSD-3-Clause */
/* cores.h - which processors the polling threads get: near the card, one each */
#ifndef INA_BACKEND_CORES_H
#define INA_BACKEND_CORES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * list: "2-5,8" as the operator gave it, or NULL: those of the card's NUMA node (-1: all) that this
 * process may use. 0 and cpu[n]: a processor for each; or all
 * -1, with *shared, where there are not enough: then nobody is pinned. -EINVAL and why[size]: the
 * list makes no sense.
 */
int ha_cores_choose(const char *list, int node, unsigned n, int *cpu, bool *shared, char *why,
		    size_t size);

#endif
