/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.pml - the log of gpu/device/ring.h and the switch of gpu/failover/agent.c, for exhaustive exploration by spin
 *
 * NT threads post NP entries each through a ring of NW, ring, poll, and wait until their entries are done; two NICs execute what their
 * doorbell says; NIC 0 may die at any moment, before or after an entry lands, and its last completion is then overwritten by an error; the
 * agent closes, waits, freezes, fences, copies, opens on path 1. Each access of env.h is a step of its own. Memory is sequentially
 * consistent here; NO_SC shows what becomes of the doorbell without it. Acknowledgements are believed (proof_every = 0): tail follows cons.
 *
 * Asserted: a NIC executes only what was written for that place; nobody rings a path that was given up; tail never covers an entry that
 * the path in use, or the one before the switch, has not executed. No invalid end state: whoever waits, ends.
 */
#ifndef NT
#define NT 2
#endif
#ifndef NP
#define NP 2
#endif
#ifndef NW
#define NW 2
#endif
#ifndef KILL
#define KILL 1
#endif
#define N (NT * NP)
#define SLOT(p, i) slot[(p) * NW + (i) % NW]

byte resv, ready, rung, cons, tail;
byte gate; /* reservations that end at most there need no look at tail */
bool closed, bell, frozen;
bit path, cons_epoch, tail_epoch;
byte slot[2 * NW]; /* index + 1 of the entry written there */
byte db[2], next[2], cq[2]; /* posted to the NIC; to be executed; acknowledged, as the collapsed queue says */
bool error[2], dead, fenced, given_up;
byte first; /* entries below it were done when the log was opened again */
byte landed; /* bit per entry: ghost */
byte through; /* threads that have returned */

inline ring_now() {
	do
	:: atomic { rung == ready -> break }
	:: atomic { rung != ready && bell -> break }
	:: atomic { rung != ready && !bell -> bell = true };
		atomic { r = ready; p = path };
		if
		:: r != rung ->
			assert(!(given_up && p == 0)); /* the doorbell of a path that was given up */
			db[p] = r;
			rung = r
		:: else
		fi;
		atomic { bell = false; r = 0; p = 0 };
#ifdef NO_RECHECK
		break
#endif
	od
}

inline prove() {
	atomic {
		if
#ifdef NO_EPOCH
		:: tail < c && !frozen ->
#else
		:: tail < c && !frozen && tail_epoch == e ->
#endif
			tail = c;
			assert(tail <= (given_up -> (first > next[1] -> first : next[1]) : next[0])) /* counted and not executed */
		:: else
		fi;
		c = 0; e = 0; w = 0; bad = false; p = 0
	}
}

inline poll() {
	atomic { c = cons; e = cons_epoch };
	p = path;
	atomic { w = cq[p]; bad = error[p] };
	if
	:: !bad && w > c ->
		atomic {
			if
#ifdef NO_EPOCH
			:: cons == c ->
#else
			:: cons == c && cons_epoch == e ->
#endif
				cons = w;
				c = w
			:: else
			fi
		}
	:: else
	fi;
	prove()
}

proctype thread() {
	byte n, my, r, c, w;
	bit p, e;
	bool bad;

	do
	:: n < NP ->
		do
#ifdef NO_BOUND
		:: atomic { !closed -> my = resv; resv++; break }
#else
		:: atomic { !closed && resv < gate -> my = resv; resv++; break }
		:: atomic { !closed && resv >= gate && resv - tail < NW -> my = resv; resv++; w = tail + NW };
			atomic { gate = w; w = 0; break } /* may come late */
#endif
		:: !closed && resv - tail >= NW && (cq[path] > cons && !error[path] || tail < cons && !frozen && tail_epoch == cons_epoch) -> poll()
#ifndef LAZY_BELL
		:: resv - tail >= NW && rung != ready && !bell -> ring_now()
#endif
		od;
		p = path;
		atomic { SLOT(p, my) = my + 1; p = 0 };
		ready == my;
#ifdef NO_SC
		/* the store of ready is still on its way when the bell is found taken */
		if
		:: bell -> ready = my + 1
		:: else -> ready = my + 1; ring_now()
		fi;
#else
		ready = my + 1;
#ifdef LATER
		if
		:: ring_now()
		:: true /* a batch: somebody rings later */
		fi;
#else
		ring_now();
#endif
#endif
		n++
	:: n == NP -> break
	od;
#ifndef LEAVES
	do
	:: tail > my -> break
	:: tail <= my && (cq[path] > cons && !error[path] || tail < cons && !frozen && tail_epoch == cons_epoch) -> poll()
#if !defined(LAZY_BELL) && !defined(NO_RECHECK) && !defined(NO_SC)
	:: tail <= my && rung != ready && !bell -> ring_now()
#endif
	od
#endif
	atomic { my = 0; n = 0; through++ }
}

/* One entry: it lands, it is acknowledged. A death comes between any two steps. */
proctype nic(bit me) {
end:
	do
	:: atomic { next[me] < db[me] && !(me == 0 && (dead || fenced)) ->
		assert(SLOT(me, next[me]) == next[me] + 1); /* a NIC executes what was not written for it */
		landed = landed | 1 << next[me];
		next[me]++ }
	:: atomic { cq[me] < next[me] && !(me == 0 && (dead || fenced)) -> cq[me] = next[me] }
	od
}

proctype fate() {
end:
	if
	:: KILL -> dead = true;
		if
		:: error[0] = true
		:: true
		fi
	:: true
	fi
}

proctype agent() {
	byte i, c, w;
	bit e;
end:
	dead;
#ifndef NO_CLOSE
	closed = true;
	ready == resv;
#endif
#ifndef NO_BELL
	atomic { !bell -> bell = true };
#endif
	frozen = true;
	fenced = true;
	atomic {
		if
		:: !error[0] && cq[0] > cons -> cons = cq[0]
		:: else
		fi
	};
	first = (cons > tail -> cons : tail);
	i = first;
	do
	:: i < ready -> atomic { SLOT(1, i) = i + 1; i++ }
	:: else -> break
	od;
	atomic { next[1] = first; cq[1] = first; db[1] = first; given_up = true };
	path = 1;
#ifdef NO_EPOCH
	atomic { cons = first };
	atomic { tail = first; frozen = false };
#else
	atomic { cons = first; cons_epoch = 1 };
	atomic { tail = first; tail_epoch = 1; frozen = false };
#endif
	db[1] = i;
	atomic { rung = i; i = 0 };
#ifndef NO_BELL
	bell = false;
#endif
	closed = false
}

init {
	byte k;

	atomic {
		for (k : 1 .. NT) {
			run thread()
		}
		run nic(0);
		run nic(1);
		run fate();
		run agent()
	}
	through == NT && landed == (1 << N) - 1 /* otherwise an entry is never executed */
}
