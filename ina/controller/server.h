/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - the service over gRPC: one completion queue, one thread
 *
 * Calls that have come are handled together, then kept by one commit, then answered: nobody learns
 * of what is not kept.
 */
#ifndef HA_INA_SERVER_H
#define HA_INA_SERVER_H

#include "ina/controller/service.h"
#include "ina/controller/tls.h"

#define HA_SERVER_LISTENS 8

struct ha_server_options {
	const char *listen[HA_SERVER_LISTENS]; /* "0.0.0.0:50051", "[::]:50051", "unix:/path" */
	unsigned nlisten;
	struct ha_tls tls;
	unsigned calls, calls_per_host; /* in progress at once */
};

struct ha_server_counters {
	uint64_t calls, crowded, slow, cancelled;
	unsigned in_progress, waiting;
};

struct ha_server;

/* NULL, and why. grpc_init() must have been called. */
struct ha_server *ha_server_open(struct ha_service *service,
				 const struct ha_server_options *options, char *why, size_t size);
/* The port of the n-th listen, 0 = it has none. */
int ha_server_port(const struct ha_server *server, unsigned n);
/*
 * Serve what has come, or wait until `until` (ns of CLOCK_MONOTONIC) for something. -EIO: the
 * database is beyond use.
 */
int ha_server_serve(struct ha_server *server, uint64_t until);
const struct ha_server_counters *ha_server_counters(const struct ha_server *server);
/* Calls in progress end with an error. */
void ha_server_close(struct ha_server *server);

#endif
