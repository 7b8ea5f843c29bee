/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.h - a NIC that takes mlx5 queue entries from memory, in software
 *
 * A fabric is one region of memory at the same address in every process that uses it (made before
 * fork(), or inherited); all NICs, their queues and all memory they may touch lie in it. A NIC does
 * nothing by itself: a thread runs it (soft_nic_run) or a scheduler steps it.
 * It starts on a doorbell register, believes the doorbell record, executes entries of a queue pair
 * in order, and writes completions as a ConnectX does: one CQE64 per signalled entry and per failed
 * one; after the first failure the queue pair is in error and every later entry, signalled or not,
 * is flushed in order. Between two NICs goes a reliable connection:
 * numbered requests, executed once each, in order; what is repeated is acknowledged and not
 * executed again. No packets: a request lands under the lock of the queue pair that receives, which
 * is what makes modifying it to error a fence.
 *
 * Dynamically connected, an initiator (DCI) has no peer: each entry carries an address vector, over
 * two basic blocks, that names a target (DCT), its access key and its NIC. A target takes what
 * shows its key; it keeps the numbers of each initiator's conversation, which begins anew when the
 * initiator is reset or has sent to another target. Closing a target, or taking another key, is
 * its fence.
 *
 * What is not here: shared receive queues, immediate data to a target, more than one basic block
 * per entry of a connected queue pair, congestion.
 */
#ifndef HA_GPU_SOFT_NIC_H
#define HA_GPU_SOFT_NIC_H

#include "gpu/soft/fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFT_NICS_MAX 8
#define SOFT_QPS_MAX 24
#define SOFT_SESSIONS_MAX 8 /* initiators that a target remembers */
#define SOFT_MRS_MAX 64
#define SOFT_HELD_MAX 64
#define SOFT_HELD_BYTES 4096
#define SOFT_APART_MAX 2
#define SOFT_POSTED_MAX 32
#define SOFT_POSTED_BYTES 256 /* longer writes do not come late */

enum soft_state { SOFT_RESET, SOFT_INIT, SOFT_RTR, SOFT_RTS, SOFT_ERR };

enum soft_kind { SOFT_RC, SOFT_DCI, SOFT_DCT };

/* What a target knows of an initiator. */
struct soft_session {
	uint32_t nic, qpn; /* 0: nobody */
	uint64_t session, expected, answer;
};

struct soft_cq {
	uint8_t *cqe;
	uint32_t *dbrec; /* [0] consumer index, big-endian; NULL: collapsed */
	uint32_t log;    /* entries, as a power of two; 0: collapsed */
	uint32_t pi;
};

struct soft_mr {
	uint64_t address, bytes;
	uint32_t key;
	bool remote; /* peers may read, write and add */
};

/* What receives: under its lock, which whoever sends to it takes. */
struct soft_receiver {
	uint64_t lock;
	bool accepts;
	uint64_t incarnation; /* held requests of another are dropped */
	uint64_t expected;    /* next request's number */
	uint64_t answer;      /* of the last atomic, for its repetition */
	uint16_t ci;          /* receive queue entries used */
};

/* Dynamically connected: an initiator's under sq_lock, a target's under rx.lock. */
struct soft_dynamic {
	uint64_t key;     /* a target's own; an initiator's: of its last target */
	uint64_t session; /* an initiator's conversation, never twice the same */
	struct soft_session known[SOFT_SESSIONS_MAX]; /* a target's */
	unsigned forget;                              /* of `known`: the next that makes room */
};

struct soft_qp {
	uint64_t sq_lock; /* all that sends; taken before any rx.lock */
	struct soft_receiver rx;
	struct soft_nic *nic;
	uint32_t qpn;
	enum soft_kind kind;
	enum soft_state state;
	uint8_t *wqe;
	uint32_t nwqes;
	uint32_t *dbrec; /* both, in the fabric's memory */
	uint64_t *bf;    /* the doorbell register */
	struct soft_cq send, receive;
	uint64_t bell; /* register as last seen */
	uint16_t ci, pi;
	unsigned blocks; /* of the entry at ci */
	/* number of the entry at ci; where an incarnation begins: soft_qp_number() */
	uint64_t psn;
	uint64_t unanswered_since; /* since when its request has no answer; 0: it has */
	/*
	 * an entry was passed whose acknowledgement never came: only a later one's can stand for it
	 */
	bool unacked;
	uint32_t peer_nic, peer_qpn;
	uint64_t peer_address; /* its NIC's, when it was named: at another it is not found */
	uint64_t broken;       /* 1: what it received has put it into error */
	uint64_t destroyed;    /* 1: the next soft_qp_create() may have it */
	struct soft_dynamic dc;
};

/* Written by a NIC to memory that is apart, and not there yet: posted.h. */
struct soft_posted_write {
	uint64_t due_ns, to, bytes;
	uint8_t data[SOFT_POSTED_BYTES] __attribute__((aligned(8)));
};

struct soft_posted {
	uint64_t lock, head, tail;
	struct soft_posted_write write[SOFT_POSTED_MAX];
};

struct soft_nic {
	struct soft_fabric *fabric;
	uint32_t number;
	uint64_t address;          /* the address that peers are given; at first its number */
	uint64_t power;            /* enum soft_power */
	uint64_t link;             /* 1: up */
	uint64_t link_back_ns;     /* when a link that is down comes back by itself; 0: never */
	uint64_t reported;         /* 1: whoever asks for the port's state learns of the fault */
	uint64_t retry_ns, rnr_ns; /* how long a request is repeated */
	uint64_t pace;             /* steps that do nothing between two that do: a starved NIC */
	uint64_t idle_steps;
	uint64_t entries; /* executed or attempted, of all queue pairs */
	struct soft_fault fault;
	uint64_t struck;   /* faults that have come to their end */
	uint64_t begun_ns; /* since when the one at hand strikes; 0: not yet */
	uint32_t begun_qp;
	/* who makes queue pairs and targets: agents of several connections do, at once */
	uint64_t make_lock;
	struct soft_qp qp[SOFT_QPS_MAX];
	uint64_t nqps;
	struct soft_mr mr[SOFT_MRS_MAX];
	uint64_t nmrs;
	uint64_t stop; /* 1: soft_nic_run() returns */
	struct soft_posted posted;
	struct {
		uint64_t completions, errors, flushes, repeated, dropped, held_landed;
	} count;
};

enum soft_power {
	SOFT_ON,
	SOFT_SILENT, /* moves nothing, says nothing; still obeys the driver */
	SOFT_DEAD    /* gone from the bus */
};

/* A request that is under way and lands late. */
struct soft_held {
	bool used;
	uint64_t due_ns, incarnation, psn, address, bytes, session;
	uint32_t nic, qpn, key, from_nic, from_qpn;
	uint8_t data[SOFT_HELD_BYTES] __attribute__((aligned(8)));
};

struct soft_fabric {
	size_t bytes, used;
	uint32_t nnics;
	bool moves; /* a port that comes back has another address */
	struct {
		uint64_t from, bytes;
	} apart[SOFT_APART_MAX]; /* posted.h */
	uint64_t late_ns;
	uint64_t alloc_lock; /* used */
	uint64_t held_lock, nheld;
	struct soft_held held[SOFT_HELD_MAX];
	struct soft_nic nic[SOFT_NICS_MAX];
};

/* NULL: no memory. All of it is shared with children of fork(). */
struct soft_fabric *soft_fabric_open(unsigned nics, size_t bytes);
void soft_fabric_close(struct soft_fabric *f);
/* Everything as soft_fabric_open() left it. */
void soft_fabric_clear(struct soft_fabric *f);
/* Zeroed, aligned to 64 bytes, never freed by itself; NULL when the fabric's memory is used up. */
void *soft_alloc(struct soft_fabric *f, size_t bytes);

/* The key, or 0 when there are too many or the range is not the fabric's. */
uint32_t soft_mr_register(struct soft_nic *n, const void *address, size_t bytes, bool remote);
/* 0, or -ENOENT. */
int soft_mr_deregister(struct soft_nic *n, uint32_t key);

struct soft_qp_attr {
	uint32_t nwqes;       /* power of two, at most 32768 */
	uint32_t cq_log;      /* of the send queue; 0: collapsed */
	uint32_t receive_log; /* of the receive queue's; at least 1 */
	/*
	 * Where its queues lie, in the fabric's memory; NULL: it makes them, and they are the
	 * fabric's for good.
	 */
	uint8_t *wqe, *cqe;
	uint32_t *dbrec, *cq_dbrec;
	bool dci; /* an initiator; its peer is named by its entries, not by soft_qp_modify() */
};
/*
 * In RESET, with its queues, doorbell record and register; NULL: no room. Numbers begin anew on
 * every NIC.
 */
struct soft_qp *soft_qp_create(struct soft_nic *n, const struct soft_qp_attr *attr);
/*
 * A target, ready; NULL: no room. Closed by soft_qp_modify() to SOFT_ERR, which is for good; ended
 * by soft_qp_destroy().
 */
struct soft_qp *soft_dct_create(struct soft_nic *n, uint64_t key);
/* Nothing lands through it any more. */
void soft_qp_destroy(struct soft_qp *qp);
/*
 * 0, -EINVAL (no such transition), -EIO (the device is gone: nothing of it lands any more either).
 * To RTR: the peer is named.
 */
int soft_qp_modify(struct soft_qp *qp, enum soft_state to, uint32_t peer_nic, uint32_t peer_qpn);
/*
 * Between RESET and the first request of an incarnation: number of the first that it sends, and of
 * the first that it takes; 0 where nobody says.
 */
void soft_qp_number(struct soft_qp *qp, uint64_t psn, uint64_t expected);
/* In error, and everything that was posted is accounted for. */
bool soft_qp_drained(struct soft_qp *qp);

/* One thing, if there is one. */
bool soft_nic_step(struct soft_nic *n);
/* From here on it does nothing, until pace is 0 again. A thread runs it. */
void soft_nic_starve(struct soft_nic *n);
/*
 * Bodies of threads, until stop is set: the first looks without pause, the second sleeps a tenth of
 * a millisecond when there was nothing.
 */
void *soft_nic_run(void *nic);
void *soft_nic_serve(void *nic);

enum soft_port { SOFT_PORT_UP, SOFT_PORT_DOWN, SOFT_PORT_GONE };
/* As a driver would report it: what is silent or unannounced looks up. */
enum soft_port soft_nic_port(struct soft_nic *n);
/* NULL: nobody has this address. */
struct soft_nic *soft_nic_at(struct soft_fabric *f, uint64_t address);
/*
 * It is gone from the bus at the entry that comes after `entries` more, and the driver says so.
 * Called before anybody runs it.
 */
void soft_nic_dies_after(struct soft_nic *n, uint64_t entries);
/* Power and link are back. Queue pairs of a device that was gone are in error. */
void soft_nic_heal(struct soft_nic *n);

#ifdef __cplusplus
}
#endif

#endif
