/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * namelist.h - lists of devices or interfaces as NCCL writes them
 *
 * "mlx5_0:1,mlx5_2"  names that begin so; a port after ':'
 * "=mlx5_1"          exactly this name (else mlx5_1 also means mlx5_10)
 * "^docker,lo"       all but these; "^=name" excludes exact names
 * NCCL_IB_HCA also takes name:port:rail:plane; an empty part is "any".
 */
#ifndef HA_BASE_NAMELIST_H
#define HA_BASE_NAMELIST_H

#include <stdbool.h>

#define HA_NAMELIST_ITEMS_MAX 64
#define HA_NAMELIST_NAME_MAX 64     /* bytes, with the final 0 */
#define HA_NAMELIST_ANY (-1)        /* a number that was not given */
#define HA_NAMELIST_RAIL_MAX 32767  /* NCCL has 16 bits with a sign for both */
#define HA_NAMELIST_PLANE_MAX 16383 /* and the bit above this one marks a set of planes */

struct ha_namelist_item {
	char name[HA_NAMELIST_NAME_MAX];
	int port, rail, plane; /* HA_NAMELIST_ANY or >= 0 */
};

struct ha_namelist {
	bool exclude, exact;
	int n; /* 0: everything matches */
	struct ha_namelist_item items[HA_NAMELIST_ITEMS_MAX];
};

/*
 * Parse `text` (NULL or "": the empty list). Returns the number of items that were left out because
 * they make no sense (a number that is none, a name that is too long, more items than fit); the
 * rest is usable.
 */
int ha_namelist_parse(struct ha_namelist *list, const char *text);

/* Does the list let `name` through? port: HA_NAMELIST_ANY when there is none. item: the matching
 * one, may be NULL. */
bool ha_namelist_match(const struct ha_namelist *list, const char *name, int port,
		       const struct ha_namelist_item **item);

#endif
