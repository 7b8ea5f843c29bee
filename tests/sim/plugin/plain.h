/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h - a scenario that is written out, from which a test makes its own */
#ifndef HA_TESTS_SIM_PLAIN_H
#define HA_TESTS_SIM_PLAIN_H

#include "sim/plugin/scenario.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

/* Two hosts with a device each, one connection with twenty small messages between them, no fault.
 * key: the dice. */
void sim_plain(struct sim_scenario *sc, uint64_t key);
/* at, len: ns from the start, and how long. Of the host's first device, unless the caller changes
 * it. */
void sim_plain_fault(struct sim_scenario *sc, const char *name, unsigned host, uint64_t at,
		     uint64_t len);

#endif
