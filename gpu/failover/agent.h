/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h - the host's part of one connection: notices, fences, posts again, brings back
 *
 * One agent per connection and end; each end looks after its own log (what it sends), and both
 * together after the two paths.
 *
 * An incarnation of a path ends at both ends before anything else happens: an end that suspects it
 * closes its log if the path carries it, puts its queue pair to error, waits until it is drained,
 * and says FENCED(path, incarnation) with the signals that have come over the path. The peer does
 * the same when it learns that. An end that has fenced and has received the peer's FENCED knows
 * that nothing of this incarnation can land any more, anywhere, and what had: the entries up to the
 * last signal the peer has. It posts the rest again on another path that is up, with that path's
 * keys, number and slots, and opens the log. Each end chooses its path by itself.
 *
 * A path whose incarnation is over at both ends is connected anew (JOIN(path, incarnation + 1)),
 * proved by probes in both directions (PROVED), and is up. With failback an end returns to path 0
 * by ending the incarnation of path 1. An end whose address has changed while the path was down
 * says so first (MOVED): who has begun an incarnation with the old one ends it.
 *
 * An end without any path for no_path_ns gives up and says so (GAVE_UP): the other ends its waits,
 * too, whatever its own paths are.
 *
 * Triggers: an error completion, the port's or device's word, the peer's FENCED: proof. A device
 * thread's time limit: suspicion, it only makes the agent look. What was acknowledged and is not
 * proved while nothing more is posted, the agent proves by a read of its own: a NIC that
 * acknowledged and died is found out, though nobody posts. Silence: `silent_checks` looks in which
 * nothing outstanding was acknowledged. Ending an incarnation that was healthy costs time and
 * nothing else.
 */
#ifndef HA_GPU_FAILOVER_AGENT_H
#define HA_GPU_FAILOVER_AGENT_H

#include "gpu/device/hawser_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HA_GPU_DETAILS 4 /* words that JOIN and MOVED carry for the hardware */

enum ha_gpu_port { HA_GPU_PORT_UP, HA_GPU_PORT_DOWN, HA_GPU_PORT_GONE };

/* The hardware's side of a path; `path` is the owner's. */
struct ha_gpu_path_ops {
	/* To error, and drained. 0; -EAGAIN: call again; -EIO: the device is gone, nothing of it
	 * lands any more. Anything else is no fence; it is tried again after recovery_ns. */
	int (*fence)(void *path);
	/* From error through RESET to RTS, queues empty, hardware index 0; packets numbered as
	 * befits this incarnation, which both ends count alike. 0, or a negative errno: not now. */
	int (*connect)(void *path, uint64_t incarnation);
	/* Asked at every step: from memory, no command to a device. */
	enum ha_gpu_port (*port)(void *path);
	/* Before connect(). 1: this end is reached at another address than the peer was sent, which
	 * is now in `word`; 0; negative errno: not now. And what the peer says of its own; negative
	 * errno: it cannot be. Both NULL: addresses are for good. */
	int (*address)(void *path, uint64_t word[HA_GPU_DETAILS]);
	int (*moved)(void *path, const uint64_t word[HA_GPU_DETAILS]);
	/*
	 * What the peer has to know of the incarnation that connect() has begun, and what the peer
	 * says of its own; both NULL: nothing.
	 */
	void (*describe)(void *path, uint64_t word[HA_GPU_DETAILS]);
	/* negative errno: it cannot be */
	int (*set_peer)(void *path, const uint64_t word[HA_GPU_DETAILS],
			struct ha_gpu_path *device);
};

enum ha_gpu_message_type {
	HA_GPU_MESSAGE_FENCED,
	HA_GPU_MESSAGE_JOIN,
	HA_GPU_MESSAGE_PROVED,
	HA_GPU_MESSAGE_GAVE_UP,
	HA_GPU_MESSAGE_MOVED
};

struct ha_gpu_message {
	uint32_t type, path;
	uint64_t incarnation;
	/* FENCED: what came over the path; JOIN, MOVED: the hardware's words */
	uint64_t slot[HA_GPU_SIGNALS];
};

/* What carries the agents' messages: reliable and in order, as a TCP connection is. */
struct ha_gpu_channel {
	void *self;
	int (*send)(void *self,
		    const struct ha_gpu_message *message); /* 0, or -EPIPE: the peer is gone */
	int (*receive)(void *self,
		       struct ha_gpu_message *message); /* 1: one came; 0: none; -EPIPE */
};

struct ha_gpu_agent_config {
	uint64_t check_ns; /* between two looks at a path */
	/*
	 * before a path that failed is tried again; doubles up to 64 times with each failure; up
	 * for 64 times as long it has one less
	 */
	uint64_t recovery_ns;
	/* without any path: then the log is given up. Counted while the agent is stepped */
	uint64_t no_path_ns;
	/* looks without an acknowledgement while something is outstanding: the path has failed */
	unsigned silent_checks;
	unsigned probes; /* that a new incarnation has to answer */
	bool failback;   /* return to path 0 */
};

enum ha_gpu_cause {
	HA_GPU_CAUSE_NONE,
	HA_GPU_CAUSE_ERROR,
	HA_GPU_CAUSE_PORT,
	HA_GPU_CAUSE_SILENCE,
	HA_GPU_CAUSE_PEER,
	HA_GPU_CAUSE_FAILBACK
};

enum ha_gpu_path_state {
	HA_GPU_PATH_UP,      /* proved at both ends */
	HA_GPU_PATH_CLOSING, /* it carries the log: threads are publishing what they reserved */
	HA_GPU_PATH_FENCING, /* the queue pair is on its way to error */
	HA_GPU_PATH_FENCED,  /* here; the peer has not said so yet */
	HA_GPU_PATH_OVER,    /* at both ends; rests until it is tried again */
	HA_GPU_PATH_JOINED,  /* connected here; the peer has not said so yet */
	HA_GPU_PATH_PROBING, /* connected at both ends */
	HA_GPU_PATH_PROVED   /* our probes came through; the peer's not yet */
};

struct ha_gpu_agent_path {
	void *hw;
	enum ha_gpu_path_state state;
	enum ha_gpu_cause cause; /* of the end of its last incarnation */
	uint64_t incarnation;
	/* greatest incarnation + 1 the peer said so of; 0: none */
	uint64_t peer_fenced, peer_joined, peer_proved;
	uint64_t landed[HA_GPU_SIGNALS];  /* from the peer's FENCED */
	uint64_t details[HA_GPU_DETAILS]; /* from its JOIN */
	/* probes of this incarnation, as hardware indices */
	uint64_t posted, answered;
	uint64_t probe_due, probe_late, retry_at;
	unsigned failures;   /* how long it rests before it is tried again; at most 7 */
	uint64_t forgive_at; /* if it is still up then, one of them is forgotten */
};

struct ha_gpu_agent {
	struct ha_gpu_conn *conn;
	struct ha_gpu_path_ops ops;
	struct ha_gpu_channel channel;
	struct ha_gpu_agent_config config;
	struct ha_gpu_agent_path path[HA_GPU_PATHS];
	bool carrying; /* false: the path in use has ended and no other was taken yet */
	bool taken;    /* the log is out of the send queue that ended: entries first to end */
	bool given_up; /* no path or no peer: for good */
	bool cut;      /* the channel is gone, or the peer has given up */
	struct ha_gpu_wqe *log; /* nwqes; entry i at i mod nwqes */
	uint64_t first, end;
	uint64_t no_path_since_ns, stepped_ns; /* the begin of a step */
	uint64_t check_due, cons_seen, alarm_seen;
	/* index after a read that we posted to prove what was acknowledged; 0: none */
	uint64_t proof;
	unsigned silent;
	struct {
		uint64_t switches, replayed, skipped, probes, proofs, suspicions, cleared;
	} count;
	enum ha_gpu_cause last_cause;
};

void ha_gpu_agent_defaults(struct ha_gpu_agent_config *c);
/* Both paths are connected and path 0 carries the log. 0, or -ENOMEM. */
int ha_gpu_agent_init(struct ha_gpu_agent *a, struct ha_gpu_conn *conn,
		      const struct ha_gpu_path_ops *ops, void *hw0, void *hw1,
		      const struct ha_gpu_channel *channel,
		      const struct ha_gpu_agent_config *config);
void ha_gpu_agent_end(struct ha_gpu_agent *a);
/* Whatever can be done now; never blocks. True: something was. */
bool ha_gpu_agent_step(struct ha_gpu_agent *a);

#ifdef __cplusplus
}
#endif

#endif
