/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - a switch and the ranks of one group, packet by packet: every packet is encoded and
 * decoded on both ways */
#ifndef HA_TESTS_INA_RANKS_H
#define HA_TESTS_INA_RANKS_H

#include "ina/switch/switch.h"

#define RANKS_SLOTS 1024u
#define SWITCH_ADDR 0x0a0000feu
#define RANK_ADDR 0x0a000100u /* + rank */

struct ranks {
	struct ina_switch sw;
	struct ina_slot slot[RANKS_SLOTS];
	struct ina_group_config config;
	uint64_t now;
	/* Of the last packet. */
	struct ina_verdict v;
	unsigned answers;
	uint8_t bytes[INA_RANKS_MAX][INA_FRAME_MAX]; /* by rank */
	struct ina_frame answer[INA_RANKS_MAX];      /* decoded; .group = 0: none for this rank */
};

/* Group 7, epoch 5, at slot 64. */
void ranks_open(struct ranks *r, bool extended, unsigned ranks, uint32_t len, uint32_t first_psn);
/* What `rank` sends for psn, as it should be; words are none until ranks_words(). */
struct ina_frame ranks_frame(const struct ranks *r, uint8_t coll, uint8_t root, uint8_t rank,
			     uint32_t psn);
/* Words for f, in memory that stays good until the next call for this rank. */
void ranks_words(struct ina_frame *f, const int32_t *word);
/* To the switch; what it answers is in r. */
enum ina_reason ranks_send(struct ranks *r, const struct ina_frame *f);
/* The i-th word of an answer. */
int32_t ranks_word(const struct ina_frame *answer, unsigned i);

/* A rank's contribution of one value in all words, plus the word's number. */
enum ina_reason ranks_give(struct ranks *r, uint8_t rank, uint32_t psn, int32_t value);
/* All ranks' contributions of psn; every answer is right. */
void ranks_whole(struct ranks *r, uint32_t psn);

#endif
