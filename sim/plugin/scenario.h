/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario.h - what one seed means: hosts, devices, connections, traffic and faults, all decided
 * beforehand
 *
 * Each part draws from its own random stream, so that leaving a fault or a connection out changes
 * nothing else. That is what makes shrinking work.
 */
#ifndef HA_SIM_SCENARIO_H
#define HA_SIM_SCENARIO_H

#include "plugin/core.h"
#include "sim/plugin/verbs_engine.h"

#include <stdio.h>

#define SIM_CONNS_MAX 256
#define SIM_CONNS_DRAWN 12 /* by a seed; tests write out more */
#define SIM_CONNS_MASKED 64
#define SIM_FAULTS_MAX 32
/* receives in flight on one connection, as NCCL's NCCL_NET_MAX_REQUESTS */
#define SIM_WINDOW_MAX 32

#define SIM_TAIL 3 /* messages that a connection which stays keeps for the end */

/* One connection: rail i runs from the sender's devices[] to the receiver's. */
struct sim_conn_spec {
	uint64_t key;       /* of its payload and its own dice */
	unsigned from;      /* the sender's host */
	unsigned nrails[2]; /* named by the sender's and the receiver's end */
	unsigned rail[2][HA_MAX_RAILS];
	uint32_t messages; /* receives, grouped ones counted once */
	uint32_t window;   /* receives in flight */
	uint32_t max_size; /* bytes of one buffer */
	unsigned group_max;
	bool optional, gpu, reg_each;
	bool one_sided;        /* puts and records instead of sends and receives */
	bool whole;            /* every buffer has max_size bytes, and all of them are sent */
	bool batches;          /* a window is filled when the last one is over */
	bool stays;            /* its last messages wait until every path is up again that can be */
	uint64_t start_ns[2];  /* when each end begins */
	uint64_t think_ns;     /* the sender rests up to this long between messages; 0 = never */
	uint64_t linger_ns[2]; /* between the last message and the close */
};

struct sim_fault {
	unsigned class; /* index into sim_fault_classes */
	unsigned host, dev;
	bool rx;          /* direction, where there is one */
	uint64_t at, len; /* ns from the start */
	uint64_t amount;  /* ppm, ns or a count: the class knows */
	bool off;         /* left out by shrinking */
};

/* What the operator of a host has set. */
struct sim_host_spec {
	/* HA_NCCL_ENABLE_BACKUP, _ENABLE_FAILBACK, _ACK=memory, _MR_MODE=eager */
	bool backup, failback, ack_memory, eager;
	int heartbeat_ms, rto_ms, max_retries;
	int silence_ms;                 /* HA_NCCL_SILENCE_MS; 0 = off */
	int slow_factor, slow_moves;    /* HA_NCCL_SLOW_FACTOR, 0 = off; _MOVES */
	int copy_max;                   /* HA_NCCL_COPY_MAX; 0 = off */
	int standbys;                   /* HA_NCCL_STANDBYS */
	bool ooo_rq;                    /* NCCL_IB_OOO_RQ */
	int policy;                     /* enum ha_policy: HA_NCCL_POLICY */
	uint16_t weights[HA_MAX_RAILS]; /* HA_NCCL_WEIGHTS, with HA_POLICY_STATIC */
	/* Tests only: an agent that says so of every connection from here; it dies while it writes,
	 * and another takes its place (ns from the start; dies 0 = it goes on). */
	struct sim_agent {
		bool on;
		uint16_t share; /* of the second device, parts per 1024 */
		uint64_t dies, back;
	} agent;
};

/* What is set alike at both hosts. */
struct sim_settings {
	int timeout, retry; /* of the queue pairs */
	int poll_batch, poll_max, wr_per_conn, connect_timeout_ms;
};

/* The network between the hosts, and their ports. */
struct sim_wire_spec {
	/* NCCL_IB_ADAPTIVE_ROUTING: stripes of more than 1000 bytes travel apart from their
	 * notification */
	bool reorders;
	uint64_t latency_ns, bytes_per_us;
	/*
	 * what a port queues, in time; 0 = the wire's usual; more than a packet takes, or the port
	 * idles behind a bus
	 */
	uint64_t backlog_ns;
	uint64_t port_rate[2][SIM_DEVICES_MAX]; /* bytes per us; 0 = as above */
	/* what all ports of a host have together; 0 = no limit */
	uint64_t bus_rate[2];
	/* a byte of this port costs the bus so much; 0 = 1 */
	uint8_t bus_cost[2][SIM_DEVICES_MAX];
	uint8_t speed[2][SIM_DEVICES_MAX]; /* what a port says, in 100 Gb/s; 0 = 25 Gb/s */
	bool shared_nics; /* tests only: paths are enough, whatever NICs they share */
	/* a rail-only fabric: a device reaches only the one of its number, others do not answer */
	bool apart;
	uint8_t leaf[2][SIM_DEVICES_MAX]; /* the switch that a port hangs on */
};

/* The sockets between the hosts (oob.h). */
struct sim_oob_spec {
	uint64_t latency_ns, jitter_ns, keepalive_ns;
	uint32_t piece; /* most bytes taken or given at once; 0 = no limit */
};

/* How soon the hosts' threads do something. */
struct sim_thread_spec {
	uint64_t gap_min_ns, gap_max_ns; /* between two rounds of a host's NCCL thread */
	uint64_t service_ns; /* between two of the driver's: 20 us and up to so much more */
	/* tests only: registering a buffer takes so long, and the host stands still meanwhile */
	uint64_t reg_ns;
	uint64_t make_ns; /* tests only: what making a queue pair takes the calling thread */
};

/* What shrinking has left out, beside faults; hunt.c, and `ha sim` when it runs that again. */
struct sim_shrunk {
	uint64_t conns_off;   /* mask of the first SIM_CONNS_MASKED */
	uint32_t message_cap; /* per connection */
};

struct sim_scenario {
	uint64_t seed;
	/* tests only: of the wire, in a run that is no endless one; 0 = as many as any seed needs
	 */
	uint64_t steps_max;
	unsigned ndevices[2];
	struct sim_host_spec host[2];
	struct sim_limits limits;
	struct sim_settings settings;
	struct sim_wire_spec wire;
	/*
	 * tests only: what the queue pairs of this end's first incarnations send is lost, from `at`
	 * on (ns from the start)
	 */
	struct sim_mute {
		bool on;
		unsigned conn, end;
		uint64_t at;
	} mute;
	struct sim_oob_spec oob;
	uint64_t pace_ns; /* of one interval of sim_result.pace; 0 = nobody wants to know */
	struct sim_thread_spec thread;
	unsigned nconns, nfaults;
	struct sim_conn_spec conn[SIM_CONNS_MAX];
	struct sim_fault fault[SIM_FAULTS_MAX];
	struct sim_shrunk shrunk;
};

static inline bool sim_conn_is_on(const struct sim_scenario *sc, unsigned conn)
{
	return conn >= SIM_CONNS_MASKED || !(sc->shrunk.conns_off >> conn & 1);
}

/*
 * allowed: mask of fault classes that may be drawn; 0 = the usual mix; SIM_STORM: every seed is one
 * (faults.h).
 */
void sim_scenario_make(struct sim_scenario *sc, uint64_t seed, uint32_t allowed);
void sim_scenario_print(const struct sim_scenario *sc, FILE *out);
/* The time in which a queue pair gives up, ns. */
static inline uint64_t sim_scenario_window(const struct sim_scenario *sc)
{
	return (UINT64_C(4096) << sc->settings.timeout) * (unsigned)(sc->settings.retry + 1);
}
/* For how long a host's connections try without any path, ns: HA_NCCL_MAX_RETRIES. */
uint64_t sim_scenario_retry_limit(const struct sim_scenario *sc, unsigned host);

/* One receive and what is sent into it; both ends compute it. */
struct sim_message {
	unsigned n;
	bool optional;
	uint32_t posted[HA_MAX_RECVS], sent[HA_MAX_RECVS], expect[HA_MAX_RECVS];
	int tag[HA_MAX_RECVS];
	uint64_t key[HA_MAX_RECVS]; /* of the payload */
};
void sim_message_make(const struct sim_conn_spec *c, uint32_t index, struct sim_message *m);

#endif
