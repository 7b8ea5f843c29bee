/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.pml - the two-sided epoch protocol of a bundle's failover, for exhaustive exploration by spin
 *
 * Two ends, S (sends) and R (receives), NR rails between them, NM messages through NS slots, so that slots, buffers
 * and clear-to-send entries are used again. README.md says what each part stands for, which bounds are explored, and
 * what the protocol is in prose; `check` runs every configuration. state.pml has the bounds and the variables,
 * world.pml what is not the protocol: rails, the data path at either end, the fault, and what counts as progress.
 *
 * How to read it: each action of an end, of a NIC or of the fault is one indivisible guarded step. Sets of stripes and
 * messages are bit masks. What travels on a rail is a set too, so a rail may reorder: the protocol needs less than a
 * reliable connection gives. Control messages are sets of facts ("R said FENCED of rail 1, epoch 0") that stay
 * receivable for ever after: delay, duplication, reordering and late delivery in one. Loss removes a fact.
 *
 * No run is infinite (every step spends something; `check` verifies that with spin's search for cycles), so whatever
 * can happen ends, and an end in which a request still waits is reported as an invalid end state. That is progress, and
 * needs no fairness beyond "what can always happen does". The fault may retire at any moment, so that nothing is ever
 * saved by a fault still to come.
 */
#include "state.pml"

/* ---- R's memory and S's memory: what must hold whenever a NIC writes ---- */
#if OPTIONAL
/* What a stripe covers: its own part of a message that is split, all of one that is not. */
#define COVERS(m, k, region) ((k) == (region) || mask[m] == 1 << (k))
inline place_stripe(r, m, k) {
	assert(!GONE(R)); /* a write after the receive ended with an error */
	assert(!(released >> (m) & 1) || GONE(S)); /* a write of bytes that the application no longer vouches for */
	for (i : 0 .. NR - 1) {
		if
		:: COVERS(m, k, i) ->
			assert(content[i] <= m + 1 || taken >> (content[i] - 1) & 1); /* old data over new and unused */
			content[i] = m + 1
		:: else
		fi
	}
	data[r] = data[r] & ~B(m, k);
	landed[r] = landed[r] | B(m, k)
}

inline immediate_arrives(r, m, k) {
	landed[r] = landed[r] & ~B(m, k);
	rcq[r] = rcq[r] | B(m, k);
	if
	:: !MEMORY && ACCEPTS(S, r) -> acks[r] = acks[r] | B(m, k)
	:: else
	fi
}
#else
inline place_stripe(r, m, k) {
	assert(!GONE(R)); /* a write after the receive ended with an error */
	assert(OPEN(m));  /* a write into a buffer whose receive is complete, and which may be in use again */
	assert(!(released >> m & 1) || GONE(S)); /* a write of bytes that the application no longer vouches for */
	data[r] = data[r] & ~B(m, k);
	rcq[r] = rcq[r] | B(m, k);
	if
	:: !MEMORY && ACCEPTS(S, r) -> acks[r] = acks[r] | B(m, k)
	:: else
	fi
}
#endif

inline place_cts(r, m) {
	assert(ring[m % NS] <= m + 1); /* a clear-to-send over a newer one */
#ifndef LAX /* the copy alone does no harm yet; a broken variant has to show more */
	assert(ring[m % NS] != m + 1); /* a clear-to-send written twice */
#endif
	cts[r] = cts[r] & ~(1 << m);
#if LAZY
	keys[m] = keys[m] | cts_keys[m];
#endif
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
#if LAZY
	cts_keys[m] = registered;
#endif
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
		:: x == R ->
			data[i] = 0; rcq[i] = 0;
#if OPTIONAL
			landed[i] = 0
#endif
		:: x == S -> cts[i] = 0; acks[i] = 0; counts[i] = 0
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
	/* What nobody will ever receive again is forgotten. (Makes fewer states, means nothing.) */
	if
	:: !ALIVE(1 - x, r) && ep[X(S, r)] == ep[X(R, r)] -> m_down[X(S, r)] = 0; m_down[X(R, r)] = 0
	:: else
	fi;
#endif
	if
	:: x == R ->
#ifdef SAME_QP
		late[r] = late[r] | data[r];
#endif
#ifndef NOFENCE
		data[r] = 0;
#endif
#if OPTIONAL
		landed[r] = 0;
		for (i : 0 .. NM - 1) {
			if
			:: OPEN(i) -> doubt = doubt | 1 << i
			:: else
			fi
		}
#endif
		skip
	:: x == S ->
#ifndef CTS_EARLY
		cts[r] = 0; counts[r] = 0
#endif
	fi
}

inline snapshot(x, r) {
	if
	:: x == R ->
#if OPTIONAL && !defined(OPT_RESENT)
		for (i : 0 .. NM - 1) {
			if
			:: OPEN(i) && i + 1 < rhead -> superseded = superseded | 1 << i; cts_on[i] = NOBODY
			:: else
			fi
		}
#endif
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

#if LAZY
/* Register the open receives' buffers on a rail's device, and send the keys to the sender. */
inline register_on(r) {
	if
	:: !(registered >> r & 1) -> registered = registered | 1 << r; m_keys[r] = rhead
	:: else
	fi
}
#endif

inline fence_end(x, r) {
#if LAZY
	for (i : 0 .. NR - 1) {
		if
		:: x == R && st[X(R, i)] == UP -> register_on(i)
		:: else
		fi
	}
#endif
#ifndef NODRAIN_S
	if
	:: x == S -> acks[r] = 0 /* what had not come by now never will */
	:: else
	fi;
#endif
	snapshot(x, r);
	st[X(x, r)] = FENCED;
#ifdef ONESIDED
	/* answers, but sends no keys */
	if
	:: m_down[X(1 - x, r)] >> ep[X(x, r)] & 1 || m_fenced[X(1 - x, r)] >> ep[X(x, r)] & 1 ->
		m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << ep[X(x, r)]
	:: else
	fi
#else
	m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << ep[X(x, r)]
#endif
}

/* The sender has the receiver's state of rail r: what r carried was seen, or travels again, or is lost for good. */
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
		assert(was_unplaced && !MEMORY); /* an error although every acknowledged stripe was placed */
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
	:: MEMORY && delivered_on == r -> delivered = 0; delivered_on = NOBODY
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

/* An end notices a dead rail by itself if the fault is of such a kind, if the rail is joining (it waits for an answer
 * or a probe, with a limit), or if no carrier at all brings anything any more: heartbeats miss. */
#ifdef NOBEAT
#define NOTICES(x, r) (knows[r] >> (x) & 1 || st[X(x, r)] >= JOIN)
#else
#define NOTICES(x, r) (knows[r] >> (x) & 1 || st[X(x, r)] >= JOIN || cut)
#endif

/* S offers when R has acknowledged S's state: so neither end ever has to repeat the state of an old incarnation. */
#if LOSSES > 0
#define MAY_OFFER(r) RECEIVED(m_ack[X(R, r)], ep[X(S, r)])
#else
#define MAY_OFFER(r) (st[X(R, r)] == DOWN)
#endif

/* One rail at one end. */
proctype rail(byte x; byte r) {
end:
	do
	/* Detection: what the end notices by itself, a false alarm, a rail that does not join. */
	:: d_step { !GONE(x) && ALIVE(x, r) && dead[r] && NOTICES(x, r) -> fence_begin(x, r) }
	:: d_step { !GONE(x) && ALIVE(x, r) && !dead[r] && LIKE(r) && alarms > 0 ->
		alarms--; TOUCH(r); fence_begin(x, r) }
	/* The peer sent it: either message does. */
	:: d_step { !GONE(x) && ALIVE(x, r) &&
		    (RECEIVED(m_down[X(1 - x, r)], ep[X(x, r)]) || RECEIVED(m_fenced[X(1 - x, r)], ep[X(x, r)])) ->
		fence_begin(x, r) }
#if CLOSE
	/* A BYE is the fence of every rail, and the state of each. */
	:: d_step { !GONE(x) && ALIVE(x, r) && closed[1 - x] && !cut -> fence_begin(x, r) }
	:: d_step { !GONE(x) && st[X(x, r)] == FENCED && closed[1 - x] && !cut -> st[X(x, r)] = DOWN }
#endif
	/* Drained. */
#ifdef NODRAIN
	:: d_step { !GONE(x) && st[X(x, r)] == FENCING -> fence_end(x, r) }
#else
	:: d_step { !GONE(x) && st[X(x, r)] == FENCING && (x == S || rcq[r] == 0) -> fence_end(x, r) }
#endif
	/* The peer's state has come. */
	:: d_step { !GONE(x) && st[X(x, r)] == FENCED && RECEIVED(m_fenced[X(1 - x, r)], ep[X(x, r)]) -> close_epoch(x, r) }
	/* An incarnation that never began here ended there: its OFFER was lost. */
#ifndef NOJUMP
	:: d_step { !GONE(x) && x == R && st[X(x, r)] == DOWN && ep[X(x, r)] + 1 < NE &&
		    (RECEIVED(m_down[X(S, r)], ep[X(x, r)] + 1) || RECEIVED(m_fenced[X(S, r)], ep[X(x, r)] + 1)) ->
		ep[X(x, r)]++; fence_begin(x, r) }
#endif
	/* Repeat what got lost, until it is acknowledged; acknowledge again what is repeated. */
#if LOSSES > 0 && !defined(NOREPEAT)
	:: d_step { !GONE(x) && (st[X(x, r)] == FENCED || st[X(x, r)] == DOWN) &&
		    !(m_fenced[X(x, r)] >> ep[X(x, r)] & 1) && !(m_ack[X(1 - x, r)] >> ep[X(x, r)] & 1) ->
		m_fenced[X(x, r)] = m_fenced[X(x, r)] | 1 << ep[X(x, r)] }
	:: d_step { !GONE(x) && st[X(x, r)] == DOWN && RECEIVED(m_fenced[X(1 - x, r)], ep[X(x, r)]) &&
		    !(m_ack[X(x, r)] >> ep[X(x, r)] & 1) ->
		ACKNOWLEDGE(x, r) }
	:: d_step { !GONE(x) && x == S && st[X(S, r)] == JOIN && ep[X(R, r)] < ep[X(S, r)] &&
		    !(m_offer[r] >> ep[X(S, r)] & 1) ->
		m_offer[r] = m_offer[r] | 1 << ep[X(S, r)] }
	:: d_step { !GONE(x) && x == R && st[X(R, r)] == JOIN && st[X(S, r)] == JOIN &&
		    !(m_answer[r] >> ep[X(R, r)] & 1) ->
		m_answer[r] = m_answer[r] | 1 << ep[X(R, r)] }
#endif
	/* A new incarnation: offered by S, answered by R, proved over the rail itself. */
	:: d_step { !GONE(x) && x == S && st[X(S, r)] == DOWN && ep[X(S, r)] + 1 < NE && !bad[r] && MAY_OFFER(r) ->
		ep[X(S, r)]++; st[X(S, r)] = JOIN; dead[r] = false; knows[r] = 0;
		m_offer[r] = m_offer[r] | 1 << ep[X(S, r)] }
	:: d_step { !GONE(x) && x == R && st[X(R, r)] == DOWN && ep[X(R, r)] + 1 < NE &&
		    RECEIVED(m_offer[r], ep[X(R, r)] + 1) ->
		FORGET(m_offer[r]);
		ep[X(R, r)]++; st[X(R, r)] = JOIN;
#ifdef SAME_QP
		data[r] = data[r] | late[r]; /* the number and the sequence fit again */
#endif
		m_answer[r] = m_answer[r] | 1 << ep[X(R, r)] }
	:: d_step { !GONE(x) && x == S && st[X(S, r)] == JOIN && RECEIVED(m_answer[r], ep[X(S, r)]) ->
		FORGET(m_answer[r]);
		st[X(S, r)] = PROBE;
		if
		:: ACCEPTS(R, r) -> probe[r] = 1
		:: else
		fi }
	:: d_step { !GONE(x) && x == R && st[X(R, r)] == JOIN && probe[r] == 1 ->
		st[X(R, r)] = UP;
#if LAZY && !defined(NOKEYS)
		register_on(r);
#endif
		probe[r] = (ACCEPTS(S, r) -> 2 : 0) }
	:: d_step { !GONE(x) && x == S && st[X(S, r)] == PROBE && probe[r] == 2 -> st[X(S, r)] = UP; probe[r] = 0 }
	od
}

#include "world.pml"

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
		for (i : 0 .. NR - 1) {
			run rail(S, i); run rail(R, i); run wire(i)
		}
		run limit(S); run limit(R);
#if CLOSE
		run send_bye();
#endif
		run fault()
	}
}
