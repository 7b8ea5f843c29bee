/* SPDX-License-Identifier: BSD-3-Clause */
/* test_worker.c - the host's protocol, with the test in the place of the switch */
#include "ina/frame/bytes.h"
#include "tests/ina/host/worker_rig.h"

#include <errno.h>

/* ---- in normal operation ---- */

static void check_packet(const struct ina_frame *s, uint32_t psn, bool extended, uint8_t coll,
			 uint8_t root)
{
	CHECK(s->psn == psn && s->coll == coll && s->root == root && s->rank == 2 &&
	      s->worker == 1);
	CHECK(s->src == ME && s->dst == SWITCH && s->ecn == INA_ECT1 && s->group == 7);
	CHECK_INT(s->agg_addr, 100 + 32 + psn % 32);
	CHECK_INT(s->epoch, extended ? 5 : 0);
	CHECK_INT(s->exponent, extended && s->words ? 150 : 0);
	CHECK_INT(s->words != NULL, ina_coll_brings(coll, root, 2));
	if (s->words)
		CHECK(ina_get32(s->words + 8) == psn * 1000 + 2);
}

static void one_collective(bool extended, uint8_t coll, uint8_t root)
{
	struct job j;

	open_worker(extended, 64);
	post_job(&j, coll, root, 40);
	for (uint32_t psn = 0; psn < 40; psn++) {
		struct ina_frame f = answer_to(psn, coll, root);

		poll_all();
		check_packet(&sent[psn].f, psn, extended, coll, root);
		ina_worker_receive(&w, &f);
		CHECK(!ina_coll_gets(coll, root, 2) || j.first_word[psn] == psn + 5000);
	}
	CHECK(j.done && !j.err && j.total == 40);
	CHECK_INT(nsent, 40);
	CHECK_INT(w.count.sent, 40);
	CHECK_INT(w.count.answered, 40);
	CHECK(ina_worker_due(&w) == UINT64_MAX);
}

/* Every packet is as docs/ina.md has it, for each collective, and each answer lands where it
 * belongs. */
static void packets_of_all_collectives(void)
{
	for (int extended = 0; extended < 2; extended++)
		for (uint8_t coll = 1; coll < INA_COLLS; coll++)
			for (uint8_t root = 1; root < 4; root++)
				one_collective(extended, coll, root);
}

/* Never more than half of a worker's slots in flight: the other half still holds answers. */
static void half_a_range(void)
{
	for (uint32_t len = 4; len <= 256; len *= 2) {
		struct job j;

		open_worker(true, len);
		post_job(&j, INA_ALL_REDUCE, 0, 200);
		poll_all();
		CHECK_INT(nsent, len / 4);
		CHECK_INT(ina_worker_window(&config), len / 4);
		if (len > 4)
			deliver_answer(1); /* not the oldest: the window does not move */
		poll_all();
		CHECK_INT(nsent, len / 4);
		deliver_answer(0);
		poll_all();
		CHECK_INT(nsent, len / 4 + (len > 4 ? 2 : 1));
	}
}

/* psn passes 2^32, and slots go on as if nothing were. */
static void psn_wraps(void)
{
	struct ina_worker_ops ops = { on_send, NULL };
	const char *why;
	struct job j;

	open_worker(true, 64);
	config.first_psn = 0u - 50;
	CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, CAPACITY, &why), 0);
	post_job(&j, INA_ALL_REDUCE, 0, 100);
	for (uint32_t n = 0; n < 100; n++) {
		poll_all();
		CHECK(sent[n].f.psn == config.first_psn + n);
		CHECK_INT(sent[n].f.agg_addr, 132 + ((config.first_psn + n) & 31));
		deliver_answer(config.first_psn + n);
	}
	CHECK(j.done && j.total == 100);
}

/* Operations follow each other without a gap and end in their order, whatever the order of the
 * answers. */
static void operations_end_in_order(void)
{
	struct job a, b, c;
	struct ina_op bad = { .ops = &job_ops, .coll = INA_ALL_REDUCE, .packets = 0 };

	open_worker(false, 64);
	post_job(&a, INA_ALL_REDUCE, 0, 3);
	post_job(&b, INA_ALL_REDUCE, 0, 1);
	post_job(&c, INA_ALL_REDUCE, 0, 4);
	poll_all();
	CHECK_INT(nsent, 8);
	for (uint32_t psn = 7; psn > 0; psn--)
		deliver_answer(psn);
	CHECK_INT(ndone, 0);
	deliver_answer(0);
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

/* Another value for a member of a struct. */
struct change {
	size_t at, bytes;
	uint64_t value;
};
#define CHANGE(type, member, other)                                                    \
	{                                                                              \
		offsetof(type, member), sizeof(((type *)0)->member), (uint64_t)(other) \
	}

static void change_member(void *object, const struct change *c)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low bytes come first");
	memcpy((char *)object + c->at, &c->value, c->bytes);
}

/* Four packets on their way; the answer to the second one. */
static struct ina_frame sound_answer(struct job *j, bool extended)
{
	open_worker(extended, 64);
	post_job(j, INA_ALL_REDUCE, 0, 4);
	poll_all();
	return answer_to(1, INA_ALL_REDUCE, 0);
}

static void check_refused(struct job *j, const struct ina_frame *f)
{
	ina_worker_receive(&w, f);
	CHECK_INT(w.count.refused, 1);
	CHECK_INT(w.count.answered, 0);
	CHECK_INT(j->total, 0);
	deliver_answer(1);
	CHECK_INT(w.count.answered, 1);
	CHECK(j->first_word[1] == 5001);
}

static const struct change wrong_frames[] = {
	CHANGE(struct ina_frame, src, SWITCH + 1),
	CHANGE(struct ina_frame, dst, ME + 1),
	CHANGE(struct ina_frame, group, 8),
	CHANGE(struct ina_frame, rank, 1),
	CHANGE(struct ina_frame, worker, 0),
	CHANGE(struct ina_frame, agg_addr, 134),
	CHANGE(struct ina_frame, coll, INA_BROADCAST),
	CHANGE(struct ina_frame, root, 1),
};
static const struct change wrong_extensions[] = {
	CHANGE(struct ina_frame, flags, 0),
	CHANGE(struct ina_frame, epoch, 4),
};

static void changed_is_refused(bool extended, const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct job j;
		struct ina_frame f = sound_answer(&j, extended);

		change_member(&f, &changes[i]);
		check_refused(&j, &f);
	}
}

/* In NetCCL a bad frame counts as an acknowledgement. Here one thing is wrong with each of these,
 * and nothing moves. */
static void bad_frame_is_no_ack(void)
{
	for (int extended = 0; extended < 2; extended++) {
		struct ina_frame f;
		struct job j;

		changed_is_refused(extended, wrong_frames,
				   sizeof(wrong_frames) / sizeof(*wrong_frames));
		if (extended)
			changed_is_refused(true, wrong_extensions,
					   sizeof(wrong_extensions) / sizeof(*wrong_extensions));
		f = sound_answer(&j, extended);
		f.extended = !extended;
		check_refused(&j, &f);
		f = sound_answer(&j, extended);
		f.words = NULL;
		check_refused(&j, &f);
	}
}

/* Redundant answers are counted by where they fall, and change nothing. */
static void redundant_answers_are_counted(void)
{
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 8);
	poll_all();
	deliver_answer(0);
	deliver_answer(2);
	deliver_answer(2);
	CHECK_INT(w.count.in_range_redundant_ack, 1);
	deliver_answer(0);
	deliver_answer(8);
	deliver_answer(0x80000000);
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
	post_job(&j, INA_ALL_REDUCE, 0, 12);
	poll_all();
	for (uint32_t psn = 1; psn <= 3; psn++) {
		deliver_answer(psn);
		CHECK_INT(times_sent(0, true), 1);
	}
	deliver_answer(4);
	CHECK_INT(times_sent(0, true), 2);
	CHECK_INT(w.count.fast_retrans_trigger, 1);
	CHECK_INT(w.count.fast_retrans_pkt, 1);
	CHECK_INT(nsent, 13);
	for (uint32_t psn = 5; psn < 12; psn++)
		deliver_answer(psn);
	CHECK_INT(times_sent(0, true), 2); /* all of these left before the repetition */
	CHECK_INT(w.count.full_retrans_trigger, 0);
	deliver_answer(0);
	CHECK(j.done && !j.err);
}

/* The repetition is lost too, and again: what leaves after it and is answered shows it, without any
 * timer. */
static void lost_retransmission(void)
{
	struct job j[6];

	open_worker(false, 256);
	post_job(&j[0], INA_ALL_REDUCE, 0, 10);
	poll_all();
	for (uint32_t psn = 1; psn < 10; psn++)
		deliver_answer(psn);
	CHECK_INT(times_sent(0, true), 2);
	for (unsigned n = 1; n < 6; n++) {
		post_job(&j[n], INA_ALL_REDUCE, 0, 10);
		poll_all(); /* behind the last repetition */
		for (uint32_t psn = 10 * n; psn < 10 * n + 3; psn++)
			deliver_answer(psn);
		CHECK_INT(times_sent(0, true), 1 + n);
		for (uint32_t psn = 10 * n + 3; psn < 10 * n + 10; psn++)
			deliver_answer(psn);
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
	deliver_answer(0);
	CHECK(ndone == 6 && !j[5].err);
}

/*
 * What is asked for is answered at once, what was sent once when the slowest rank has sent it too:
 * the answer to a question overtakes those. Each was taken for a sign that they were lost, and each
 * of the questions that followed again: hundreds for one lost answer.
 */
static void repetitions_do_not_count(void)
{
	struct job j;

	open_worker(true, 256);
	post_job(&j, INA_ALL_REDUCE, 0, 200);
	poll_all();
	for (uint32_t psn = 0; psn < 40; psn++)
		if (psn != 30)
			deliver_answer(psn);
	poll_all();
	CHECK_INT(w.count.probes, 1);
	deliver_answer(
		30); /* before those of 40 and later, which were sent before it was asked for */
	CHECK_INT(w.count.probes, 1);
	for (uint32_t psn = 40; psn < 200; psn++) {
		deliver_answer(psn);
		poll_all();
	}
	CHECK(j.done && !j.err);
	CHECK_INT(w.count.probes, 1);
	CHECK_INT(w.count.fast_retrans_pkt, 1);
}

/* Extended frames: a question of 52 bytes; words only when the switch has not got them. */
static void ask_first(void)
{
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 12);
	poll_all();
	for (uint32_t psn = 1; psn <= 4; psn++)
		deliver_answer(psn);
	CHECK_INT(times_sent(0, true), 1);
	CHECK_INT(times_sent(0, false), 1);
	CHECK_INT(sent[nsent - 1].f.flags, INA_F_PROBE);
	answer_flag(0, INA_F_HELD);
	CHECK_INT(times_sent(0, true), 1);
	for (uint32_t psn = 5; psn < 12; psn++)
		deliver_answer(psn);
	time_now.now = ina_worker_due(&w);
	poll_all();
	CHECK_INT(times_sent(0, false), 2);
	answer_flag(0, INA_F_NEED);
	CHECK_INT(times_sent(0, true), 2);
	answer_flag(0, INA_F_NEED); /* a duplicate of the answer: the words are on their way */
	CHECK_INT(times_sent(0, true), 2);
	CHECK(w.count.need == 2 && w.count.held == 1 && w.count.again_words == 1);
	deliver_answer(0);
	CHECK(j.done && j.total == 12);
}

/* A time-out sends a burst of the oldest, waits twice as long, and begins anew with an answer. */
static void time_outs(void)
{
	uint64_t last, gap = 0;
	struct job j;

	open_worker(false, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 16);
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
	/* not always as many */
	CHECK(w.count.full_retrans_pkt > 12 * 16 / 2 && w.count.full_retrans_pkt < 12 * 16);
	CHECK_INT(w.count.again_words, w.count.full_retrans_pkt);
	deliver_answer(3);
	CHECK(ina_worker_due(&w) <= time_now.now + config.rto_max_ns);
	CHECK(w.rto < config.rto_max_ns);
	/* With answers to what was repeated, all that was lost follows without further
	 * time-outs. */
	for (uint32_t psn = 0; psn < 16; psn++)
		if (psn != 3)
			deliver_answer(psn);
	CHECK(j.done);
}

/* While others are late (held), time-outs do not make the window smaller: whoever they wait for may
 * be waiting for this rank's next packet. */
static void held_keeps_window(void)
{
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 1);
	poll_all();
	time_now.now = ina_worker_due(&w);
	poll_all();
	answer_flag(0, INA_F_NEED); /* a real loss: from here on the window is small */
	CHECK(w.cwnd.cwnd < INA_CWND_MIN + 1);
	w.cwnd.cwnd = w.cwnd.target = 16;
	for (int i = 0; i < 20; i++) {
		time_now.now = ina_worker_due(&w);
		poll_all();
		answer_flag(0, INA_F_HELD);
		CHECK(w.cwnd.cwnd == 16);
	}
	time_now.now = ina_worker_due(&w);
	poll_all();
	CHECK(w.cwnd.cwnd == 16); /* also before the word comes */
}

/*
 * Answers that were late only: a switch that shares its processor may stand still for many
 * time-outs. Each such time-out took the window down to the least, where little is in flight and
 * the next time-out comes soon: one rank at 8 packets held up all.
 */
static void late_is_not_lost(void)
{
	for (int extended = 0; extended < 2; extended++) {
		struct job j;
		uint32_t psn = 0;

		open_worker(extended, 256);
		CHECK(w.cwnd.cwnd == 64);
		for (int stall = 0; stall < 20; stall++) {
			post_job(&j, INA_ALL_REDUCE, 0, 64);
			poll_all();
			CHECK_INT(ina_worker_in_flight(&w), 64);
			time_now.now = ina_worker_due(&w);
			poll_all(); /* the time-out: a burst of the oldest is sent again */
			CHECK(w.cwnd.cwnd == INA_CWND_MIN);
			for (uint32_t i = 0; i < 64; i++)
				deliver_answer(psn + i);
			CHECK(j.done && w.cwnd.cwnd < 64);
			deliver_answer(psn); /* and the repetition's */
			CHECK(w.cwnd.cwnd == 64);
			for (uint32_t i = 1; i < config.burst; i++)
				deliver_answer(psn + i);
			CHECK(w.cwnd.cwnd == 64);
			psn += 64;
			time_now.now += 100 * US;
		}
		CHECK_INT(w.count.full_retrans_trigger, 20);
		CHECK_INT(w.count.out_range_redundant_ack, 20 * config.burst);
	}
}

/* But a second answer to a packet that no time-out had sent again says nothing about the time-out,
 * and none does after a loss that was one. */
static void second_answers(void)
{
	struct job j, k;

	open_worker(true, 256);
	post_job(&j, INA_ALL_REDUCE, 0, 20);
	poll_all();
	for (uint32_t psn = 0; psn < 20; psn++)
		deliver_answer(psn);
	post_job(&k, INA_ALL_REDUCE, 0, 40);
	poll_all();
	time_now.now = ina_worker_due(&w);
	poll_all();
	deliver_answer(19); /* the network's own duplicate, of before */
	CHECK(w.cwnd.cwnd == INA_CWND_MIN);
	answer_flag(20, INA_F_NEED);
	deliver_answer(21);
	deliver_answer(21);
	CHECK_INT(w.count.in_range_redundant_ack, 1);
	CHECK(w.cwnd.cwnd == INA_CWND_MIN);
}

/* ---- congestion ---- */

/* Marks make the window smaller than the range allows, and it comes back. */
static void marks_make_window_smaller(void)
{
	struct job j;
	uint32_t least = 64;

	open_worker(true, 128);
	post_job(&j, INA_ALL_REDUCE, 0, 250);
	for (uint32_t psn = 0; psn < 250; psn++) {
		struct ina_frame f = answer_to(psn, INA_ALL_REDUCE, 0);

		poll_all();
		least = psn < 200 && ina_worker_in_flight(&w) < least ? ina_worker_in_flight(&w)
								      : least;
		f.ecn = psn < 150 ? INA_CE : INA_ECT1;
		time_now.now += 50 * US;
		ina_worker_receive(&w, &f);
	}
	CHECK(least < 10);
	CHECK_INT(w.count.marked, 150);
	CHECK(w.count.cwnd_dec > 5);
	CHECK(w.count.cwnd_inc > 5);
	CHECK(w.cwnd.cwnd > least + 4);
	CHECK_INT(w.count.again_words + w.count.probes, 0);
}

static void flags_counted(void)
{
	struct ina_frame f;
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	f = answer_to(0, INA_ALL_REDUCE, 0);
	f.flags |= INA_F_OVERFLOW;
	ina_worker_receive(&w, &f);
	f = answer_to(1, INA_ALL_REDUCE, 0);
	f.flags |= INA_F_NONFINITE;
	ina_worker_receive(&w, &f);
	CHECK(w.count.overflow == 1 && w.count.nonfinite == 1);
}

static const struct {
	struct change change;
	uint32_t capacity;
} wrong_configs[] = {
	{ CHANGE(struct ina_worker_config, group, 0), 16 },
	{ CHANGE(struct ina_worker_config, ranks, 33), 16 },
	{ CHANGE(struct ina_worker_config, rank, 4), 16 },
	{ CHANGE(struct ina_worker_config, worker, 2), 16 },
	{ CHANGE(struct ina_worker_config, workers, 0), 16 },
	{ CHANGE(struct ina_worker_config, len, 96), 16 },
	{ CHANGE(struct ina_worker_config, len, 2), 16 },
	{ CHANGE(struct ina_worker_config, len, 64), 8 }, /* sound but for the capacity */
	{ CHANGE(struct ina_worker_config, len, 64), 24 },
	{ CHANGE(struct ina_worker_config, rto_max_ns, 1), 16 },
	{ CHANGE(struct ina_worker_config, peer_ns, 0), 16 },
	{ CHANGE(struct ina_worker_config, burst, 0), 16 },
};

static void wrong_configs_are_refused(void)
{
	struct ina_worker_ops ops = { on_send, NULL };
	const char *why;

	for (size_t i = 0; i < sizeof(wrong_configs) / sizeof(*wrong_configs); i++) {
		open_worker(true, 64);
		change_member(&config, &wrong_configs[i].change);
		CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry,
					  wrong_configs[i].capacity, &why),
			  -EINVAL);
		CHECK(strlen(why) > 20);
	}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "collectives", packets_of_all_collectives },
		{ "half_a_range", half_a_range },
		{ "wrap", psn_wraps },
		{ "operations", operations_end_in_order },
		{ "bad_frame_is_no_ack", bad_frame_is_no_ack },
		{ "redundant", redundant_answers_are_counted },
		{ "fast_retransmission", fast_retransmission },
		{ "lost_retransmission", lost_retransmission },
		{ "repetitions_do_not_count", repetitions_do_not_count },
		{ "ask_first", ask_first },
		{ "time_outs", time_outs },
		{ "held_keeps_window", held_keeps_window },
		{ "late_is_not_lost", late_is_not_lost },
		{ "second_answers", second_answers },
		{ "marks", marks_make_window_smaller },
		{ "flags_counted", flags_counted },
		{ "configured", wrong_configs_are_refused },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
