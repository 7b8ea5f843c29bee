/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - who a client is, from what gRPC says of its connection */
#ifndef HA_INA_PEER_H
#define HA_INA_PEER_H

#include "ina/controller/service.h"

/*
 * uri: "ipv4:10.0.0.1:4711", "ipv6:[::1]:4711" (its brackets may be percent-encoded), "unix:...".
 * name: the common name of its certificate, NULL = the connection has none. false: it cannot be
 * named.
 */
bool ha_peer_caller(const char *uri, const char *name, const struct ha_settings *settings,
		    struct ha_caller *caller);
/* The host alone, for limits per host: "10.0.0.1", "::1", "local". */
void ha_peer_host(const char *uri, char *host, size_t size);

#endif
