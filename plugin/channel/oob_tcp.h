/* SPDX-License-Identifier: BSD-3-Clause */
/* oob_tcp.h - the live out-of-band stream: TCP over the interface that NCCL_SOCKET_IFNAME
 * chooses */
#ifndef HA_PLUGIN_OOB_TCP_H
#define HA_PLUGIN_OOB_TCP_H

#include "plugin/channel/oob.h"

struct ha_config;
struct ha_oob_tcp; /* a net: the address that listeners and dialled streams use */

extern const struct ha_oob_ops ha_oob_tcp_ops;

/* Choose the interface. -ENODEV, with a line: none fits. */
int ha_oob_tcp_open(const struct ha_config *config, struct ha_oob_tcp **net);
/* NULL is fine. Its listeners and streams may outlive it. */
void ha_oob_tcp_close(struct ha_oob_tcp *net);

#endif
