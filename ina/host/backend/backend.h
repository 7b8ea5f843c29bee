/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h - a host's backend: one card, many client processes
 *
 *   control (the caller's thread)   clients that come and go, their groups, what is sent to them:
 *                                   ina/host/shm/server.h
 *   registrar                       asks the controller (registrar.h)
 *   load balancer                   requests to parts, parts to responses (balancer.h)
 *   workers                         packets (worker_thread.h)
 *
 * Several may live in one process.
 */
#ifndef INA_BACKEND_BACKEND_H
#define INA_BACKEND_BACKEND_H

#include "ina/host/backend/authority.h"
#include "ina/host/backend/balancer.h"
#include "ina/host/backend/registrar.h"

#include <sys/queue.h>

struct ha_backend_options {
	struct ina_shm_server_config server; /* address: the net's */
	struct ha_worker_limits limits;
	const int *cpu; /* of the balancer, then of each worker; NULL: nobody is pinned */
	const uint8_t *switch_mac; /* NULL: found out */
	bool loop;                 /* NETCCL_LB_LOOPBACK */
};

#define HA_BACKEND_COUNTERS(X)                                    \
	X(clients, "clients that have attached")                  \
	X(groups_created, "groups that were created for clients") \
	X(groups_refused, "groups that nobody could give")        \
	X(joined, "ranks that have joined a group")               \
	X(join_refused, "ranks that could not join")              \
	X(ended, "ranks whose group ended under them")

struct ha_backend {
	struct ha_net *net;
	struct ha_authority *authority;
	struct ina_shm_server *server;
	struct ha_mailbox mailbox; /* to control */
	struct ha_sleeper sleeper;
	struct ha_registrar registrar;
	struct ha_balancer balancer;
	struct ha_worker_thread **worker;
	LIST_HEAD(, ha_peer) peers;
	LIST_HEAD(, ha_member) members;
	bool used[HA_MEMBERS];
	uint32_t handles;     /* counts them */
	uint64_t incarnation; /* the last one's */
	unsigned npeers, nmembers;
	uint64_t ticked_at;
	struct {
#define X(name, help) uint64_t name;
		HA_BACKEND_COUNTERS(X)
#undef X
	} count;
};

/*
 * The net and the authority are the backend's from here on, also when it fails: then NULL, and
 * why[size].
 */
struct ha_backend *ha_backend_open(const struct ha_backend_options *options, struct ha_net *net,
				   struct ha_authority *authority, char *why, size_t size);
/* Does what there is, after waiting for it for at most timeout_ms. */
void ha_backend_serve(struct ha_backend *b, int timeout_ms);
/* Clients get -ENOTCONN by the end of their sockets; groups end for all ranks. */
void ha_backend_close(struct ha_backend *b);

#endif
