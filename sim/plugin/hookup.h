/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hookup.h - connecting queue pairs beside the driver (plugin/device/hookup.h), in virtual time:
 * each takes as long as the dice say
 */
#ifndef HA_SIM_HOOKUP_H
#define HA_SIM_HOOKUP_H

#include "plugin/device/hookup.h"

struct sim_host;
struct sim_hookup;

/* The argument is the struct sim_host. */
extern const struct ha_hookup_ops sim_hookup_ops;
/* When the wire has made its last step. */
void sim_hookups_free(struct sim_host *h);

#endif
