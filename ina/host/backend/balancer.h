/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * balancer.h - the load balancer: a thread that takes requests from all clients, cuts them into one
 * part for each worker, and answers when all parts are done
 *
 * A request of n blocks (256 bytes, a packet) is cut evenly: n / workers for each, one more for the
 * first n % workers; those that get none are not asked.
 * Responses to one rank of a group come in the order of its requests.
 */
#ifndef INA_BACKEND_BALANCER_H
#define INA_BACKEND_BALANCER_H

#include "ina/host/backend/member.h"
#include "ina/host/backend/peer.h"
#include "ina/host/backend/worker_thread.h"

#include <sys/queue.h>

/* Messages to the balancer, and from it to control. */
enum ha_message_kind {
	HA_MESSAGE_PEER_CAME = 1, /* struct ha_peer */
	HA_MESSAGE_PEER_GONE,
	HA_MESSAGE_ADD, /* struct ha_member */
	HA_MESSAGE_END, /* struct ha_member: its group is over; with end_err and end_why */
	/* struct ha_member: its client leaves, or is gone; with remove_err and remove_why */
	HA_MESSAGE_REMOVE,

	HA_MESSAGE_ADDED,   /* struct ha_member: requests may come */
	HA_MESSAGE_DROPPED, /* struct ha_peer: nobody here knows it any more */
	HA_MESSAGE_ENDED,   /* struct ha_member: its group is over, err and why say how */
	HA_MESSAGE_REMOVED, /* struct ha_member: nobody here knows it any more */
};

#define HA_BALANCER_COUNTERS(X)                                                   \
	X(requests, "requests of clients")                                        \
	X(refused, "requests that no group could take")                           \
	X(failed, "requests that ended with an error")                            \
	X(saturated, "requests with a sum that was held at the end of its range") \
	X(nonfinite, "requests with a block that has no value")                   \
	X(bytes, "bytes of requests that were answered")                          \
	X(balancer_sleeps, "times the balancer had nothing to do and slept")

struct ha_balancer_stats {
#define X(name, help) _Atomic uint64_t name;
	HA_BALANCER_COUNTERS(X)
#undef X
};

struct ha_balancer {
	struct ha_worker_thread **worker;
	unsigned workers;
	uint64_t idle_ns;
	bool shared; /* as in ha_worker_limits */
	bool loop;   /* NETCCL_LB_LOOPBACK */
	int cpu;     /* -1: not pinned */
	struct ha_mailbox mailbox, *control;
	struct ha_sleeper sleeper;
	struct ha_balancer_stats stats;
	_Atomic bool stop;
	/*
	 * the backend goes: what its first rank's end makes of its other ranks is not another
	 * host's doing
	 */
	_Atomic bool closing;
	pthread_t thread;
	bool open, running;

	/* The thread's own. */
	struct {
		LIST_HEAD(, ha_peer) peers;
		struct ha_member *member[HA_MEMBERS]; /* by the low bits of the handle */
		struct {
			const struct ha_peer *peer;
			uint32_t handle;
		} left[HA_MEMBERS];
		unsigned *out; /* of each worker: parts that it has */
		uint64_t worked_at;
		struct ha_yield yield;
	} own;
};

/*
 * b: zeroed but for worker, workers, idle_ns, shared, loop, cpu, control. From here on workers may
 * ring &b->sleeper, and messages wait. 0 or a negative errno.
 */
int ha_balancer_open(struct ha_balancer *b);
/* The thread: when the workers are there. 0 or a negative errno. */
int ha_balancer_start(struct ha_balancer *b);
void ha_balancer_stop(struct ha_balancer *b);
/* After the workers have stopped. */
void ha_balancer_close(struct ha_balancer *b);

/* Blocks of a request that each worker gets. */
static inline uint32_t ha_share(uint32_t blocks, unsigned workers, unsigned worker)
{
	return blocks / workers + (worker < blocks % workers);
}

#endif
