/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spares.h - the rails behind the data rails: which of them are wanted, and on which pairs of
 * devices they have been tried
 *
 * A spare may be on any pair of devices, one here and one there; each incarnation chooses its own
 * (choice.h). Which spares are wanted the sender says, by offering:
 *
 * - A data rail is up: one, the standby, unless the data rails that are up survive the loss of a
 *   NIC by themselves.
 * - A spare carries: one more, the next standby.
 * - Beyond these, HA_NCCL_STANDBYS - 1, as long as there are pairs for them; if it is 0, two where
 *   a data path crosses leaf switches, until no switch takes all along.
 * - A rail that is up stands still, and no other gives a sign (sign.c): as many more as there are
 *   pairs. Each time without result makes the next one rarer: it was the peer that was slow.
 * - No rail is up: as many as there are pairs, one after the other within some milliseconds. The
 *   first that comes up carries, the second stands by, and those that add no protection are closed
 *   again (HA_CAUSE_SURPLUS).
 *
 * With an old peer (no HA_FLAG_PAIRS) there is one spare, on none of the data rails' devices.
 */
#ifndef HA_FAILOVER_SPARES_H
#define HA_FAILOVER_SPARES_H

#include <stdbool.h>
#include <stdint.h>

struct ha_bundle;
struct ha_device;
struct ha_rail;

#define HA_PAIRS_MAX 64 /* remembered; beyond, the oldest is forgotten */

struct ha_pair {
	/* receiver: the sender's device (ha_peer_device); sender: 0, it does not choose the other
	 * end */
	uint64_t peer;
	const struct ha_device *ours; /* NULL: the entry is free */
	uint32_t tries;               /* without success since it was last up */
	uint32_t turn;                /* of the last try; 0: none */
};

struct ha_spares {
	struct ha_pair pair[HA_PAIRS_MAX];
	unsigned npairs;        /* entries ever made */
	uint32_t turns;         /* tries ever made */
	unsigned failed;        /* since no rail is up: incarnations that did not come up */
	uint64_t no_rail_since; /* sender: 0 = a rail is up */
	uint8_t wanted;         /* sender: mask of the rails that may be offered */
	uint8_t peer_ports;     /* on which its end may be; 0: it does not say */
	bool answered;          /* sender: the peer has answered an offer since no rail is up */
	uint64_t exchange_ns;   /* sender: what it took both ends to end the last incarnation */
	uint64_t open_ns;       /* sender: what making the last queue pair took */
	bool improve; /* sender: a port is back, which may make a better standby, from then on */
	uint64_t improve_at;
	uint8_t improves;   /* tries since a port came back */
	uint64_t add_until; /* sender: further spares are offered until then */
	uint64_t add_from;  /* and again not before */
	uint8_t added;      /* how often in a row without result */
};

/* How many there are: both ends compute the same from the two messages. */
unsigned ha_spares_count(const struct ha_bundle *b);

/* Sender, once in each step: what is wanted now; what is superfluous is closed. */
void ha_spares_step(struct ha_bundle *b, uint64_t now);
/* Does the data lead from one leaf switch to another (protection.h), and is it left to us how many
 * standbys that takes? */
bool ha_spares_crossed(const struct ha_bundle *b);
/* Are there pairs that no rail is on, and may this end offer them? */
bool ha_spares_may_add(const struct ha_bundle *b);
/* Nothing that is up gives a sign: further pairs are connected, if it is not too soon for that. */
void ha_spares_add(struct ha_bundle *b, uint64_t now);
/* Are some being connected for that? */
bool ha_spares_adding(const struct ha_bundle *b, uint64_t now);
/* It had a result: a path was given up. */
void ha_spares_added(struct ha_bundle *b);
/* Is it time to look for a better standby? */
bool ha_spares_improve_due(const struct ha_bundle *b, uint64_t now);
/* A rail has come up beside others: where they share a NIC a better spare is tried. Without that no
 * event may ever cause the try, since no port was down. */
void ha_spares_beside(struct ha_bundle *b, uint64_t now);
/* An incarnation of this rail did not come up. */
void ha_spares_failed(struct ha_bundle *b, const struct ha_rail *r, uint64_t now);
/* May the sender offer this rail's next incarnation? */
bool ha_spares_wanted(const struct ha_bundle *b, const struct ha_rail *r);
/* No rail is up, and every spare may be on any pair: there is no time to lose. */
bool ha_spares_hurry(const struct ha_bundle *b, const struct ha_rail *r);
/* With ha_spares_hurry: how long the sender waits after one that did not come up; how long for an
 * answer, and for the probes. */
uint64_t ha_spares_pause_ns(const struct ha_bundle *b);
uint64_t ha_spares_answer_ns(const struct ha_bundle *b);
uint64_t ha_spares_probe_ns(const struct ha_bundle *b);
/* With ha_spares_hurry: when this spare may be made, since others are being made or tried now;
 * UINT64_MAX: when that step is over. */
uint64_t ha_spares_turn_at(const struct ha_bundle *b, const struct ha_rail *r);
/* With ha_spares_hurry: an answer is here, so the peer is reached. */
void ha_spares_answered(struct ha_bundle *b, uint64_t now);
/* A port is back, at this end or the other: what was tried without success before says nothing any
 * more. */
void ha_spares_port_back(struct ha_bundle *b);

/* The entry of a pair; made if there is none. */
struct ha_pair *ha_spares_pair(struct ha_bundle *b, uint64_t peer, const struct ha_device *ours);
/*
 * Without any rail every pair gets its turn, however often it has been tried while others could not
 * be: 0 = never tried, or long ago; HA_TURNS_MAX = it was the last one.
 */
#define HA_TURNS_MAX 1023
unsigned ha_spares_recent(const struct ha_bundle *b, const struct ha_pair *pair);
void ha_spares_tried(struct ha_bundle *b, uint64_t peer, const struct ha_device *ours);
/* This rail's pair has come up; or was up, and is lost. */
void ha_spares_up(struct ha_bundle *b, const struct ha_rail *r);
void ha_spares_lost(struct ha_bundle *b, const struct ha_rail *r);

#endif
