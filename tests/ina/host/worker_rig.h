/* SPDX-License-Identifier: BSD-3-Clause */
/* worker_rig.h - one worker under virtual time, with the test in the place of the switch; what it
 * sent, what became of its operations */
#ifndef HA_TESTS_INA_WORKER_RIG_H
#define HA_TESTS_INA_WORKER_RIG_H

#include "ina/host/worker.h"
#include "ina/switch/switch.h"
#include "tests/ina/switch/named.h"

#define US HA_NS_PER_US
#define MS HA_NS_PER_MS
#define CAPACITY 64u
#define SENT_MAX 4096u
#define ME 0x0a000102u
#define SWITCH 0x0a0000feu

/* An operation, and what became of it. */
struct job {
	struct ina_op op;
	unsigned taken[256], total, brought;
	int done, err; /* done: the how-manieth */
	uint32_t first_word[256];
};

struct sent {
	struct ina_frame f;
	uint8_t words[INA_PAYLOAD_BYTES];
};

extern struct ha_clock_virtual time_now;
extern struct ina_worker w;
extern struct ina_worker_config config;
extern struct ina_entry entry[CAPACITY];
extern struct sent sent[SENT_MAX];
extern unsigned nsent;
extern void (*inside_send)(const struct ina_frame *f); /* what else send() does */
extern int ndone;
extern const struct ina_op_ops job_ops; /* of a struct job */

/* What the worker sends with: noted in sent[]. */
void on_send(void *arg, const struct ina_frame *f);
void post_job(struct job *j, uint8_t coll, uint8_t root, uint32_t packets);
/* Rank 2 of 4, group 7, epoch 5, worker 1 of 2; a window of len / 4. */
void open_worker(bool extended, uint32_t len);
void poll_all(void);
struct ina_frame answer_to(uint32_t psn, uint8_t coll, uint8_t root);
void deliver_answer(uint32_t psn);
void answer_flag(uint32_t psn, uint8_t flag);
unsigned times_sent(uint32_t psn, bool words);

#endif
