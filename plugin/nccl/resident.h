/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resident.h - the library stays in memory when NCCL closes it
 *
 * NCCL closes a plugin with its last communicator. Three things go wrong then:
 *
 * - 2.22 and 2.23 open it again for the next communicator and do not call init, since they have
 *   done so before (ncclNetStates): a fresh copy of the library knows no device, and NCCL takes
 *   another transport.
 *
 * - 2.24 to 2.27 keep the counts of the devices under the network's name and use them after the
 *   next load: numbers of fused devices that a fresh copy of the library has never made.
 *
 * - 2.27 to 2.30 forget the plugin's name, too (ncclNetPluginUnload clears the whole entry), and
 *   open "libnccl-net.so" for the next communicator, whatever NCCL_NET_PLUGIN says. Where there is
 *   none the job goes on over sockets, silently and without failover.
 *   NCCL_NET_PLUGIN_REF_COUNT=1 makes NCCL keep the plugin.
 *
 * So the library stays: for v6 to v10, which have no finalize, with its context; for v11 and v12
 * with what it remembers of the devices.
 *
 * A library that is loaded answers to every name that it was opened by. hawser/libnccl-net.so
 * beside the plugin is a link to it, in a folder that only the plugin's own RUNPATH names: who
 * opens "libnccl-net.so" from here gives the loaded plugin this name, too.
 */
#ifndef HA_NCCL_RESIDENT_H
#define HA_NCCL_RESIDENT_H

#include <stdbool.h>

/* NCCL keeps the plugin (NCCL_NET_PLUGIN_REF_COUNT), and with it what it has counted. */
bool ha_resident_by_nccl(void);
/* From now on dlclose leaves the library where it is, with all its state. */
void ha_resident_stay(void);
/* The same, and "libnccl-net.so" means this plugin: for communicators after the last one. Says
 * in the log where that cannot be. */
void ha_resident_stay_by_default_name(void);

#endif
