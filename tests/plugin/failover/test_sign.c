/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work on a rail stands still, and it and the others are asked for a sign: who is given up, and
 * what proves that the path is sound.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/spares.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/idle_cq.h"

#include <stdlib.h>

#define US UINT64_C(1000)
#define RAILS 3

static unsigned writes[RAILS];
static struct ibv_qp qp[RAILS];

static int count_write(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)wr;
	(void)bad;
	writes[to - qp]++;
	return 0;
}

static struct ibv_cq cq[RAILS];
static struct ha_rail *answered; /* its answer is in its completion queue, and not polled yet */

static int poll_answer(struct ibv_cq *from, int n, struct ibv_wc *wc)
{
	if (answered && from == answered->cq) {
		answered->sq_retired++;
		answered = NULL;
	}
	return poll_nothing(from, n, wc);
}

static const struct ha_verbs_hot hot = { .post_send = count_write, .poll_cq = poll_answer };
static struct ha_ctx ctx = { .clock = &ha_clock_live };
static struct ha_device device[RAILS];
static const uint64_t start = 1000000 * US;

/* Rail 0 carries, and has stood still since `start`; a sign is asked for after a millisecond. */
static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();
	struct ha_control *k;

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.is_send = true;
	s->b.nrails = RAILS;
	s->b.balance.ndata = 1;
	s->b.balance.weight[0] = 1024;
	s->b.active = (1 << RAILS) - 1;
	s->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_SIGNS;
	s->b.poll.most = 16;
	s->b.ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(s->b.ring);
	atomic_store(&s->b.attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < RAILS; i++) {
		ha_silence_init(&device[i].silence, 1000 * US);
		device[i].silence.known_at = 1;
		s->b.rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						  .hot = &hot,
						  .qp = &qp[i],
						  .cq = &cq[i],
						  .sq_depth = 64,
						  .state = HA_RAIL_UP,
						  .dev = &device[i] };
		writes[i] = 0;
	}
	k = &s->b.failover->ctl[0];
	k->heartbeat.still_since = start;
	s->b.rail[0].sq_posted = 1;
	return s;
}

static void free_sender(struct ha_send *s)
{
	free(s->b.ring);
	free(s);
}

static bool step_after(struct ha_send *s, uint64_t us)
{
	return ha_sign_step(&s->b, &s->b.rail[0], start + us * US);
}

/* It is asked for a sign, and rail 1 has given one. */
static struct ha_send *make_answered(void)
{
	struct ha_send *s = make_sender();
	struct ha_sign *sign = &s->b.failover->ctl[0].sign;

	CHECK(step_after(s, 999));
	CHECK_INT(sign->stage, HA_SIGN_NONE);
	CHECK(step_after(s, 1000));
	CHECK_INT(sign->asked_at, start + 1000 * US);
	CHECK_INT(s->b.failover->ctl[0].out.due, HA_SEND(RAIL_ASK));
	for (unsigned i = 0; i < RAILS; i++)
		CHECK_INT(writes[i], 1);
	CHECK(step_after(s, 1400));
	CHECK_INT(sign->stage, HA_SIGN_ASKED);
	s->b.rail[1].sq_retired++;
	CHECK(step_after(s, 1500));
	CHECK_INT(sign->stage, HA_SIGN_ANSWERED);
	CHECK_INT(sign->answered_at, start + 1500 * US);
	CHECK_INT(sign->witness, 1);
	return s;
}

/* It has as much time as was asked for, and so has a standby, which must not carry next. */
static void given_up_with_those_that_are_as_silent(void)
{
	struct ha_send *s = make_answered();

	CHECK(step_after(s, 1999));
	CHECK(!step_after(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_SILENCE);
	CHECK_INT(s->b.rail[1].state, HA_RAIL_UP);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.rail[2].loss.cause, HA_CAUSE_SILENCE);
	CHECK_INT(s->b.failover->ctl[0].alarm.source, HA_ALARM_HERE);
	CHECK_INT(s->b.failover->ctl[0].alarm.at, start + 2000 * US);
	free_sender(s);

	s = make_answered();
	s->b.rail[2].sq_retired++; /* this one gave its sign, too */
	CHECK(!step_after(s, 2000));
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);
	free_sender(s);

	s = make_answered();
	answered = &s->b.rail[2]; /* and this one's is there, where nobody has looked yet */
	CHECK(!step_after(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);
	CHECK(!answered);
	free_sender(s);
}

/* What lay in its completion queue when it was asked proves nothing. */
static void an_older_completion_is_no_answer(void)
{
	struct ha_send *s = make_sender();

	s->b.rail[1].sq_posted = 1;
	answered = &s->b.rail[1];
	CHECK(step_after(s, 1000));
	CHECK(!answered);
	CHECK(step_after(s, 1400));
	CHECK_INT(s->b.failover->ctl[0].sign.stage, HA_SIGN_ASKED);
	free_sender(s);
}

/* The peer's words get over this rail: packets get lost on it, and all are asked anew. */
static void the_peer_gets_through(void)
{
	struct ha_send *s = make_answered();
	struct ha_sign *sign = &s->b.failover->ctl[0].sign;

	ha_sign_alive(&s->b, &s->b.rail[0], sign->number + 1); /* of another question */
	CHECK(!sign->alive);
	ha_sign_alive(&s->b, &s->b.rail[0], sign->number);
	CHECK(sign->alive);
	CHECK(step_after(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	CHECK_INT(sign->asked_at, start + 2000 * US);
	CHECK_INT(sign->stage, HA_SIGN_ASKED);
	CHECK(!sign->alive); /* what it said of the last question */
	CHECK_INT(sign->number, 2);
	CHECK(device[0].silence.lossy_until > start + 2000 * US);
	CHECK(sign->waited); /* which the question says */
	free_sender(s);
}

/* The peer's work waits while ours gets through: ours may wait like that, too. */
static void the_peer_waits_on_a_sound_path(void)
{
	struct ha_send *s = make_sender();
	union ha_message ask = { .sign = { .rail.header.type = HA_MSG_RAIL_ASK, .number = 1 } };

	ha_failover_message(&s->b, &ask);
	CHECK_INT(device[0].silence.lossy_until, 0);
	ask.sign.number = 2;
	ask.sign.lossy = 1;
	ha_failover_message(&s->b, &ask);
	CHECK(device[0].silence.lossy_until > 0);
	CHECK_INT(device[1].silence.lossy_until, 0);
	free_sender(s);
}

static void it_moves_or_may_rest(void)
{
	struct ha_send *s = make_answered();

	s->b.rail[0].sq_retired++; /* a sign at the last moment */
	CHECK(step_after(s, 2000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	free_sender(s);

	s = make_answered(); /* a false alarm elsewhere: no question counts for a while */
	device[0].silence.rest_until = start + 9000 * US;
	CHECK(step_after(s, 2000));
	CHECK_INT(s->b.failover->ctl[0].sign.stage, HA_SIGN_NONE);
	free_sender(s);

	s = make_answered(); /* this process stood still itself: all are asked anew */
	CHECK(step_after(s, 3000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	CHECK_INT(s->b.failover->ctl[0].sign.asked_at, start + 3000 * US);
	free_sender(s);
}

/* Both have had their time when one is given up: half as long again after a late answer. */
static void the_witness_was_slow(void)
{
	struct ha_send *s = make_sender();
	struct ha_sign *sign = &s->b.failover->ctl[0].sign;

	CHECK(step_after(s, 1000));
	CHECK(step_after(s, 1800));
	s->b.rail[1].sq_retired++;
	CHECK(step_after(s, 1900));
	CHECK_INT(sign->answered_at, start + 1900 * US);
	CHECK(step_after(s, 2399));
	CHECK(!step_after(s, 2400));
	free_sender(s);

	s = make_sender(); /* too slow to prove anything: the peer is back, and all are asked anew
			    */
	sign = &s->b.failover->ctl[0].sign;
	CHECK(step_after(s, 1000));
	CHECK(step_after(s, 1900));
	s->b.rail[1].sq_retired++;
	CHECK(step_after(s, 2001));
	CHECK_INT(sign->stage, HA_SIGN_ASKED);
	CHECK_INT(sign->asked_at, start + 2001 * US);
	CHECK_INT(sign->number, 2);
	free_sender(s);
}

/* A sender with one spare more, that is down. */
static struct ha_send *sender_with_spare(void)
{
	static struct ha_device two[2];
	static struct ha_topo_device topo;
	struct ha_send *s = make_sender();

	for (unsigned i = 0; i < 2; i++) {
		two[i] = (struct ha_device) { .topo = &topo, .up = true };
		pthread_mutex_init(&two[i].lock, NULL);
	}
	for (unsigned i = 0; i < RAILS; i++)
		device[i].topo = &topo;
	ctx.devices = two;
	ctx.nports = 2;
	s->b.terms.flags |= HA_FLAG_PAIRS;
	s->b.failover->spares.peer_ports = 4;
	s->b.nrails = RAILS + 1;
	s->b.rail[RAILS] = s->b.rail[1];
	s->b.rail[RAILS].index = RAILS;
	s->b.rail[RAILS].state = HA_RAIL_DOWN;
	return s;
}

static void release_with_spare(struct ha_send *s)
{
	ctx.devices = NULL;
	ctx.nports = 0;
	free_sender(s);
}

/* No path gives a sign in its time: further pairs of NICs are connected, and nothing is given up.
 */
static void nobody_answers(void)
{
	struct ha_send *s = sender_with_spare();

	CHECK(step_after(s, 1000));
	CHECK(step_after(s, 1999));
	CHECK(!ha_spares_adding(&s->b, start + 1999 * US));
	CHECK(step_after(s, 2000));
	CHECK(ha_spares_adding(&s->b, start + 2000 * US));
	CHECK(step_after(s, 20000));
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP);
	release_with_spare(s);
}

/* A pair that was connected for it shows that the peer runs: all are asked anew, and have half the
 * time. An old pair that answers late shows that the peer was slow: they have all of it. */
static void a_pair_comes_up(bool made_for_it)
{
	struct ha_send *s = sender_with_spare();
	struct ha_rail *pair = &s->b.rail[RAILS];

	CHECK(step_after(s, 1000));
	CHECK(step_after(s, 2000));
	pair->state = HA_RAIL_UP;
	pair->sq_retired = s->b.failover->ctl[RAILS].sign.retired + 1;
	s->b.failover->ctl[RAILS].join.up_since = start + (made_for_it ? 2400 : 500) * US;
	CHECK(step_after(s, 2500));
	CHECK_INT(s->b.failover->ctl[0].sign.asked_at, start + 2500 * US);
	pair->sq_retired++;
	CHECK(step_after(s, 2600));
	CHECK_INT(s->b.failover->ctl[0].sign.answered_at, start + 2600 * US);
	CHECK(step_after(s, 2999));
	CHECK_INT(step_after(s, 3000), !made_for_it);
	if (!made_for_it) {
		CHECK(step_after(s, 3499));
		CHECK(!step_after(s, 3500));
	}
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_SILENCE);
	CHECK_INT(s->b.rail[1].loss.cause, HA_CAUSE_SILENCE); /* asked with it, and as silent */
	release_with_spare(s);
}

/* Work of another connection on the same path excuses the rail, but not for ever: a switch may send
 * it over another link. */
static void others_on_the_path(void)
{
	static const struct {
		unsigned alive_us, at_us;
		bool watched, same_path, excused;
	} others[] = {
		{ 1000, 2000, true, true, true },     { 999, 2000, true, true, false },
		{ 1000, 2000, false, true, false },   { 1000, 2000, true, false, false },
		{ 202000, 201999, true, true, true }, { 202000, 202000, true, true, false },
	};

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct ha_send *s = make_answered(), *other = make_sender();
		struct ha_sign *sign = &s->b.failover->ctl[0].sign;
		struct ha_heartbeat_watch *heartbeat = &other->b.failover->ctl[0].heartbeat;

		heartbeat->watched = others[i].watched;
		heartbeat->alive_since = start + others[i].alive_us * US;
		other->b.rail[0].setup.peer.qp.lid = !others[i].same_path;
		sign->stage = HA_SIGN_ANSWERED;
		sign->asked_at = start + (others[i].at_us - 1000) * US;
		sign->answered_at = sign->seen_at = start + (others[i].at_us - 600) * US;
		LIST_INSERT_HEAD(&ctx.bundles, &other->b, entry);
		CHECK_INT(step_after(s, others[i].at_us), others[i].excused);
		CHECK(!others[i].excused || sign->asked_at == start + others[i].at_us * US);
		LIST_INIT(&ctx.bundles);
		free_sender(other);
		free_sender(s);
	}
}

/* Another connection has proved the path silent: this one needs no answer, only a sign of its own,
 * for half the time. */
static void doubted_by_another(void)
{
	struct ha_send *s = make_sender();

	s->b.failover->ctl[0].heartbeat.doubted = true;
	CHECK(step_after(s, 600)); /* asked at once */
	CHECK_INT(s->b.failover->ctl[0].sign.asked_at, start + 600 * US);
	CHECK(step_after(s, 1099));
	CHECK(!step_after(s, 1100));
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_SIBLING);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);
	free_sender(s);

	s = make_sender(); /* it has not stood still for its own time yet */
	s->b.failover->ctl[0].heartbeat.doubted = true;
	CHECK(step_after(s, 100));
	CHECK(step_after(s, 999));
	CHECK(!step_after(s, 1000));
	free_sender(s);
}

/* Only of a rail that carries, or is about to, on a connection that goes on, and where another path
 * can show whether the peer answers. */
static void who_is_asked(void)
{
	struct ha_send *s = make_sender();

	for (unsigned i = 0; i < 10; i++) {
		s->b.balance.weight[0] = i == 1 || i == 2 ? 0 : 1024;
		s->b.balance.first = i == 2 ? 0 : 1;
		device[0].silence.base_ns = i == 3 ? 0 : 1000 * US;
		s->b.terms.flags = i == 4 ? HA_FLAG_SIGNS : HA_FLAG_FAILOVER;
		s->b.rail[0].state = i == 5 ? HA_RAIL_FENCING : HA_RAIL_UP;
		s->b.abort->error = -(i == 6);
		s->b.peer_closed = i == 7;
		for (unsigned k = 1; k < RAILS; k++)
			s->b.rail[k].state = i == 8 ? HA_RAIL_JOIN : HA_RAIL_UP;
		for (unsigned k = 1; k < RAILS; k++) /* the same two ports show nothing */
			s->b.rail[k].dev = &device[i == 9 ? 0 : k];
		CHECK_INT(ha_sign_wanted(&s->b, &s->b.rail[0]), i == 0 || i == 2);
	}
	s->b.rail[0].dev = &device[0];
	s->b.rail[1].dev = s->b.rail[2].dev = &device[0];
	s->b.rail[1].setup.peer.qp.gid[15] = 1; /* to another port of the peer's */
	CHECK(ha_sign_wanted(&s->b, &s->b.rail[0]));
	s->b.balance.weight[0] = 0; /* shares that move: it may have one in a moment */
	s->b.balance.moves = true;
	CHECK(ha_sign_wanted(&s->b, &s->b.rail[0]));
	CHECK(!ha_sign_wanted(&s->b, &s->b.rail[2])); /* a spare has none */
	free_sender(s);
}

/* Each look asks the silent rail once more, four times in all; the others once, and only if they
 * have nothing outstanding that shows as much. */
static void more_writes(void)
{
	struct ha_send *s = make_sender();

	s->b.rail[2].sq_posted = 5;
	for (unsigned us = 1000; us <= 1900; us += 100)
		CHECK(step_after(s, us));
	CHECK_INT(writes[0], 4);
	CHECK_INT(writes[1], 1);
	CHECK_INT(writes[2], 0);
	CHECK_INT(s->b.failover->ctl[0].sign.first_at, start + 1000 * US);
	free_sender(s);

	s = make_sender(); /* an old peer is not asked */
	s->b.terms.flags = HA_FLAG_FAILOVER;
	CHECK(step_after(s, 1000));
	CHECK_INT(s->b.failover->ctl[0].out.due, 0);
	CHECK_INT(writes[1], 1);
	free_sender(s);
}

/* It goes on after a standstill: for how long it stood teaches the device. A receiver's
 * clear-to-sends ask for no answer of their own: only what it has asked for counts. */
static void what_a_standstill_teaches(void)
{
	for (unsigned i = 0; i < 5; i++) {
		static const unsigned taught[] = { 700, 0, 0, 400, 700 };
		struct ha_send *s = make_sender();
		struct ha_sign *sign = &s->b.failover->ctl[0].sign;

		s->b.is_send = i == 0 || i == 1 || i == 4;
		sign->still_at = i == 1 ? start : start + 700 * US;
		sign->stage = i >= 3 ? HA_SIGN_ASKED : HA_SIGN_NONE;
		sign->asked_at = sign->first_at = start + 300 * US;
		sign->lent = true;
		ha_sign_given(&s->b, &s->b.rail[0], start, start + 800 * US);
		CHECK_INT(device[0].silence.longest_ns[0], taught[i] * US);
		CHECK_INT(sign->stage, HA_SIGN_NONE);
		CHECK(!sign->lent);
		free_sender(s);
	}
}

/* Up again within a second, on the same device: it was alive. The device remembers, and the
 * operator reads it. */
static void a_false_alarm(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ha_send *s = make_sender();
		struct ha_alarm *alarm = &s->b.failover->ctl[0].alarm;

		lines_catch();
		alarm->source = i == 1 ? HA_ALARM_NONE : HA_ALARM_HERE;
		alarm->at = start;
		alarm->dev = &device[i == 2];
		ha_sign_recovered(&s->b, &s->b.rail[0], start + 1000000 * US - (i != 3));
		CHECK_INT(device[0].silence.floor_ns, (i == 0 ? 2000 : 1000) * US);
		CHECK_INT(device[0].silence.rest_until != 0, i == 0);
		CHECK_INT(
			lines_count(
				"it was silent, but its path was sound: up again after 1000.0 ms"),
			i == 0);
		CHECK_INT(lines_count("after 2 ms of silence"), i == 0);
		CHECK_INT(alarm->source, HA_ALARM_NONE);
		free_sender(s);
	}
}

/* A question follows nothing or another; an answer follows a question alone. */
static void stages_of_a_question(void)
{
	struct ha_send *s = make_sender();
	struct ha_sign *sign = &s->b.failover->ctl[0].sign;

	for (unsigned from = 0; from < 3; from++)
		for (unsigned to = 0; to < 3; to++) {
			lines_catch();
			sign->stage = (uint8_t)from;
			ha_sign_enter(&s->b, &s->b.rail[0], to);
			CHECK_INT(sign->stage, to);
			CHECK_INT(lines_warnings(),
				  to == HA_SIGN_ANSWERED && from != HA_SIGN_ASKED);
		}
	CHECK(lines_contain("sign 'answered' does not lead to 'answered'"));
	free_sender(s);
}

/* Only a rail that is up is given up, and its coming up ends the alarm. */
static void no_alarm_follows_another(void)
{
	struct ha_send *s = make_sender();

	lines_catch();
	ha_sign_peer_alarm(&s->b, &s->b.rail[0], start);
	CHECK_INT(lines_warnings(), 0);
	ha_sign_peer_alarm(&s->b, &s->b.rail[0], start);
	CHECK(lines_contain("given up for its silence twice"));
	free_sender(s);
}

/* The peer has given it up for its silence: it is tried again as soon, and if that was a false
 * alarm none is raised here for a while. */
static void the_peers_alarm(void)
{
	struct ha_send *s = make_sender(), *other = make_sender();
	struct ha_control *k = &s->b.failover->ctl[0];

	LIST_INSERT_HEAD(&ctx.bundles, &other->b, entry);
	other->b.failover->ctl[0].heartbeat.watched = true;
	ha_sign_peer_alarm(&s->b, &s->b.rail[0], start);
	CHECK(k->fence.by_timeout);
	CHECK_INT(k->alarm.source, HA_ALARM_PEER);
	CHECK_INT(k->alarm.at, start);
	CHECK(other->b.failover->ctl[0]
		      .heartbeat.doubted); /* others on the path look at themselves */
	lines_catch();
	ha_sign_recovered(&s->b, &s->b.rail[0], start + 20000 * US);
	CHECK(device[0].silence.rest_until > start);
	CHECK_INT(device[0].silence.floor_ns, 1000 * US);
	CHECK_INT(lines_count("it was silent"), 0);
	k->fence.by_timeout = false;
	s->b.rail[0].state = HA_RAIL_FENCING; /* it knows */
	ha_sign_peer_alarm(&s->b, &s->b.rail[0], start);
	CHECK(!k->fence.by_timeout);
	LIST_INIT(&ctx.bundles);
	free_sender(other);
	free_sender(s);
}

/* The last rail carries and is silent; the first is a witness, or as silent. */
static void whichever_rail_it_is(void)
{
	for (unsigned silent = 0; silent < 2; silent++) {
		struct ha_send *s = make_sender();
		struct ha_rail *r = &s->b.rail[RAILS - 1];
		uint64_t at = start + 1000 * US;

		s->b.balance.weight[0] = 0;
		s->b.balance.weight[RAILS - 1] = 1024;
		s->b.rail[0].sq_posted = 0;
		r->sq_posted = 1;
		s->b.failover->ctl[RAILS - 1].heartbeat.still_since = start;
		for (unsigned i = 0; i < RAILS - 1; i++)
			s->b.rail[i].state = i == 0 || silent ? HA_RAIL_UP : HA_RAIL_DOWN;
		CHECK(ha_sign_wanted(&s->b, r));
		CHECK(ha_sign_step(&s->b, r, at));
		CHECK_INT(writes[0], 1);
		s->b.rail[silent].sq_retired++;
		CHECK(ha_sign_step(&s->b, r, at + 400 * US));
		CHECK_INT(s->b.failover->ctl[RAILS - 1].sign.witness, silent);
		CHECK(!ha_sign_step(&s->b, r, at + 1000 * US));
		CHECK_INT(s->b.rail[0].state, silent ? HA_RAIL_FENCING : HA_RAIL_UP);
		free_sender(s);
	}
}

/* The other connections on each path that is given up look at themselves at once. */
static void everybody_on_the_silent_paths(void)
{
	struct ha_send *s = make_answered(), *other = make_sender();

	for (unsigned i = 0; i < RAILS; i++)
		other->b.failover->ctl[i].heartbeat.watched = true;
	LIST_INSERT_HEAD(&ctx.bundles, &other->b, entry);
	CHECK(!step_after(s, 2000));
	CHECK(other->b.failover->ctl[0].heartbeat.doubted);
	CHECK(!other->b.failover->ctl[1].heartbeat.doubted); /* this one has answered */
	CHECK(other->b.failover->ctl[2].heartbeat.doubted);
	LIST_INIT(&ctx.bundles);
	free_sender(other);
	free_sender(s);
}

int main(void)
{
	an_older_completion_is_no_answer();
	given_up_with_those_that_are_as_silent();
	the_peer_gets_through();
	the_peer_waits_on_a_sound_path();
	it_moves_or_may_rest();
	the_witness_was_slow();
	nobody_answers();
	a_pair_comes_up(true);
	a_pair_comes_up(false);
	others_on_the_path();
	doubted_by_another();
	who_is_asked();
	more_writes();
	what_a_standstill_teaches();
	a_false_alarm();
	stages_of_a_question();
	no_alarm_follows_another();
	the_peers_alarm();
	whichever_rail_it_is();
	everybody_on_the_silent_paths();
	return 0;
}
