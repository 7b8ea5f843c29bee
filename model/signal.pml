/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal.pml - one-sided puts and signals over rails that fail, for exhaustive exploration by spin
 *
 * NSND senders put into one receiver's memory and add to one counter there, each over a connection of its own with two
 * rails. A message is a put (on one rail, or split over both), a put with a signal, or a signal alone; it has an index,
 * and NS slots are used in turn. The epoch protocol itself is epoch.pml's matter: here a fence is what that one promises,
 * at each end a step of its own, at any moment, and again after a rail has come back. `check-signal` runs every
 * configuration; docs/one-sided.md is the protocol in prose.
 *
 * What travels on a rail is a set, so a rail may reorder. A stripe's data, its immediate and, with the first stripe of a
 * message, the record of its signal land together. A dead rail delivers what is on its way late, or never, until the
 * receiver has fenced it.
 */
#ifndef NSND
#define NSND 1 /* senders onto one counter */
#endif
#ifndef NM
#define NM 2 /* messages of each */
#endif
#ifndef NS
#define NS 2 /* slots */
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef HEALS
#define HEALS 0
#endif
#ifndef ALARMS
#define ALARMS 0 /* fences of a rail that is well */
#endif
#ifndef UNPLACED
#define UNPLACED 0 /* stripes that a NIC acknowledges and does not place */
#endif
#ifndef CONTEXTS
#define CONTEXTS 0 /* 1: two contexts, and weak signals; the receiver orders no more than NCCL asks for */
#endif

#if defined(NAIVE) || defined(FREE_ON_ACK)
#define ACKS
#endif
#define NR 2
#define NOBODY 3 /* no rail carries it */
#define SEEN 4
#define LOST_TRACK 5 /* the sender has forgotten it */
#define B(m, k) (1 << ((m) * NR + (k)))
#define BOTH(m) (3 << ((m) * NR))
#define X(s, r) ((s) * NR + (r))
#define M(s, m) ((s) * NM + (m))
#define K(s, m, k) (((s) * NM + (m)) * NR + (k))

/* a rail's state at an end */
#define UP 0
#define FENCED 1
#define DOWN 2

#define TAKEN(s, m) (taken[s] >> (m) & 1)
#define ALL_BEFORE(m) ((1 << (m)) - 1)
#define WHOLE(s, m) (mask[M(s, m)] && (seen[s] & mask[M(s, m)] << ((m) * NR)) == mask[M(s, m)] << ((m) * NR))
#define IN_MEMORY(s, m) ((placed[s] & mask[M(s, m)] << ((m) * NR)) == mask[M(s, m)] << ((m) * NR))

/* the sender's */
byte posted[NSND];            /* next index */
byte mask[NSND * NM];         /* stripes: 1, 2 or 3 */
byte add[NSND * NM];          /* what its signal adds; 0: none */
bool weak[NSND * NM], ctx[NSND * NM];
byte at[NSND * NM * NR];      /* rail that carries the stripe */
byte acked[NSND];             /* bits of stripes */
byte known[NSND];              /* messages below are taken, the sender knows */
byte s_state[NSND * NR];

/* on the rails, and the NICs' completions at the receiver */
byte data[NSND * NR], rcq[NSND * NR];
bool dead[NSND * NR];

/* the receiver's */
byte r_state[NSND * NR], state_seen[NSND * NR]; /* what the fence says */
byte seen[NSND], placed[NSND], taken[NSND];
byte added[NSND];             /* messages whose signal was added */
byte record[NSND * NS];       /* index + 1 of the message whose record is there */
byte counter;
#ifdef SPLIT_ADD
byte halfway[NSND], loaded[NSND]; /* index + 1 of the signal that is being added; what was read */
#endif

byte kills = KILLS, heals = HEALS, alarms = ALARMS, unplaced = UNPLACED;
byte due;                     /* the sum of all signals that were posted */
byte i, j;

/* ---- sending ---- */

#define CREDIT(s) (posted[s] < NM && posted[s] < known[s] + NS)

inline put_on(s, m, k, r) {
	at[K(s, m, k)] = r;
	if
	:: r_state[X(s, r)] == UP -> data[X(s, r)] = data[X(s, r)] | B(m, k)
	:: else /* nobody takes it: it will be found unseen */
	fi
}

inline choose_signal(s, m) {
	if
	:: add[M(s, m)] = 0
	:: add[M(s, m)] = m + 1 /* INC, or an ADD of its own */
	fi;
#if CONTEXTS
	if
	:: ctx[M(s, m)] = 0
	:: ctx[M(s, m)] = 1
	fi;
	if
	:: add[M(s, m)] -> weak[M(s, m)] = 0
	:: add[M(s, m)] -> weak[M(s, m)] = 1
	:: else
	fi;
#endif
	due = due + add[M(s, m)]
}

inline post(s) {
	choose_signal(s, posted[s]);
	if
#ifndef ONE_RAIL
	:: s_state[X(s, 0)] == UP && s_state[X(s, 1)] == UP ->
		mask[M(s, posted[s])] = 3;
		put_on(s, posted[s], 0, 0);
		put_on(s, posted[s], 1, 1)
#endif
	:: s_state[X(s, 0)] == UP -> mask[M(s, posted[s])] = 1; put_on(s, posted[s], 0, 0)
	:: s_state[X(s, 1)] == UP -> mask[M(s, posted[s])] = 2; put_on(s, posted[s], 1, 1)
	fi;
	posted[s]++
}

/* ---- what a NIC writes ---- */

/* Of a message, the stripe that has its record beside it. */
#define HAS_RECORD(s, m, k) ((k) == (mask[M(s, m)] == 2 -> 1 : 0))

inline add_now(s, m) {
	assert(IN_MEMORY(s, m)); /* a signal before its own put */
	for (j : 0 .. NM - 1) {
		if
		:: j < m && !weak[M(s, m)] && ctx[M(s, j)] == ctx[M(s, m)] && add[M(s, m)] ->
			assert(IN_MEMORY(s, j)); /* a strong signal before an earlier put */
			assert(TAKEN(s, j) || !add[M(s, j)]) /* a strong signal before an earlier signal */
		:: else
		fi
	}
	assert(!(added[s] >> m & 1)); /* an add is made twice */
	added[s] = added[s] | 1 << m;
	counter = counter + add[M(s, m)]
}

inline land(s, r, m, k) {
	data[X(s, r)] = data[X(s, r)] & ~B(m, k);
#ifndef LAX /* a broken variant has to show more */
	assert(!TAKEN(s, m)); /* a write behind its signal, into what may be used again */
#endif
	placed[s] = placed[s] | B(m, k);
	if
	:: HAS_RECORD(s, m, k) ->
		assert(record[s * NS + m % NS] <= m + 1); /* a record over a newer one */
		record[s * NS + m % NS] = m + 1;
#ifdef ATOMIC
		if
		:: add[M(s, m)] -> add_now(s, m)
		:: else
		fi
#endif
	:: else
	fi;
	rcq[X(s, r)] = rcq[X(s, r)] | B(m, k);
#ifdef ACKS /* where the sender believes them */
	if
	:: s_state[X(s, r)] == UP -> acked[s] = acked[s] | B(m, k)
	:: true /* the acknowledgement is lost */
	fi
#else
	skip
#endif
}

/* ---- the receiver ---- */

inline see(s, r, m, k) {
	rcq[X(s, r)] = rcq[X(s, r)] & ~B(m, k);
#ifndef LAX
	assert(!(seen[s] & B(m, k))); /* a stripe that was seen comes again */
#endif
	seen[s] = seen[s] | B(m, k)
}

/* In what order messages are taken. */
#if CONTEXTS
#define TURN(s, m) (!add[M(s, m)] || weak[M(s, m)] || !( \
	((m) > 0 && !TAKEN(s, 0) && ctx[M(s, 0)] == ctx[M(s, m)]) || \
	((m) > 1 && !TAKEN(s, 1) && ctx[M(s, 1)] == ctx[M(s, m)]) || \
	((m) > 2 && !TAKEN(s, 2) && ctx[M(s, 2)] == ctx[M(s, m)])))
#elif defined(ANY_ORDER)
#define TURN(s, m) true
#else
#define TURN(s, m) ((taken[s] & ALL_BEFORE(m)) == ALL_BEFORE(m))
#endif

#ifdef SPLIT_ADD
#define IDLE(s) (!halfway[s])
#else
#define IDLE(s) true
#endif
#ifdef EARLY
#define READY(s, m) (record[s * NS + (m) % NS] == (m) + 1 && (seen[s] & BOTH(m)))
#else
#define READY(s, m) (WHOLE(s, m) && IDLE(s))
#endif

inline take(s, m) {
#if !defined(ATOMIC) && !defined(SPLIT_ADD)
	if
	:: add[M(s, m)] ->
		assert(record[s * NS + m % NS] == m + 1); /* the record is not there, or another's */
		add_now(s, m)
	:: else
	fi;
#endif
	taken[s] = taken[s] | 1 << m
}

inline fence_receiver(s, r) {
#ifndef NOFENCE
	data[X(s, r)] = 0; /* nothing lands any more */
#endif
	r_state[X(s, r)] = FENCED;
#ifdef NODRAIN
	state_seen[X(s, r)] = seen[s];
#endif
	for (j : 0 .. NM * NR - 1) { /* drain */
		if
		:: rcq[X(s, r)] >> j & 1 -> see(s, r, j / NR, j % NR)
		:: else
		fi
	}
#ifndef NODRAIN
	state_seen[X(s, r)] = seen[s];
#endif
}

/* ---- the sender's half of a failover ---- */

#ifdef NAIVE
#define HAS_ARRIVED(s, r, m, k) (acked[s] & B(m, k)) /* what its own completions say */
#elif defined(COUNT_AS_SEEN)
#define HAS_ARRIVED(s, r, m, k) (state_seen[X(s, r)] & BOTH(m)) /* any stripe stands for the message */
#else
#define HAS_ARRIVED(s, r, m, k) (state_seen[X(s, r)] & B(m, k))
#endif

inline reconcile(s, r) {
	for (j : 0 .. NM * NR - 1) {
		if
		:: j / NR < posted[s] && mask[M(s, j / NR)] >> j % NR & 1 && at[K(s, j / NR, j % NR)] == r ->
			at[K(s, j / NR, j % NR)] = (HAS_ARRIVED(s, r, j / NR, j % NR) -> SEEN : NOBODY)
		:: else
		fi
	}
	s_state[X(s, r)] = DOWN;
	r_state[X(s, r)] = DOWN
}

#define LIVE_RAIL(s) (s_state[X(s, 0)] == UP || s_state[X(s, 1)] == UP)
#define PARKED(s, m) (m < posted[s] && (at[K(s, m, 0)] == NOBODY && mask[M(s, m)] & 1 || \
	at[K(s, m, 1)] == NOBODY && mask[M(s, m)] & 2))

inline post_again(s, m) {
	for (j : 0 .. NR - 1) {
		if
		:: mask[M(s, m)] >> j & 1 && at[K(s, m, j)] == NOBODY ->
			if
			:: s_state[X(s, 0)] == UP -> put_on(s, m, j, 0)
			:: s_state[X(s, 1)] == UP -> put_on(s, m, j, 1)
			fi
		:: else
		fi
	}
}

#ifdef FREE_ON_ACK
#define PASSED(s) (known[s] < posted[s] && \
	(acked[s] & mask[M(s, known[s])] << (known[s] * NR)) == mask[M(s, known[s])] << (known[s] * NR))
#else
#define PASSED(s) (known[s] < posted[s] && TAKEN(s, known[s]))
#endif

#define EVERYTHING ((1 << NM) - 1)
#define OVER(s) (taken[s] == EVERYTHING && known[s] == NM)
/* What is late may still land. */
#define GOES_ON(s) (!OVER(s) || data[X(s, 0)] || data[X(s, 1)] || rcq[X(s, 0)] || rcq[X(s, 1)])

active proctype world() {
	byte s, r, m, k;

	do
	:: atomic { if :: GOES_ON(0) -> s = 0 :: NSND > 1 && GOES_ON(NSND - 1) -> s = NSND - 1 fi;
		if
		/* sender */
		:: CREDIT(s) && LIVE_RAIL(s) -> post(s)
		:: PASSED(s) ->
#ifdef FREE_ON_ACK
			at[K(s, known[s], 0)] = LOST_TRACK;
			at[K(s, known[s], 1)] = LOST_TRACK;
#endif
			known[s]++
		:: s_state[X(s, 0)] == UP && (dead[X(s, 0)] || r_state[X(s, 0)] != UP) -> s_state[X(s, 0)] = FENCED
		:: s_state[X(s, 1)] == UP && (dead[X(s, 1)] || r_state[X(s, 1)] != UP) -> s_state[X(s, 1)] = FENCED
		:: s_state[X(s, 0)] == FENCED && r_state[X(s, 0)] == FENCED -> reconcile(s, 0)
		:: s_state[X(s, 1)] == FENCED && r_state[X(s, 1)] == FENCED -> reconcile(s, 1)
		:: LIVE_RAIL(s) && PARKED(s, 0) -> post_again(s, 0)
		:: LIVE_RAIL(s) && NM > 1 && PARKED(s, 1) -> post_again(s, 1)
		:: LIVE_RAIL(s) && NM > 2 && PARKED(s, 2) -> post_again(s, 2)
		/* a NIC */
		:: data[X(s, 0)] || data[X(s, 1)] ->
			if
			:: data[X(s, 0)] -> r = 0
			:: data[X(s, 1)] -> r = 1
			fi;
			if
			:: data[X(s, r)] & 1 -> m = 0; k = 0
			:: data[X(s, r)] & 2 -> m = 0; k = 1
			:: data[X(s, r)] & 4 -> m = 1; k = 0
			:: data[X(s, r)] & 8 -> m = 1; k = 1
			:: data[X(s, r)] & 16 -> m = 2; k = 0
			:: data[X(s, r)] & 32 -> m = 2; k = 1
			fi;
			if
			:: land(s, r, m, k)
			:: dead[X(s, r)] -> data[X(s, r)] = data[X(s, r)] & ~B(m, k) /* lost */
			:: unplaced && !dead[X(s, r)] && kills -> /* acknowledged, not placed, and it dies */
				unplaced--;
				kills--;
				dead[X(s, r)] = true;
				data[X(s, r)] = data[X(s, r)] & ~B(m, k);
				acked[s] = acked[s] | B(m, k)
			fi
		/* receiver */
		:: rcq[X(s, 0)] || rcq[X(s, 1)] ->
			if
			:: rcq[X(s, 0)] -> r = 0
			:: rcq[X(s, 1)] -> r = 1
			fi;
			if
			:: rcq[X(s, r)] & 1 -> m = 0; k = 0
			:: rcq[X(s, r)] & 2 -> m = 0; k = 1
			:: rcq[X(s, r)] & 4 -> m = 1; k = 0
			:: rcq[X(s, r)] & 8 -> m = 1; k = 1
			:: rcq[X(s, r)] & 16 -> m = 2; k = 0
			:: rcq[X(s, r)] & 32 -> m = 2; k = 1
			fi;
			see(s, r, m, k)
		:: !TAKEN(s, 0) && posted[s] > 0 && READY(s, 0) && TURN(s, 0) -> m = 0; goto taking
		:: NM > 1 && !TAKEN(s, 1) && posted[s] > 1 && READY(s, 1) && TURN(s, 1) -> m = 1; goto taking
		:: NM > 2 && !TAKEN(s, 2) && posted[s] > 2 && READY(s, 2) && TURN(s, 2) -> m = 2; goto taking
		:: r_state[X(s, 0)] == UP && (dead[X(s, 0)] || s_state[X(s, 0)] != UP) -> fence_receiver(s, 0)
		:: r_state[X(s, 1)] == UP && (dead[X(s, 1)] || s_state[X(s, 1)] != UP) -> fence_receiver(s, 1)
#ifdef SPLIT_ADD
		:: halfway[s] ->
			m = halfway[s] - 1;
			counter = loaded[s] + add[M(s, m)];
			halfway[s] = 0;
			taken[s] = taken[s] | 1 << m
#endif
		/* faults */
		:: kills && !dead[X(s, 0)] && r_state[X(s, 0)] == UP -> kills--; dead[X(s, 0)] = true
		:: kills && !dead[X(s, 1)] && r_state[X(s, 1)] == UP -> kills--; dead[X(s, 1)] = true
		:: alarms && s_state[X(s, 0)] == UP && r_state[X(s, 0)] == UP -> alarms--; s_state[X(s, 0)] = FENCED
		:: alarms && s_state[X(s, 1)] == UP && r_state[X(s, 1)] == UP -> alarms--; fence_receiver(s, 1)
		:: s_state[X(s, 0)] == DOWN && heals -> heals--; r = 0; goto healing
		:: s_state[X(s, 1)] == DOWN && heals -> heals--; r = 1; goto healing
		fi;
		goto settled;
taking:
#ifdef SPLIT_ADD
		/* two threads add, each reads and writes back */
		halfway[s] = m + 1;
		loaded[s] = counter;
		goto settled;
#else
		take(s, m);
		goto settled;
#endif
healing:
		dead[X(s, r)] = false;
		rcq[X(s, r)] = 0;
		s_state[X(s, r)] = UP;
		r_state[X(s, r)] = UP;
settled:
		skip
	   }
	:: atomic { OVER(0) && OVER(NSND - 1) ->
		assert(counter == due); /* an add was lost */
		break }
	od
}
