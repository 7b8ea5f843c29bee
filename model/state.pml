/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.pml - bounds, and every variable of the model
 */
#ifndef NR
#define NR 2 /* rails */
#endif
#ifndef NM
#define NM 3 /* messages */
#endif
#ifndef NS
#define NS 1 /* slots: message m uses buffer, CTS entry and records of slot m % NS */
#endif
#ifndef NE
#define NE 2 /* incarnations of a rail */
#endif
#ifndef KILLS
#define KILLS 1 /* rails that die */
#endif
#ifndef HEALS
#define HEALS 1 /* paths that come back */
#endif
#ifndef ALARMS
#define ALARMS 1 /* rails suspected without a reason, by either end */
#endif
#ifndef LOSSES
#define LOSSES 1 /* control messages lost */
#endif
#ifndef UNPLACED
#define UNPLACED 0 /* stripes that a NIC acknowledges without placing them, and dies */
#endif
#ifndef CUT
#define CUT 0 /* 1: when every rail is dead, the socket may end as well */
#endif
#ifndef SPLIT
#define SPLIT 1 /* messages may be cut into a stripe per rail */
#endif
#ifndef MEMORY
#define MEMORY 0 /* HA_NCCL_ACK: 0 nic, 1 memory */
#endif

#ifndef OPTIONAL
#define OPTIONAL 0 /* 1: the application takes data before its immediate is seen, and uses the buffer again */
#endif
#ifndef LAZY
#define LAZY 0 /* 1: receive buffers are registered on rail 0 only until another rail is needed (use with SPLIT=0) */
#endif
#ifndef CLOSE
#define CLOSE 0 /* 1: an end whose requests are complete may say BYE and be gone */
#endif

/* Something for each rail, for each message; true for all, for any. */
#if NR == 1
#define EACH_RAIL(F) F(0)
#define EACH_RAIL_OF(F, a) F(a, 0)
#define ALL_RAILS(F) (F(0))
#define ALL_RAILS_OF(F, a) (F(a, 0))
#define TWO_RAILS(F) false
#elif NR == 2
#define EACH_RAIL(F) F(0) F(1)
#define EACH_RAIL_OF(F, a) F(a, 0) F(a, 1)
#define ALL_RAILS(F) (F(0) && F(1))
#define ALL_RAILS_OF(F, a) (F(a, 0) && F(a, 1))
#define TWO_RAILS(F) (F(0) && F(1))
#else
#define EACH_RAIL(F) F(0) F(1) F(2)
#define EACH_RAIL_OF(F, a) F(a, 0) F(a, 1) F(a, 2)
#define ALL_RAILS(F) (F(0) && F(1) && F(2))
#define ALL_RAILS_OF(F, a) (F(a, 0) && F(a, 1) && F(a, 2))
#define TWO_RAILS(F) ((F(0) && F(1)) || (F(0) && F(2)) || (F(1) && F(2)))
#endif
#if NM == 2
#define EACH_MESSAGE(F) F(0) F(1)
#define ALL_MESSAGES(F) (F(0) && F(1))
#define ANY_MESSAGE(F) (F(0) || F(1))
#define ANY_MESSAGE_OF(F, a) (F(a, 0) || F(a, 1))
#elif NM == 3
#define EACH_MESSAGE(F) F(0) F(1) F(2)
#define ALL_MESSAGES(F) (F(0) && F(1) && F(2))
#define ANY_MESSAGE(F) (F(0) || F(1) || F(2))
#define ANY_MESSAGE_OF(F, a) (F(a, 0) || F(a, 1) || F(a, 2))
#else
#define EACH_MESSAGE(F) F(0) F(1) F(2) F(3)
#define ALL_MESSAGES(F) (F(0) && F(1) && F(2) && F(3))
#define ANY_MESSAGE(F) (F(0) || F(1) || F(2) || F(3))
#define ANY_MESSAGE_OF(F, a) (F(a, 0) || F(a, 1) || F(a, 2) || F(a, 3))
#endif

#define S 0
#define R 1
#define X(x, r) ((x) * NR + (r))     /* of an end, of a rail */
#define B(m, k) (1 << ((m) * NR + (k))) /* stripe k of message m */
#define ALL(m) (((1 << NR) - 1) << ((m) * NR)) /* every stripe of message m */

/* States of a rail, at either end. */
#define UP 0	  /* carries data */
#define FENCING 1 /* queue pair in error: nothing lands any more; completions are being drained */
#define FENCED 2  /* drained; our state is on its way; the peer's is awaited */
#define DOWN 3	  /* both fenced, reconciled: the epoch is closed */
#define JOIN 4	  /* a new incarnation: S has offered it; R has answered */
#define PROBE 5	  /* S only: answered, PING sent, PONG awaited */
#define ALIVE(x, r) (st[X(x, r)] == UP || st[X(x, r)] >= JOIN)

/* Where a stripe is, as the sender knows it. */
#define NONE 0
#define ON(r) (1 + (r))		/* posted on rail r */
#define ACKED(r) (1 + NR + (r)) /* posted on rail r, which reported success */
#define SEEN (1 + 2 * NR)	/* the receiver said that it has it */
#define PARKED (2 + 2 * NR)	/* to be posted again */
#define NOBODY 255		/* of a clear-to-send: no rail carries it, nothing to do */
#define AGAIN 254		/* of a clear-to-send: to be written again */

/* ---- the two ends ---- */
byte st[2 * NR], ep[2 * NR];
bool err[2]; /* the connection ended with an error here: every rail is fenced, NCCL has the error */

byte shead;		/* S: the next message to serve */
byte ring[NS];		/* S: memory that R writes: clear-to-send, message plus one */
byte mask[NM];		/* S: stripes that make up a message (travels in each immediate) */
byte at[NM * NR];	/* S: where each stripe is */
byte released;		/* S: set of messages whose send NCCL knows to be complete: their data may be gone */

byte rhead;		/* R: the next receive to post */
byte seen[NM];		/* R: stripes whose completion has been taken from the queue */
byte cts_on[NM];	/* R: rail that carries the message's clear-to-send */
byte delivered = 0, delivered_on = NOBODY; /* R, memory mode: how many messages it reported to S as complete, and over which rail */

#if OPTIONAL
/* One buffer, of a region per rail, used by every receive in turn; slots are used again only after their immediates. */
byte content[NR];  /* the message, plus one, whose bytes are in it */
byte taken;	   /* set of messages whose data the application has used */
byte doubt;	   /* R: receives that were open when a rail was fenced */
byte superseded;   /* R: of them, those whose buffer had already gone to a later receive: their data has been used */
short landed[NR];  /* stripes written to memory, their immediates not yet arrived */
#endif
#if LAZY
byte registered = 1; /* R: set of rails on whose device it registers its buffers */
byte cts_keys[NM];   /* R: the keys that the clear-to-send carries */
byte keys[NM];	     /* S: the keys that it has, of each message's buffer */
byte m_keys[NR];     /* R said: keys of rail r for every receive below this one (0: nothing said) */
#define KEY(m, r) (keys[m] >> (r) & 1)
#else
#define KEY(m, r) true
#endif
#if CLOSE
bool bye_received;	/* S has received R's BYE */
bool closed[2]; /* said BYE and is gone: answers nothing */
#define GONE(x) (err[x] || closed[x])
#else
#define GONE(x) err[x]
#endif

/* ---- the rails ---- */
short data[NR];	  /* stripes between S's send queue and R's memory, of the incarnation that is now */
short rcq[NR];	  /* stripes placed in R's memory, their completions not polled */
short acks[NR];	  /* stripes acknowledged, S's completions under way or not polled */
byte cts[NR];	  /* clear-to-send entries between R and S's memory */
byte counts[NR];	  /* memory mode: the count between R and S's memory */
byte probe[NR];   /* 1 PING, 2 PONG */
bool bad[NR];	  /* the path is broken now */
bool dead[NR];	  /* this incarnation of the rail is lost: it may still deliver, or not */
byte knows[NR];   /* set of the ends that notice that by themselves */

#ifdef ONE_COUNT
byte location; /* the one place that every rail's count is written to */
#endif
#ifdef SAME_QP
short late[NR]; /* what was under way when the old incarnation was fenced */
#endif

/* ---- control messages: sets of epochs ---- */
byte m_down[2 * NR], m_fenced[2 * NR], m_ack[2 * NR], m_offer[NR], m_answer[NR];
short r_state[NR * NE]; /* what R's FENCED says: stripes seen */
byte s_state[NR * NE]; /* what S's FENCED says: clear-to-sends held */
bool m_abort[2];
bool cut; /* no carrier is left at all, for ever */

byte cuts = CUT, kills = KILLS, heals = HEALS, alarms = ALARMS, losses = LOSSES, unplaced = UNPLACED;
bool was_unplaced; /* it happened: an error is legitimate */

/*
 * Rails that nothing has happened to yet are alike: the next to be touched is always the lowest of them. (Makes fewer
 * states, means nothing.)
 */
byte touched;
#if LAZY /* rail 0 is special from the start */
#define LIKE(r) true
#define TOUCH(r) skip
#else
#define LIKE(r) ((r) <= touched)
#define TOUCH(r) touched = (touched > (r) -> touched : (r) + 1)
#endif

hidden byte i, mm;
hidden byte gone;

#if OPTIONAL
#define COMPLETE(m) (superseded >> (m) & 1 || (seen[m] != 0 && seen[m] == mask[m]))
#else
#define COMPLETE(m) (seen[m] != 0 && seen[m] == mask[m])
#endif
#define OPEN(m) ((m) < rhead && !COMPLETE(m))
#define HELD(m) ((m) < shead || ring[(m) % NS] == (m) + 1)
#ifdef NOFENCE
#define ACCEPTS(x, r) (!GONE(x))
#else
#define ACCEPTS(x, r) (ALIVE(x, r) && !GONE(x) && ep[X(S, r)] == ep[X(R, r)])
#endif
#ifdef NOEPOCH
#define RECEIVED(messages, e) (!cut && (messages) != 0)
#define STATE_OF(r, messages, e) ((r) * NE + ((messages) & 1 -> 0 : (e)))
#else
#define RECEIVED(messages, e) (!cut && ((messages) >> (e) & 1))
#define STATE_OF(r, messages, e) ((r) * NE + (e))
#endif

#ifdef NOEPOCH
#define FORGET(what) skip
#else
#define FORGET(what) what = 0 /* nobody will use it again; makes fewer states, means nothing */
#endif
#if LOSSES > 0
#define ACKNOWLEDGE(x, r) m_ack[X(x, r)] = m_ack[X(x, r)] | 1 << ep[X(x, r)]
#else
#define ACKNOWLEDGE(x, r) skip /* nothing is ever repeated */
#endif
