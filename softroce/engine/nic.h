/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.h - the NIC's own state, and what its parts ask of it
 *
 * The NIC owns the number spaces (queue pairs, memory keys), the timers, the list of queue pairs
 * that have something to send, and the one way out to the wire. Everything is protected by the
 * caller's serialisation.
 */
#ifndef SOFTROCE_ENGINE_NIC_H
#define SOFTROCE_ENGINE_NIC_H

#include "softroce/engine/engine.h"
#include "softroce/engine/table.h"
#include "softroce/engine/timer.h"

#include <sys/queue.h>

#define SR_QPN_GSI 1u
#define SR_QPN_INDEX_BITS 14u /* 16384 queue pairs, 10 random bits in a QPN */
#define SR_KEY_INDEX_BITS 18u /* 262144 memory regions, 14 random bits in a key */
#define SR_DEFAULT_INFLIGHT 256u
#define SR_ACK_WAITS_MAX 256u /* bytes of a packet whose acknowledgement may wait */
#define SR_QUANTUM 16u        /* packets a queue pair may send before the next one's turn */

struct sr_qp;

struct sr_nic {
	struct sr_nic_config config;
	struct sr_event_ops events; /* config's with the gaps filled */
	struct sr_rng rng;
	struct sr_table qps, mrs;
	struct sr_timers timers;
	bool data_waits; /* the last turn went on acknowledgements alone */
	/* the acknowledgements owed may wait for a packet to go with, until then; 0: they do not */
	uint64_t acks_until;
	bool acks_left;                       /* by a post, which took one along */
	void (*end_wait)(struct sr_nic *nic); /* nic.c's, for the queue pairs below it */
	bool urgent;                          /* among the answers owed is one that may not wait */
	bool data_first; /* this turn is for a request, and not for what its queue pair owes */
	/* queue pairs that owe an acknowledgement; before all that follow */
	TAILQ_HEAD(, sr_qp) owing;
	TAILQ_HEAD(, sr_qp) active;  /* queue pairs with something to send, next one first */
	TAILQ_HEAD(, sr_qp) all_qps; /* every queue pair */
	TAILQ_HEAD(, sr_cq) cqs;
	TAILQ_HEAD(, sr_srq) srqs;
	TAILQ_HEAD(, sr_pd) pds;
	struct sr_qp *gsi; /* queue pair 1, or NULL */
	uint64_t now;      /* of the current call, ns */
	bool link_up, dead;
	bool wire_full;  /* the wire has refused a packet since sr_nic_progress() began */
	bool cq_overrun; /* some completion queue overran and its users are still to be stopped */
	uint32_t n_pd, n_cq, n_srq;
	struct sr_counters counters;
};

/* Hands a packet to the wire. False when it is full: keep it, and stop sending until the next
 * sr_nic_progress(). A port that is down swallows packets, as a cable that is out does. */
bool sr_nic_emit(struct sr_nic *nic, const struct sr_frame *frame);
/* Sends the acknowledgements that wait, if any: one of those who owe them is about to go. */
static inline void sr_nic_end_wait(struct sr_nic *nic)
{
	if (nic->acks_until)
		nic->end_wait(nic);
}
/* Raises an asynchronous event; nothing happens once the NIC is dead. */
void sr_nic_async(struct sr_nic *nic, enum ibv_event_type type, void *object);

#endif
