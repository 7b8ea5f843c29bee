/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an end of pairs.pml knows of its rails, what they protect against, and which NIC it takes next:
 * plugin/failover/protection.c and choice.c.
 */

/* ---- what an end sees ---- */

inline look_sender() {
	act = 0; wt = ws; at_sender = 1;
	for (k : 0 .. NR - 1) {
		va[k] = sd[k]; vb[k] = rd[k]; mine[k] = sd[k]; theirs[k] = rd[k];
		if
		:: ss[k] == UP -> act = act | 1 << k
		:: else
		fi
	}
	k = 0
}

inline look_receiver() {
	act = 0; wt = wr; at_sender = 0;
	for (k : 0 .. NR - 1) {
		va[k] = rp[k]; vb[k] = rd[k]; mine[k] = rd[k]; theirs[k] = rp[k];
		if
		:: rs[k] == UP -> act = act | 1 << k
		:: else
		fi
	}
	k = 0
}

/* By place where both ends know them, else by the NICs' names, which are their numbers. */
#define MARK_S(i) (KNOWN == 3 -> SWS(i) : (i) + 1)
#define MARK_R(j) (KNOWN == 3 -> SWR(j) : (j) + 1)

/* mark: the first switch that takes all rails of the mask along, 0: none. */
inline find_mark(mask) {
	mark = 0; y = (KNOWN == 3 -> MARKS : (N > M -> N : M));
	do
	:: y > 0 && (mask) ->
		yes = true;
		for (x : 0 .. NR - 1) {
			if
			:: (mask) >> x & 1 && MARK_S(va[x]) != y && MARK_R(vb[x]) != y -> yes = false
			:: else
			fi
		}
		if
		:: yes -> mark = y
		:: else
		fi;
		y--
	:: else -> break
	od;
	x = 0; y = 0; yes = false
}

/* prot: what the rails of the mask protect against. */
#define AGAINST_HERE 1
#define AGAINST_THERE 2
#define AGAINST_NIC 3
#define AGAINST_SWITCH 4
inline protect(mask) {
	here = NONE; there = NONE; prot = 0;
	for (x : 0 .. NR - 1) {
		if
		:: (mask) >> x & 1 ->
			if
			:: here == NONE -> here = va[x]; there = vb[x]
			:: else ->
				if
				:: va[x] != here -> prot = prot | AGAINST_HERE
				:: else
				fi;
				if
				:: vb[x] != there -> prot = prot | AGAINST_THERE
				:: else
				fi
			fi
		:: else
		fi
	}
	x = 0;
	if
	:: prot == AGAINST_NIC ->
		find_mark(mask);
		if
#if CLAIM_NAMES
		:: mark == 0 -> prot = AGAINST_SWITCH
#else
		:: mark == 0 && KNOWN == 3 -> prot = AGAINST_SWITCH
#endif
		:: else
		fi
	:: else
	fi;
	here = 0; there = 0; mark = 0
}

/* What is claimed holds: without any one NIC, any one switch, a rail is rest. Of what is up at the end that claims it, wherever it really is. */
inline check_claim() {
	protect(act);
	for (x : 0 .. N - 1) {
		rest = 0;
		for (y : 0 .. NR - 1) {
			if
			:: act >> y & 1 && sd[y] != x -> rest = 1
			:: else
			fi
		}
		assert(rest || act == 0 || prot == 0 || prot == AGAINST_THERE) /* claimed: a NIC of the sender */
	}
	for (x : 0 .. M - 1) {
		rest = 0;
		for (y : 0 .. NR - 1) {
			if
			:: act >> y & 1 && rd[y] != x -> rest = 1
			:: else
			fi
		}
		assert(rest || act == 0 || prot == 0 || prot == AGAINST_HERE) /* claimed: a NIC of the receiver */
	}
	for (x : 1 .. MARKS) {
		rest = 0;
		for (y : 0 .. NR - 1) {
			if
			:: act >> y & 1 && SWS(sd[y]) != x && SWR(rd[y]) != x -> rest = 1
			:: else
			fi
		}
		assert(rest || prot < AGAINST_SWITCH) /* claimed: a leaf switch */
	}
	rest = 0; x = 0; y = 0
}

/* share.c: who carries, of those that are up */
inline roles(w) {
	w = w & act;
	if
	:: !(w & ~1) -> w = act & 1
	:: else
	fi;
	if
	:: w == 0 ->
		x = 0;
		do
		:: x < NR && !(act >> x & 1) -> x++
		:: else -> break
		od;
		if
		:: x < NR -> w = 1 << x
		:: else
		fi;
		x = 0
	:: else
	fi;
	check_claim();
	prot = 0
}

/* ---- tries and turns ---- */

inline try_sender(d) {
	tries_s[d]++;
	if
	:: tries_s[d] >= TRIES -> age_sender()
	:: else
	fi;
	rest = 1;
	for (x : 0 .. N - 1) {
		if
		:: turn_s[x] && x != (d) -> rest++;
			if
			:: turn_s[d] && turn_s[x] > turn_s[d] -> turn_s[x]--
			:: else
			fi
		:: else
		fi
	}
	turn_s[d] = rest;
	x = 0; rest = 0
}

inline age_sender() {
	for (x : 0 .. N - 1) {
		tries_s[x] = tries_s[x] / 2
	}
	x = 0
}

inline try_receiver(p, d) {
	tries_r[(p) * M + d]++;
	if
	:: tries_r[(p) * M + d] >= TRIES ->
		for (x : 0 .. N * M - 1) {
			tries_r[x] = tries_r[x] / 2
		}
	:: else
	fi;
	rest = 1;
	for (x : 0 .. M - 1) {
		if
		:: turn_r[(p) * M + x] && x != (d) -> rest++;
			if
			:: turn_r[(p) * M + d] && turn_r[(p) * M + x] > turn_r[(p) * M + d] -> turn_r[(p) * M + x]--
			:: else
			fi
		:: else
		fi
	}
	turn_r[(p) * M + d] = rest;
	x = 0; rest = 0
}

inline forget_sender() {
	for (x : 0 .. N - 1) {
		tries_s[x] = 0
	}
	x = 0
}

inline forget_receiver() {
	for (x : 0 .. N * M - 1) {
		tries_r[x] = 0
	}
	x = 0
}

/* ---- choice.c ---- */

/* other: 2 where a rail that carries is on this NIC, 1 where one is that waits */
inline sharing(r, d) {
	other = 0;
	for (x : 0 .. NR - 1) {
		if
		:: act >> x & 1 && x != r && mine[x] == (d) -> other = (other < 2 && !(wt >> x & 1) -> 1 : 2)
		:: else
		fi
	}
	x = 0
}

#define PLACE_S(i) (KNOWN & 1 -> SWS(i) : 0)
#define PLACE_R(j) (KNOWN & 2 -> SWR(j) : 0)
#define PLACE(d) (at_sender -> PLACE_S(d) : PLACE_R(d))
#define PEER_PLACE(d) (at_sender -> PLACE_R(d) : PLACE_S(d))

/* yes: on a switch that a rail with weight has an end on; by name where the two are not comparable */
inline on_switch_of_data(d) {
	yes = false;
	for (x : 0 .. NR - 1) {
		if
		:: act >> x & 1 && wt >> x & 1 ->
			if
			:: PLACE(d) && (PLACE(d) == PLACE(mine[x]) || PLACE(d) == PEER_PLACE(theirs[x])) -> yes = true
			:: (!PLACE(d) || !PEER_PLACE(theirs[x])) && theirs[x] == (d) -> yes = true
			:: else
			fi
		:: else
		fi
	}
	x = 0
}

/* Of the rails that are up, several, one switch takes all along, and this NIC is on it. */
#define SEVERAL (act & (act - 1))

/* there: the rails that are up are on several NICs here (`nic`: of rail x). One that takes all of them along comes before a switch. */
inline find_several(nic) {
	here = NONE; there = SWITCH_FIRST;
	for (x : 0 .. NR - 1) {
		if
		:: act >> x & 1 && here == NONE -> here = nic
		:: act >> x & 1 && nic != here -> there = 1
		:: else
		fi
	}
	here = 0; x = 0
}

/* best: the NIC for an offer, NONE: none */
inline choose_sender(r) {
	look_sender();
	best = NONE; smallest = 1 << 30;
	sharing(r, sd[r]);
	if
	:: (r) == 0 -> best = DS
	:: (r) && proven_s >> (r) & 1 && other == 0 && act && (ns[sd[r]] == OK || ns[sd[r]] == HOLE) && attempts_s[r] < 2 -> best = sd[r]
	:: else ->
		for (i : 0 .. N - 1) {
			j = NIC_ORDER(i, DS, N);
			rest = 0;
			for (x : 0 .. NR - 1) {
				if
				:: x != (r) && sd[x] == j && (x == 0 || ss[x] == UP || ss[x] == JOIN) -> rest++
				:: else
				fi
			}
			x = 0;
			if
#if NEVER_AGAIN
			:: tries_s[j] > 1 -> skip
#endif
			:: (ns[j] == OK || ns[j] == HOLE) && rest < M ->
				number_sender(r);
				if
				:: number < smallest -> smallest = number; best = j
				:: else
				fi
			:: else
			fi
		}
	fi;
	number = 0; smallest = 0; other = 0; yes = false; mark = 0; i = 0; j = 0; rest = 0
}

inline number_sender(r) {
	if
	:: act ->
		find_mark(act);
		find_several(va[x]);
		number = (SEVERAL && there && mark && MARK_S(j) == mark -> 1 << 18 : 0);
		there = 0;
		sharing(r, j);
		on_switch_of_data(j);
#if IGNORE_SWITCH
		number = 0; yes = false;
#endif
		number = number | (tries_s[j] / 2) << 19 | other << 16 | (yes -> 1 << 15 : 0) | i
	:: else -> number = turn_s[j] << 19 | i
	fi;
#if NO_MEMORY
	number = (number & (1 << 19) - 1);
#endif
	skip
}

/* yes: another rail is on this pair */
inline pair_taken(r, p, d) {
	yes = false;
	for (x : 0 .. NR - 1) {
		if
		:: x != (r) && rd[x] == (d) && rp[x] == (p) && (x == 0 || rs[x] == UP || rs[x] == JOIN) -> yes = true
		:: else
		fi
	}
	x = 0;
#if NOT_TAKEN
	yes = false
#endif
}

/* best: the NIC for the answer; the offer comes from sd[r] */
inline choose_receiver(r) {
	look_receiver();
	best = NONE; smallest = 1 << 30;
	sharing(r, rd[r]);
	pair_taken(r, sd[r], rd[r]);
	if
	:: (r) == 0 ->
		if
		:: nr[DR] == OK || nr[DR] == HOLE -> best = DR
		:: else
		fi
	:: (r) && !yes && sd[r] == rp[r] && proven_r >> (r) & 1 && other == 0 && act && (nr[rd[r]] == OK || nr[rd[r]] == HOLE) &&
	   attempts_r[r] < 2 -> best = rd[r]
	:: else ->
		for (i : 0 .. M - 1) {
			j = NIC_ORDER(i, DR, M);
			pair_taken(r, sd[r], j);
			if
#if SAME_INDEX
			:: j != sd[r] -> skip
#endif
			:: !yes && (nr[j] == OK || nr[j] == HOLE) ->
				number_receiver(r);
				if
				:: number < smallest -> smallest = number; best = j
				:: else
				fi
			:: else
			fi
		}
	fi;
	number = 0; smallest = 0; other = 0; yes = false; mark = 0; i = 0; j = 0; rest = 0
}

#if LOCKSTEP
#define ROW(p) 0
#else
#define ROW(p) ((p) * M)
#endif
inline number_receiver(r) {
	if
	:: act ->
		find_mark(act);
		find_several(vb[x]);
		number = (SEVERAL && there && mark && MARK_R(j) == mark -> 1 << 18 : 0);
		there = 0;
		sharing(r, j);
		on_switch_of_data(j);
#if IGNORE_SWITCH
		number = 0; yes = false;
#endif
		number = number | (tries_r[ROW(sd[r]) + j] / 2) << 19 | other << 16 | (yes -> 1 << 15 : 0)
	:: else -> number = turn_r[ROW(sd[r]) + j] << 19
	fi;
	number = number | (KNOWN == 3 && SWR(j) != SWS(sd[r]) -> 1 << 14 : 0) | (j != sd[r] -> 1 << 8 : 0) | i;
#if NO_MEMORY || ONE_END
	number = (number & (1 << 19) - 1);
#endif
	skip
}
