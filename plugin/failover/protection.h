/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protection.h - which single failures a connection survives with the rails that are up
 *
 * A NIC takes every rail on it along, at either end. A leaf switch takes all rails along that have
 * an end on it: which ends those are, rail and plane of NCCL_IB_HCA show, or the file of
 * `ha switches`. Where one end is not known, or is known in another way than the others, no switch
 * is promised; but standbys are chosen, and kept, as if NICs of one name hung on one switch, which
 * on hosts that are alike they mostly do.
 */
#ifndef HA_FAILOVER_PROTECTION_H
#define HA_FAILOVER_PROTECTION_H

#include "include/hawser/status.h"
#include "plugin/bundle.h"

/* Of the rails in the mask. */
enum ha_status_against ha_protection(const struct ha_bundle *b, unsigned rails);
/* A leaf switch that takes all of them along, as far as that of every end is known; 0: there is
 * none. */
uint32_t ha_protection_shared_place(const struct ha_bundle *b, unsigned rails);

/* A leaf switch, as far as it is known, or else presumed by the NICs' names. */
struct ha_presumed_switch {
	uint64_t mark; /* its place, or of the name; 0: there is none */
	bool by_place; /* that of every end is known */
};

/* One that takes all of these rails along; of several, both ends find the same. */
struct ha_presumed_switch ha_protection_presumed_switch(const struct ha_bundle *b, unsigned rails);
/* Does one of the rails lead from one leaf switch to another? */
bool ha_protection_crosses(const struct ha_bundle *b, unsigned rails);
/* Does this device hang on it? */
bool ha_protection_is_on(const struct ha_presumed_switch *s, const struct ha_device *dev);

/* Better protected: neither NICs here nor NICs there < one of the two < both < switches too. */
unsigned ha_protection_rank(enum ha_status_against against);
/* "the loss of a NIC" and so on. */
const char *ha_protection_text(enum ha_status_against against);

/* The peer's device of a rail, as a number; never 0. */
uint64_t ha_peer_device(const struct ha_wire_rail *end);
/* Of a device of ours as the peer is sent it (ha_device_place): 0 where it cannot read it. */
uint32_t ha_sent_place(const struct ha_bundle *b, const struct ha_device *dev);
/* Where the peer's is in the fabric; 0: not known. */
uint32_t ha_peer_place(const struct ha_bundle *b, const struct ha_wire_rail *end);

#endif
