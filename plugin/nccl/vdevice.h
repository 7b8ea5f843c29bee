/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vdevice.h - fused devices as NCCL counts them
 *
 * NCCL asks devices() for the number of ports, calls makeVDevice, asks devices() again, and takes
 * the difference for the number of fused devices. It finds them at the numbers behind the ports, in
 * the order in which they were made; the number that makeVDevice returns it only prints. It does so
 * once for the net table and once for the collnet table, so each counts what it has made itself,
 * while the devices are the same. Later communicators do not ask: they use the numbers that the
 * first one saw.
 *
 * How long NCCL remembers those numbers:
 *   v11 and later   as long as the library is loaded, beyond the last finalize
 *                   (NCCL_NET_PLUGIN_REF_COUNT=1); nothing after dlclose
 *   v9, v10         as long as the process exists, beyond dlclose (NCCL 2.24 to 2.27 keep them
 *                   under the network's name)
 * So the numbers outlive the core's context, those of ports that are away when a later one begins,
 * too. A new context counts its ports alone until NCCL either fuses again, which begins a new list,
 * or asks for a fused device that it has not fused again, which brings the old list back. For v9
 * and v10 the library stays in memory when NCCL closes it.
 */
#ifndef HA_NCCL_VDEVICE_H
#define HA_NCCL_VDEVICE_H

#include "plugin/core.h"

enum ha_vdevice_table { HA_VDEVICE_NET, HA_VDEVICE_COLLNET, HA_VDEVICE_TABLES };

/* For the parameters of a new context: the ports that NCCL counts on; none where it counts anew.
 * Returns how many. */
int ha_vdevice_ports(const struct ha_topo_known **known);
/* It is there: what was fused in an earlier one is remembered, and not yet counted. */
void ha_vdevice_begin(struct ha_ctx *core);
/* Ports, and what this table has fused of them. */
int ha_vdevice_count(const struct ha_ctx *core, enum ha_vdevice_table table);
/* devs[n] as one device. -EINVAL when one has no PCI path, else what ha_ctx_fuse returns. */
int ha_vdevice_make(struct ha_ctx *core, enum ha_vdevice_table table, const int *devs, int n,
		    int *dev);
/* A device's facts; brings back what an earlier context fused where NCCL still counts on it.
 * -EINVAL: no such device. */
int ha_vdevice_props(struct ha_ctx *core, int dev, struct ha_dev_props *props);

#endif
