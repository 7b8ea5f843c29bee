/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.pml - the two-sided epoch protocol of a bundle's failover, for exhaustive exploration by spin
 *
 * Two ends, S (sends) and R (receives), NR rails between them, NM messages through NS slots, so that slots, buffers and
 * clear-to-send entries are used again. README.md says what each part stands for, which bounds are explored, and what
 * the protocol is in prose; `check` runs every configuration.
 *
 * How to read it: each action of an end, of a NIC or of the fault is one indivisible guarded step; nothing else happens.
 * Sets of stripes and messages are bit masks. What travels on a rail is a set too, so a rail may reorder: the protocol
 * needs less than a reliable connection gives. Control messages are sets of facts ("R said FENCED of rail 1, epoch 0") that
 * stay receivable for ever after: that is delay, duplication, reordering and late delivery in one. Loss removes a fact.
 *
 * No run is infinite (every step spends something; `check` verifies that with spin's search for cycles), so whatever can
 * happen ends, and an end in which a request still waits is reported as an invalid end state. That is progress, and
 * needs no fairness beyond "what can always happen does". The fault may retire at any moment, so that nothing is ever
 * saved by a fault still to come.
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
#define NE 2 /* lives of a rail */
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
#ifndef SPLIT
#define SPLIT 1 /* messages may be cut into a stripe per rail */
#endif
#ifndef MEMORY
#define MEMORY 0 /* HA_NCCL_ACK: 0 nic, 1 memory */
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
#define JOIN 4	  /* a new life: S has offered it; R has answered */
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
bool err[2]; /* the connection ended with an error here: every rail is fenced, NCCL has been told */

byte shead;		/* S: the next message to serve */
byte ring[NS];		/* S: memory that R writes: clear-to-send, message plus one */
byte mask[NM];		/* S: stripes that make up a message (travels in each immediate) */
byte at[NM * NR];	/* S: where each stripe is */
byte released;		/* S: set of messages whose send NCCL knows to be complete: their data may be gone */

byte rhead;		/* R: the next receive to post */
byte seen[NM];		/* R: stripes whose completion has been taken from the queue */
byte cts_on[NM];	/* R: rail that carries the message's clear-to-send */
byte word = 0, word_on = NOBODY; /* R, memory mode: how many messages it told S to be complete, and over which rail */

/* ---- the rails ---- */
short data[NR];	  /* stripes between S's send queue and R's memory, of the life that is now */
short rcq[NR];	  /* stripes placed in R's memory, their completions not polled */
short acks[NR];	  /* stripes acknowledged, S's completions under way or not polled */
byte cts[NR];	  /* clear-to-send entries between R and S's memory */
byte words[NR];	  /* memory mode: the count between R and S's memory */
byte probe[NR];   /* 1 PING, 2 PONG */
bool bad[NR];	  /* the path is broken now */
bool dead[NR];	  /* this life of the rail is lost: it may still deliver, or not */
byte knows[NR];   /* set of the ends that notice that by themselves */

/* ---- control messages: sets of epochs ---- */
byte m_down[2 * NR], m_fenced[2 * NR], m_ack[2 * NR], m_offer[NR], m_answer[NR];
short r_state[NR * NE]; /* what R's FENCED says: stripes seen */
byte s_state[NR * NE]; /* what S's FENCED says: clear-to-sends held */
bool m_abort[2];
bool cut; /* no carrier is left at all, for ever */

byte kills = KILLS, heals = HEALS, alarms = ALARMS, losses = LOSSES, unplaced = UNPLACED;
bool was_unplaced; /* it happened: an error is legitimate */

/*
 * Rails that nothing has happened to yet are alike: the next to be touched is always the lowest of them. (Makes fewer
 * states, means nothing.)
 */
byte touched;
#define LIKE(r) ((r) <= touched)
#define TOUCH(r) touched = (touched > (r) -> touched : (r) + 1)

hidden byte i, mm;
hidden byte gone;

#define COMPLETE(m) (seen[m] != 0 && seen[m] == mask[m])
#define OPEN(m) ((m) < rhead && !COMPLETE(m))
#define HELD(m) ((m) < shead || ring[(m) % NS] == (m) + 1)
#ifdef NOFENCE
#define ACCEPTS(x, r) (!err[x])
#else
#define ACCEPTS(x, r) (ALIVE(x, r) && !err[x] && ep[X(S, r)] == ep[X(R, r)])
#endif
#ifdef NOEPOCH
#define SAID(messages, e) (!cut && (messages) != 0)
#define STATE_OF(r, messages, e) ((r) * NE + ((messages) & 1 -> 0 : (e)))
#else
#define SAID(messages, e) (!cut && ((messages) >> (e) & 1))
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

/* ---- R's memory and S's memory: what must hold whenever a NIC writes ---- */
inline place_stripe(r, m, k) {
	assert(!err[R]);	  /* no write after the receive ended with an error */
	assert(OPEN(m));	  /* no write after the receive was completed, hence none into a recycled buffer */
	assert(!(released >> m & 1) || err[S]); /* what travels is what the application gave */
	data[r] = data[r] & ~B(m, k);
	rcq[r] = rcq[r] | B(m, k);
	if
	:: !MEMORY && ACCEPTS(S, r) -> acks[r] = acks[r] | B(m, k)
	:: else
	fi
}

inline place_cts(r, m) {
	assert(ring[m % NS] < m + 1); /* never an older entry over a newer one, never twice */
	cts[r] = cts[r] & ~(1 << m);
	ring[m % NS] = m + 1
}

inline post_stripe(r, m, k) {
	at[m * NR + k] = ON(r);
	if
	:: ACCEPTS(R, r) -> data[r] = data[r] | B(m, k)
	:: else /* nobody takes it: it will be found unseen */
	fi
}

inline post_cts(r, m) {
	cts_on[m] = r;
	if
	:: ACCEPTS(S, r) -> cts[r] = cts[r] | 1 << m
	:: else
	fi
}

/* The connection ends here. First every rail is fenced, then the application learns of it. */
inline fail(x) {
	for (i : 0 .. NR - 1) {
#ifndef ERR_UNFENCED
		if
		:: x == R -> data[i] = 0; rcq[i] = 0
		:: x == S -> cts[i] = 0; acks[i] = 0; words[i] = 0
		fi;
#endif
		dead[i] = true;
		probe[i] = 0
	}
	err[x] = true;
	m_abort[x] = true
}

/* Complete on both sides: how it came to be matters no more. (Makes fewer states, means nothing.) */
inline settle(m) {
	if
	:: COMPLETE(m) && released >> m & 1 ->
		for (i : 0 .. NR - 1) {
			at[(m) * NR + i] = SEEN
		}
		mask[m] = (1 << NR) - 1;
		seen[m] = mask[m]
	:: else
	fi
}

/* ---- fence, reconcile: the same at both ends but for what they know ---- */
inline fence_begin(x, r) {
	st[X(x, r)] = FENCING;
	dead[r] = true;
	probe[r] = 0;
	knows[r] = knows[r] & ~(1 << x);
#ifndef ONESIDED
	m_down[X(x, r)] = m_down[X(x, r)] | 1 << ep[X(x, r)];
#endif
#ifndef NOEPOCH
	/* What nobody will ever listen to again is forgotten. (Makes fewer states, means nothing.) */
	if
	:: !ALIVE(1 - x, r) && ep[X(S, r)] == ep[X(R, r)] -> m_down[X(S, r)] = 0; m_down[X(R, r)] = 0
	:: else
	fi;
#endif
	if
	:: x == R ->
#ifndef NOFENCE
		data[r] = 0
#endif
	:: x == S ->
#ifndef CTS_EARLY
		cts[r] = 0; words[r] = 0
#endif
	fi
}

inline snapshot(x, r) {
	if
	:: x == R ->
		r_state[r * NE + ep[X(R, r)]] = 0;
		for (i : 0 .. NM - 1) {
			if
			:: COMPLETE(i) -> r_state[r * NE + ep[X(R, r)]] = r_state[r * NE + ep[X(R, r)]] | ALL(i)
#ifdef UNLISTED_DONE
			:: i >= rhead -> r_state[r * NE + ep[X(R, r)]] = r_state[r * NE + ep[X(R, r)]] | ALL(i)
#endif
			:: else -> r_state[r * NE + ep[X(R, r)]] = r_state[r * NE + ep[X(R, r)]] | seen[i] << (i * NR)
			fi
		}
	:: x == S ->
		s_state[r * NE + ep[X(S, r)]] = 0;
		for (i : 0 .. NM - 1) {
			if
			:: HELD(i) -> s_state[r * NE + ep[X(S, r)]] = s_state[r * NE + ep[X(S, r)]] | 1 << i
			:: else
			fi
		}
	fi
}

inline fence_end(x, r) {
#ifndef NODRAIN_S
	if
	:: x == S -> acks[r] = 0 /* what had not come by now never will */
	:: else
	fi;
#endif
	snapshot(x, r);
	st[X(x, r)] = FENCED;
#ifdef ONESIDED
	/* answers, but does not tell */
	if
	:: m_down[X(1 - x, r)] >> ep[X(x, r)] & 1 || m_fenced[X(1 - x, r)] >> ep[X(x, r)] & 1 ->
		m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << ep[X(x, r)]
	:: else
	fi
#else
	m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << ep[X(x, r)]
#endif
}

/* The sender has the receiver's state of rail r: stripes that r carried are seen, or travel again, or are lost for good. */
inline reconcile_send(r) {
	gone = 0;
	for (mm : 0 .. NM * NR - 1) {
		if
#ifdef REPLAY_ALL
		:: at[mm] != NONE && at[mm] <= ACKED(NR - 1) ->
#else
		:: at[mm] == ON(r) || at[mm] == ACKED(r) ->
#endif
			if
#ifndef REPLAY_SEEN
			:: r_state[STATE_OF(r, m_fenced[X(R, r)], ep[X(S, r)])] >> mm & 1 -> at[mm] = SEEN
#endif
			:: else ->
				if
				:: at[mm] == ACKED(r) && released >> (mm / NR) & 1 ->
#ifndef SILENT
					gone = 1
#endif
				:: else -> at[mm] = PARKED
				fi
			fi
		:: else
		fi
	}
	if
	:: gone ->
		assert(was_unplaced && !MEMORY);
		fail(S)
	:: else
	fi
}

/* The receiver has the sender's state of rail r: clear-to-sends that r carried are held, or are written again. */
inline reconcile_recv(r) {
#ifndef NOCTS
	for (i : 0 .. NM - 1) {
		if
#ifdef CTS_ALL
		:: OPEN(i) && cts_on[i] < NR ->
#else
		:: OPEN(i) && cts_on[i] == r ->
#endif
			cts_on[i] = (s_state[STATE_OF(r, m_fenced[X(S, r)], ep[X(R, r)])] >> i & 1 -> NOBODY : AGAIN)
		:: else
		fi
	}
#endif
	if
	:: MEMORY && word_on == r -> word = 0; word_on = NOBODY
	:: else
	fi
}

inline close_epoch(x, r) {
	st[X(x, r)] = DOWN;
	ACKNOWLEDGE(x, r);
	if
	:: x == S ->
		reconcile_send(r);
		FORGET(r_state[r * NE + ep[X(S, r)]])
	:: x == R ->
		reconcile_recv(r);
		FORGET(s_state[r * NE + ep[X(R, r)]])
	fi;
#ifndef NOEPOCH
#if LOSSES == 0
	if
	:: st[X(1 - x, r)] != FENCED -> m_fenced[X(S, r)] = 0; m_fenced[X(R, r)] = 0
	:: else
	fi;
#endif
#endif
	skip
}

/* An end notices a dead rail by itself if the fault is of such a kind, if the rail is joining (it waits for an answer or a
 * probe, with a limit), or if no carrier at all brings anything any more: heartbeats miss. */
#ifdef NOBEAT
#define NOTICES(x, r) (knows[r] >> (x) & 1 || st[X(x, r)] >= JOIN)
#else
#define NOTICES(x, r) (knows[r] >> (x) & 1 || st[X(x, r)] >= JOIN || cut)
#endif

/* One rail at one end. */
proctype rail(byte x; byte r) {
end:
	do
	/* Detection: what the end notices by itself, a false alarm, a rail that does not join. */
	:: d_step { !err[x] && ALIVE(x, r) && dead[r] && NOTICES(x, r) -> fence_begin(x, r) }
	:: d_step { !err[x] && ALIVE(x, r) && !dead[r] && LIKE(r) && alarms > 0 ->
		alarms--; TOUCH(r); fence_begin(x, r) }
	/* The peer told: either message does. */
	:: d_step { !err[x] && ALIVE(x, r) &&
		    (SAID(m_down[X(1 - x, r)], ep[X(x, r)]) || SAID(m_fenced[X(1 - x, r)], ep[X(x, r)])) ->
		fence_begin(x, r) }
	/* Drained. */
#ifdef NODRAIN
	:: d_step { !err[x] && st[X(x, r)] == FENCING -> fence_end(x, r) }
#else
	:: d_step { !err[x] && st[X(x, r)] == FENCING && (x == S || rcq[r] == 0) -> fence_end(x, r) }
#endif
	/* The peer's state has come. */
	:: d_step { !err[x] && st[X(x, r)] == FENCED && SAID(m_fenced[X(1 - x, r)], ep[X(x, r)]) -> close_epoch(x, r) }
	/* A life that never began here ended there: its OFFER was lost. */
#ifndef NOJUMP
	:: d_step { !err[x] && x == R && st[X(x, r)] == DOWN && ep[X(x, r)] + 1 < NE &&
		    (SAID(m_down[X(S, r)], ep[X(x, r)] + 1) || SAID(m_fenced[X(S, r)], ep[X(x, r)] + 1)) ->
		ep[X(x, r)]++; fence_begin(x, r) }
#endif
	/* Repeat what got lost, until it is acknowledged; acknowledge again what is repeated. */
#if LOSSES > 0 && !defined(NOREPEAT)
	:: d_step { !err[x] && (st[X(x, r)] == FENCED || st[X(x, r)] == DOWN) &&
		    !(m_fenced[X(x, r)] >> ep[X(x, r)] & 1) && !(m_ack[X(1 - x, r)] >> ep[X(x, r)] & 1) ->
		m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << ep[X(x, r)] }
	:: d_step { !err[x] && ep[X(x, r)] > 0 &&
		    !(m_fenced[X(x, r)] >> (ep[X(x, r)] - 1) & 1) && !(m_ack[X(1 - x, r)] >> (ep[X(x, r)] - 1) & 1) ->
		m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << (ep[X(x, r)] - 1) }
	:: d_step { !err[x] && st[X(x, r)] == DOWN && SAID(m_fenced[X(1 - x, r)], ep[X(x, r)]) &&
		    !(m_ack[X(x, r)] >> ep[X(x, r)] & 1) ->
		ACKNOWLEDGE(x, r) }
	:: d_step { !err[x] && x == S && st[X(S, r)] == JOIN && ep[X(R, r)] < ep[X(S, r)] && !(m_offer[r] >> ep[X(S, r)] & 1) ->
		m_offer[r] = m_offer[r] | 1 << ep[X(S, r)] }
	:: d_step { !err[x] && x == R && st[X(R, r)] == JOIN && st[X(S, r)] == JOIN &&
		    !(m_answer[r] >> ep[X(R, r)] & 1) ->
		m_answer[r] = m_answer[r] | 1 << ep[X(R, r)] }
#endif
	/* A new life: offered by S, answered by R, proved over the rail itself. */
	:: d_step { !err[x] && x == S && st[X(S, r)] == DOWN && ep[X(S, r)] + 1 < NE && !bad[r] ->
		ep[X(S, r)]++; st[X(S, r)] = JOIN; dead[r] = false; knows[r] = 0;
		m_offer[r] = m_offer[r] | 1 << ep[X(S, r)] }
	:: d_step { !err[x] && x == R && st[X(R, r)] == DOWN && ep[X(R, r)] + 1 < NE && SAID(m_offer[r], ep[X(R, r)] + 1) ->
		FORGET(m_offer[r]);
		ep[X(R, r)]++; st[X(R, r)] = JOIN;
		m_answer[r] = m_answer[r] | 1 << ep[X(R, r)] }
	:: d_step { !err[x] && x == S && st[X(S, r)] == JOIN && SAID(m_answer[r], ep[X(S, r)]) ->
		FORGET(m_answer[r]);
		st[X(S, r)] = PROBE;
		if
		:: ACCEPTS(R, r) -> probe[r] = 1
		:: else
		fi }
	:: d_step { !err[x] && x == R && st[X(R, r)] == JOIN && probe[r] == 1 ->
		st[X(R, r)] = UP;
		probe[r] = (ACCEPTS(S, r) -> 2 : 0) }
	:: d_step { !err[x] && x == S && st[X(S, r)] == PROBE && probe[r] == 2 -> st[X(S, r)] = UP; probe[r] = 0 }
	od
}

/* What each rail does by itself, and what either end polls from it. */
#define STRIPE(m, k) \
	:: d_step { data[r] & B(m, k) -> place_stripe(r, m, k) } \
	:: d_step { rcq[r] & B(m, k) && !err[R] -> \
		rcq[r] = rcq[r] & ~B(m, k); \
		assert(OPEN(m) && !(seen[m] >> k & 1)); /* exactly once */ \
		seen[m] = seen[m] | 1 << k; \
		if \
		:: COMPLETE(m) -> cts_on[m] = NOBODY \
		:: else \
		fi; \
		settle(m) } \
	:: d_step { acks[r] & B(m, k) && !err[S] -> \
		acks[r] = acks[r] & ~B(m, k); \
		if \
		:: at[m * NR + k] == ON(r) -> at[m * NR + k] = ACKED(r) \
		:: else -> assert(at[m * NR + k] == SEEN) /* no completion of an old life is taken for the new one's */ \
		fi } \
	:: d_step { data[r] & B(m, k) && unplaced > 0 -> /* acknowledged, not placed, and the NIC is gone */ \
		unplaced--; was_unplaced = true; \
		data[r] = 0; \
		bad[r] = true; dead[r] = true; knows[r] = 3; \
		if \
		:: !MEMORY && ACCEPTS(S, r) -> acks[r] = acks[r] | B(m, k) \
		:: else \
		fi }
#define CLEAR(m) \
	:: d_step { cts[r] & 1 << (m) -> place_cts(r, m) }

proctype wire(byte r) {
end:
	do
	STRIPE(0, 0) STRIPE(0, 1) STRIPE(1, 0) STRIPE(1, 1)
	CLEAR(0) CLEAR(1)
#if NM > 2
	STRIPE(2, 0) STRIPE(2, 1)
	CLEAR(2)
#endif
#if NM > 3
	STRIPE(3, 0) STRIPE(3, 1)
	CLEAR(3)
#endif
#if NR > 2
	STRIPE(0, 2) STRIPE(1, 2)
#if NM > 2
	STRIPE(2, 2)
#endif
#if NM > 3
	STRIPE(3, 2)
#endif
#endif
	:: d_step { words[r] != 0 ->
		for (mm : 0 .. NM * NR - 1) {
			if
			:: mm / NR < words[r] && at[mm] != NONE -> at[mm] = SEEN
			:: else
			fi
		}
		words[r] = 0 }
	/* A life that is lost may lose what it carries. */
	:: d_step { dead[r] && (data[r] != 0 || cts[r] != 0 || words[r] != 0 || probe[r] != 0) ->
		data[r] = 0; cts[r] = 0; words[r] = 0; probe[r] = 0 }
	od
}

inline base_of_R(n) {
	n = 0;
	do
	:: n < NM && COMPLETE(n) -> n++
	:: else -> break
	od
}

inline split_message() {
	touched = NR;
	for (i : 0 .. NR - 1) {
		if
		:: st[X(S, i)] == UP -> mask[shead] = mask[shead] | 1 << i; post_stripe(i, shead, i)
		:: else
		fi
	}
	shead++
}

#define SERVED(m) \
	:: d_step { (m) < shead && !(released >> (m) & 1) && !err[S] && sent_whole(m) -> \
		released = released | 1 << (m); \
		settle(m) }
#define DONE_STRIPE(m, k) (at[(m) * NR + (k)] == NONE || at[(m) * NR + (k)] == SEEN || \
			   (!MEMORY && at[(m) * NR + (k)] > ON(NR - 1) && at[(m) * NR + (k)] <= ACKED(NR - 1)))
#if NR > 2
#define sent_whole(m) (DONE_STRIPE(m, 0) && DONE_STRIPE(m, 1) && DONE_STRIPE(m, 2))
#else
#define sent_whole(m) (DONE_STRIPE(m, 0) && DONE_STRIPE(m, 1))
#endif

/* The lowest stripe that waits to be posted again. */
inline repost(r) {
	i = 0;
	do
	:: at[i] != PARKED -> i++
	:: else -> break
	od;
	assert(!(released >> (i / NR) & 1)); /* its data must still be there */
	post_stripe(r, i / NR, i % NR)
}
#if NM == 2
#define IS_PARKED(k) (at[k] == PARKED || at[NR + (k)] == PARKED)
#elif NM == 3
#define IS_PARKED(k) (at[k] == PARKED || at[NR + (k)] == PARKED || at[2 * NR + (k)] == PARKED)
#else
#define IS_PARKED(k) (at[k] == PARKED || at[NR + (k)] == PARKED || at[2 * NR + (k)] == PARKED || at[3 * NR + (k)] == PARKED)
#endif
#if NR > 2
#define ANY_PARKED (IS_PARKED(0) || IS_PARKED(1) || IS_PARKED(2))
#else
#define ANY_PARKED (IS_PARKED(0) || IS_PARKED(1))
#endif

#define SENDS(r) \
	/* a message on one rail */ \
	:: d_step { CAN_SEND && st[X(S, r)] == UP && LIKE(r) -> \
		TOUCH(r); \
		mask[shead] = 1 << (r); \
		post_stripe(r, shead, r); \
		shead++ } \
	:: d_step { !err[S] && ANY_PARKED && st[X(S, r)] == UP && LIKE(r) -> TOUCH(r); repost(r) }
#define S_UP(r) (st[X(S, r)] == UP)
#if NR > 2
#define TWO_UP ((S_UP(0) && S_UP(1)) || (S_UP(0) && S_UP(2)) || (S_UP(1) && S_UP(2)))
#else
#define TWO_UP (S_UP(0) && S_UP(1))
#endif
#define CAN_SEND (!err[S] && shead < NM && ring[shead % NS] == shead + 1 && (shead < NS || released >> (shead - NS) & 1))

#ifdef NAIVE
inline naive(r) {
	for (mm : 0 .. NM * NR - 1) {
		if
		:: at[mm] == ON(r) -> at[mm] = PARKED
		:: else
		fi
	}
	st[X(S, r)] = DOWN
}
#endif
proctype sender() {
end:
	do
	SENDS(0) SENDS(1)
#if NR > 2
	SENDS(2)
#endif
#if SPLIT
	:: d_step { CAN_SEND && TWO_UP -> split_message() }
#endif
	SERVED(0) SERVED(1)
#if NM > 2
	SERVED(2)
#endif
#if NM > 3
	SERVED(3)
#endif
#ifdef NAIVE
	/* Replay what has no success completion, at once. */
	:: d_step { !err[S] && st[X(S, 0)] == FENCED -> naive(0) }
	:: d_step { !err[S] && st[X(S, 1)] == FENCED -> naive(1) }
#endif
	od
}

inline rects(r) {
	i = 0;
	do
	:: cts_on[i] != AGAIN -> i++
	:: else -> break
	od;
	post_cts(r, i)
}
#if NM == 2
#define ANY_AGAIN (cts_on[0] == AGAIN || cts_on[1] == AGAIN)
#elif NM == 3
#define ANY_AGAIN (cts_on[0] == AGAIN || cts_on[1] == AGAIN || cts_on[2] == AGAIN)
#else
#define ANY_AGAIN (cts_on[0] == AGAIN || cts_on[1] == AGAIN || cts_on[2] == AGAIN || cts_on[3] == AGAIN)
#endif

#define RECEIVES(r) \
	/* the next receive, into a slot whose last message is complete */ \
	:: d_step { !err[R] && rhead < NM && (rhead < NS || COMPLETE(rhead - NS)) && st[X(R, r)] == UP && LIKE(r) -> \
		TOUCH(r); \
		rhead++; \
		post_cts(r, rhead - 1) } \
	:: d_step { !err[R] && ANY_AGAIN && st[X(R, r)] == UP && LIKE(r) -> TOUCH(r); rects(r) } \
	:: d_step { MEMORY && !err[R] && st[X(R, r)] == UP && LIKE(r) && word < NM && COMPLETE(word) -> \
		TOUCH(r); \
		base_of_R(word); \
		word_on = r; \
		words[r] = (ACCEPTS(S, r) -> word : words[r]) }

#ifdef CTS_EARLY
inline cts_early(r) {
	for (i : 0 .. NM - 1) {
		if
		:: OPEN(i) && cts_on[i] == r -> cts_on[i] = AGAIN
		:: else
		fi
	}
	skip
}
#endif
#define CTS_ON(r) (cts_on[0] == r || cts_on[1] == r)
proctype receiver() {
end:
	do
	RECEIVES(0) RECEIVES(1)
#if NR > 2
	RECEIVES(2)
#endif
#ifdef CTS_EARLY /* asks nobody */
	:: d_step { !err[R] && st[X(R, 0)] == FENCED && CTS_ON(0) -> cts_early(0) }
	:: d_step { !err[R] && st[X(R, 1)] == FENCED && CTS_ON(1) -> cts_early(1) }
#endif
	od
}

/* An end gives up when none of its rails lives and none can come back; it also ends when the peer did. */
#define HOPELESS(x, r) (!ALIVE(x, r) && (bad[r] || ep[X(x, r)] == NE - 1))
#if NR > 2
#define NO_RAIL(x) (HOPELESS(x, 0) && HOPELESS(x, 1) && HOPELESS(x, 2))
#define ALL_BAD (bad[0] && bad[1] && bad[2])
#else
#define NO_RAIL(x) (HOPELESS(x, 0) && HOPELESS(x, 1))
#define ALL_BAD (bad[0] && bad[1])
#endif
proctype limit(byte x) {
end:
	do
	:: d_step { !err[x] && NO_RAIL(x) -> fail(x) }
	:: d_step { !err[x] && m_abort[1 - x] && !cut -> fail(x) }
	od
}

/* ---- the fault ---- */
#define KILL(r) \
	:: d_step { !bad[r] && kills > 0 && LIKE(r) -> kills--; TOUCH(r); bad[r] = true; dead[r] = true; knows[r] = knows[r] | 1 } \
	:: d_step { !bad[r] && kills > 0 && LIKE(r) -> kills--; TOUCH(r); bad[r] = true; dead[r] = true; knows[r] = knows[r] | 2 } \
	:: d_step { bad[r] && heals > 0 -> heals--; bad[r] = false }
#define LOSE(x, r) \
	:: d_step { losses > 0 && m_down[X(x, r)] != 0 -> losses--; m_down[X(x, r)] = 0 } \
	:: d_step { losses > 0 && m_fenced[X(x, r)] >> ep[X(x, r)] & 1 -> losses--; \
		m_fenced[X(x, r)] = m_fenced[X(x, r)] & ~(1 << ep[X(x, r)]) } \
	:: d_step { losses > 0 && m_ack[X(x, r)] >> ep[X(x, r)] & 1 -> losses--; \
		m_ack[X(x, r)] = m_ack[X(x, r)] & ~(1 << ep[X(x, r)]) }
#define LOSE_LIFE(r) \
	:: d_step { losses > 0 && m_offer[r] != 0 -> losses--; m_offer[r] = 0 } \
	:: d_step { losses > 0 && m_answer[r] != 0 -> losses--; m_answer[r] = 0 }

proctype fault() {
end:
	do
	KILL(0) KILL(1)
	LOSE(S, 0) LOSE(S, 1) LOSE(R, 0) LOSE(R, 1)
	LOSE_LIFE(0) LOSE_LIFE(1)
#if NR > 2
	KILL(2) LOSE(S, 2) LOSE(R, 2) LOSE_LIFE(2)
#endif
	:: d_step { ALL_BAD && !cut && losses > 0 -> losses = 0; cut = true }
	:: d_step { kills = 0; heals = 0; alarms = 0; losses = 0; unplaced = 0 } break
	od
}

/* ---- progress: this process can always end ---- */
#define EVERY ((1 << NM) - 1)
#if NM == 2
#define R_DONE (COMPLETE(0) && COMPLETE(1))
#elif NM == 3
#define R_DONE (COMPLETE(0) && COMPLETE(1) && COMPLETE(2))
#else
#define R_DONE (COMPLETE(0) && COMPLETE(1) && COMPLETE(2) && COMPLETE(3))
#endif
#define AGREED(r) ((st[X(S, r)] == UP || st[X(S, r)] == DOWN) && st[X(S, r)] == st[X(R, r)] && ep[X(S, r)] == ep[X(R, r)])
#if NR > 2
#define ALL_AGREED (AGREED(0) && AGREED(1) && AGREED(2))
#else
#define ALL_AGREED (AGREED(0) && AGREED(1))
#endif
proctype requests() {
	(released == EVERY || err[S]) && (R_DONE || err[R]) && (ALL_AGREED || err[S] || err[R] || cut)
}

init {
	d_step {
		for (i : 0 .. NM - 1) {
			cts_on[i] = NOBODY
		}
	}
	atomic {
		run requests();
		run sender();
		run receiver();
		run rail(S, 0); run rail(R, 0); run wire(0);
		run rail(S, 1); run rail(R, 1); run wire(1);
#if NR > 2
		run rail(S, 2); run rail(R, 2); run wire(2);
#endif
		run limit(S); run limit(R);
		run fault()
	}
}
