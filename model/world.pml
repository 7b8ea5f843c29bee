/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.pml - what the protocol runs in: rails and NICs, the data path at either end, the fault, progress
 */
inline old_completion(m, k) {
	assert(at[(m) * NR + k] == SEEN) /* a completion of an old incarnation that is taken for the new one's */
}

/* R polls an immediate. */
inline see_stripe(r, m, k) {
	rcq[r] = rcq[r] & ~B(m, k);
	if
#if OPTIONAL
	:: superseded >> m & 1 -> skip /* its slot may even be in use again: an old identity is ignored */
#endif
	:: else ->
		assert(OPEN(m) && !(seen[m] >> k & 1)); /* a stripe that arrives twice */
		seen[m] = seen[m] | 1 << k;
		if
		:: COMPLETE(m) -> cts_on[m] = NOBODY
		:: else
		fi
	fi;
	settle(m)
}

/* What each rail does by itself, and what either end polls from it. */
#define STRIPE(m, k) \
	IMMEDIATE(m, k) \
	:: d_step { data[r] & B(m, k) -> place_stripe(r, m, k) } \
	:: d_step { rcq[r] & B(m, k) && !GONE(R) -> see_stripe(r, m, k) } \
	:: d_step { acks[r] & B(m, k) && !GONE(S) -> \
		acks[r] = acks[r] & ~B(m, k); \
		if \
		:: at[m * NR + k] == ON(r) -> at[m * NR + k] = ACKED(r) \
		:: else -> old_completion(m, k) \
		fi } \
	:: d_step { data[r] & B(m, k) && unplaced > 0 -> /* acknowledged, not placed, and the NIC is gone */ \
		unplaced--; was_unplaced = true; \
		data[r] = 0; \
		bad[r] = true; dead[r] = true; knows[r] = 3; \
		if \
		:: !MEMORY && ACCEPTS(S, r) -> acks[r] = acks[r] | B(m, k) \
		:: else \
		fi }
#if OPTIONAL
#define IMMEDIATE(m, k) \
	:: d_step { landed[r] & B(m, k) -> immediate_arrives(r, m, k) }
#else
#define IMMEDIATE(m, k)
#endif
#define CLEAR(m) \
	:: d_step { cts[r] & 1 << (m) -> place_cts(r, m) }

/* S, memory mode: so many messages are complete. */
inline count_arrives(count) {
	for (mm : 0 .. NM * NR - 1) {
		if
		:: mm / NR < count && at[mm] != NONE -> at[mm] = SEEN
		:: else
		fi
	}
}

#define STRIPES(m) EACH_RAIL_OF(STRIPE, m)

#if OPTIONAL
#define LANDED(r) (landed[r] != 0)
#else
#define LANDED(r) false
#endif
proctype wire(byte r) {
end:
	do
	EACH_MESSAGE(STRIPES)
	EACH_MESSAGE(CLEAR)
#ifdef ONE_COUNT
	:: d_step { counts[r] != 0 -> location = counts[r]; counts[r] = 0 }
	:: d_step { location != 0 -> count_arrives(location); location = 0 }
#else
	/* A word per rail, and the sender takes the largest: whatever lands is read in the end. */
	:: d_step { counts[r] != 0 -> count_arrives(counts[r]); counts[r] = 0 }
#endif
	/* An incarnation that is lost may lose what it carries. */
	:: d_step { dead[r] && (data[r] != 0 || LANDED(r) || cts[r] != 0 || counts[r] != 0 || probe[r] != 0) ->
#if OPTIONAL
		landed[r] = 0;
#endif
		data[r] = 0; cts[r] = 0; counts[r] = 0; probe[r] = 0 }
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
	:: d_step { (m) < shead && !(released >> (m) & 1) && !GONE(S) && SENT_WHOLE(m) -> \
		released = released | 1 << (m); \
		settle(m) }
#define DONE_STRIPE(m, k) (at[(m) * NR + (k)] == NONE || at[(m) * NR + (k)] == SEEN || \
			   (!MEMORY && at[(m) * NR + (k)] > ON(NR - 1) && at[(m) * NR + (k)] <= ACKED(NR - 1)))
#define SENT_WHOLE(m) ALL_RAILS_OF(DONE_STRIPE, m)

/* The lowest stripe that waits to be posted again, and may be on this rail. */
#define WAITS(m, k, r) (at[(m) * NR + (k)] == PARKED && KEY(m, r))
inline repost(r) {
	i = 0;
	do
	:: !WAITS(i / NR, i % NR, r) -> i++
	:: else -> break
	od;
	assert(!(released >> (i / NR) & 1)); /* a released send that is posted again */
	post_stripe(r, i / NR, i % NR)
}
#if NR == 1
#define WAITS_ANY(r, m) WAITS(m, 0, r)
#elif NR == 2
#define WAITS_ANY(r, m) (WAITS(m, 0, r) || WAITS(m, 1, r))
#else
#define WAITS_ANY(r, m) (WAITS(m, 0, r) || WAITS(m, 1, r) || WAITS(m, 2, r))
#endif
#define ANY_PARKED(r) ANY_MESSAGE_OF(WAITS_ANY, r)

#if LAZY
#define LACKS(r, m) ((m) < m_keys[r] && !KEY(m, r))
#define LACKS_ANY(r) ANY_MESSAGE_OF(LACKS, r)
#define RECEIVES_KEYS(r) \
	:: d_step { !GONE(S) && !cut && LACKS_ANY(r) -> \
		for (i : 0 .. m_keys[r] - 1) { \
			keys[i] = keys[i] | 1 << (r) \
		} \
		skip }
#else
#define RECEIVES_KEYS(r)
#endif
#define SENDS(r) \
	RECEIVES_KEYS(r) \
	/* a message on one rail */ \
	:: d_step { CAN_SEND && KEY(shead, r) && st[X(S, r)] == UP && LIKE(r) -> \
		TOUCH(r); \
		mask[shead] = 1 << (r); \
		post_stripe(r, shead, r); \
		shead++ } \
	:: d_step { !GONE(S) && ANY_PARKED(r) && st[X(S, r)] == UP && LIKE(r) -> TOUCH(r); repost(r) }
#define S_UP(r) (st[X(S, r)] == UP)
#define CAN_SEND (!GONE(S) && shead < NM && ring[shead % NS] == shead + 1 && \
		  (shead < NS || released >> (shead - NS) & 1))

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
	EACH_RAIL(SENDS)
#if SPLIT
	:: d_step { CAN_SEND && TWO_RAILS(S_UP) -> split_message() }
#endif
	EACH_MESSAGE(SERVED)
#ifdef NAIVE
	/* Replay what has no success completion, at once. */
	:: d_step { !GONE(S) && st[X(S, 0)] == FENCED -> naive(0) }
	:: d_step { !GONE(S) && st[X(S, 1)] == FENCED -> naive(1) }
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
#define TO_WRITE(m) (cts_on[m] == AGAIN)
#define ANY_AGAIN ANY_MESSAGE(TO_WRITE)

#if OPTIONAL
#define REGION(m, k) (content[k] == (m) + 1)
#define WHOLE(m) ALL_RAILS_OF(REGION, m)
#define IN_DOUBT(m) (doubt >> (m) & 1 && OPEN(m))
#ifdef OPT_UNBLOCKED
#define NO_DOUBT true
#else
#define NO_DOUBT (!ANY_MESSAGE(IN_DOUBT))
#endif
/* The buffer is free when its data has been used. A receive into the buffer of one that is in doubt has to wait. */
#define BUFFER_FREE (rhead == 0 || (taken >> (rhead - 1) & 1 && NO_DOUBT))
#define TAKE(m) \
	:: d_step { WHOLE(m) && !(taken >> (m) & 1) && !GONE(R) -> taken = taken | 1 << (m) }
#else
#define BUFFER_FREE true /* slot and buffer are one */
#define TAKE(m)
#endif

#define RECEIVES(r) \
	/* the next receive, into a slot whose last message is complete */ \
	:: d_step { !GONE(R) && rhead < NM && (rhead < NS || COMPLETE(rhead - NS)) && BUFFER_FREE && \
		    st[X(R, r)] == UP && LIKE(r) -> \
		TOUCH(r); \
		rhead++; \
		post_cts(r, rhead - 1) } \
	:: d_step { !GONE(R) && ANY_AGAIN && st[X(R, r)] == UP && LIKE(r) -> TOUCH(r); rects(r) } \
	:: d_step { MEMORY && !GONE(R) && st[X(R, r)] == UP && LIKE(r) && delivered < NM && COMPLETE(delivered) -> \
		TOUCH(r); \
		base_of_R(delivered); \
		delivered_on = r; \
		counts[r] = (ACCEPTS(S, r) -> delivered : counts[r]) }

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
	EACH_RAIL(RECEIVES)
	EACH_MESSAGE(TAKE)
#ifdef CTS_EARLY /* asks nobody */
	:: d_step { !GONE(R) && st[X(R, 0)] == FENCED && CTS_ON(0) -> cts_early(0) }
	:: d_step { !GONE(R) && st[X(R, 1)] == FENCED && CTS_ON(1) -> cts_early(1) }
#endif
	od
}

#define EVERY ((1 << NM) - 1)
#if OPTIONAL
#define TAKEN (taken == EVERY)
#else
#define TAKEN true
#endif
#define ARRIVED(m) COMPLETE(m)
#define R_DONE (ALL_MESSAGES(ARRIVED) && TAKEN)
#if CLOSE
/* The BYE: an end whose requests are complete is gone, its queue pairs with it. */
inline bye(x) {
	for (i : 0 .. NR - 1) {
		if
		:: x == R -> data[i] = 0; rcq[i] = 0
		:: x == S -> cts[i] = 0; acks[i] = 0; counts[i] = 0
		fi;
		dead[i] = true;
		probe[i] = 0
	}
	closed[x] = true
}
#define IS_DOWN(x, r) (st[X(x, r)] == DOWN)
#define ALL_DOWN(x) ALL_RAILS_OF(IS_DOWN, x)
proctype send_bye() {
end:
	do
	:: d_step { !GONE(S) && released == EVERY -> bye(S) }
	:: d_step { !GONE(R) && R_DONE -> bye(R) }
	/* The receiver has everything and is gone. */
	:: d_step { !GONE(S) && closed[R] && !cut && !bye_received ->
		for (mm : 0 .. NM * NR - 1) {
			at[mm] = SEEN
		}
		bye_received = true }
	/* The sender is gone: nothing more will come. What it sent must be here once every rail is fenced. */
#ifdef BYE_HASTY
	:: d_step { !GONE(R) && closed[S] && !cut && !R_DONE ->
		assert(was_unplaced); /* an error although everything sent was placed */
		fail(R) }
#else
	:: d_step { !GONE(R) && closed[S] && !cut && ALL_DOWN(R) && !R_DONE ->
		assert(was_unplaced && !MEMORY); /* an error although everything sent was placed */
		fail(R) }
#endif
	od
}
#endif

/* An end gives up when none of its rails exists and none can come back; it also ends when the peer did. */
#define HOPELESS(x, r) (!ALIVE(x, r) && (bad[r] || ep[X(x, r)] == NE - 1))
#define IS_BAD(r) bad[r]
#define NO_RAIL(x) ALL_RAILS_OF(HOPELESS, x)
#define ALL_BAD ALL_RAILS(IS_BAD)
proctype limit(byte x) {
end:
	do
	:: d_step { !GONE(x) && NO_RAIL(x) -> fail(x) }
	:: d_step { !GONE(x) && m_abort[1 - x] && !cut -> fail(x) }
	od
}

/* ---- the fault ---- */
inline kill(r, who) {
	kills--;
	TOUCH(r);
	bad[r] = true;
	dead[r] = true;
	knows[r] = knows[r] | who
}
#define KILL(r) \
	:: d_step { !bad[r] && kills > 0 && LIKE(r) -> kill(r, 1) } \
	:: d_step { !bad[r] && kills > 0 && LIKE(r) -> kill(r, 2) } \
	:: d_step { !bad[r] && kills > 0 && LIKE(r) -> kill(r, 3) } \
	:: d_step { bad[r] && heals > 0 -> heals--; bad[r] = false }
#define LOSE(x, r) \
	:: d_step { losses > 0 && m_down[X(x, r)] != 0 -> losses--; m_down[X(x, r)] = 0 } \
	:: d_step { losses > 0 && m_fenced[X(x, r)] >> ep[X(x, r)] & 1 -> losses--; \
		m_fenced[X(x, r)] = m_fenced[X(x, r)] & ~(1 << ep[X(x, r)]) } \
	:: d_step { losses > 0 && m_ack[X(x, r)] >> ep[X(x, r)] & 1 -> losses--; \
		m_ack[X(x, r)] = m_ack[X(x, r)] & ~(1 << ep[X(x, r)]) }
#define LOSE_INCARNATION(r) \
	:: d_step { losses > 0 && m_offer[r] != 0 -> losses--; m_offer[r] = 0 } \
	:: d_step { losses > 0 && m_answer[r] != 0 -> losses--; m_answer[r] = 0 }

proctype fault() {
end:
	do
	EACH_RAIL(KILL)
	EACH_RAIL_OF(LOSE, S)
	EACH_RAIL_OF(LOSE, R)
	EACH_RAIL(LOSE_INCARNATION)
	:: d_step { cuts > 0 && ALL_BAD -> cuts = 0; cut = true }
	:: d_step { kills = 0; heals = 0; alarms = 0; losses = 0; unplaced = 0; cuts = 0 } break
	od
}

/* ---- progress: this process can always end ---- */
#define AGREED(r) ((st[X(S, r)] == UP || st[X(S, r)] == DOWN) && \
		   st[X(S, r)] == st[X(R, r)] && ep[X(S, r)] == ep[X(R, r)])
#define ALL_AGREED ALL_RAILS(AGREED)
proctype requests() {
	(released == EVERY || err[S]) && (R_DONE || err[R]) && (ALL_AGREED || GONE(S) || GONE(R) || cut)
}
