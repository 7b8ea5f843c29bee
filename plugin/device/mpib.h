/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpib.h - MPIB_HCA_SOUT and MPIB_HCA_SUP: two unequal NICs as one device
 *
 * SOUT (scale-out) reaches every host, SUP (scale-up) only those of the same island. NCCL sees one
 * device. A connection has MPIB_SOUT_QP rails on SOUT, then MPIB_SUP_QP on SUP; those of one NIC
 * take turns. Hosts are in one island when their out-of-band addresses share MPIB_ISLAND_PREFIX_LEN
 * bits.
 *
 * MPIB_MODE=0: within an island everything goes over SUP; between islands SUP's rails are not even
 * made. MPIB_MODE=1: SUP's rails exist everywhere, everything goes over SOUT until an agent says
 * otherwise. Clear-to-sends go over one rail: SUP's first in mode 0 within an island, else SOUT's
 * first. Under both lies the failover: when the NIC that carries dies, the other does.
 */
#ifndef HA_PLUGIN_MPIB_H
#define HA_PLUGIN_MPIB_H

#include "plugin/core.h"
#include "plugin/device/wire_end.h"

struct ha_bundle;

struct ha_mpib {
	bool on;
	int sout, sup;             /* ports */
	int sout_qp, sup_qp;       /* rails of a connection */
	struct ha_wire_addr local; /* our out-of-band address */
};

/* Both variables are set. For what must be known before the devices are. */
bool ha_mpib_wanted(const struct ha_config *config);
/* Finds the two ports. 1: there they are; 0: it is not wanted; -ENODEV with a line. */
int ha_mpib_find(struct ha_ctx *ctx);
/* They have been fused (fused.h): from here on they are the one device. */
void ha_mpib_enable(struct ha_ctx *ctx);

/* The rails of a connection: all, or SOUT's alone. */
void ha_mpib_rails(const struct ha_mpib *mpib, bool sup, int *dev, struct ha_comm_opts *opts);
/* Is the listener at `peer` in another island than we? */
bool ha_mpib_across(const struct ha_ctx *ctx, const struct ha_wire_addr *peer);
/* Does a connection to the listener at `peer` have rails on SUP? */
bool ha_mpib_uses_sup(const struct ha_ctx *ctx, const struct ha_wire_addr *peer);
/* The parts of SOUT and SUP of the connection's data, before any hint. */
void ha_mpib_parts(const struct ha_bundle *b, uint32_t part[2]);

#endif
