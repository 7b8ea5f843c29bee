/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_MESH_H
#define HAWSER_PERF_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/perf/plugin.h"

struct perf_options;
struct ha_place;
struct ha_rendezvous;
struct ha_operation;
struct ha_timeline;
struct ha_calls;

/*
 * mesh - one plugin's connections from this rank, with their registered buffers
 *
 * As in NCCL's proxy, a channel's traffic in one direction (a lane) goes through a ring of buffer
 * slices, registered once per connection, one bank per protocol. Usually a connection carries one
 * lane. Where channels share a connection, it carries several: their receives are posted as one
 * grouped receive, told apart by tags.
 */

#define HA_MAX_STEPS 32 /* NCCL_NET_MAX_REQUESTS */

enum ha_protocol {
	HA_SIMPLE, /* the message is the payload; it has arrived when test says so */
	/*
	 * 4 bytes of payload and a 4-byte flag in turn; it has arrived when all the flags are there
	 */
	HA_LL,
	HA_PROTOCOLS,
};

struct ha_bank {
	char *memory;
	size_t slot; /* bytes of one step */
	void *mhandle;
};

/* Steps are counted from the operation's start; step s uses slot (base + s) % steps. */
struct ha_lane {
	int tag;
	struct ha_bank banks[HA_PROTOCOLS];
	uint64_t base;                /* steps of the operations before this one */
	uint64_t total;               /* steps of this operation */
	uint64_t produced;            /* send: slots filled; receive: slots that have arrived */
	uint64_t posted;              /* send: handed to the plugin */
	uint64_t consumed;            /* send: completed by the plugin; receive: read */
	void *requests[HA_MAX_STEPS]; /* send */
	bool complete[HA_MAX_STEPS];  /* send */
	size_t sizes[HA_MAX_STEPS];   /* send: bytes to send; receive: bytes that test reported */
};

enum ha_receive_state { HA_RECEIVE_POSTED, HA_RECEIVE_FLUSHING, HA_RECEIVE_DONE };

struct ha_conn {
	int peer;
	int group; /* channels group * lanes_max and following */
	int dev;
	void *listen_comm;
	void *comm;
	/* connect may keep its own state in it between calls */
	char handle[NCCL_NET_HANDLE_MAXSIZE];
	struct ha_lane *lanes;
	int lanes_count;
	size_t memory_bytes; /* of the lanes' banks, one mapping */
	char *memory;
	/* receive: one request covers the step of all lanes that have such a step */
	uint64_t posted, arrived, released, total;
	void *requests[HA_MAX_STEPS];
	void *cached[HA_MAX_STEPS]; /* the request as irecv gave it, for irecvConsumed */
	enum ha_receive_state states[HA_MAX_STEPS];
};

struct ha_mesh {
	struct ha_plugin plugin;
	struct ha_plugin_props props; /* of the first device used */
	const struct perf_options *options;
	int fused; /* the device that --dev N+M has made */
	int steps;
	int group; /* channels per connection */
	bool flush;
	bool optional; /* NCCL_NET_OPTIONAL_RECV_COMPLETION is in use */
	struct ha_conn *senders, *receivers;
	int senders_count, receivers_count;
	enum ha_protocol protocol;    /* of the current operation */
	uint64_t random;              /* state of the order of polling */
	uint64_t sent;                /* messages, ever */
	uint64_t refused;             /* isend or irecv that came back with no request, ever */
	struct ha_timeline *timeline; /* where progress is noted; NULL: nowhere */
	struct ha_calls *calls;       /* where the times of test() are noted; NULL: nowhere */
};

/*
 * Loads the plugin and connects this rank to the peers that the operation needs. Collective: all
 * ranks call it.
 * Returns 0 or a negative errno with the fault recorded.
 */
int ha_mesh_open(struct ha_mesh *mesh, const struct perf_options *options,
		 const struct ha_place *place, struct ha_rendezvous *rendezvous, const char *plugin,
		 int version);

/*
 * Deregisters, closes, finalizes. All operations must be complete in all ranks. 0 or -EIO with the
 * fault recorded.
 */
int ha_mesh_close(struct ha_mesh *mesh);

/* The lane of a channel to or from a peer; NULL when there is none. *conn gets its connection. */
struct ha_lane *ha_mesh_lane(struct ha_mesh *mesh, bool sending, int peer, int channel,
			     struct ha_conn **conn);

/*
 * Fills all receive buffers with `byte`, so that nothing of an earlier operation can pass for what
 * should arrive.
 */
void ha_mesh_poison(struct ha_mesh *mesh, int byte);

#endif
