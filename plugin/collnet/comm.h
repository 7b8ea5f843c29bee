/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - a communicator from the inside
 *
 * Rank r has a control lane to r + 2^i and from r - 2^i for each i < rounds = ceil(log2 ranks), and
 * a data lane to r + 1 and from r - 1. A vector that ranks pass on over lane 0, then 1, and so on,
 * merging what they get, has been all ranks' after `rounds` rounds.
 *
 * Two rules keep an idle rank, whose NCCL calls nobody, from holding the others up: what it owes
 * them has been posted before its operation is done, and no message ever waits in a lane for
 * something that only a later message of the same lane can bring.
 */
#ifndef HA_COLLNET_COMM_H
#define HA_COLLNET_COMM_H

#include "plugin/collnet/collnet.h"
#include "plugin/collnet/lane.h"
#include "plugin/collnet/ops.h"
#include "plugin/collnet/pilot.h"

#define HA_COLLNET_ROUNDS 5               /* log2 of HA_COLLNET_RANKS */
#define HA_COLLNET_DATA HA_COLLNET_ROUNDS /* the data lane's number */
#define HA_COLLNET_LANES (HA_COLLNET_ROUNDS + 1)

struct ha_clock;
struct ha_listen;

struct ha_collnet_op {
	struct ha_collnet *comm;
	uint64_t seq; /* from 1 */
	bool used;    /* NCCL has it */
	bool done;    /* complete, whatever is still to be posted for the others */
	bool have;    /* the switch's result is here, all of it */
	bool frozen;  /* its group broke: vote[] is what this rank has of it */
	bool owned;   /* vote[] is what all ranks have of it */
	const uint8_t *in;
	uint8_t *out;
	size_t bytes;
	unsigned segments;
	struct ha_ina_op *ina; /* while the switch has it */
	/* over the rails */
	bool started;
	size_t stored, need; /* bytes of `out` that have come, and that must */
	unsigned segment;    /* what this rank injects next */
	size_t at;
	/* how far each lane must have posted before NCCL learns of the end */
	uint32_t mark[HA_COLLNET_LANES];
	struct ha_collnet_vote vote[HA_COLLNET_SEGMENTS_MAX];
};

/* A message of an agreement that this rank has not come to yet. A peer can be two ahead at most. */
struct ha_collnet_stash {
	bool used;
	uint64_t id, a, b;
	uint32_t votes;
	struct ha_collnet_vote vote[HA_COLLNET_SEGMENTS_MAX];
};

enum ha_collnet_topic { HA_COLLNET_JOIN, HA_COLLNET_BREAKING, HA_COLLNET_OWN, HA_COLLNET_TOPICS };

struct ha_collnet_agreement {
	bool active, sent;
	unsigned round;
	uint64_t id, a, b;
	uint32_t votes; /* 0: all of it is, or was, everybody's that has been asked so far */
	struct ha_collnet_vote vote[HA_COLLNET_SEGMENTS_MAX];
	struct ha_collnet_stash stash[HA_COLLNET_ROUNDS][2];
};

/* What the communicator does with new operations. */
enum ha_collnet_mode {
	HA_COLLNET_RAILS,  /* round the ring */
	HA_COLLNET_SWITCH, /* from operation `group.from` on: to the switch */
	/* the group is broken; its operations in flight have not all ended yet */
	HA_COLLNET_LEAVING,
	HA_COLLNET_COUNTING, /* they have; the ranks agree which ones there were */
};

/* The way to the switch, while on the rails. */
enum ha_collnet_joining {
	HA_COLLNET_WAITING,  /* rank 0: for next_try; others: for an offer */
	HA_COLLNET_CREATING, /* rank 0: the pilot asks the controller */
	/* there is an offer; what is unfinished of the last group comes first */
	HA_COLLNET_OFFERED,
	HA_COLLNET_BOARDING, /* the pilot joins */
	HA_COLLNET_JOINED,   /* or not; the ranks agree */
};

/* What the handles say of all ranks (connect.c); constant once they have been read. */
struct ha_collnet_team {
	uint64_t nonce; /* rank 0's */
	uint32_t address[HA_COLLNET_RANKS];
	bool backends; /* every rank has one */
};

/* This rank's context of libhawser-ina: NULL while the pilot has it (join.c), and where no
 * backend answered. */
struct ha_collnet_library {
	struct ha_ina *context;
	int *give_up; /* that it was opened with; freed after it */
};

/* A peer's last message on a control lane: it has closed. */
struct ha_collnet_bye {
	bool received;
	uint64_t done; /* operations up to this one have ended there */
};

/* The group at the switch, or the last one there was; group.c and join.c. */
struct ha_collnet_group {
	uint64_t epoch; /* the attempt by which it came about */
	struct ha_ina_group *handle;
	uint64_t from;       /* the first operation for it; UINT64_MAX: none is */
	uint64_t last;       /* the last operation posted to it */
	uint64_t active_at;  /* when it last ended one, or got one with none in flight */
	uint64_t since;      /* when it began; 0: there is none */
	uint64_t break_seen; /* the highest epoch of a BREAK message */
	bool break_due[HA_COLLNET_ROUNDS];
};

/* Who has the group's results: round i's value counts 2^i ranks; confirm.c, have[0] by group.c. */
struct ha_collnet_confirm {
	uint64_t have[HA_COLLNET_ROUNDS + 1];
	uint64_t in[HA_COLLNET_ROUNDS];   /* what came over lane i */
	uint64_t sent[HA_COLLNET_ROUNDS]; /* and what went over it */
	/* of a group that a peer has begun before this rank */
	uint64_t early_epoch[HA_COLLNET_ROUNDS], early_have[HA_COLLNET_ROUNDS];
};

/* Operations of the last group whose segments are still to be voted on; group.c. */
struct ha_collnet_own {
	uint64_t next, last; /* none: next > last */
};

/* An offer that came before this rank was through with the one before; join.c. */
struct ha_collnet_offer {
	bool waits;
	struct ha_collnet_msg message;
	uint8_t ticket[HA_INA_TICKET];
};

/* The attempts to get to the switch; join.c, and group.c sets when the next one is. */
struct ha_collnet_join {
	enum ha_collnet_joining state;
	struct ha_pilot pilot; /* its thread's alone while it runs (pilot.h) */
	uint64_t until;        /* then the pilot gives up; UINT64_MAX: never */
	uint64_t attempt;
	uint64_t post_limit; /* operations up to this one may be posted; UINT64_MAX: all */
	uint64_t next_try, pause_ns;
	bool offer_due, offer_ok; /* the attempt's offer: to be passed on; there is a group */
	uint8_t ticket[HA_INA_TICKET];
	struct ha_collnet_offer offer;
	int logged; /* the last reason why there is no switch that was logged */
};

/* No lock: one thread at a time drives a communicator (collnet.h). */
struct ha_collnet {
	struct ha_collnet_params params; /* the listener's; constant */
	char name[48];                   /* for the log */
	int dev, ranks, rank;
	unsigned rounds;
	struct ha_collnet_team team;
	struct ha_collnet_library library;
	struct ha_collnet_connecting *connecting; /* connect.c; NULL: it is over */
	bool connected;
	int error;

	struct ha_lane_out out[HA_COLLNET_LANES];
	struct ha_lane_in in[HA_COLLNET_LANES];
	struct ha_collnet_bye bye[HA_COLLNET_ROUNDS];

	/* operations; comm.c */
	struct ha_collnet_op op[HA_COLLNET_DEPTH]; /* by seq */
	uint64_t posted;                           /* the last one's number */
	uint64_t oldest;                           /* that NCCL still has, or posted + 1 */

	enum ha_collnet_mode mode;
	struct ha_collnet_group group;
	struct ha_collnet_confirm confirm;
	struct ha_collnet_agreement agree[HA_COLLNET_TOPICS]; /* agree.c */
	struct ha_collnet_own own;
	struct ha_collnet_join join;
	struct ha_collnet_stats stats;
};

uint64_t ha_collnet_now(const struct ha_collnet *c);
/* The communicator ends with an error: lanes are closed, so that all ranks learn of it. Returns
 * err. */
int ha_collnet_fail(struct ha_collnet *c, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ha_collnet_hang_up(struct ha_collnet *c);
/* What waits in the lanes goes out, as far as the NIC takes it. */
void ha_collnet_send_out(struct ha_collnet *c);
/* Everything that can move, moves. 0 or what ended the communicator. */
int ha_collnet_step(struct ha_collnet *c);
/* NULL: it is not in flight here. */
struct ha_collnet_op *ha_collnet_op_find(struct ha_collnet *c, uint64_t seq);
void ha_collnet_op_done(struct ha_collnet_op *op);
size_t ha_collnet_segment_bytes(const struct ha_collnet_op *op, unsigned segment);
/* A segment's place in `out` is the end of what the rails may touch. */
static inline size_t ha_collnet_segment_at(unsigned segment)
{
	return (size_t)segment * HA_INA_SEGMENT;
}

/* connect.c */
void ha_collnet_connecting_free(struct ha_collnet *c);

/* confirm.c */
void ha_collnet_confirm_begin(struct ha_collnet *c);
void ha_collnet_confirm_step(struct ha_collnet *c);
void ha_collnet_on_confirm(struct ha_collnet *c, unsigned lane, const struct ha_collnet_msg *m);

/* agree.c */
void ha_collnet_agree_begin(struct ha_collnet *c, enum ha_collnet_topic topic, uint64_t id,
			    uint64_t a, uint64_t b);
void ha_collnet_on_agree(struct ha_collnet *c, unsigned lane, const struct ha_collnet_msg *m);
/* True once: the agreement has come to its end. */
bool ha_collnet_agree_step(struct ha_collnet *c, enum ha_collnet_topic topic);

/* group.c */
/* The next attempt is later than the last was: the switch could not be had, or its group has just
 * broken. */
void ha_collnet_group_pause(struct ha_collnet *c);
void ha_collnet_group_begin(struct ha_collnet *c, uint64_t epoch, uint64_t from);
/* 0: the switch has it, or the group is broken and the operation stays here; -EAGAIN: later. */
int ha_collnet_group_post(struct ha_collnet *c, struct ha_collnet_op *op);
void ha_collnet_group_step(struct ha_collnet *c);
void ha_collnet_on_group(struct ha_collnet *c, const struct ha_collnet_msg *m);

/* join.c */
void ha_collnet_join_step(struct ha_collnet *c);
void ha_collnet_on_join(struct ha_collnet *c, const struct ha_collnet_msg *m);

/* ring.c */
void ha_collnet_ring_step(struct ha_collnet *c);

#endif
