/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/host/worker_rig.h"

#include "ina/frame/bytes.h"

#include <string.h>

struct ha_clock_virtual time_now = HA_CLOCK_VIRTUAL_INIT(1000000);
struct ina_worker w;
struct ina_worker_config config;
struct ina_entry entry[CAPACITY];
struct sent sent[SENT_MAX];
unsigned nsent;
void (*inside_send)(const struct ina_frame *f); /* what else send() does */

int ndone;

void on_send(void *arg, const struct ina_frame *f)
{
	uint8_t bytes[INA_FRAME_MAX];

	CHECK(nsent < SENT_MAX);
	CHECK_INT(ina_frame_decode(bytes, ina_frame_encode(f, bytes), &sent[nsent].f),
		  INA_FAULT_NONE);
	if (f->words) {
		memcpy(sent[nsent].words, f->words, INA_PAYLOAD_BYTES);
		sent[nsent].f.words = sent[nsent].words;
	}
	nsent++;
	if (inside_send)
		inside_send(f);
}

static void bring_words(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	struct job *j = arg;

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, index * 1000 + i);
	block->exponent = 150;
	j->brought++;
}

static void take_words(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	struct job *j = arg;

	CHECK(index < j->op.packets);
	CHECK_INT(j->taken[index]++, 0);
	CHECK_INT(words != NULL, ina_coll_gets(j->op.coll, j->op.root, config.rank));
	if (words)
		j->first_word[index] = ina_get32(words);
	j->total++;
}

static void record_end(void *arg, int err)
{
	struct job *j = arg;

	CHECK_INT(j->done, 0);
	j->done = ++ndone;
	j->err = err;
}

const struct ina_op_ops job_ops = { bring_words, take_words, record_end };

void post_job(struct job *j, uint8_t coll, uint8_t root, uint32_t packets)
{
	memset(j, 0, sizeof(*j));
	j->op = (struct ina_op) {
		.ops = &job_ops, .arg = j, .coll = coll, .root = root, .packets = packets
	};
	CHECK_INT(ina_worker_post(&w, &j->op), 0);
}

/* Rank 2 of 4, group 7, epoch 5, worker 1 of 2; a window of len / 4. */
void open_worker(bool extended, uint32_t len)
{
	struct ina_worker_ops ops = { on_send, NULL };
	const char *why;

	config = (struct ina_worker_config) {
		.addr = ME,
		.switch_addr = SWITCH,
		.group = 7,
		.rank = 2,
		.ranks = 4,
		.worker = 1,
		.workers = 2,
		.extended = extended,
		.base = 100,
		.len = len,
		.epoch = 5,
	};
	ina_worker_defaults(&config);
	CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, CAPACITY, &why), 0);
	nsent = 0;
	ndone = 0;
	inside_send = NULL;
}

void poll_all(void)
{
	while (ina_worker_poll(&w))
		;
}

struct ina_frame answer_to(uint32_t psn, uint8_t coll, uint8_t root)
{
	static uint8_t words[INA_PAYLOAD_BYTES];
	uint32_t each = config.len / 2;

	ina_put32(words, psn + 5000);
	return (struct ina_frame) {
		.src = SWITCH,
		.dst = ME,
		.worker = 1,
		.ecn = INA_ECT1,
		.extended = config.extended,
		.coll = coll,
		.group = 7,
		.rank = 2,
		.root = root,
		.agg_addr = (uint16_t)(100 + each + psn % each),
		.psn = psn,
		.flags = config.extended ? INA_F_ANSWER : 0,
		.epoch = config.extended ? 5 : 0,
		.words = ina_coll_gets(coll, root, 2) ? words : NULL,
	};
}

void deliver_answer(uint32_t psn)
{
	struct ina_frame f = answer_to(psn, INA_ALL_REDUCE, 0);

	ina_worker_receive(&w, &f);
}

void answer_flag(uint32_t psn, uint8_t flag)
{
	struct ina_frame f = answer_to(psn, INA_ALL_REDUCE, 0);

	f.flags |= flag;
	f.words = NULL;
	ina_worker_receive(&w, &f);
}

unsigned times_sent(uint32_t psn, bool words)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nsent; i++)
		n += sent[i].f.psn == psn && !sent[i].f.words == !words;
	return n;
}
