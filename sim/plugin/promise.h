/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * promise.h - what the core owes one connection, given everything that goes wrong in a scenario
 *
 * A path is a pair of devices that a rail runs over: those that the connection was opened with, and
 * as one more path any other pair, one device here and one there, that reach each other. As long as
 * one path exists, and also when all are away for less than the time limit (HA_NCCL_MAX_RETRIES),
 * every request completes. Everything else may end in an error, in time and at both ends. All of it
 * is computed from the scenario alone, without a look into the core.
 */
#ifndef HA_SIM_PROMISE_H
#define HA_SIM_PROMISE_H

#include "sim/plugin/scenario.h"

#define SIM_NEVER UINT64_MAX

/*
 * From when on (ns from the start) an error is excused by each reason; SIM_NEVER: by this one
 * never.
 */
struct sim_promise {
	bool failover; /* both ends have failover */
	bool standby;  /* and there are further pairs of devices: one more path, on any of them */
	unsigned nrails;
	uint64_t retry_limit; /* ns, of the less patient end */
	uint64_t unprotected; /* a path breaks, and nothing covers it */
	uint64_t no_path;     /* no path for longer than the time limit */
	/* the sockets are lost, and then, or before, every path had a fault once */
	uint64_t no_socket;
	/*
	 * a NIC dies with what it has acknowledged and not shown, and the sender believes the NIC
	 */
	uint64_t not_placed;
	uint64_t not_opened;   /* what a connection that is being made does not survive */
	uint64_t peer_gone[2]; /* the host at the sender's or receiver's end dies or leaves */
};

void sim_promise_make(const struct sim_scenario *sc, unsigned conn, struct sim_promise *p);
/* Nothing excuses an error after the connection is up. */
bool sim_promise_survives(const struct sim_promise *p);
/*
 * The other end has closed in order, at `closed` (ns from the start), and this one (0 = the sender)
 * fails at `now`: may the
 * BYE messages have been lost with the sockets, and the NIC's last acknowledgement with a packet
 * or, as the receiver's last word (HA_NCCL_ACK=memory), with the queue pair that the receiver
 * destroys? Then nobody is left to say that all arrived.
 */
bool sim_promise_bye_lost(const struct sim_scenario *sc, unsigned conn, unsigned end,
			  uint64_t closed, uint64_t now);
/*
 * Which rails must be up when everything is over (mask), and until when at the latest (ns from the
 * start): a rail that has failed often is asked again after half a minute. 0: nothing is promised.
 */
unsigned sim_promise_paths(const struct sim_scenario *sc, unsigned conn, uint64_t *until);
/* And with them must it survive the loss of any one NIC? */
bool sim_promise_other_nics(const struct sim_scenario *sc, unsigned conn);
/*
 * Since when has one path been without a fault, with nothing paused that could hold the connection
 * up? `now` if none is.
 */
uint64_t sim_promise_calm_since(const struct sim_scenario *sc, unsigned conn, uint64_t now);

#endif
