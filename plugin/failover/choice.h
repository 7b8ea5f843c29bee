/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - on which device a rail's coming incarnation is */
#ifndef HA_PLUGIN_CHOICE_H
#define HA_PLUGIN_CHOICE_H

#include "plugin/bundle.h"

/*
 * A data rail has its own. A spare keeps the one that was up on it for a while if another rail
 * carries; else it takes the one that shares least with the rails that are up, and has failed
 * least. NULL: none is usable. The bundle is taken; of a receiver, what the sender offers is in its
 * control.
 */
struct ha_device *ha_choose_device(struct ha_bundle *b, struct ha_rail *r, uint64_t now);

/* Is there a device at this end that a rail could ever come up on? */
bool ha_incarnation_possible(const struct ha_bundle *b);

#endif
