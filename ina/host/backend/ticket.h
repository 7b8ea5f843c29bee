/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ticket.h - what all ranks of a group hand round to join it (HA_INA_TICKET bytes)
 *
 * Nobody believes it: it says which group is meant, by switch, number, epoch and key; what that
 * group is its controller says (authority.h), and the ticket's copy only has to agree. Bytes,
 * big-endian:
 *
 *    0  "HAT" 1              the version
 *    4  number, ranks, log2 of workers + 128 for extended frames, log2 of slots
 *    8  first slot (2), 0 (2)
 *   12  epoch (4), switch's address (4), key (8)
 *   28  switch's name (32, filled up with zeros)
 *   60  members' addresses (32 x 4, zeros behind the last)
 *  188  CRC-32 of all before (IEEE 802.3): tells a torn one from a sound one, nothing more
 */
#ifndef INA_BACKEND_TICKET_H
#define INA_BACKEND_TICKET_H

#include "ina/host/backend/member.h"

void ha_ticket_write(const struct ha_group_facts *group, uint8_t ticket[HA_INA_TICKET]);
/* 0, or -EINVAL and *why. lease_ms and switch_mac are not in it. */
int ha_ticket_read(const uint8_t ticket[HA_INA_TICKET], struct ha_group_facts *group,
		   const char **why);

#endif
