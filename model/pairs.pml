/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairs.pml - how a connection chooses its pairs of NICs, for exhaustive exploration by spin
 *
 * A sender with N NICs and a receiver with M, which hang on leaf switches; a data rail and NR - 1 spares. What epoch.pml explores (the
 * end of an incarnation, what is posted again) is one step here. The rest is the code's: plugin/failover/choice.c (choose_*), spares.c
 * (wanted, surplus, improve), protection.c (protect), share.c (roles), incarnation.c (offer to up). Nothing knows of a NIC of the other end
 * but what an offer or an answer said, and of its own what the port says; a black hole says nothing.
 *
 * Steps that take a time-out come when no quicker one is possible (QUICK), or `late` times at any moment. Offers and faults come at any
 * moment. Once the fault has retired (quiet), failed tries and standbys made are counted, so that "in the end" is a number.
 */
#ifndef N
#define N 2
#endif
#ifndef M
#define M 2
#endif
#ifndef NR
#define NR 3 /* rails: the data rail and the spares */
#endif
#ifndef PORTS
#define PORTS 1 /* NICs that fail one by one: dead, port down or black hole */
#endif
#ifndef SWITCHES
#define SWITCHES 0 /* switches that fail, whole or with the ports of one end */
#endif
#ifndef HEALS
#define HEALS 0
#endif
#ifndef LATE
#define LATE 0 /* time-outs of what was only slow; false alarms */
#endif
#ifndef SOCKETS
#define SOCKETS 0 /* 1: the socket may break */
#endif
#ifndef LOSSES
#define LOSSES 0 /* 1: the hint that a port is back may get lost; all else is repeated */
#endif
#ifndef SILENT
#define SILENT 1 /* 0: every fault is announced by the ports */
#endif
#ifndef KNOWN
#define KNOWN 3 /* who knows the switches: 1 the sender, 2 the receiver */
#endif
#ifndef SWITCH_FIRST
#define SWITCH_FIRST 0
#endif
#ifndef FURTHER
#define FURTHER 2 /* HA_NCCL_STANDBYS=0: as many more where data crosses switches; 0: HA_NCCL_STANDBYS=1 */
#endif
#ifndef DS
#define DS 0 /* the data rail's NICs */
#endif
#ifndef DR
#define DR 0
#endif
#ifndef COUNT
#define COUNT 0 /* 1: incarnations that come up when it is quiet are counted */
#endif
#ifndef FORGETS_EARLY
#define FORGETS_EARLY 0
#endif
#ifndef TRIED
#define TRIED (3 * N * M) /* failed tries after which a pair that works has been found */
#endif
#ifndef MADE
#define MADE 6 /* incarnations of spares that come up once nothing fails any more */
#endif
#ifndef IMPROVES
#define IMPROVES 2 /* the code's is 5 */
#endif
#define TRIES 4 /* the code's is 255 */

/* Fabrics: which leaf switch a NIC hangs on, which pairs reach each other. */
#if FAR /* two hosts in two places */
#define SWS(i) ((i) + 1)
#define SWR(j) (N + (j) + 1)
#define MARKS (N + M)
#elif TWISTED /* cables the other way round at the receiver: names mislead */
#define SWS(i) ((i) + 1)
#define SWR(j) (M - (j))
#elif SHARED /* NIC 0 and 1 of either host on switch 1, the third on 2 */
#define SWS(i) ((i) / 2 + 1)
#define SWR(j) ((j) / 2 + 1)
#else /* NIC i of every host on switch i */
#define SWS(i) ((i) + 1)
#define SWR(j) ((j) + 1)
#endif
#ifndef MARKS
#define MARKS (N > M -> N : M)
#endif
#if ONLY /* no way from rail to rail */
#define REACH(i, j) ((i) == (j))
#elif STAIR /* NIC 1 reaches all, the others their own rail and NIC 1 */
#define REACH(i, j) ((i) == (j) || (i) == 1 || (j) == 1)
#else
#define REACH(i, j) true
#endif

/* NICs */
#define OK 0
#define HOLE 1 /* nothing gets through, and the port is active */
#define PORT 2 /* the port is down */
#define GONE 3 /* the device has failed */
/* rails, at one end */
#define DOWN 0
#define JOIN 1
#define UP 3
#define LOST 4 /* fenced; the peer's fence is awaited. It was up */
#define FAILED 5 /* the same: it did not come up */
#define SURPLUS 6
#define NONE 15

#define WORKS(i, j) (ns[i] == OK && nr[j] == OK && REACH(i, j))
#define RAIL_WORKS(r) (ns[sd[r]] == OK && nr[rd[r]] == OK && REACH(sd[r], rd[r]))
#define OVER(state) ((state) >= LOST)
#define NIC_ORDER(k, data, of) (((k) + (data) + 1) % (of))

byte ns[N], nr[M]; /* the NICs */
byte ss[NR], sd[NR]; /* sender: state, its NIC */
byte rs[NR], rd[NR], rp[NR]; /* receiver: state, its NIC, what it takes for the sender's */
byte ws, wr; /* who carries: data, clear-to-sends */
byte proven_s, proven_r;
byte attempts_s[NR], attempts_r[NR];
byte tries_s[N], turn_s[N]; /* of each NIC of the sender: failed tries; order of the last ones */
byte tries_r[N * M], turn_r[N * M]; /* of each pair, as the receiver counts */
byte improve; /* 1: a better standby is tried later, 2: now */
byte improves;
bool hurries; /* no rail is up, and the first moment of that is over */
byte back; /* 1 + the spare that RAIL_BACK names, while it is under way */
bool back_old; /* that spare has a newer incarnation at the sender */
bool hint_lost, healed_silently;
bool socket = true, quiet, ended;
byte ports = PORTS, switches = SWITCHES, heals = HEALS, late = LATE;
byte failed, made; /* since it is quiet */

/* Scratch, of one step. */
hidden byte act, wt, va[NR], vb[NR], mine[NR], theirs[NR], at_sender, mark, prot, best, here, there, other;
hidden byte k, i, j, x, y, all, rest, idle, up, want, busy, pairs;
hidden byte rail;
hidden byte yes, can;
hidden int number, smallest;

#include "choice.pml"

/* ---- spares.c: the sender ---- */

/* pairs: those there are now, but for the data rail's */
inline count_pairs() {
	pairs = 0;
	for (x : 0 .. N - 1) {
		if
		:: ns[x] == OK || ns[x] == HOLE -> pairs = pairs + M
		:: else
		fi
	}
	if
	:: (ns[DS] == OK || ns[DS] == HOLE) && pairs > 1 -> pairs--
	:: pairs == 0 -> pairs = 1
	:: else
	fi;
	x = 0
}

/* yes: a rail that carries leads from one switch to another, and it is not that all NICs here hang on one */
inline find_crossed() {
	yes = false; can = false;
	for (x : 0 .. NR - 1) {
		if
		:: ws >> x & 1 && act >> x & 1 && MARK_S(va[x]) != MARK_R(vb[x]) -> yes = true
		:: else
		fi
	}
	for (x : 0 .. N - 1) {
		if
		:: !PLACE_S(x) || (ns[x] == OK || ns[x] == HOLE) && PLACE_S(x) != PLACE_S(DS) -> can = true
		:: else
		fi
	}
	yes = yes && can && FURTHER;
	x = 0; can = false
}

/* up, busy, idle: of the spares; want: how many should be up */
inline find_want() {
	look_sender();
	up = 0; busy = 0; idle = 0;
	for (x : 1 .. NR - 1) {
		if
		:: ss[x] == UP -> up++
		:: ss[x] != UP && (ss[x] != DOWN || rs[x] != DOWN) -> busy = 1
		:: else ->
			if
			:: idle == 0 -> idle = x
			:: else
			fi
		fi
	}
	count_pairs();
	want = (act & 1 -> 1 : 2);
	find_crossed();
	if
	:: yes ->
		find_mark(act);
		if
		:: mark -> want = (want + 2 < pairs -> want + 2 : (want < pairs -> pairs : want))
		:: else
		fi
	:: else
	fi;
	protect(act);
	if
	:: improve == 2 && prot < AGAINST_NIC -> want++
	:: else
	fi;
	x = 0; yes = false; mark = 0
}

/* can: spare r may be offered */
inline find_wanted(r) {
	can = false;
	find_want();
	if
	:: (r) == 0 -> can = RAIL_WORKS(0) /* a try that fails changes nothing for others */
	:: (r) && act == 0 -> can = ((r) <= pairs)
	:: else -> can = (idle == (r) && up < want && !busy)
	fi
}

/* rest: the spares that the others can do without */
inline find_surplus() {
	look_sender();
	idle = act & ~ws & ~1;
	rest = 0;
	protect(act);
	all = prot;
	if
	:: idle -> protect(act & ~idle)
	:: else
	fi;
	if
	:: idle == 0 -> skip
	:: idle && (prot == all) -> rest = (act & ~idle -> idle : 0)
	:: else ->
		can = false;
		for (i : 1 .. NR - 1) {
			if
			:: !can && idle >> i & 1 ->
				protect(act & ~idle | 1 << i);
				if
				:: prot == all -> can = true; rest = idle & ~(1 << i)
				:: else
				fi
			:: else
			fi
		}
		for (i : 1 .. NR - 1) {
			if
			:: !can && idle >> i & 1 ->
				protect(act & ~(1 << i));
				if
				:: prot == all -> can = true; rest = 1 << i
				:: else
				fi
			:: else
			fi
		}
	fi;
	i = 0; can = false;
	find_crossed();
	want = (yes -> FURTHER : 0);
	do
	:: want && rest -> rest = rest & (rest - 1); want--
	:: else -> break
	od;
#if KEEP_ALL
	rest = 0;
#endif
	want = 0; yes = false; idle = 0; all = 0
}

inline look_for_better() {
	look_sender();
	protect(act);
	if
#if RESTLESS
	:: act && prot < AGAINST_NIC -> improve = 1
#else
	:: act && improves < IMPROVES && prot < AGAINST_NIC -> improves++; improve = 1
#endif
	:: else
	fi
}

/* ---- an incarnation ---- */

inline offer(r) {
	choose_sender(r);
	if
	:: (r) ->
		try_sender(best);
		if
		:: act && improve == 2 -> improve = 0
		:: else
		fi
	:: else
	fi;
	sd[r] = best; ss[r] = JOIN;
	if
	:: back == (r) + 1 -> back_old = true
	:: else
	fi;
	best = 0
}

inline answer(r) {
	choose_receiver(r);
	rd[r] = best; rp[r] = sd[r]; rs[r] = JOIN;
	if
	:: (r) -> try_receiver(ROW(sd[r]) / M, best)
	:: else
	fi;
	best = 0;
	for (x : 0 .. NR - 1) {
		assert(x == (r) || rs[x] != UP || rp[x] != rp[r] || rd[x] != rd[r]) /* two rails on one pair */
	}
	x = 0
}

/* The third ping. */
inline receiver_up(r) {
	rs[r] = UP;
	look_receiver();
	if
	:: act == 1 << (r) -> forget_receiver()
	:: else
	fi;
	if
	:: (r) -> tries_r[ROW(rp[r]) + rd[r]] = 0
	:: else
	fi;
	attempts_r[r] = 0; proven_r = proven_r | 1 << (r);
	roles(wr)
}

/* The third pong. */
inline sender_up(r) {
	ss[r] = UP;
	look_sender();
	if
	:: act == 1 << (r) -> forget_sender()
	:: else
	fi;
	if
	:: (r) -> tries_s[sd[r]] = 0;
		if
		:: quiet && COUNT -> made++;
			assert(made <= MADE) /* standbys are chosen again and again */
		:: else
		fi
	:: else
	fi;
	attempts_s[r] = 0; proven_s = proven_s | 1 << (r);
	hurries = false;
	roles(ws);
	if
	:: SEVERAL && !improve -> look_for_better()
	:: else
	fi
}

/* Fenced at this end. */
inline sender_loses(r) {
	ss[r] = (ss[r] == UP -> LOST : FAILED);
	look_sender();
	roles(ws);
	if
	:: act == 0 && !hurries -> /* want_all */
		hurries = true;
		age_sender();
		for (x : 1 .. NR - 1) {
			if
			:: ss[x] == DOWN -> attempts_s[x] = 0
			:: else
			fi
		}
		x = 0
	:: else
	fi
}

inline receiver_loses(r, closed) {
	rs[r] = (closed && rs[r] != DOWN -> SURPLUS : (rs[r] == UP -> LOST : FAILED));
	look_receiver();
	roles(wr)
}

/* ha_incarnation_over, at both ends */
inline close(r) {
	if
	:: ss[r] == SURPLUS -> proven_s = proven_s & ~(1 << (r)); attempts_s[r] = 0
	:: ss[r] == LOST && (r) -> try_sender(sd[r])
	:: ss[r] == FAILED && (r) ->
		look_for_better();
		if
		:: attempts_s[r] < 2 && proven_s >> (r) & 1 -> attempts_s[r]++
		:: else
		fi
	:: else
	fi;
	if
	:: rs[r] == SURPLUS -> proven_r = proven_r & ~(1 << (r)); attempts_r[r] = 0
	:: rs[r] == LOST && (r) -> try_receiver(ROW(rp[r]) / M, rd[r])
	:: rs[r] == FAILED && (r) ->
		if
		:: attempts_r[r] < 2 && proven_r >> (r) & 1 -> attempts_r[r]++
		:: else
		fi
	:: else
	fi;
	if
	:: quiet && (r) && ss[r] == FAILED && some && !good -> failed++;
		assert(failed <= TRIED) /* pairs are tried and tried, and one that works, or protects better, is not */
	:: else
	fi;
	ss[r] = DOWN; rs[r] = DOWN;
	if
	:: (r) -> /* what is not looked at again */
		if
		:: !(proven_s >> (r) & 1) -> sd[r] = 0
		:: else
		fi;
		if
		:: !(proven_r >> (r) & 1) -> rd[r] = 0; rp[r] = 0
		:: else
		fi
	:: else
	fi
}

/* ---- what is possible now: from the state alone, so that it adds none ---- */

byte offers, answers, useless; /* rails */
bool quick; /* something goes on without a time-out */
bool carrier; /* control messages get through */
bool some; /* a pair works */
bool good; /* and it carries, and nothing that works would protect better */
bool still; /* no rail is coming or going */
bool content; /* as many spares are up as are wanted, and a better one was looked for */

#define IDLE(r) (ss[r] == DOWN && rs[r] == DOWN || ss[r] == UP && rs[r] == UP)
#define BOTH_UP(r) (ss[r] == UP && rs[r] == UP && RAIL_WORKS(r))
#if NO_JUMP
#define NOT_OVER(r) (rs[r] == JOIN || rs[r] == UP)
#else
#define NOT_OVER(r) (rs[r] == DOWN || rs[r] == JOIN || rs[r] == UP)
#endif
#define SENDER_PROBES(r) (ss[r] == JOIN && rs[r] == UP && RAIL_WORKS(r))
#define RECEIVER_PROBED(r) (ss[r] == JOIN && rs[r] == JOIN && carrier && RAIL_WORKS(r))
#define RECEIVER_INFORMED(r) (OVER(ss[r]) && NOT_OVER(r))
#define SENDER_INFORMED(r) (OVER(rs[r]) && (ss[r] == JOIN || ss[r] == UP))
#define CLOSES(r) (OVER(ss[r]) && OVER(rs[r]))
#define SENDER_SEES(r) (ss[r] == UP && !RAIL_WORKS(r))
#define RECEIVER_SEES(r) (rs[r] == UP && !RAIL_WORKS(r))

inline plan() {
	offers = 0; answers = 0; carrier = socket; some = false;
	quick = false; still = true;
	quiet = quiet || !(ports || switches || heals || SOCKETS && socket);
	for (rail : 0 .. NR - 1) {
		carrier = carrier || BOTH_UP(rail);
		still = still && IDLE(rail)
	}
	for (rail : 0 .. NR - 1) {
		if
		:: ss[rail] == DOWN && rs[rail] == DOWN && !ended ->
			find_wanted(rail);
			if
			:: can -> choose_sender(rail);
				offers = offers | (best != NONE -> 1 << rail : 0)
			:: else
			fi
		:: ss[rail] == JOIN && rs[rail] == DOWN && carrier ->
			choose_receiver(rail);
			answers = answers | (best != NONE -> 1 << rail : 0)
		:: else
		fi;
		quick = quick || SENDER_PROBES(rail) || RECEIVER_PROBED(rail) || SENDER_SEES(rail) || RECEIVER_SEES(rail) ||
			carrier && (RECEIVER_INFORMED(rail) || SENDER_INFORMED(rail) || CLOSES(rail) || back)
	}
	quick = quick || answers || offers & 1;
	find_surplus();
	useless = rest;
	find_want();
	content = !busy && up >= want;
	judge();
	rail = 0; rest = 0; up = 0; busy = 0; want = 0; idle = 0; pairs = 0; can = false; best = 0; act = 0; wt = 0; prot = 0
}

/* good: of the pairs that work none would protect better, beside the one that carries */
inline judge() {
	look_sender();
	protect(act);
	rest = 0; x = 0;
	do
	:: x < NR - 1 && !(ws >> x & 1) -> x++
	:: else -> break
	od;
	for (i : 0 .. N - 1) {
		for (j : 0 .. M - 1) {
			if
			:: WORKS(i, j) -> some = true;
				rest = rest | (i != sd[x] -> AGAINST_HERE : 0) | (j != rd[x] -> AGAINST_THERE : 0)
			:: else
			fi
		}
	}
	good = act && (rest & ~(prot == AGAINST_SWITCH -> AGAINST_NIC : prot)) == 0;
	failed = (good || !some -> 0 : failed);
	x = 0; i = 0; j = 0; rest = 0
}

/* ---- the end ---- */

#define FRESH (ports == PORTS && switches == SWITCHES && late == LATE)
#define SETTLED (quiet && !ended && !quick && !offers && !useless && improve != 1 && still)

inline check_end() {
	look_sender();
	protect(act);
	all = prot;
	assert(act || !some) /* no rail is up though a pair works */;
	for (x : 0 .. NR - 1) {
		assert((ss[x] == UP) == (rs[x] == UP)) /* the ends disagree about who is up */;
		assert(ss[x] != UP || rp[x] == sd[x]) /* the ends disagree about which NICs a rail is on */;
		assert(ss[x] != UP || RAIL_WORKS(x)) /* a rail that does not work counts as up */
	}
	assert(good || !some || hint_lost || healed_silently) /* a pair that works would protect better */;
#if SAME_CARRIER
	assert(ws == wr) /* the ends disagree about who carries */;
#endif
	for (i : 1 .. NR - 1) {
		if
		:: ss[i] == UP && !(ws >> i & 1) && !FURTHER ->
			protect(act & ~(1 << i));
			assert(prot != all) /* a standby too many */
		:: else
		fi
	}
	if
	:: FRESH && KNOWN == 3 ->
		for (i : 0 .. N - 1) {
			for (j : 0 .. M - 1) {
				yes = WORKS(i, j) && i != DS && j != DR && SWS(i) != SWS(DS) && SWS(i) != SWR(DR) && SWR(j) != SWS(DS) && SWR(j) != SWR(DR);
				assert(!yes || all == AGAINST_SWITCH) /* a standby that a switch takes along, where another would not be */
			}
		}
	:: else
	fi;
	act = 0; wt = 0; all = 0; prot = 0; x = 0; i = 0; j = 0; yes = false
}

/* ---- the world ---- */

/* The owner gets the event of its port; the other end by a hint. */
inline returned_sender(d) {
	if
	:: ns[d] >= PORT -> port_is_back()
	:: ns[d] == HOLE -> healed_silently = true
	:: else
	fi;
	ns[d] = OK
}

inline port_is_back() {
#if !NO_RETURN
	forget_sender();
#endif
	improves = 0; improve = 1
}

/* Which spare RAIL_BACK names; the data rail's own counts at any moment but during a try, which is not seen here. */
inline returned_receiver(d) {
	if
	:: nr[d] >= PORT ->
		forget_receiver();
		x = 1;
		do
		:: x < NR && rs[x] != DOWN -> x++
		:: else -> break
		od;
		back = x + 1;
		back_old = (x < NR && ss[x] != DOWN);
		x = 0
	:: nr[d] == HOLE -> healed_silently = true
	:: else
	fi;
	nr[d] = OK
}

inline all_return() {
	for (i : 0 .. N - 1) {
		returned_sender(i)
	}
	for (i : 0 .. M - 1) {
		returned_receiver(i)
	}
	i = 0
}

inline break_ports(here_too, there_too, mark_, kind) {
	for (x : 0 .. N - 1) {
		if
		:: here_too && SWS(x) == mark_ && ns[x] == OK -> ns[x] = kind
		:: else
		fi
	}
	for (x : 0 .. M - 1) {
		if
		:: there_too && SWR(x) == mark_ && nr[x] == OK -> nr[x] = kind
		:: else
		fi
	}
	switches--;
	x = 0
}

#define SLOW (!quick || late)
inline spend() {
	if
	:: quick -> late--
	:: else
	fi
}

#if SILENT
#define HIDDEN(guard, step) :: guard -> step
#else
#define HIDDEN(guard, step)
#endif
#if DIES
#define FAILS(guard, step) :: guard -> step
#else
#define FAILS(guard, step)
#endif
#define SENDER_NIC(d) \
	:: ports && !quiet && ns[d] == OK -> ports--; ns[d] = PORT \
	FAILS(ports && !quiet && ns[d] == OK, ports--; ns[d] = GONE) \
	HIDDEN(ports && !quiet && ns[d] == OK, ports--; ns[d] = HOLE) \
	:: heals && !quiet && ns[d] != OK -> d_step { heals--; returned_sender(d) }
#define RECEIVER_NIC(d) \
	:: ports && !quiet && nr[d] == OK -> ports--; nr[d] = PORT \
	FAILS(ports && !quiet && nr[d] == OK, ports--; nr[d] = GONE) \
	HIDDEN(ports && !quiet && nr[d] == OK, ports--; nr[d] = HOLE) \
	:: heals && !quiet && nr[d] != OK -> d_step { heals--; returned_receiver(d) }
#define SWITCH(t) \
	:: switches && !quiet && t <= MARKS -> d_step { break_ports(true, true, t, PORT) } \
	:: switches && !quiet && t <= MARKS -> d_step { break_ports(true, false, t, PORT) } \
	:: switches && !quiet && t <= MARKS -> d_step { break_ports(false, true, t, PORT) } \
	HIDDEN(switches && !quiet && t <= MARKS, d_step { break_ports(true, true, t, HOLE) }) \
	HIDDEN(switches && !quiet && t <= MARKS, d_step { break_ports(true, false, t, HOLE) }) \
	HIDDEN(switches && !quiet && t <= MARKS, d_step { break_ports(false, true, t, HOLE) })

inline start() {
	ss[0] = UP; rs[0] = UP;
	sd[0] = DS;
	rd[0] = DR; rp[0] = DS;
	ws = 1; wr = 1;
	proven_s = 1; proven_r = 1
}

/* One rail, at both ends. */
active [NR] proctype rail_steps() {
#define r _pid
end:	do
	:: atomic {
		if
		:: offers >> r & 1 -> d_step { offer(r) }
		:: answers >> r & 1 && carrier -> d_step { answer(r) }
			:: RECEIVER_PROBED(r) -> d_step { receiver_up(r) }
		:: SENDER_PROBES(r) -> d_step { sender_up(r) }
		:: ss[r] == JOIN && SLOW -> d_step { spend(); sender_loses(r) }
		:: rs[r] == JOIN && SLOW -> d_step { spend(); receiver_loses(r, false) }
		:: SENDER_SEES(r) -> d_step { sender_loses(r) }
		:: RECEIVER_SEES(r) -> d_step { receiver_loses(r, false) }
		:: ss[r] == UP && OVER(rs[r]) && !carrier && SLOW -> d_step { spend(); sender_loses(r) }
		:: rs[r] == UP && (OVER(ss[r]) || ss[r] == DOWN) && !carrier && SLOW -> d_step { spend(); receiver_loses(r, false) }
		:: SENDER_INFORMED(r) && carrier -> d_step { sender_loses(r); close(r) }
		:: RECEIVER_INFORMED(r) && carrier -> d_step { receiver_loses(r, ss[r] == SURPLUS); close(r) }
		:: CLOSES(r) && carrier -> d_step { close(r) }
		:: BOTH_UP(r) && late -> d_step { late--; sender_loses(r) } /* false alarms */
		:: BOTH_UP(r) && late -> d_step { late--; receiver_loses(r, false) }
		:: useless >> r & 1 && SLOW -> d_step { spend(); sender_loses(r); ss[r] = SURPLUS }
		fi;
		d_step { plan() }
	}
	od
#undef r
}

active proctype world() {
	d_step { start(); plan() };
	do
	:: ended -> break
	:: atomic { SETTLED -> d_step { check_end(); late = 0 }; break }
	:: atomic {
		if
		/* spares.c: a better one is tried later, now, not any more */
		:: improve == 1 && SLOW -> d_step { spend(); improve = 2 }
		:: improve == 2 && content && (!useless || FORGETS_EARLY) -> improve = 0
		:: back && carrier -> d_step {
#if OLD_HINT
			if
			:: !back_old -> port_is_back()
			:: else
			fi;
#else
			port_is_back();
#endif
			back = 0; back_old = false }
		:: back && (!carrier || LOSSES) -> d_step { back = 0; back_old = false; hint_lost = true }
		:: !carrier && !socket && SLOW -> d_step { spend(); ended = true } /* nothing is left to tell the other end by */
		:: SOCKETS && socket && !quiet -> socket = false
		SENDER_NIC(0)
#if N > 1
		SENDER_NIC(1)
#endif
#if N > 2
		SENDER_NIC(2)
#endif
		RECEIVER_NIC(0)
#if M > 1
		RECEIVER_NIC(1)
#endif
#if M > 2
		RECEIVER_NIC(2)
#endif
#if SWITCHES
		SWITCH(1)
		SWITCH(2)
		SWITCH(3)
		SWITCH(4)
		SWITCH(5)
		SWITCH(6)
		:: heals && !quiet -> d_step { heals--; all_return() }
#endif
		:: !quiet -> quiet = true /* the fault retires */
		fi;
		d_step { plan() }
	}
	od
}
