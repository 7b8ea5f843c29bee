/* SPDX-License-Identifier: BSD-3-Clause */
/* test_worker_ends.c - the host's protocol when somebody falls silent, leaves or gives up: one
 * error for each end, no end without a cause */
#include "tests/ina/host/worker_rig.h"

#include <errno.h>

/* Until the worker wants to be called. */
static void advance_until_due(void)
{
	uint64_t due = ina_worker_due(&w);

	time_now.now = due > time_now.now ? due : time_now.now;
	poll_all();
}

static int run_dry(uint64_t limit)
{
	uint64_t end = time_now.now + limit;

	while (!w.error && time_now.now < end)
		advance_until_due();
	return w.error;
}

/* A dead rank hangs all, for ever, in NetCCL. Here: one error, in time, that says who is missing;
 * the others are notified. */
static void dead_rank(void)
{
	uint64_t start;
	struct job a, b;

	open_worker(true, 64);
	post_job(&a, INA_ALL_REDUCE, 0, 20);
	post_job(&b, INA_ALL_REDUCE, 0, 20);
	poll_all();
	deliver_answer(0);
	start = time_now.now;
	while (!w.error) {
		CHECK(time_now.now - start <= config.peer_ns);
		advance_until_due();
		if (!w.error)
			answer_flag(1, INA_F_HELD); /* the switch is well */
	}
	CHECK_INT(w.error, -ETIMEDOUT);
	CHECK(time_now.now - start == config.peer_ns);
	CHECK_TEXT(w.why,
		   "group 7, rank 2: no answer to packet 1 for 10.0 s; switch 10.0.0.254 answers: "
		   "another rank of the group is gone or has stopped");
	CHECK(a.done == 1 && b.done == 2 && a.err == -ETIMEDOUT && b.err == -ETIMEDOUT);
	CHECK_INT(a.total, 1); /* what had its answer is known */
	CHECK_INT(sent[nsent - 1].f.flags, INA_F_ABORT);
	CHECK_INT(ina_worker_post(&w, &b.op), -ETIMEDOUT);
	CHECK(!ina_worker_poll(&w) && ina_worker_is_aborting(&w));
	deliver_answer(1);
	answer_flag(1, INA_F_ABORT);
	CHECK(!ina_worker_is_aborting(&w) && ina_worker_due(&w) == UINT64_MAX);
	CHECK_INT(a.total, 1);
	/* waiting costs little: 52 bytes for each packet in flight ten times a second */
	CHECK(nsent < 2000);
}

#define LOOK_AT                                                                                    \
	"look at the path to it, its counters of dropped frames, another collective or root than " \
	"the other ranks', a rank that was restarted"

static void silent_switch(void)
{
	uint64_t start;
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	start = time_now.now;
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(time_now.now - start == config.switch_ns);
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 0 for 2.0 s; not one packet from "
			  "switch 10.0.0.254: " LOOK_AT);
	/* Old frames cannot tell the two apart. */
	open_worker(false, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	start = time_now.now;
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(time_now.now - start == config.peer_ns);
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 0 for 10.0 s; switch 10.0.0.254 "
			  "says nothing, or waits for a rank that is gone or has "
			  "stopped: " LOOK_AT);
}

static unsigned room; /* of a queue on the way, which is empty again at each time-out */
static bool came[32];

static void into_short_queue(const struct ina_frame *f)
{
	if (room) {
		room--;
		came[f->psn % 32] = true;
	}
}

/* A queue on the way that is shorter than a burst drops the end of each. Which packets that is must
 * change, or they never come. */
static void short_queue(void)
{
	struct job j;
	unsigned n = 0;

	open_worker(false, 128);
	memset(came, 0, sizeof(came));
	inside_send = into_short_queue;
	post_job(&j, INA_ALL_REDUCE, 0, 32);
	for (int i = 0; i < 40 && n < 32; i++) {
		room = 9;
		advance_until_due();
		n = 0;
		for (unsigned k = 0; k < 32; k++)
			n += came[k];
	}
	CHECK_INT(n, 32);
}

/* A thread that stood still, or its machine, received nothing: that is not the switch's silence,
 * nor another rank's. It asks before it says so. */
static void stood_still(void)
{
	uint64_t start;
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	deliver_answer(0);
	nsent = 0;
	time_now.now += 60 * HA_NS_PER_S;
	poll_all();
	CHECK_INT(w.error, 0);
	CHECK(times_sent(1, false) == 1);
	deliver_answer(1);
	CHECK(j.done && !j.err && j.total == 2);
	/* And if nobody answers now, either: the time limit is what it was. */
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	time_now.now += 60 * HA_NS_PER_S;
	start = time_now.now;
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(time_now.now - start == config.switch_ns);
	CHECK(strstr(w.why, "no answer to packet 2 for 2.0 s; not one packet from switch"));
	/* Nothing in flight: nobody has to be called. */
	open_worker(true, 64);
	time_now.now += 60 * HA_NS_PER_S;
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	start = time_now.now;
	CHECK_INT(run_dry(60 * HA_NS_PER_S), -ETIMEDOUT);
	CHECK(time_now.now - start == config.switch_ns);
}

/* Another rank runs another collective: the switch is well, and drops this rank's frames
 * silently. The error must not say that it is silent to all. */
static void dropped_silently(void)
{
	static struct ina_slot slots[256];
	static struct ina_switch sw;
	struct ina_group_config c = { .id = 7,
				      .ranks = 4,
				      .workers = 2,
				      .extended = true,
				      .base = 100,
				      .len = 64,
				      .epoch = 5,
				      .lease_until = UINT64_MAX };
	struct ina_verdict v;
	struct ina_frame f;
	const char *why;
	struct job j;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 1);
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
	CHECK_TEXT(w.why, "group 7, rank 2: no answer to packet 0 for 2.0 s; not one packet from "
			  "switch 10.0.0.254: " LOOK_AT);
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
		config.peer_ns = config.switch_ns = config.rto_max_ns = 99999 * HA_NS_PER_S;
		CHECK_INT(ina_worker_init(&w, &config, &time_now.clock, &ops, entry, CAPACITY,
					  &why),
			  0);
		post_job(&j, INA_ALL_REDUCE, 0, 1);
		poll_all();
		time_now.now += config.peer_ns;
		poll_all();
		CHECK_INT(w.error, -ETIMEDOUT);
		CHECK(strstr(w.why,
			     "group 255, rank 31: no answer to packet 4294967295 for 99999.0 s; "));
		CHECK(strstr(w.why, "255.255.255.255"));
		CHECK(strstr(w.why, LOOK_AT));
	}
}

/* A pause between operations is no silence. */
static void pause_is_no_silence(void)
{
	struct job j;

	open_worker(true, 64);
	for (int i = 0; i < 3; i++) {
		post_job(&j, INA_ALL_REDUCE, 0, 1);
		poll_all();
		deliver_answer((uint32_t)i);
		CHECK(j.done);
		time_now.now += 3600 * HA_NS_PER_S;
		poll_all();
		CHECK(!w.error && ina_worker_due(&w) == UINT64_MAX);
	}
}

/* The switch says that this incarnation is over; words about another one say nothing, and nobody
 * else's do. */
static void ended_by_the_switch(void)
{
	for (uint32_t epoch = 4; epoch <= 6; epoch++) {
		struct ina_frame f;
		struct job j;

		open_worker(true, 64);
		post_job(&j, INA_ALL_REDUCE, 0, 2);
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

/* Each abort is lost but number `aborts`, none if that is 0. How often it was sent until no worker
 * sends it any more. */
static unsigned aborts_until(unsigned aborts)
{
	struct job j;
	unsigned n;

	open_worker(true, 64);
	post_job(&j, INA_ALL_REDUCE, 0, 2);
	poll_all();
	nsent = 0;
	ina_worker_abort(&w, -EIO, "the disk is gone");
	CHECK_INT(j.err, -EIO);
	for (n = 1; ina_worker_is_aborting(&w); n++) {
		CHECK_INT(nsent, n);
		CHECK(sent[n - 1].f.flags == INA_F_ABORT && sent[n - 1].f.psn == 0 &&
		      sent[n - 1].f.epoch == 5);
		CHECK(ina_worker_due(&w) > time_now.now &&
		      ina_worker_due(&w) <= time_now.now + config.rto_max_ns);
		time_now.now = ina_worker_due(&w) - 1;
		CHECK(!ina_worker_poll(&w));
		answer_flag(0, INA_F_HELD); /* under way when it was said, and no answer to it */
		deliver_answer(1);
		if (n == aborts)
			answer_flag(0, INA_F_ABORT);
		time_now.now++;
		poll_all();
	}
	CHECK_INT(w.error, -EIO);
	CHECK_TEXT(w.why, "the disk is gone");
	CHECK_INT(j.total, 0);
	CHECK(ina_worker_due(&w) == UINT64_MAX && !ina_worker_poll(&w));
	CHECK_INT(w.count.aborts, nsent);
	return nsent;
}

/* An abort or the answer to it may get lost: it is said again until the switch has answered, or
 * often enough. */
static void aborts_repeated(void)
{
	uint64_t began = time_now.now;

	CHECK_INT(aborts_until(1), 1);
	CHECK_INT(aborts_until(2), 2);
	CHECK_INT(aborts_until(7), 7);
	CHECK_INT(aborts_until(0), INA_ABORT_REPEATS);
	CHECK(time_now.now - began > HA_NS_PER_S && time_now.now - began < 4 * HA_NS_PER_S);
	open_worker(false, 64); /* old frames have no abort */
	ina_worker_abort(&w, -EIO, "the disk is gone");
	CHECK(!nsent && !ina_worker_is_aborting(&w));
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "dead_rank", dead_rank },
		{ "stood_still", stood_still },
		{ "short_queue", short_queue },
		{ "silent_switch", silent_switch },
		{ "dropped_silently", dropped_silently },
		{ "whole_sentences", whole_sentences },
		{ "idle", pause_is_no_silence },
		{ "ended_by_the_switch", ended_by_the_switch },
		{ "aborts_repeated", aborts_repeated },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
