/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.h - what NCCL does with a connection: listen, connect, accept, post, test, flush, close
 *
 * Both ends walk the same list of messages. The calls of one host come from its one thread, in
 * random order.
 */
#ifndef HA_SIM_TRAFFIC_H
#define HA_SIM_TRAFFIC_H

#include "sim/plugin/promise.h"
#include "sim/plugin/world.h"

enum sim_phase {
	SIM_WAITS,  /* its time has not come, or the handle has not */
	SIM_OPENS,  /* connecting or accepting */
	SIM_UP,     /* messages */
	SIM_CLOSES, /* all done, or failed: lingers, then closes */
	SIM_CLOSED,
};

struct sim_op { /* a request that is out */
	bool used;
	struct ha_request *req, *flush;
	uint32_t message;
	unsigned n;
	uint32_t report; /* a send: bytes that it must report */
	struct sim_buffer *buf[HA_MAX_RECVS];
	struct ha_mr *mr[HA_MAX_RECVS];
	/*
	 * an optional receive that is complete for the core: its memory shows when the data is
	 * there
	 */
	bool watched;
};

#define SIM_OPS_MAX (SIM_WINDOW_MAX * HA_MAX_RECVS)

struct sim_side {
	struct sim_conn *conn;
	struct sim_host *host;
	unsigned end; /* 0 = the sender */
	enum sim_phase phase;
	struct ha_bundle *bundle;
	struct sim_arena arena;
	struct ha_mr *mr;
	struct sr_rng rng;
	uint32_t next, done; /* messages begun and finished */
	unsigned nops, max_ops;
	bool full; /* since nops was 0 */
	struct sim_op op[SIM_OPS_MAX];
	struct sim_op *trying; /* the sender's: ready, but its receive is not there yet */
	unsigned trying_member;
	/* moved_at: when something happened to this end last */
	uint64_t close_at, rest_until, moved_at;
	uint64_t up_at;     /* 0 = not yet */
	uint64_t closed_at; /* ns from the start, in order; 0 = it has not */
	int error;
	bool kept; /* a request ended with it, so every other call must say the same */
};

struct sim_conn {
	struct sim_world *world;
	const struct sim_conn_spec *spec;
	unsigned index;
	struct sim_promise promise;
	unsigned paths;       /* mask of the rails that must be up when all faults are over */
	bool other_nics;      /* and two of them on different NICs at both ends */
	uint64_t paths_until; /* after so many ns from the start */
	uint32_t messages;
	struct sim_side side[2];
	struct ha_listen *listen;
	char handle[HA_HANDLE_MAX];
	uint64_t handle_at;      /* when the sender has it; 0 = there is none yet */
	struct sim_message head; /* the sender's: message side[0].next */
	uint32_t head_index;
	uint8_t head_sent; /* mask */
	/* one-sided: where the receiver's arena has room for message n (modulo) */
	uint64_t exposed[SIM_WINDOW_MAX];
};

int sim_conn_open(struct sim_world *w, unsigned index);
/* Buffers are looked at for the last time. The contexts are gone. */
void sim_conn_free(struct sim_conn *c);

/* One round of a host's thread over its ends of all connections. True: something moved. */
bool sim_traffic_round(struct sim_host *h);
/*
 * The host's context is gone or its process is: its ends are closed, and nobody may write to them.
 */
void sim_traffic_drop(struct sim_host *h);
/*
 * Other shares for the sends of this host whose policy lets them change: a hint, good or bad, or
 * shares by hand.
 */
void sim_traffic_steer(struct sim_host *h);
/* steer.c: what the host's agent writes, if it has one. */
void sim_traffic_advise(struct sim_host *h);
/* Every end is closed. */
bool sim_traffic_done(const struct sim_world *w);
/* Finds a hang. */
void sim_traffic_watch(struct sim_world *w);
/* How many pairs a host's senders that have no rail are trying. */
void sim_traffic_count_tries(struct sim_host *h);

#endif
