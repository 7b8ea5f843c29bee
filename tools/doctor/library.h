/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_DOCTOR_LIBRARY_H
#define HAWSER_DOCTOR_LIBRARY_H

#include "tools/doctor/host.h"

/*
 * library - what opening a library shows
 *
 * Asked in a process of its own: a plugin of somebody else may start threads, and may crash.
 */
void doctor_library_probe(struct doctor_library *library, const char *name);

/*
 * The plugin that NCCL would load for this NCCL_NET_PLUGIN (NULL: not set), by its own rules
 * (openPluginLib of src/plugin/plugin_open.cc): each name of the list as it stands, then as
 * libnccl-net-NAME.so; libnccl-net.so without a list.
 */
void doctor_plugin_find(struct doctor_library *library, const char *names);

#endif
