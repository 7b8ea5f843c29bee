/* SPDX-License-Identifier: BSD-3-Clause */
/* test_worker.c - the host's protocol, with the test in the place of the switch */
#include "ina/bytes.h"
#include "ina/switch.h"
#include "ina/worker.h"
#include "tests/ina/named.h"

#include <errno.h>
#include <stdlib.h>

#define US HA_NS_PER_US
#define MS HA_NS_PER_MS
#define CAPACITY 64u
#define SENT_MAX 4096u
#define ME 0x0a000102u
#define SWITCH 0x0a0000feu

static struct ha_clock_virtual time_now = HA_CLOCK_VIRTUAL_INIT(1000000);
static struct ina_worker w;
static struct ina_worker_config config;
static struct ina_entry entry[CAPACITY];
static struct {
	struct ina_frame f;
	uint8_t words[INA_PAYLOAD_BYTES];
} sent[SENT_MAX];
static unsigned nsent;
static void (*inside_send)(const struct ina_frame *f); /* what else send() does */

/* An operation, and what became of it. */
struct job {
	struct ina_op op;
	unsigned taken[256], total, brought;
	int done, err; /* done: the how-manieth */
	uint32_t first_word[256];
};
static int ndone;

static void on_send(void *arg, const struct ina_frame *f)
{
	uint8_t bytes[INA_FRAME_MAX];

	CHECK(nsent < SENT_MAX);
	CHECK_INT(ina_frame_decode(bytes, ina_frame_encode(f, bytes), &sent[nsent].f), INA_FAULT_NONE);
	if (f->words) {
		memcpy(sent[nsent].words, f->words, INA_PAYLOAD_BYTES);
		sent[nsent].f.words = sent[nsent].words;
	}
	nsent++;
	if (inside_send)
		inside_send(f);
}

static void bring(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	struct job *j = arg;

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, index * 1000 + i);
	block->exponent = 150;
	j->brought++;
}

static void take(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	struct job *j = arg;

	CHECK(index < j->op.packets);
	CHECK_INT(j->taken[index]++, 0);
	CHECK_INT(words != NULL, ina_coll_gets(j->op.coll, j->op.root, config.rank));
	if (words)
		j->first_word[index] = ina_get32(words);
	j->total++;
}

static void done(void *arg, int err)
{
	struct job *j = arg;

	CHECK_INT(j->done, 0);
	j->done = ++ndone;
	j->err = err;
}

static const struct ina_op_ops job_ops = { bring, take, done };

static void post(struct job *j, uint8_t coll, uint8_t root, uint32_t packets)
{
	memset(j, 0, sizeof(*j));
	j->op = (struct ina_op){ .ops = &job_ops, .arg = j, .coll = coll, .root = root, .packets = packets };
	CHECK_INT(ina_worker_post(&w, &j->op), 0);
}

/* Rank 2 of 4, group 7, epoch 5, worker 1 of 2; a window of len / 4. */
static void open_worker(bool extended, uint32_t len)
{
	struct ina_worker_ops ops = { on_send, NULL };
	const char *why;

	config = (struct ina_worker_config){
		.addr = ME, .switch_addr = SWITCH, .group = 7, .rank = 2, .ranks = 4, .worker = 1, .workers = 2,
		.extended = extended, .base = 100, .len = len, .epoch = 5,
	};
	ina_worker_defaults(&config);
	CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, CAPACITY, &why), 0);
	nsent = 0;
	ndone = 0;
	inside_send = NULL;
}

static void poll_all(void)
{
	while (ina_worker_poll(&w))
		;
}

static struct ina_frame answer_to(uint32_t psn, uint8_t coll, uint8_t root)
{
	static uint8_t words[INA_PAYLOAD_BYTES];
	uint32_t each = config.len / 2;

	ina_put32(words, psn + 5000);
	return (struct ina_frame){
		.src = SWITCH, .dst = ME, .worker = 1, .ecn = INA_ECT1, .extended = config.extended, .coll = coll, .group = 7,
		.rank = 2, .root = root, .agg_addr = (uint16_t)(100 + each + psn % each), .psn = psn,
		.flags = config.extended ? INA_F_ANSWER : 0, .epoch = config.extended ? 5 : 0,
		.words = ina_coll_gets(coll, root, 2) ? words : NULL,
	};
}

static void answer(uint32_t psn)
{
	struct ina_frame f = answer_to(psn, INA_ALL_REDUCE, 0);

	ina_worker_receive(&w, &f);
}

static void answer_flag(uint32_t psn, uint8_t flag)
{
	struct ina_frame f = answer_to(psn, INA_ALL_REDUCE, 0);

	f.flags |= flag;
	f.words = NULL;
	ina_worker_receive(&w, &f);
}

static unsigned times_sent(uint32_t psn, bool words)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nsent; i++)
		n += sent[i].f.psn == psn && !sent[i].f.words == !words;
	return n;
}

/* ---- in peace ---- */

/* Every packet is as docs/ina.md has it, for each collective, and each answer lands where it belongs. */
static void collectives(void)
{
	for (int extended = 0; extended < 2; extended++)
		for (uint8_t coll = 1; coll < INA_COLLS; coll++)
			for (uint8_t root = 1; root < 4; root++) {
				struct job j;

				open_worker(extended, 64);
				post(&j, coll, root, 40);
				for (uint32_t psn = 0; psn < 40; psn++) {
					struct ina_frame f = answer_to(psn, coll, root);
					const struct ina_frame *s = &sent[psn].f;

					poll_all();
					CHECK(s->psn == psn && s->coll == coll && s->root == root && s->rank == 2 && s->worker == 1);
					CHECK(s->src == ME && s->dst == SWITCH && s->ecn == INA_ECT1 && s->group == 7);
					CHECK_INT(s->agg_addr, 100 + 32 + psn % 32);
					CHECK_INT(s->epoch, extended ? 5 : 0);
					CHECK_INT(s->exponent, extended && s->words ? 150 : 0);
					CHECK_INT(s->words != NULL, ina_coll_brings(coll, root, 2));
					if (s->words)
						CHECK(ina_get32(s->words + 8) == psn * 1000 + 2);
					ina_worker_receive(&w, &f);
					CHECK(!ina_coll_gets(coll, root, 2) || j.first_word[psn] == psn + 5000);
				}
				CHECK(j.done && !j.err && j.total == 40);
				CHECK_INT(nsent, 40);
				CHECK_INT(w.count.sent, 40);
				CHECK_INT(w.count.answered, 40);
				CHECK(ina_worker_due(&w) == UINT64_MAX);
			}
}

/* Never more than half of a worker's slots in flight: the other half still holds answers. */
static void half_a_range(void)
{
	for (uint32_t len = 4; len <= 256; len *= 2) {
		struct job j;

		open_worker(true, len);
		post(&j, INA_ALL_REDUCE, 0, 200);
		poll_all();
		CHECK_INT(nsent, len / 4);
		CHECK_INT(ina_worker_window(&config), len / 4);
		if (len > 4)
			answer(1); /* not the oldest: the window does not move */
		poll_all();
		CHECK_INT(nsent, len / 4);
		answer(0);
		poll_all();
		CHECK_INT(nsent, len / 4 + (len > 4 ? 2 : 1));
	}
}

/* psn passes 2^32, and slots go on as if nothing were. */
static void wrap(void)
{
	struct ina_worker_ops ops = { on_send, NULL };
	const char *why;
	struct job j;

	open_worker(true, 64);
	config.first_psn = 0u - 50;
	CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, CAPACITY, &why), 0);
	post(&j, INA_ALL_REDUCE, 0, 100);
	for (uint32_t n = 0; n < 100; n++) {
		poll_all();
		CHECK(sent[n].f.psn == config.first_psn + n);
		CHECK_INT(sent[n].f.agg_addr, 132 + ((config.first_psn + n) & 31));
		answer(config.first_psn + n);
	}
	CHECK(j.done && j.total == 100);
}

/* Operations follow each other without a gap and end in their order, whatever the order of the answers. */
static void operations(void)
{
	struct job a, b, c;
	struct ina_op bad = { .ops = &job_ops, .coll = INA_ALL_REDUCE, .packets = 0 };

	open_worker(false, 64);
	post(&a, INA_ALL_REDUCE, 0, 3);
	post(&b, INA_ALL_REDUCE, 0, 1);
	post(&c, INA_ALL_REDUCE, 0, 4);
	poll_all();
	CHECK_INT(nsent, 8);
	for (uint32_t psn = 7; psn > 0; psn--)
		answer(psn);
	CHECK_INT(ndone, 0);
	answer(0);
	CHECK(a.done == 1 && b.done == 2 && c.done == 3);
	CHECK_INT(ina_worker_post(&w, &bad), -EINVAL);
	bad.packets = 1;
	bad.root = 4;
	CHECK_INT(ina_worker_post(&w, &bad), -EINVAL);
	bad.root = 0;
	bad.coll = 6;
	CHECK_INT(ina_worker_post(&w, &bad), -EINVAL);
}

/* ---- what counts as an answer ---- */

/* In NetCCL a bad frame counts as an acknowledgement. Here one thing is wrong with each of these, and nothing moves. */
static void bad_frame_is_no_ack(void)
{
	for (int extended = 0; extended < 2; extended++)
		for (int wrong = 0; wrong < 12; wrong++) {
			struct ina_frame f;
			struct job j;

			open_worker(extended, 64);
			post(&j, INA_ALL_REDUCE, 0, 4);
			poll_all();
			f = answer_to(1, INA_ALL_REDUCE, 0);
			switch (wrong) {
			case 0: f.src = SWITCH + 1; break;
			case 1: f.dst = ME + 1; break;
			case 2: f.group = 8; break;
			case 3: f.rank = 1; break;
			case 4: f.worker = 0; break;
			case 5: f.agg_addr++; break;
			case 6: f.extended = !extended; break;
			case 7: f.words = NULL; break;
			case 8: f.coll = INA_BROADCAST; break;
			case 9: f.root = 1; break;
			case 10: if (!extended) continue; f.flags = 0; break;
			case 11: if (!extended) continue; f.epoch = 4; break;
			}
			ina_worker_receive(&w, &f);
			CHECK_INT(w.count.refused, 1);
			CHECK_INT(w.count.answered, 0);
			CHECK_INT(j.total, 0);
			answer(1);
			CHECK_INT(w.count.answered, 1);
			CHECK(j.first_word[1] == 5001);
		}
}

/* Redundant answers are counted by where they fall, and change nothing. */
static void redundant(void)
{
	struct job j;

	open_worker(true, 64);
	post(&j, INA_ALL_REDUCE, 0, 8);
	poll_all();
	answer(0);
	answer(2);
	answer(2);
	CHECK_INT(w.count.in_range_redundant_ack, 1);
	answer(0);
	answer(8);
	answer(0x80000000);
	CHECK_INT(w.count.out_range_redundant_ack, 3);
	CHECK_INT(j.total, 2);
	CHECK_INT(w.count.refused, 0);
}

/* ---- losses ---- */

/* Old frames: the words again, as soon as enough that was sent later has its answer. */
static void fast_retransmission(void)
{
	struct job j;

	open_worker(false, 64);
	post(&j, INA_ALL_REDUCE, 0, 12);
	poll_all();
	for (uint32_t psn = 1; psn <= 3; psn++) {
		answer(psn);
		CHECK_INT(times_sent(0, true), 1);
	}
	answer(4);
	CHECK_INT(times_sent(0, true), 2);
	CHECK_INT(w.count.fast_retrans_trigger, 1);
	CHECK_INT(w.count.fast_retrans_pkt, 1);
	CHECK_INT(nsent, 13);
	for (uint32_t psn = 5; psn < 12; psn++)
		answer(psn);
	CHECK_INT(times_sent(0, true), 2); /* all of these left before the repetition */
	CHECK_INT(w.count.full_retrans_trigger, 0);
	answer(0);
	CHECK(j.done && !j.err);
}

/* The repetition is lost too, and again: what leaves after it and is answered shows it, without any timer. */
static void lost_retransmission(void)
{
	struct job j[6];

	open_worker(false, 256);
	post(&j[0], INA_ALL_REDUCE, 0, 10);
	poll_all();
	for (uint32_t psn = 1; psn < 10; psn++)
		answer(psn);
	CHECK_INT(times_sent(0, true), 2);
	for (unsigned n = 1; n < 6; n++) {
		post(&j[n], INA_ALL_REDUCE, 0, 10);
		poll_all(); /* behind the last repetition */
		for (uint32_t psn = 10 * n; psn < 10 * n + 3; psn++)
			answer(psn);
		CHECK_INT(times_sent(0, true), 1 + n);
		for (uint32_t psn = 10 * n + 3; psn < 10 * n + 10; psn++)
			answer(psn);
		CHECK_INT(times_sent(0, true), 2 + n);
	}
	for (uint32_t psn = 1; psn < 60; psn++)
		CHECK_INT(times_sent(psn, true), 1);
	CHECK_INT(w.count.full_retrans_trigger, 0);
	/* With nothing sent behind it, the time-out finds it, again and again. */
	for (unsigned n = 0; n < 5; n++) {
		time_now.now = ina_worker_due(&w);
		poll_all();
		CHECK_INT(times_sent(0, true), 8 + n);
	}
	CHECK_INT(w.count.full_retrans_trigger, 5);
	CHECK_INT(ndone, 0);
	answer(0);
	CHECK(ndone == 6 && !j[5].err);
}

/* Extended frames: a question of 52 bytes; words only when the switch has not got them. */
static void ask_first(void)
{
	struct job j;

	open_worker(true, 64);
	post(&j, INA_ALL_REDUCE, 0, 12);
	poll_all();
	for (uint32_t psn = 1; psn <= 4; psn++)
		answer(psn);
	CHECK_INT(times_sent(0, true), 1);
	CHECK_INT(times_sent(0, false), 1);
	CHECK_INT(sent[nsent - 1].f.flags, INA_F_PROBE);
	answer_flag(0, INA_F_HELD);
	CHECK_INT(times_sent(0, true), 1);
	for (uint32_t psn = 5; psn < 12; psn++)
		answer(psn);
	time_now.now = ina_worker_due(&w);
	poll_all();
	CHECK_INT(times_sent(0, false), 2);
	answer_flag(0, INA_F_NEED);
	CHECK_INT(times_sent(0, true), 2);
	answer_flag(0, INA_F_NEED); /* a duplicate of the answer: the words are on their way */
	CHECK_INT(times_sent(0, true), 2);
	CHECK(w.count.need == 2 && w.count.held == 1 && w.count.again_words == 1);
	answer(0);
	CHECK(j.done && j.total == 12);
}

/* A time-out sends a burst of the oldest, waits twice as long, and begins anew with an answer. */
static void time_outs(void)
{
	uint64_t last, gap = 0;
	struct job j;

	open_worker(false, 64);
	post(&j, INA_ALL_REDUCE, 0, 16);
	poll_all();
	CHECK_INT(nsent, 16);
	last = time_now.now;
	for (int i = 0; i < 12; i++) {
		CHECK(ina_worker_due(&w) > time_now.now);
		time_now.now = ina_worker_due(&w) - 1;
		CHECK(!ina_worker_poll(&w));
		time_now.now++;
		poll_all();
		CHECK_INT(w.count.full_retrans_trigger, i + 1);
		if (i && time_now.now - last < config.rto_max_ns)
			CHECK(time_now.now - last == 2 * gap);
		gap = time_now.now - last;
		last = time_now.now;
		CHECK(gap >= config.rto_min_ns && gap <= config.rto_max_ns);
	}
	CHECK_INT(gap, config.rto_max_ns);
	CHECK_INT(w.count.full_retrans_pkt, 12 * 16);
	CHECK_INT(w.count.again_words, 12 * 16);
	answer(3);
	CHECK(ina_worker_due(&w) <= time_now.now + config.rto_max_ns);
	CHECK(w.rto < config.rto_max_ns);
	/* With answers to what was repeated, all that was lost follows without further time-outs. */
	for (uint32_t psn = 0; psn < 16; psn++)
		if (psn != 3)
			answer(psn);
	CHECK(j.done);
}

/* While others are late (held), time-outs do not make the window smaller: whoever they wait for may be waiting for this rank's next packet. */
static void held_keeps_window(void)
{
	struct job j;

	open_worker(true, 64);
	post(&j, INA_ALL_REDUCE, 0, 1);
	poll_all();
	time_now.now = ina_worker_due(&w);
	poll_all();
	answer_flag(0, INA_F_NEED); /* a real loss: from here on the window is small */
	CHECK(w.cwnd.cwnd < 2);
	w.cwnd.cwnd = w.cwnd.target = 8;
	for (int i = 0; i < 20; i++) {
		time_now.now = ina_worker_due(&w);
		poll_all();
		answer_flag(0, INA_F_HELD);
		CHECK(w.cwnd.cwnd == 8);
	}
	time_now.now = ina_worker_due(&w);
	poll_all();
	CHECK(w.cwnd.cwnd == 8); /* also before the word comes */
}

/* ---- ends ---- */

/* Until the worker wants to be called. */
static void pass(void)
{
	uint64_t due = ina_worker_due(&w);

	time_now.now = due > time_now.now ? due : time_now.now;
	poll_all();
}

static int run_dry(uint64_t limit)
{
	uint64_t end = time_now.now + limit;

	while (!w.error && time_now.now < end)
		pass();
	return w.error;
}

/* A dead rank hangs all, for ever, in NetCCL. Here: one error, in time, that says who is missing; the others are told. */
static void dead_rank(void)
{
	uint64_t start;
	struct job a, b;

	open_worker(true, 64);
	post(&a, INA_ALL_REDUCE, 0, 20);
	post(&b, INA_ALL_REDUCE, 0, 20);
	poll_all();
	answer(0);
	start = time_now.now;
	while (!w.error) {
		CHECK(time_now.now - start <= config.peer_ns);
		pass();
		if (!w.error)
			answer_flag(1, INA_F_HELD); /* the switch is well */
	}
	CHECK_INT(w.error, -ETIMEDOUT);
	CHECK(time_now.now - start == config.peer_ns);
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 1 for 10.0 s; switch 10.0.0.254 answers: "
			  "another rank of the group is gone or has stopped");
	CHECK(a.done == 1 && b.done == 2 && a.err == -ETIMEDOUT && b.err == -ETIMEDOUT);
	CHECK_INT(a.total, 1); /* what had its answer is known */
	CHECK_INT(sent[nsent - 1].f.flags, INA_F_ABORT);
	CHECK_INT(ina_worker_post(&w, &b.op), -ETIMEDOUT);
	CHECK(!ina_worker_poll(&w) && ina_worker_due(&w) == UINT64_MAX);
	answer(1);
	CHECK_INT(a.total, 1);
	CHECK(nsent < 2000); /* waiting costs little: 52 bytes for each packet in flight ten times a second */
}

#define LOOK_AT                                                                                                                                  \
	"look at the path to it, its counters of dropped frames, another collective or root than the other ranks', a rank that was restarted"

static void silent_switch(void)
{
	uint64_t start;
	struct job j;

	open_worker(true, 64);
	post(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	start = time_now.now;
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(time_now.now - start == config.switch_ns);
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 0 for 2.0 s; not a word from switch 10.0.0.254: " LOOK_AT);
	/* Old frames cannot tell the two apart. */
	open_worker(false, 64);
	post(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	start = time_now.now;
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(time_now.now - start == config.peer_ns);
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 0 for 10.0 s; switch 10.0.0.254 says nothing, or waits for a rank that is gone or has "
			  "stopped: " LOOK_AT);
}

/* Another rank runs another collective: the switch is well, and drops this rank's frames without a word. The error must not say that it is silent to all. */
static void dropped_without_a_word(void)
{
	static struct ina_slot slots[256];
	static struct ina_switch sw;
	struct ina_group_config c = { .id = 7, .ranks = 4, .workers = 2, .extended = true, .base = 100, .len = 64, .epoch = 5,
				      .lease_until = UINT64_MAX };
	struct ina_verdict v;
	struct ina_frame f;
	const char *why;
	struct job j;

	open_worker(true, 64);
	post(&j, INA_ALL_REDUCE, 0, 1);
	poll_all();
	ina_switch_init(&sw, SWITCH, config.switch_mac, slots, 256);
	for (uint32_t i = 0; i < 4; i++)
		c.member[i].addr = ME - 2 + i;
	CHECK_INT(ina_switch_install(&sw, &c, &why), 0);
	f = sent[0].f;
	f.src = ME - 2;
	f.rank = 0;
	f.coll = INA_BROADCAST;
	ina_switch_step(&sw, time_now.now, &f, &v);
	CHECK_INT(v.reason, INA_REASON_TAKEN);
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(nsent > 2);
	for (unsigned i = 0; i + 1 < nsent; i++) { /* the last one is the abort */
		ina_switch_step(&sw, time_now.now, &sent[i].f, &v);
		CHECK(v.action == INA_DROP && v.reason == INA_REASON_OTHER);
	}
	CHECK(!strstr(w.why, "is silent"));
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 0 for 2.0 s; not a word from switch 10.0.0.254: " LOOK_AT);
}

/* The longest of these sentences has its end. */
static void whole_sentences(void)
{
	for (int extended = 0; extended < 2; extended++) {
		struct ina_worker_ops ops = { on_send, NULL };
		const char *why;
		struct job j;

		open_worker(extended, 64);
		config.group = 255;
		config.rank = 31;
		config.ranks = 32;
		config.switch_addr = UINT32_MAX;
		config.first_psn = UINT32_MAX;
		config.peer_ns = config.switch_ns = 99999 * HA_NS_PER_S;
		CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, CAPACITY, &why), 0);
		post(&j, INA_ALL_REDUCE, 0, 1);
		poll_all();
		time_now.now += config.peer_ns;
		poll_all();
		CHECK_INT(w.error, -ETIMEDOUT);
		CHECK(strstr(w.why, "group 255, rank 31: no answer to packet 4294967295 for 99999.0 s; "));
		CHECK(strstr(w.why, "255.255.255.255"));
		CHECK(strstr(w.why, LOOK_AT));
	}
}

/* A pause between operations is no silence. */
static void idle(void)
{
	struct job j;

	open_worker(true, 64);
	for (int i = 0; i < 3; i++) {
		post(&j, INA_ALL_REDUCE, 0, 1);
		poll_all();
		answer((uint32_t)i);
		CHECK(j.done);
		time_now.now += 3600 * HA_NS_PER_S;
		poll_all();
		CHECK(!w.error && ina_worker_due(&w) == UINT64_MAX);
	}
}

/* The switch says that this life is over; words about another one say nothing, and nobody else's do. */
static void told_to_end(void)
{
	for (uint32_t epoch = 4; epoch <= 6; epoch++) {
		struct ina_frame f;
		struct job j;

		open_worker(true, 64);
		post(&j, INA_ALL_REDUCE, 0, 2);
		poll_all();
		f = answer_to(0, INA_ALL_REDUCE, 0);
		f.flags |= INA_F_ABORT;
		f.words = NULL;
		f.epoch = epoch;
		f.rank = 1;
		ina_worker_receive(&w, &f);
		CHECK_INT(w.error, 0);
		f.rank = 2;
		ina_worker_receive(&w, &f);
		CHECK_INT(w.error, epoch == 5 ? -ECANCELED : 0);
		CHECK_INT(j.err, w.error);
		CHECK_INT(nsent, 2); /* it says nothing more */
	}
	open_worker(true, 64);
	ina_worker_abort(&w, -EIO, "the job was cancelled");
	CHECK_TEXT(w.why, "the job was cancelled");
	CHECK_INT(nsent, 1);
	CHECK_INT(sent[0].f.flags, INA_F_ABORT);
}

/* ---- callbacks that call back ---- */

/* An operation that is gone as soon as it is done: its bytes are spoilt, and freed, at once (ASan looks) or when all is over (the test looks). */
struct mortal {
	struct ina_op op;
	char rest[64];
};
static struct mortal *dead[8];
static int dead_err[8];
static int ndead;
static bool freed_at_once;
static void (*inside_bring)(void), (*inside_take)(void);

static void mortal_bring(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	(void)arg, (void)index;
	memset(words, 0, INA_PAYLOAD_BYTES);
	block->exponent = 150;
	if (inside_bring)
		inside_bring();
}

static void mortal_take(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	(void)arg, (void)index, (void)words, (void)block;
	if (inside_take)
		inside_take();
}

static void mortal_done(void *arg, int err)
{
	CHECK(ndead < 8);
	memset(arg, 0xa5, sizeof(struct mortal));
	dead_err[ndead] = err;
	dead[ndead++] = arg;
	if (freed_at_once)
		free(arg);
}

static void post_mortal(uint32_t packets)
{
	static const struct ina_op_ops ops = { mortal_bring, mortal_take, mortal_done };
	struct mortal *m = malloc(sizeof(*m));

	CHECK(m != NULL);
	m->op = (struct ina_op){ .ops = &ops, .arg = m, .coll = INA_ALL_REDUCE, .packets = packets };
	CHECK_INT(ina_worker_post(&w, &m->op), 0);
}

/* All are done, and nobody has touched them since. */
static void bury(int n, int err)
{
	CHECK_INT(ndead, n);
	while (ndead--) {
		const uint8_t *bytes = (const uint8_t *)dead[ndead];

		CHECK_INT(dead_err[ndead], err);
		for (size_t i = 0; !freed_at_once && i < sizeof(struct mortal); i++)
			CHECK_INT(bytes[i], 0xa5);
		if (!freed_at_once)
			free(dead[ndead]);
	}
	ndead = 0;
}

static void open_mortal(void)
{
	open_worker(true, 64);
	inside_bring = inside_take = NULL;
}

static void answer_it(const struct ina_frame *f)
{
	if (!(f->flags & INA_F_ABORT))
		answer(f->psn);
}

/* A switch in the same thread answers before send() returns: to what is sent for the first time, and to what is sent again. */
static void answered_inside_send(void)
{
	for (int n = 0; n < 2; n++) {
		freed_at_once = n;
		open_mortal();
		inside_send = answer_it;
		post_mortal(1);
		post_mortal(3);
		post_mortal(40);
		poll_all();
		CHECK(w.count.sent == 44 && w.count.answered == 44 && nsent == 44);
		CHECK(!w.head && !w.tail && !w.feeding && !ina_worker_in_flight(&w));
		bury(3, 0);

		open_mortal();
		post_mortal(4);
		post_mortal(1);
		poll_all();
		inside_send = answer_it;
		answer(4); /* the first was lost and is asked for; its answer, inside of that, shows the second to be lost, and so on */
		CHECK(w.count.answered == 5 && w.count.probes == 4 && !ina_worker_in_flight(&w));
		bury(2, 0);

		open_mortal();
		post_mortal(4);
		poll_all();
		inside_send = answer_it;
		time_now.now = ina_worker_due(&w);
		poll_all(); /* a time-out asks for the first, and so on */
		CHECK(w.count.answered == 4 && w.count.full_retrans_trigger == 1 && !ina_worker_in_flight(&w));
		bury(1, 0);
	}
}

static void give_up(void)
{
	ina_worker_abort(&w, -EIO, "the disk is gone");
}

static void give_up_sending(const struct ina_frame *f)
{
	if (f->psn == 2 || f->flags & INA_F_ABORT) /* not even that can be sent */
		give_up();
}

/* Each callback may end it all; the operations are the caller's again before ina_worker_abort() returns. */
static void abort_inside(void)
{
	for (int n = 0; n < 6; n++) {
		freed_at_once = n & 1;
		open_mortal();
		post_mortal(4);
		post_mortal(2);
		if (n / 2 == 0)
			inside_take = give_up;
		else if (n / 2 == 1)
			inside_bring = give_up;
		else
			inside_send = give_up_sending;
		poll_all();
		if (n / 2 == 0)
			answer(3);
		CHECK_INT(w.error, -EIO);
		CHECK_TEXT(w.why, "the disk is gone");
		CHECK_INT(sent[nsent - 1].f.flags, INA_F_ABORT);
		CHECK_INT(nsent, n / 2 == 0 ? 7 : n / 2 == 1 ? 1 : 4);
		CHECK(w.oldest == INA_NO_ENTRY && !w.head && !w.feeding && !ina_worker_in_flight(&w));
		bury(2, -EIO);
	}
}

static void echo_abort(const struct ina_frame *f)
{
	struct ina_frame a = answer_to(f->psn, f->coll, f->root);

	if (!(f->flags & INA_F_ABORT))
		return;
	a.flags |= INA_F_ABORT;
	a.words = NULL;
	ina_worker_receive(&w, &a);
}

/* The switch tells all that the group is over, also the rank that said so, and that before its send() returns: the rank's own reason stays. */
static void own_abort_heard(void)
{
	for (int n = 0; n < 2; n++) {
		freed_at_once = n;
		open_mortal();
		post_mortal(2);
		poll_all();
		inside_send = echo_abort;
		ina_worker_abort(&w, -EIO, "the disk is gone");
		CHECK_INT(w.error, -EIO);
		CHECK_TEXT(w.why, "the disk is gone");
		CHECK_INT(nsent, 3);
		bury(1, -EIO);
	}
}

/* ---- congestion ---- */

/* Marks make the window smaller than the range allows, and it comes back. */
static void marks(void)
{
	struct job j;
	uint32_t least = 64;

	open_worker(true, 128);
	post(&j, INA_ALL_REDUCE, 0, 250);
	for (uint32_t psn = 0; psn < 250; psn++) {
		struct ina_frame f = answer_to(psn, INA_ALL_REDUCE, 0);

		poll_all();
		least = psn < 200 && ina_worker_in_flight(&w) < least ? ina_worker_in_flight(&w) : least;
		f.ecn = psn < 150 ? INA_CE : INA_ECT1;
		time_now.now += 50 * US;
		ina_worker_receive(&w, &f);
	}
	CHECK(least < 10);
	CHECK_INT(w.count.marked, 150);
	CHECK(w.count.cwnd_dec > 5);
	CHECK(w.count.cwnd_inc > 5);
	CHECK(w.cwnd.cwnd > 2 * least);
	CHECK_INT(w.count.again_words + w.count.probes, 0);
}

static void flags_counted(void)
{
	struct ina_frame f;
	struct job j;

	open_worker(true, 64);
	post(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	f = answer_to(0, INA_ALL_REDUCE, 0);
	f.flags |= INA_F_OVERFLOW;
	ina_worker_receive(&w, &f);
	f = answer_to(1, INA_ALL_REDUCE, 0);
	f.flags |= INA_F_NONFINITE;
	ina_worker_receive(&w, &f);
	CHECK(w.count.overflow == 1 && w.count.nonfinite == 1);
}

static void configured(void)
{
	struct ina_worker_ops ops = { on_send, NULL };
	const char *why;

	for (int wrong = 0; wrong < 12; wrong++) {
		uint32_t capacity = 16;

		open_worker(true, 64);
		switch (wrong) {
		case 0: config.group = 0; break;
		case 1: config.ranks = 33; break;
		case 2: config.rank = 4; break;
		case 3: config.worker = 2; break;
		case 4: config.workers = 0; break;
		case 5: config.len = 96; break;
		case 6: config.len = 2; break;
		case 7: capacity = 8; break;
		case 8: capacity = 24; break;
		case 9: config.rto_max_ns = 1; break;
		case 10: config.peer_ns = 0; break;
		case 11: config.burst = 0; break;
		}
		CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, capacity, &why), -EINVAL);
		CHECK(strlen(why) > 20);
	}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "collectives", collectives },
		{ "half_a_range", half_a_range },
		{ "wrap", wrap },
		{ "operations", operations },
		{ "bad_frame_is_no_ack", bad_frame_is_no_ack },
		{ "redundant", redundant },
		{ "fast_retransmission", fast_retransmission },
		{ "lost_retransmission", lost_retransmission },
		{ "ask_first", ask_first },
		{ "time_outs", time_outs },
		{ "held_keeps_window", held_keeps_window },
		{ "dead_rank", dead_rank },
		{ "silent_switch", silent_switch },
		{ "dropped_without_a_word", dropped_without_a_word },
		{ "whole_sentences", whole_sentences },
		{ "idle", idle },
		{ "told_to_end", told_to_end },
		{ "answered_inside_send", answered_inside_send },
		{ "abort_inside", abort_inside },
		{ "own_abort_heard", own_abort_heard },
		{ "marks", marks },
		{ "flags_counted", flags_counted },
		{ "configured", configured },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
