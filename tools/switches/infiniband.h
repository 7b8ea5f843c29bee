/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * infiniband.h - the switch at the other end of an InfiniBand link, by smpquery of infiniband-diags
 *
 * A directed route of one hop leaves by the port and needs no subnet manager and no routing:
 * NodeInfo of who answers says whether it is a switch, which one, and by which of its ports the
 * question came in (InfiniBand Architecture Specification, 14.2.5.3).
 *
 * A switch is known by its system image GUID: all ASICs of a box have the same, and power, control
 * processor and firmware updates of a box take all of them along.
 */
#ifndef HAWSER_TOOLS_SWITCHES_INFINIBAND_H
#define HAWSER_TOOLS_SWITCHES_INFINIBAND_H

#include "tools/switches/ports.h"

/* The port's answer; without one, `why`. The root of sysfs: "" for the host's own. */
void switches_ask_infiniband(const char *root, struct switches_port *port);
/* What smpquery prints of NodeInfo and NodeDescription (NULL: not known). */
void switches_take_node(const char *info, const char *description, struct switches_port *port);

#endif
