/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder.h - a sender of two rails, in memory alone, whose NICs note what they are given
 *
 * announce_receive() is the receiver's part; check_bytes() says whether a buffer is written as it
 * should.
 */
#ifndef HA_TESTS_TRANSFER_RECORDER_H
#define HA_TESTS_TRANSFER_RECORDER_H

#include "plugin/bundle.h"

#define RAILS 2
#define LARGE (1U << 20)
#define THERE UINT64_C(0x1000000) /* the receiver's buffer */
#define RING UINT64_C(0x5000)     /* the receiver's ring */
#define MOST 512

/* What the NICs were given, in order. */
struct work {
	unsigned rail;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	int num_sge;
	uint64_t from, to, id;
	uint32_t length, lkey, rkey, imm;
};
extern struct work work[MOST];
extern unsigned posted;
extern int refusal;            /* what posting returns, */
extern unsigned refused;       /* and how often it did */
extern struct ibv_wc arriving; /* the next completion, */
extern int arrivals;           /* if this is 1 */
extern unsigned polls;         /* how often one was asked for */
extern char data[8 * LARGE];
extern struct ha_mr mr;

uint32_t lkey_of(unsigned rail);
uint32_t rkey_of(unsigned rail, unsigned member);
struct ha_send *make_sender(void);
void free_sender(struct ha_send *s);
/* The receive at the head: n buffers of `size` bytes, one behind the other, with tags from 7 on. */
struct ha_cts *announce_receive(struct ha_send *s, unsigned n, uint64_t size);
struct ha_request *send_member(struct ha_send *s, unsigned m, size_t size);
/* Each byte of buffer `m` is written once, by each rail with its own keys. */
void check_bytes(unsigned m, uint64_t size);

#endif
