/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * receiver.h - a receiver of three rails, in memory alone, whose NICs note what they are given and
 * bring what the test says
 */
#ifndef HA_TESTS_TRANSFER_RECEIVER_H
#define HA_TESTS_TRANSFER_RECEIVER_H

#include "plugin/bundle.h"
#include "plugin/device/device.h"

#define NRAILS 3
#define NOTES_MAX 256
#define SENDER_RING UINT64_C(0x8000000)

/* What the NICs were given, in order. */
struct note {
	unsigned rail;
	bool flush; /* to the queue pair for flushes */
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint64_t from, to, id;
	uint32_t length, lkey, rkey;
	struct ha_cts cts[HA_MAX_RECVS]; /* what lay at `from` */
};
extern struct note notes[NOTES_MAX];
extern unsigned nnotes;
extern int post_refusal; /* what posting returns */

/* A completion queue: what comes, and what was asked of it. */
struct queue {
	struct ibv_wc wc[NOTES_MAX];
	unsigned have, at;
	int error;      /* what a poll returns when this is not 0 */
	unsigned polls; /* how often it was asked, */
	int asked[16];  /* and for how many, the first times */
};
extern struct queue data_queue[NRAILS], flush_queue[NRAILS];

/* Receives that were given back to the shared queue: how often, the last time, all together. */
extern unsigned refills, last_refill, all_refilled;
extern int refill_refusal; /* what giving back returns */
extern unsigned rounds;    /* that the connection's calls have made */
extern struct ha_device device[NRAILS];

/* Rail 0 is polled; HA_ATTN_* are clear; there is a service thread. */
struct ha_recv *make_receiver(void);
void free_receiver(struct ha_recv *c);
uint32_t ring_lkey_of(unsigned rail);
uint32_t ring_rkey_of(unsigned rail);
/* The completion queue of this rail's flushes, which it does not have at first. */
struct ibv_cq *flush_cq_of(unsigned rail);
void add_completion(struct queue *q, struct ibv_wc wc);
/* An immediate with so many bytes comes over this rail. */
void add_immediate(unsigned rail, uint32_t imm, uint32_t bytes);
/* So many work requests of this rail are done that say nothing else. */
void add_others(unsigned rail, unsigned n);
/* One buffer of 4096 bytes. NULL: not now. */
struct ha_request *receive_one(struct ha_recv *c, bool optional);
/* *size is that of the first buffer; -1: not done. */
void test_is(struct ha_request *req, int size);

#endif
