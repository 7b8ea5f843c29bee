/* SPDX-License-Identifier: BSD-3-Clause */
/* authority_controller.h - groups of a ha-controller */
#ifndef INA_BACKEND_AUTHORITY_CONTROLLER_H
#define INA_BACKEND_AUTHORITY_CONTROLLER_H

#include "ina/controller/client.h"
#include "ina/host/backend/authority.h"

/*
 * The options' texts must live as long as the authority. NULL and why[size]: an address that is
 * none, certificates that are none; not that nobody is there.
 */
struct ha_authority *ha_authority_controller_open(const struct ha_group_defaults *defaults,
						  const struct ha_ina_client_options *client,
						  char *why, size_t size);

#endif
