/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - one connection to a peer as device threads, the NICs and the host agent share it: words,
 * memory, who writes what
 *
 * A connection has two paths, each with a queue pair of its own on a NIC of its own, and one log.
 * Entries are numbered from 0 for as long as the connection exists ("index", 48 bits); the path in
 * use keeps entry i in slot (i - base) mod nwqes of its send queue and gives it the 16-bit hardware
 * index i - base. The send queue is the log: what is in it from `tail` on may have to be posted
 * again.
 *
 *      tail  <=  cons  <=  rung  <=  ready  <=  resv  <=  tail + nwqes
 *
 *   resv   next index that nobody has reserved; CLOSED: the agent switches paths, reserve nothing;
 *          DOWN: no path is left
 *   ready  entries below it are written; a thread publishes when ready has come to its own first
 *          entry
 *   rung   entries below it have been posted to the NIC by its doorbell
 *   cons   entries below it have been acknowledged by the peer's NIC
 *   tail   entries below it are done: in the peer's memory, or (reads) in ours. Waiting means
 *          waiting for tail
 *
 * An acknowledgement is not placement: a NIC may acknowledge what it has not written yet, and die.
 * What proves placement is a read that came back over the same queue pair, so every proof_every-th
 * entry is one, and quiet() posts one. With proof_every = 0 an acknowledgement is believed (tail
 * follows cons).
 *
 * A read waits for what was written to the same device, no more. Where the peer's memory is apart
 * (a GPU's, the mailbox is the host's) proofs read the mailbox and the memory in turns, and prove
 * what lies before the last of each; quiet() posts one of each; and a signal waits for a read of
 * the memory, or its receiver could see it before the data.
 *
 * cons and tail carry the epoch, which counts the switches of path. A thread that read a completion
 * before a switch and reports it after fails its compare-and-swap. tail carries FROZEN too, while
 * the agent switches.
 */
#ifndef HA_GPU_CONN_H
#define HA_GPU_CONN_H

#include "gpu/device/wqe.h"

#define HA_GPU_PATHS 2
#define HA_GPU_SIGNALS 64      /* slots of a connection */
#define HA_GPU_SIGNALS_USER 62 /* of these the user's; the last two carry fetch-adds */
#define HA_GPU_SIGNAL_ASK 62
#define HA_GPU_SIGNAL_ANSWER 63

#define HA_GPU_INDEX ((UINT64_C(1) << 48) - 1)
#define HA_GPU_EPOCH (UINT64_C(0x7fff) << 48)
#define HA_GPU_EPOCH_ONE (UINT64_C(1) << 48)
#define HA_GPU_FROZEN (UINT64_C(1) << 63)    /* tail */
#define HA_GPU_CQ_PROBES (UINT64_C(1) << 47) /* cq_ci: what completes are the agent's probes */
#define HA_GPU_CLOSED (UINT64_C(1) << 63)    /* resv */
#define HA_GPU_DOWN (UINT64_C(1) << 62)      /* resv */

#define HA_GPU_FOREVER UINT64_MAX

enum ha_gpu_result {
	HA_GPU_DONE,
	/* within the limit it did not come; what was posted stays posted, waiting again is right */
	HA_GPU_TIMEOUT,
	HA_GPU_BOTH_DOWN, /* no path to the peer is left; what was not done never will be */
	/*
	 * an argument that no path could serve: memory outside the tables, too long, no such slot
	 */
	HA_GPU_REFUSED
};

enum ha_gpu_health {
	HA_GPU_GOOD,
	HA_GPU_SUSPECTED, /* a time limit has passed: no proof */
	/*
	 * an error completion, the port's or the device's word, or silence for longer than the
	 * agent allows
	 */
	HA_GPU_FAILED,
	HA_GPU_RECOVERING /* fenced; the agents connect it again and probe it */
};

/*
 * What the peer's NICs write at our end. The peer writes [path] only over that path; everything
 * else means the same from either.
 */
struct ha_gpu_mailbox {
	/* cumulative; the value of a signal is the greatest of its slots */
	uint64_t slot[HA_GPU_PATHS][HA_GPU_SIGNALS];
	/* fetch-add the peer wants: address here, operand */
	uint64_t ask[2];
	uint64_t answer[2];           /* to ours: old value, enum ha_gpu_result */
	uint64_t probe[HA_GPU_PATHS]; /* agents' heartbeats */
};

/* One path. Written by the agent while the ring is closed and the bell is taken; cq_ci by pollers.
 * What a GPU thread reads to post is one line. */
struct ha_gpu_path {
	/* nwqes blocks of 64 bytes; twice as many where `wide` */
	uint8_t *wqe __attribute__((aligned(64)));
	uint32_t *dbrec; /* doorbell record, big-endian: [HA_GPU_DBR_SEND] */
	/* doorbell register of the queue pair, where GPU threads reach it */
	uint64_t *bf;
	const uint32_t *lkey; /* big-endian, per chunk of our memory: of this path's NIC */
	/* big-endian, per chunk of the peer's memory: of this path's NIC there */
	const uint32_t *rkey;
	uint64_t base;        /* index of the entry whose hardware index is 0 */
	uint64_t mailbox;     /* address of the struct ha_gpu_mailbox at the peer */
	uint32_t mailbox_key; /* big-endian, of the peer's mailbox */
	uint32_t qpn;
	/* the second line: who polls, proves, or sets up */
	/*
	 * incarnation of the path (16 bits), HA_GPU_CQ_PROBES, completions consumed in it (47; not
	 * of a collapsed queue)
	 */
	uint64_t cq_ci;
	/* completion queue of the send queue: one entry (collapsed), or 1 << cq_log */
	uint8_t *cqe;
	/*
	 * [0]: consumer index, big-endian; [1]: incarnation; eight bytes, aligned; not for a
	 * collapsed queue
	 */
	uint32_t *cq_dbrec;
	/* entries of each table; the paths' tables need not be of one size */
	uint32_t nlkey, nrkey;
	uint32_t scratch_key; /* big-endian, of our scratch */
	uint32_t cq_log;      /* 0: collapsed */
	/* 1: dynamically connected: an entry takes two blocks, for it names its target */
	uint32_t wide;
	uint32_t unused;
	/*
	 * then: the target's address vector, as it lies in an entry; the agent writes it as it does
	 * the rest
	 */
	uint64_t av[6];
	/* the register where the host's threads reach it: agents, proxies */
	uint64_t *host_bf;
};

struct ha_gpu_conn {
	/* device threads; each word on a line of its own */
	uint64_t resv __attribute__((aligned(64)));
	uint64_t gate; /* a reservation that ends at most there needs no second look: ring.h */
	uint64_t ready __attribute__((aligned(64)));
	uint64_t rung __attribute__((aligned(64)));
	uint64_t bell; /* 1: somebody rings; the agent takes it to switch paths */
	uint64_t cons __attribute__((aligned(64)));
	uint64_t tail __attribute__((aligned(64)));
	/* device threads to the agent */
	uint64_t alarm __attribute__((aligned(64))); /* time limits that have passed */
	/* 0, or the epoch's bits | 1 << 8 | syndrome of an error completion */
	uint64_t error;
	/* enum ha_gpu_health; threads only ever turn GOOD into worse */
	uint64_t health[HA_GPU_PATHS];
	/* index after the last read that quiet() posted; by whoever publishes */
	uint64_t last_proof;
	uint64_t producer; /* proxied: entries below it are to be rung by the host */
	/* cumulative, by whoever publishes, in the order of the log */
	uint64_t sent[HA_GPU_SIGNALS];
	/* fetch-add: ours under way, the peer's served */
	uint64_t asking; /* 0, or 1: somebody's is under way */
	uint64_t asked;  /* of ours, so many were posted */
	/* of the peer's: executed, answer posted; by the one thread that serves */
	uint64_t served, answered;
	uint64_t answer[2];

	/* the agent writes these while the ring is closed */
	uint64_t active __attribute__((aligned(64))); /* path in use */
	/* a copy of it, where posts find it without asking which; its cq_ci is nobody's */
	struct ha_gpu_path now;
	struct ha_gpu_path path[HA_GPU_PATHS];

	/* set-up; constant */
	uint32_t nwqes; /* power of two, at most 32768 */
	/* power of two, at least 64 and at most nwqes / 4; 0: acknowledgements are believed */
	uint32_t proof_every;
	uint32_t proxied; /* 1: the host rings */
	uint32_t chunk;   /* log2 of the bytes that one key covers */
	/*
	 * 1: the peer's memory lies behind another bridge than its mailbox (it is a GPU's): what is
	 * written to both keeps no order, and a read of one proves nothing of the other
	 */
	uint32_t apart;
	/* first address of our and of the peer's registered memory */
	uint64_t local, remote;
	uint64_t local_bytes, remote_bytes; /* of them */
	struct ha_gpu_mailbox *mailbox;     /* ours */
	/* [0]: where proofs are read to; [1]: old values of plain fetch-adds */
	uint64_t *scratch;
};

#ifndef __CUDACC__
/* path[path] is the one in use: at set-up, and by the agent while nobody may look. */
static inline void ha_gpu_use_path(struct ha_gpu_conn *c, uint64_t path)
{
	c->now = c->path[path];
	ha_gpu_store(&c->active, path);
}
#endif

/*
 * 0: one path, nothing to switch, acknowledgements believed: only to measure what protection costs
 * (bench/).
 */
#ifndef HA_GPU_PROTECTED
#define HA_GPU_PROTECTED 1
#endif

/* The path in use, for who holds entries that are reserved and not published, or the bell: the
 * agent waits for both before it writes there, and what opens the log, or lets go of the bell,
 * releases what it wrote. Anybody else loads `active`. */
HA_GPU_FN const struct ha_gpu_path *ha_gpu_active_path(const struct ha_gpu_conn *c)
{
	return &c->now;
}

/* 0 or 1: of an element of path[], or of the path in use. */
HA_GPU_FN uint64_t ha_gpu_path_number(const struct ha_gpu_conn *c, const struct ha_gpu_path *p)
{
	if (p != &c->now)
		return (uint64_t)(p - c->path);
	return HA_GPU_PROTECTED ? ha_gpu_load_own(&c->active) : 0;
}

/*
 * 1: connections may be dynamically connected. A kernel that uses none leaves it 0 and pays nothing
 * for them.
 */
#ifndef HA_GPU_DC
#define HA_GPU_DC 0
#endif

/* The doorbell register as the caller reaches it. */
HA_GPU_FN uint64_t *ha_gpu_doorbell_register(const struct ha_gpu_path *p)
{
#ifdef __CUDACC__
	return p->bf;
#else
	return p->host_bf;
#endif
}

HA_GPU_FN unsigned ha_gpu_block_shift(const struct ha_gpu_path *p)
{
	return HA_GPU_DC ? p->wide : 0;
}

HA_GPU_FN uint64_t ha_gpu_base_of(const struct ha_gpu_path *p)
{
	return HA_GPU_PROTECTED ? ha_gpu_load_own(&p->base) : 0;
}

/* The index in cons or tail. */
HA_GPU_FN uint64_t ha_gpu_index_of(uint64_t word)
{
	return HA_GPU_PROTECTED ? word & HA_GPU_INDEX : word;
}

#endif
