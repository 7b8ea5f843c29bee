/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - is this process connected to a Unix socket?
 *
 * DPDK's memif driver does not say whether its connection has been turned away or only waits for
 * the server's first word.
 */
#ifndef INA_PORT_PEER_H
#define INA_PORT_PEER_H

#include <stdbool.h>

/* path: of a file, or a name in the abstract namespace. False where /proc is not there. */
bool ina_peer_connected(const char *path);

#endif
