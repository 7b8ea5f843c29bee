/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * side.h - one end of a connection, as the files that move it share it
 *
 * side.c: its dice, its requests and buffers, its error; ends.c: the way up and down; messages.c:
 * requests in between;
 * watch.c: does it move, is it whole. Who uses connections from outside wants sim/plugin/traffic.h.
 */
#ifndef HA_SIM_SIDE_H
#define HA_SIM_SIDE_H

#include "plugin/bundle.h"
#include "sim/plugin/traffic.h"

/* the other end has failed to connect: this one stops waiting, as NCCL aborts both */
#define SIM_GIVE_UP_NS 20000000u

static inline struct ha_send *sim_side_send(const struct sim_side *s)
{
	return (struct ha_send *)s->bundle;
}

static inline struct ha_recv *sim_side_recv(const struct sim_side *s)
{
	return (struct ha_recv *)s->bundle;
}

uint64_t sim_side_dice(struct sim_side *s, uint64_t n);
/* Something happened: into the trace. */
void sim_side_event(struct sim_side *s, unsigned what, uint64_t value);
/* linger: ns until it does. */
void sim_side_to_close(struct sim_side *s, uint64_t linger);
/* A call has failed: what it may fail of is looked at, and the end goes to its close. */
void sim_side_ended(struct sim_side *s, int err, const char *call);

/* A free request; NULL: the window is full. */
struct sim_op *sim_op_new(struct sim_side *s, uint32_t message);
/* Buffers for n members, or none of them. */
bool sim_op_take_buffers(struct sim_side *s, struct sim_op *op, unsigned n);
/*
 * Member m's registration: the arena's, or one of its own where the scenario says so. 0 or -errno.
 */
int sim_op_register(struct sim_side *s, struct sim_op *op, unsigned m);
/* Buffers and registrations of a request that is done with. */
void sim_op_give_back(struct sim_side *s, struct sim_op *op);
/*
 * The buffers are their owner's again: a write from now on is a stray one, and what is read is
 * nonsense.
 */
void sim_side_disown(struct sim_side *s);

/* A request is complete: its buffers are looked at, and go back. */
void sim_op_finished(struct sim_side *s, struct sim_op *op);

/* puts.c: a one-sided connection. The receiver's window, its places for puts, what it takes. */
int sim_puts_offer(struct sim_side *s);
bool sim_puts_expose(struct sim_side *s);
bool sim_puts_take(struct sim_side *s);
/* The sender's: a put, and one that must not be taken. */
bool sim_puts_post(struct sim_side *s);
void sim_puts_post_nowhere(struct sim_side *s);

/* One call or a few; true: something moved. */
bool sim_side_begin(struct sim_side *s);
bool sim_side_connect(struct sim_side *s);
bool sim_side_accept(struct sim_side *s);
bool sim_side_exchange(struct sim_side *s);
bool sim_side_close(struct sim_side *s);
/* It is closed without a message: its context or its process is gone. */
void sim_side_revoke(struct sim_side *s);

/*
 * A connection that stays waits with its last messages until all is over and every path is up that
 * can be.
 */
bool sim_conn_waits(struct sim_conn *c);

#endif
