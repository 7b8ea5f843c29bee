/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predict.h - header prediction (after Van Jacobson's of TCP, 1990): what a rank's next packet
 * begins with, from one that was taken
 *
 * The contributions of a rank to all-reduces differ in psn, slot, exponent and words, and so do the
 * answers to it. So a core keeps the head of one that it has taken, with what was found out about
 * it, and the head of the answer. A packet with the same head, and of the same length, need not be
 * decoded, checked and looked up again: it is sound, it is this core's, the rank is who it says and
 * where it was, its group and epoch are known. What else there is goes the general way.
 *
 * A prediction is of one incarnation of the table, which is how often groups have changed
 * (ina/switch/switch.h): with a change everything is forgotten.
 */
#ifndef INA_SWITCHD_PREDICT_H
#define INA_SWITCHD_PREDICT_H

#include "ina/frame/wire.h"
#include "ina/switch/slot.h"

/* of a packet that are compared: a head, and nothing of the words */
#define INA_PREDICT_BYTES 64
#define INA_PREDICT_ROWS 256 /* of groups' workers, direct mapped */
#define INA_PREDICT_ANSWER 7 /* numbers of eight bytes */
#define INA_PREDICT_VARIES 4 /* of them the first that differs from packet to packet */

/* Four lines, the first two of which say whether a packet is as predicted. */
struct ina_prediction {
	_Alignas(256) uint8_t head[INA_PREDICT_BYTES]; /* 0 where packets differ */
	uint8_t mask[INA_PREDICT_BYTES];               /* 0 there, 0xff elsewhere */
	uint64_t answer[INA_PREDICT_ANSWER];           /* as it lies, 0 there too */
	uint64_t comes;       /* ina_predict_comes(); 0: nothing is predicted */
	uint64_t place;       /* of the rank (mac_table.h) */
	uint64_t whose;       /* ina_predict_whose() */
	uint32_t first, each; /* slots of the worker */
	/* where it comes from, and its answer goes; of the whole packet, and of the answer */
	uint16_t port, bytes;
	uint8_t group, rank, root, ranks;
	bool extended;
	bool checksum; /* of the answer: the device makes it */
};

/* What a packet of this kind has in common with its rank's next, as far as a head goes. */
void ina_predict_head(struct ina_prediction *p, const uint8_t *packet, bool extended);

typedef struct ina_prediction ina_prediction_row[INA_RANKS_MAX];

/* INA_PREDICT_ROWS of them, or NULL. What is never used takes no memory. */
ina_prediction_row *ina_predictions_open(void);
void ina_predictions_close(ina_prediction_row *rows);

/* How it comes: the table's incarnation, which is never 0, port, and bytes. */
static inline uint64_t ina_predict_comes(uint32_t incarnation, uint16_t port, uint16_t bytes)
{
	return (uint64_t)incarnation << 32 | (uint64_t)port << 16 | bytes;
}

/* In rows that different workers may have in turn. */
static inline uint64_t ina_predict_whose(uint32_t incarnation, uint8_t group, uint8_t worker)
{
	return (uint64_t)incarnation << 32 | (uint64_t)group << 8 | worker;
}

/* tos: IPv4's, of a packet that is not marked: worker and ECT(1). */
static inline unsigned ina_predict_row(uint8_t group, uint8_t tos)
{
	return (uint8_t)(group + 8 * tos);
}

#endif
