/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - on which device a rail's coming incarnation is */
#ifndef HA_CORE_CHOICE_H
#define HA_CORE_CHOICE_H

#include "plugin/transfer/bundle.h"

/*
 * A data rail has its own. A standby keeps one that has proven itself for a while, and then, as one
 * that never was up, takes the next with each try. NULL: none is usable. The bundle is taken; of a
 * receiver, what the sender offers is in its control.
 */
struct ha_device *ha_choose_device(struct ha_bundle *b, struct ha_rail *r, uint64_t now);

/* Is there a device at this end that a rail could ever come up on? */
bool ha_incarnation_possible(const struct ha_bundle *b);

#endif
