/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric.h - a network in this process for several backends: a thread with the slot core between
 * cables that lose, repeat and reorder, and whoever gives groups on it. Each backend gets a net and
 * an authority of it, and they outlive it: a backend that starts again meets the same switch.
 */
#ifndef HA_TESTS_BACKEND_FABRIC_H
#define HA_TESTS_BACKEND_FABRIC_H

#include "ina/host/backend/authority.h"
#include "ina/host/backend/net.h"

struct fabric;

struct fabric_faults {
	unsigned lose, twice, late; /* of 1000 frames, each way */
};

struct fabric *fabric_open(const struct ha_group_defaults *defaults);
void fabric_close(struct fabric *f);
void fabric_faults(struct fabric *f, struct fabric_faults faults);
/* So many aborts from now on are lost on their way to the switch. */
void fabric_lose_aborts(struct fabric *f, unsigned aborts);
/* The switch drops everything from now on, or no longer. */
void fabric_switch_down(struct fabric *f, bool down);
/* It does so from when that many more blocks are complete at all ranks: in the middle of what is
 * posted next, whoever gets a processor when. */
void fabric_switch_down_after(struct fabric *f, unsigned blocks);
/* It has lost its memory: all groups are gone from it, and the controller knows. */
void fabric_switch_reset(struct fabric *f);
/* The controller does not answer. */
void fabric_controller_down(struct fabric *f, bool down);
/* Who asks it for a group waits until it no longer does so. */
void fabric_controller_hangs(struct fabric *f, bool hangs);
/* How many callers wait for that now. */
unsigned fabric_creating(struct fabric *f);
/* Nobody finds the way to the switch any more, and each notices only after `us`; 0: all find it. */
void fabric_switch_hidden(struct fabric *f, unsigned us);
/* Searches for the way to a switch that is hidden, by all backends. */
unsigned fabric_searches(struct fabric *f);
/* From now on each creation of a group takes `us`. */
void fabric_slow_creates(struct fabric *f, unsigned us);
/* The most slow creations of groups that any rank's lease has waited for without being renewed. */
unsigned fabric_longest_wait(struct fabric *f);
/* What has been dropped, repeated or delayed. */
uint64_t fabric_hurt(struct fabric *f);
/* Groups that have not ended. */
unsigned fabric_groups(struct fabric *f);

struct ha_net *fabric_net(struct fabric *f, uint32_t addr, unsigned workers);
struct ha_authority *fabric_authority(struct fabric *f);

#endif
