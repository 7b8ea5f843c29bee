/* SPDX-License-Identifier: BSD-3-Clause */
/* test_worker_calls.c - what a worker bears of its callbacks: answers inside of send(), aborts
 * inside of any, operations that are gone at once */
#include "tests/ina/host/worker_rig.h"

#include <errno.h>
#include <stdlib.h>

/* An operation that is gone as soon as it is done: its bytes are spoilt, and freed, at once (ASan
 * looks) or when all is over (the test looks). */
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
	m->op = (struct ina_op) {
		.ops = &ops, .arg = m, .coll = INA_ALL_REDUCE, .packets = packets
	};
	CHECK_INT(ina_worker_post(&w, &m->op), 0);
}

/* All are done, and nobody has touched them since. */
static void check_and_free_ended(int n, int err)
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
		deliver_answer(f->psn);
}

/* A switch in the same thread answers before send() returns: to what is sent for the first time,
 * and to what is sent again. */
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
		CHECK(STAILQ_EMPTY(&w.posted) && !w.feeding && !ina_worker_in_flight(&w));
		check_and_free_ended(3, 0);

		open_mortal();
		post_mortal(4);
		post_mortal(1);
		poll_all();
		inside_send = answer_it;
		/* the first was lost and is asked for; its answer, inside of that, says nothing
		 * about the others */
		deliver_answer(4);
		CHECK(w.count.answered == 2 && w.count.probes == 1 &&
		      ina_worker_in_flight(&w) == 4);
		time_now.now = ina_worker_due(&w);
		poll_all();
		CHECK(w.count.answered == 5 && w.count.probes == 4 && !ina_worker_in_flight(&w));
		check_and_free_ended(2, 0);

		open_mortal();
		post_mortal(4);
		poll_all();
		inside_send = answer_it;
		time_now.now = ina_worker_due(&w);
		poll_all(); /* a time-out asks for the first, and so on */
		CHECK(w.count.answered == 4 && w.count.full_retrans_trigger == 1 &&
		      !ina_worker_in_flight(&w));
		check_and_free_ended(1, 0);
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

/* Each callback may end it all; the operations are the caller's again before ina_worker_abort()
 * returns. */
static void abort_inside(void)
{
	for (int n = 0; n < 6; n++) {
		static const unsigned packets[] = { 7, 1, 4 };

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
			deliver_answer(3);
		CHECK_INT(w.error, -EIO);
		CHECK_TEXT(w.why, "the disk is gone");
		CHECK_INT(sent[nsent - 1].f.flags, INA_F_ABORT);
		CHECK_INT(nsent, packets[n / 2]);
		CHECK(w.first.oldest == INA_NO_ENTRY && w.again.oldest == INA_NO_ENTRY &&
		      STAILQ_EMPTY(&w.posted) && !w.feeding && !ina_worker_in_flight(&w));
		check_and_free_ended(2, -EIO);
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

/* The switch sends the end of the group to all, also to the rank that ended it, and that before its
 * send() returns: the rank's own reason stays. */
static void own_abort_received(void)
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
		check_and_free_ended(1, -EIO);
	}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "answered_inside_send", answered_inside_send },
		{ "abort_inside", abort_inside },
		{ "own_abort_received", own_abort_received },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
