/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.h - the one core context of a process, shared by everybody whom NCCL initialises
 *
 * From v11 on NCCL calls init for every communicator and finalize for each of them, from any
 * thread: a communicator is a small object of its own and a reference to the context; the last one
 * out takes the context down, joins its threads. Up to v10 there is no finalize: init takes one
 * reference for the library, which dlclose gives back.
 */
#ifndef HA_NCCL_PLUGIN_H
#define HA_NCCL_PLUGIN_H

#include "plugin/core.h"
#include "plugin/nccl/abi/types.h"

#include <stdatomic.h>

struct ha_config;

/* What NCCL prints, and what NCCL_NET=HA selects. */
#define HA_PLUGIN_NAME "HA"

/* What NCCL last said about the traffic to come; a hint, -1 where it does not know. Written by any
 * of its threads. */
struct ha_traffic_hint {
	atomic_int send_peers, send_flows; /* at most so many peers, and flows to each */
	atomic_int recv_peers, recv_flows;
	atomic_uint op, algo, proto; /* bit masks of NCCL's enums */
};

/* A communicator, as v11 and later see it. */
struct ha_plugin_comm {
	struct ha_ctx *core;
	struct ha_comm_opts opts;
	uint64_t id; /* NCCL's hash of the communicator, for the log */
	struct ha_traffic_hint hint;
};

/* v6 to v10: the context, created when it is not there yet. Later calls find it and only change the
 * logger. */
int ha_plugin_init(ncclDebugLogger_t logger);
/* v11 and later: one communicator. traffic_class: NCCL_NET_TRAFFIC_CLASS_UNDEF or a value. */
int ha_plugin_comm_init(ncclDebugLogger_t logger, uint64_t id, int traffic_class,
			struct ha_plugin_comm **comm);
/* Ends a communicator and, with the last one, the context. comm may be NULL. */
int ha_plugin_comm_finalize(struct ha_plugin_comm *comm);

/* Called before the context ends, with whatever else is left of it. */
void ha_plugin_on_teardown(void (*teardown)(void));

/* Count the listeners and connections that NCCL holds: +1 for one handed out, -1 for one given
 * back. */
void ha_plugin_count_comm(int change);

/* The context; NULL before the first init. Valid while the caller's own init is not finalized. */
struct ha_ctx *ha_plugin_core(void);
/* The settings that it was made from; valid as long. */
const struct ha_config *ha_plugin_config(void);

#endif
