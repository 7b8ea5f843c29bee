/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.h - completion queues
 *
 * A ring of completions. An entry also says which queue's slots it gives back when it is polled: as
 * with hardware, a work request's place in its queue is taken until the program has polled a
 * completion at or behind it, so a program that posts too much fails here as it would there.
 */
#ifndef SOFTROCE_ENGINE_CQ_H
#define SOFTROCE_ENGINE_CQ_H

#include "softroce/engine/nic.h"
#include <stdatomic.h>

enum sr_cq_armed { SR_CQ_QUIET, SR_CQ_SOLICITED, SR_CQ_ANY };

struct sr_cqe {
	struct ibv_wc wc;
	uint32_t *retired; /* counter of freed places of a send, receive or shared receive queue */
	uint32_t places;   /* to add to it */
	bool shared;       /* the counter is a shared receive queue's and outlives the queue pair */
};

struct sr_cq {
	struct sr_nic *nic;
	TAILQ_ENTRY(sr_cq) link;
	void *user;
	struct sr_cqe *ring;
	uint32_t mask;     /* ring size - 1, a power of two */
	uint32_t capacity; /* what was asked for */
	/* Written under the NIC's serialisation; sr_cq_empty() reads both without it. */
	_Atomic uint32_t head; /* next to be written; the release store publishes entry and data */
	_Atomic uint32_t tail; /* next to be polled */
	enum sr_cq_armed armed;
	bool overrun; /* an entry found no room: nothing enters any more */
	bool overrun_reported;
	uint32_t refs;
};

/*
 * The next entry to fill in, or NULL when the queue overran (noted; the NIC stops its users when
 * the call ends).
 */
struct sr_cqe *sr_cq_reserve(struct sr_cq *cq);
/*
 * Publishes the entry that sr_cq_reserve() returned. event: it is solicited or an error (IBTA vol.
 * 1, 11.4.2.2).
 */
void sr_cq_publish(struct sr_cq *cq, bool event);
/* Forgets the completions of a queue pair that is being reset or destroyed, in order. */
void sr_cq_forget(struct sr_cq *cq, uint32_t qpn);

#endif
