/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - libhawser-ina as a table, so that tests can put a switch of their own behind it
 *
 * Members mean what include/hawser/ina.h says of ha_ina_<member>.
 */
#ifndef HA_COLLNET_OPS_H
#define HA_COLLNET_OPS_H

#include "include/hawser/ina.h"

struct ha_ina_ops {
	int (*open)(struct ha_ina **ina, const struct ha_ina_options *options, char *why,
		    size_t size);
	void (*close)(struct ha_ina *ina);
	const char *(*error)(const struct ha_ina *ina);
	uint32_t (*address)(const struct ha_ina *ina);
	int (*group_create)(struct ha_ina *ina, const uint32_t *member, unsigned ranks,
			    const char *name, uint8_t ticket[HA_INA_TICKET]);
	int (*group_join)(struct ha_ina *ina, const uint8_t ticket[HA_INA_TICKET], unsigned rank,
			  struct ha_ina_group **group);
	void (*group_leave)(struct ha_ina_group *group);
	int (*group_state)(const struct ha_ina_group *group);
	int (*post)(struct ha_ina_group *group, const struct ha_ina_request *request,
		    struct ha_ina_op **op);
	bool (*test)(struct ha_ina_op *op, int *result);
	bool (*op_done)(const struct ha_ina_op *op, size_t segment);
	void (*op_free)(struct ha_ina_op *op);
};

/* The library itself (live.c). */
extern const struct ha_ina_ops ha_ina_ops_live;

#endif
