/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch.h - the slot core: a pure function of (state, time, packet) to drop, answer one, or answer
 * all
 *
 * No clock, no memory of its own, no input or output: what a switch of any make does with a packet
 * is decided here, and every switch of hawser is this code or is held against it. Packets are
 * believed only as far as they are checked: group, kind of frame, rank, the rank's address, epoch,
 * slot, age, collective, words; in this order.
 */
#ifndef INA_SWITCH_H
#define INA_SWITCH_H

#include "ina/switch/slot.h"

#define INA_GROUPS 256 /* numbers; 0 is never used */

struct ina_member {
	uint32_t addr;  /* IPv4 */
	uint8_t mac[6]; /* of the next hop to it */
};

/* What a controller says about a group. */
struct ina_group_config {
	uint8_t id;           /* 1-255 */
	uint8_t ranks;        /* 2-32 */
	uint8_t workers;      /* of each rank, at most 64, a power of two */
	bool extended;        /* the kind of frame that it uses */
	uint16_t base;        /* first slot */
	uint32_t len;         /* slots, a power of two, at least two for each worker */
	uint32_t epoch;       /* rises with every incarnation of this number */
	uint32_t first_psn;   /* 0, but for tests */
	uint64_t lease_until; /* ns on the clock of `now`; then the group is over */
	struct ina_member member[INA_RANKS_MAX]; /* by rank */
};

struct ina_group {
	struct ina_group_config config;
	bool installed;
	bool over;  /* by an abort or a lease that ended; only a new incarnation changes that */
	bool lived; /* config.epoch was used */
};

struct ina_switch {
	uint32_t addr; /* IPv4; contributions come to it, answers come from it */
	uint8_t mac[6];
	struct ina_slot *slot; /* the owner's */
	uint32_t nslots;
	uint32_t changes; /* how often groups came or went; never 0 once there is one */
	struct ina_group group[INA_GROUPS];
};

enum ina_action { INA_DROP, INA_ANSWER_ONE, INA_ANSWER_ALL };

/* X(identifier, "name", "what it was") */
#define INA_REASON_LIST(X)                                                                   \
	X(TAKEN, "taken", "a contribution; others are missing")                              \
	X(COMPLETE, "complete", "the last contribution: all get the sum")                    \
	X(AGAIN, "again", "asked for once more: the sum, to the one")                        \
	X(HELD, "held", "it is in already; others are missing")                              \
	X(NEED, "need", "a probe for what has not come")                                     \
	X(ABORT, "abort", "a rank ends the group")                                           \
	X(OVER, "over", "the group was aborted, or its lease has ended")                     \
	X(OLD_EPOCH, "old-epoch", "from a past incarnation of the group")                    \
	X(NEW_EPOCH, "new-epoch",                                                            \
	  "from an incarnation of the group that the switch does not know yet")              \
	X(NOT_HERE, "not-here", "to another address")                                        \
	X(NO_GROUP, "no-group", "no such group")                                             \
	X(KIND, "kind", "the group uses the other kind of frame")                            \
	X(ANSWER, "answer", "an answer, which only a switch sends")                          \
	X(NO_RANK, "no-rank", "rank, root or worker that the group has not")                 \
	X(WRONG_ADDRESS, "wrong-address", "not from the rank's address")                     \
	X(WRONG_SLOT, "wrong-slot", "the slot is not the one of this group, worker and psn") \
	X(STALE, "stale", "older than what its slot is at: a delayed duplicate")             \
	X(EARLY, "early", "further ahead than a window may be")                              \
	X(OTHER, "other", "another collective or root than the slot's")                      \
	X(WORDS, "words", "words from a rank that brings none, or none from one that does")

enum ina_reason {
#define X(id, name, help) INA_REASON_##id,
	INA_REASON_LIST(X)
#undef X
		INA_REASONS
};
const char *ina_reason_name(enum ina_reason reason, const char **help);

struct ina_verdict {
	enum ina_action action;
	enum ina_reason reason;
	/* with INA_ANSWER_*: what all answers have in common; words point into the slot */
	struct ina_frame answer;
};

/* slot: nslots of them, at most 65536; they stay the caller's. */
void ina_switch_init(struct ina_switch *sw, uint32_t addr, const uint8_t mac[6],
		     struct ina_slot *slot, uint32_t nslots);

/*
 * A group begins, or begins a new incarnation. 0, or with *why a sentence: -EINVAL what no group
 * can be, -ENOSPC slots that the switch has not,
 * -EEXIST slots that another group has, -ESTALE an epoch that is not above the last one of this
 * number.
 */
int ina_switch_install(struct ina_switch *sw, const struct ina_group_config *config,
		       const char **why);
/* The same slots, members and epoch; leases are not compared. */
bool ina_group_config_same(const struct ina_group_config *a, const struct ina_group_config *b);
/* ina_switch_install() without doing it. */
int ina_switch_check(const struct ina_switch *sw, const struct ina_group_config *config,
		     const char **why);
/*
 * 0, -ENOENT when there is no such group, -ESTALE when epoch is not its, -ETIME when it is over
 * already.
 */
int ina_switch_renew(struct ina_switch *sw, uint8_t id, uint32_t epoch, uint64_t lease_until);
/* 0, -ENOENT, -ESTALE. Its slots are free; its epoch is remembered. */
int ina_switch_remove(struct ina_switch *sw, uint8_t id, uint32_t epoch);

/*
 * Its incarnation is over, as with an abort: for those who learned of it elsewhere. 0, -ENOENT,
 * -ESTALE.
 */
int ina_switch_end(struct ina_switch *sw, uint8_t id, uint32_t epoch);

/* f: as ina_frame_decode() took it. The verdict's words are good until the next step. */
void ina_switch_step(struct ina_switch *sw, uint64_t now, const struct ina_frame *f,
		     struct ina_verdict *v);
/*
 * The answer as this rank gets it: the one that asked, or with INA_ANSWER_ALL any of the group's.
 */
void ina_switch_answer(const struct ina_switch *sw, const struct ina_verdict *v, uint8_t rank,
		       struct ina_frame *f);
/* How many ranks the group of an answer has. */
static inline unsigned ina_switch_ranks(const struct ina_switch *sw, const struct ina_verdict *v)
{
	return sw->group[v->answer.group].config.ranks;
}

#endif
