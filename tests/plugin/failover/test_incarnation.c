/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a rail comes up again, at either end, step by step in virtual time: when it is tried, what is
 * offered and answered, three pings with their pongs, and what becomes of one that does not come
 * up. What the operator reads of it: test_incarnation_reports.c.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/protection.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/failover/incarnation_rig.h"
#include "tests/plugin/idle_cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- when it is tried ---- */

/* How long a connection without a rail goes on: as many pauses as the operator allows, each twice
 * as long, none over half a minute. */
static void how_long_without_a_path(void)
{
	static const struct {
		int retries;
		unsigned ms;
	} limits[] = {
		{ 0, 0 }, { 1, 100 }, { 3, 700 }, { 9, 51100 }, { 10, 81100 }, { 20, 381100 }
	};

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		rig.ctx.config.max_retries = limits[i].retries;
		CHECK_INT(ha_retry_limit_ns(&rig.ctx), limits[i].ms * MS);
	}
}

static void sender_opens(void)
{
	struct ha_bundle *b = rig_begin(true);

	b->failover->spares.open_ns = UINT64_MAX / 2; /* no matter: this is no spare */
	rig_control(b)->join.retry_at = RIG_START + 5 * MS;
	CHECK_INT(rig_step(b, 4 * MS), 5 * MS);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_NONE);
	rig_control(b)->compare.stage =
		HA_COMPARE_TAKEN; /* the receiver has not acted on our state yet */
	rig_step(b, 5 * MS);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_NONE);
	rig_control(b)->compare.stage = HA_COMPARE_SETTLED;
	rig_control(b)->fence.tidy_at = RIG_START + 1; /* the old queue pair goes first */
	rig_step(b, 5 * MS);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_TIDY);
	rig_control(b)->slow = HA_SLOW_NONE;
	rig_control(b)->fence.tidy_at = 0;
	pthread_mutex_lock(&b->registered.lock); /* the program registers memory: in a moment */
	CHECK_INT(rig_step(b, 5 * MS), 5 * MS + 20 * US);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_NONE);
	pthread_mutex_unlock(&b->registered.lock);
	ha_bundle_board(b)->heartbeat[RAIL].ping = ha_bundle_board(b)->heartbeat[RAIL].pong = 9;
	ha_bundle_board(b)->heartbeat[RAIL].count = 8;
	ha_bundle_board(b)->message[RAIL][1].number = 7;
	rig_step(b, 5 * MS);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_OPEN);
	CHECK_INT(ha_bundle_board(b)->heartbeat[RAIL].ping, 0); /* of the last incarnation */
	CHECK_INT(ha_bundle_board(b)->heartbeat[RAIL].pong, 0);
	CHECK_INT(ha_bundle_board(b)->message[RAIL][1].number, 0);
	CHECK_INT(ha_bundle_board(b)->heartbeat[RAIL].count, 8); /* it only grows */
	rig_end(b);
}

/* A receiver waits for the offer. */
static void receiver_opens(void)
{
	struct ha_bundle *b = rig_begin(false);

	rig_step(b, 0);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_NONE);
	rig_control(b)->join.has_offer = true;
	rig_step(b, 0);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_OPEN);
	rig_end(b);
}

/* Nothing comes back up on a connection that ends, or has none of it. */
static void no_more_of_it(void)
{
	for (unsigned i = 0; i < 5; i++) {
		struct ha_bundle *b = rig_begin(true);

		b->terms.flags = i == 0 ? 0 : HA_FLAG_FAILOVER;
		b->abort->error = i == 1 ? -EIO : 0;
		b->peer_closed = i == 2;
		b->error = i == 3 ? -EIO : 0;
		rig_step(b, 0);
		CHECK_INT(rig_control(b)->slow, i == 4 ? HA_SLOW_OPEN : HA_SLOW_NONE);
		rig_end(b);
	}
}

/* The queue pair could not be made: again after a while, longer each time, not for over half a
 * minute; a receiver waits for the next offer. */
static void not_opened(void)
{
	struct ha_bundle *b = rig_begin(true);

	for (unsigned i = 1; i <= 40; i++) {
		uint64_t pause = i < 9 ? 100 * MS << i : 30000 * MS;

		rig_control(b)->slow = HA_SLOW_DONE;
		rig_control(b)->slow_result = -ENETDOWN;
		CHECK_INT(rig_step(b, 0), pause);
		CHECK_INT(rig_control(b)->join.retry_at, RIG_START + pause);
		CHECK_INT(b->rail[RAIL].epoch, EPOCH);
	}
	b->active = 0; /* every second counts */
	rig_control(b)->slow = HA_SLOW_DONE;
	CHECK_INT(rig_step(b, 0), 1000 * MS);
	rig_end(b);

	b = rig_begin(false);
	rig_control(b)->join.has_offer = true;
	rig_control(b)->slow = HA_SLOW_DONE;
	rig_control(b)->slow_result = -ENETDOWN;
	CHECK_INT(rig_step(b, 0), 100 * MS);
	CHECK(!rig_control(b)->join.has_offer);
	rig_end(b);
}

/* Whatever a rail waits for may be over. One that keeps flapping waits as its flaps require, as
 * long as another is up; an offer without an answer goes out once more. */
static void waits_are_cut_short(void)
{
	struct ha_bundle *b = rig_begin(true);
	struct ha_join *join = &rig_control(b)->join;

	for (unsigned flaps = 2; flaps <= 3; flaps++)
		for (unsigned active = 0; active < 2; active++) {
			b->active = (uint8_t)active;
			join->flaps = flaps;
			join->retry_at = UINT64_MAX;
			ha_incarnation_hurry(b, &b->rail[RAIL]);
			CHECK_INT(join->retry_at == 0, flaps < 3 || !active);
		}
	b->active = 1;
	join->flaps = 0;
	b->rail[RAIL].loss.suspected_at = RIG_START;
	rig.ctx.config.ib_recovery_start_delay = 70; /* as the operator has set it */
	ha_incarnation_hurry(b, &b->rail[RAIL]);
	CHECK_INT(join->retry_at, RIG_START + 70 * MS);
	b->active = 0; /* nothing waits while the connection stands still */
	ha_incarnation_hurry(b, &b->rail[RAIL]);
	CHECK_INT(join->retry_at, 0);
	rig.ctx.config.ib_recovery_start_delay = 0;

	b->rail[RAIL].state = HA_RAIL_JOIN;
	rig_control(b)->out.repeat_at = rig_control(b)->out.repeats = 9;
	ha_incarnation_hurry(b, &b->rail[RAIL]);
	CHECK_INT(rig_control(b)->out.due, HA_SEND(RAIL_OFFER));
	CHECK_INT(rig_control(b)->out.repeat_at, 0);
	CHECK_INT(rig_control(b)->out.repeats, 0);
	rig_control(b)->out.due = 0;
	join->has_offer = true; /* the answer is here */
	ha_incarnation_hurry(b, &b->rail[RAIL]);
	CHECK_INT(rig_control(b)->out.due, 0);
	rig_end(b);
}

/* ---- offer and answer ---- */

static void take_offer(struct ha_bundle *b, uint32_t epoch)
{
	struct ha_wire_rail other = { .guid = 11 };

	ha_incarnation_offered(b, &b->rail[RAIL], &other, epoch);
}

/* Without any path a receiver tries each of its devices for one offer, and then waits for the next,
 * however often it has tried before. */
static void each_device_for_an_offer(void)
{
	static const unsigned before[] = { 0, 25, 30, 31 };

	for (unsigned i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		struct ha_bundle *b = rig_begin(false);
		struct ha_control *k = rig_control(b);
		unsigned tried = 0;

		b->balance.ndata = 1; /* RAIL is a spare */
		b->active = 0;
		b->terms.flags |= HA_FLAG_PAIRS;
		b->rail[0].dev->ports = 4;
		k->join.attempts = before[i];
		for (unsigned offers = 1; offers <= 2; offers++) {
			k->join.retry_at = 0;
			take_offer(b, EPOCH + 1);
			for (tried = 0; k->join.has_offer && tried < 10; tried++) {
				k->slow = HA_SLOW_DONE;
				k->slow_result = -ENETDOWN;
				rig_step(b, 0);
			}
			CHECK_INT(tried, 4);
			CHECK(b->schedule->due > RIG_START);
		}
		rig_end(b);
	}
}

static void offer_is_taken(void)
{
	struct ha_bundle *b = rig_begin(false);
	struct ha_control *k = rig_control(b);

	k->compare.stage = HA_COMPARE_TAKEN;
	take_offer(b, EPOCH + 1);
	CHECK(k->join.has_offer);
	CHECK_INT(k->join.offer.guid, 11);
	CHECK_INT(k->compare.stage,
		  HA_COMPARE_SETTLED); /* who offers the next has our state of the last */
	rig_end(b);

	for (unsigned i = 0; i < 4; i++) { /* not now: it is repeated */
		b = rig_begin(false);
		k = rig_control(b);
		b->rail[RAIL].state = i == 0 ? HA_RAIL_FENCED : HA_RAIL_DOWN;
		k->slow = i == 1 ? HA_SLOW_CLOSE : HA_SLOW_NONE;
		k->join.retry_at = RIG_START + (i == 2);
		k->join.attempts = i >= 2; /* no device was usable a moment ago */
		take_offer(b, EPOCH + 1);
		CHECK_INT(k->join.has_offer, i == 3);
		rig_end(b);
	}
	b = rig_begin(false); /* the first one may come at any time */
	rig_control(b)->join.retry_at = RIG_START + 1;
	take_offer(b, EPOCH + 1);
	CHECK(rig_control(b)->join.has_offer);
	rig_end(b);

	for (unsigned state = HA_RAIL_NONE; state <= HA_RAIL_PROBE;
	     state++) { /* our answer was lost */
		bool again = state == HA_RAIL_JOIN || state == HA_RAIL_UP;

		b = rig_begin(false);
		b->rail[RAIL].state = (uint8_t)state;
		take_offer(b, EPOCH);
		CHECK_INT(rig_control(b)->out.due, again ? HA_SEND(RAIL_ANSWER) : 0);
		CHECK(!rig_control(b)->join.has_offer);
		rig_end(b);
	}
	b = rig_begin(true); /* a sender makes the offers */
	take_offer(b, EPOCH + 1);
	CHECK(!rig_control(b)->join.has_offer);
	rig_end(b);
}

/* Keys that the peer gave for another device mean nothing on this one. */
static bool keys_are_void(const char *name, uint64_t guid, uint32_t keys)
{
	struct ha_bundle *b = rig_begin(true);
	struct ha_wire_rail end_of_rail = { .guid = guid, .keys = keys };
	bool is_void;

	b->rail[RAIL].state = HA_RAIL_JOIN;
	b->rail[RAIL].setup.peer =
		(struct ha_wire_rail) { .guid = 11, .name = "nic0:1", .keys = 3 };
	strcpy(end_of_rail.name, name);
	for (unsigned i = 0; i < 2; i++)
		ha_send_cts((struct ha_send *)b, 7)->rkey[i] = 99;
	ha_incarnation_answered(b, &b->rail[RAIL], &end_of_rail);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_CONNECT);
	CHECK_INT(rig_control(b)->join.offer.guid, guid);
	CHECK_INT(ha_send_cts((struct ha_send *)b, 7)->rkey[0], 99); /* another rail's */
	is_void = !ha_send_cts((struct ha_send *)b, 7)->rkey[RAIL];
	rig_end(b);
	return is_void;
}

static void offer_is_answered(void)
{
	CHECK(!keys_are_void("nic0:1", 11, 3));
	CHECK(keys_are_void("nic1:1", 11, 3));
	CHECK(keys_are_void("nic0:1", 12, 3));
	CHECK(keys_are_void("nic0:1", 11, 4)); /* it has forgotten them meanwhile */
	for (unsigned i = 0; i < 5; i++) {
		struct ha_bundle *b = rig_begin(i != 0); /* a receiver asks nobody */
		struct ha_wire_rail end_of_rail = { .guid = 11 };

		b->rail[RAIL].state = i == 1 ? HA_RAIL_PROBE : HA_RAIL_JOIN;
		rig_control(b)->slow = i == 2 ? HA_SLOW_CONNECTING : HA_SLOW_NONE;
		rig_control(b)->join.has_offer = i == 3; /* repeated */
		ha_incarnation_answered(b, &b->rail[RAIL], &end_of_rail);
		CHECK_INT(rig_control(b)->slow == HA_SLOW_CONNECT, i == 4);
		rig_end(b);
	}
}

/* Opened: a new epoch of which nothing is known yet; the offer goes out, or the answer. */
static void a_new_epoch_begins(void)
{
	for (unsigned is_send = 0; is_send < 2; is_send++) {
		struct ha_bundle *b = rig_begin(is_send);
		struct ha_control *k = rig_control(b);

		memset(&k->compare, 1, sizeof(k->compare));
		memset(&k->out, 1, sizeof(k->out));
		b->link->board[RAIL].out = b->link->board[RAIL].in = k->join.pings = k->join.pongs =
			3;
		k->join.ping_answered = 3;
		b->rail[RAIL].loss.marker = HA_MARKER_BACK;
		k->fence.stage = HA_FENCE_OVER;
		k->fence.peer_knows = true;
		b->rail[RAIL].loss.local = k->fence.peer_port = k->working = true;
		atomic_store(&k->fence.last_receive, true);
		k->windows = (struct ha_window_counts) { .known = 2, .sent = 5 };
		k->slow = HA_SLOW_DONE;
		k->slow_result = 0;
		CHECK_INT(rig_step(b, 0), 0);
		CHECK_INT(b->rail[RAIL].epoch, EPOCH + 1);
		CHECK_INT(b->rail[RAIL].state, HA_RAIL_JOIN);
		CHECK_INT(k->out.due, is_send ? HA_SEND(RAIL_OFFER) : HA_SEND(RAIL_ANSWER));
		CHECK_INT(k->join.deadline, RIG_START + LIMIT_MS * MS);
		CHECK_INT(k->join.since, RIG_START);
		CHECK_INT(k->out.sent + k->out.repeats + b->link->board[RAIL].out +
				  b->link->board[RAIL].in,
			  0);
		CHECK_INT(k->out.repeat_at + k->join.ping_answered, 0);
		CHECK_INT(k->join.pings + k->join.pongs, 0);
		CHECK_INT(k->compare.replayed_requests + k->compare.replayed_bytes, 0);
		CHECK_INT(k->compare.registration_ns, 0);
		CHECK_INT(k->windows.sent, 2); /* what was not acknowledged goes out again */
		CHECK(k->compare.stage == HA_COMPARE_NONE && !k->compare.has_peer_state);
		CHECK_INT(k->fence.stage, HA_FENCE_START);
		CHECK(!k->fence.peer_knows && b->rail[RAIL].loss.marker == HA_MARKER_NONE);
		CHECK(!b->rail[RAIL].loss.local && !k->fence.peer_port && !k->working);
		CHECK(!atomic_load(&k->fence.last_receive));
		rig_end(b);
	}
}

/* ---- proof ---- */

/* The sender is connected, and pings until the third pong is here. */
static void sender_proves_it(void)
{
	struct ha_bundle *b = rig_begin(true);
	uint64_t *pong = &ha_bundle_board(b)->heartbeat[RAIL].pong;

	b->rail[RAIL].state = HA_RAIL_JOIN;
	rig_control(b)->join.since = RIG_START;
	rig_control(b)->join.deadline = RIG_START + LIMIT_MS * MS;
	rig_step(b, 0); /* not connected yet */
	CHECK_INT(rig.writes, 0);
	rig_control(b)->slow = HA_SLOW_DONE;
	rig_control(b)->slow_result = 0;
	rig_control(b)->out.repeat_at = 1;
	CHECK_INT(rig_step(b, 0), 50 * US);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_PROBE);
	CHECK_INT(rig_control(b)->out.repeat_at, 0); /* the offer is answered */
	CHECK_INT(rig.last_value, rig_probe_value(EPOCH, 1));
	*pong = rig_probe_value(EPOCH - 1, 1); /* of another incarnation */
	CHECK_INT(rig_step(b, 5 * MS - 1), 5 * MS - 1 + 50 * US);
	CHECK_INT(rig.writes, 1);
	CHECK_INT(rig_step(b, 5 * MS), 6 * MS); /* it takes its time: looks become rarer */
	for (uint32_t n = 1; n <= 3; n++) {
		CHECK_INT(rig.last_value, rig_probe_value(EPOCH, n));
		CHECK_INT(b->rail[RAIL].state, HA_RAIL_PROBE);
		*pong = rig_probe_value(EPOCH, n);
		rig_step(b, 6 * MS);
	}
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_UP);
	CHECK_INT(rig.writes, 3);
	CHECK_INT(b->active, 3);
	rig_end(b);

	b = rig_begin(true); /* it could not be connected */
	b->rail[RAIL].state = HA_RAIL_JOIN;
	rig_control(b)->slow = HA_SLOW_DONE;
	rig_control(b)->slow_result = -ETIMEDOUT;
	rig_step(b, 0);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_FENCING);
	CHECK_INT(rig.writes, 0);
	rig_end(b);
}

/* The receiver sends each ping back; the third says that two pongs have arrived. */
static void receiver_proves_it(void)
{
	struct ha_bundle *b = rig_begin(false);
	uint64_t *ping = &ha_bundle_board(b)->heartbeat[RAIL].ping;

	b->rail[RAIL].state = HA_RAIL_JOIN;
	rig_control(b)->join.since = RIG_START;
	rig_control(b)->join.deadline = RIG_START + LIMIT_MS * MS;
	CHECK_INT(rig_step(b, 0), 50 * US);
	*ping = rig_probe_value(EPOCH - 1, 1);
	rig_step(b, 0);
	CHECK_INT(rig.writes, 0);
	*ping = rig_probe_value(EPOCH, 1);
	b->rail[RAIL].sq_posted = 64; /* no room: the next time */
	rig_step(b, 0);
	CHECK_INT(rig.writes, 0);
	b->rail[RAIL].sq_retired = 8;
	rig_step(b, 0);
	CHECK_INT(rig.last_value, rig_probe_value(EPOCH, 1));
	rig_step(b, 0);
	CHECK_INT(rig.writes, 1);
	*ping = rig_probe_value(EPOCH, 2);
	rig_step(b, 0);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_JOIN);
	*ping = rig_probe_value(EPOCH, 3);
	rig_step(b, 0);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_UP);
	CHECK_INT(rig.last_value, rig_probe_value(EPOCH, 3));
	CHECK_INT(rig.writes, 3);

	/* Up by what it carries, before the third ping: pings are answered, but not for ever. */
	rig_control(b)->join.ping_answered = 0;
	b->schedule->due = UINT64_MAX;
	ha_incarnation_pings(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(b->schedule->due, RIG_START + 50 * US);
	CHECK_INT(rig.writes, 4);
	rig_control(b)->join.ping_answered = 0;
	b->schedule->due = UINT64_MAX;
	ha_incarnation_pings(b, &b->rail[RAIL], RIG_START + LIMIT_MS * MS);
	CHECK(b->schedule->due == UINT64_MAX);
	rig_end(b);
}

/* Not within its time: it is given up. While a queue pair is being made it is waited for. */
static void too_late(void)
{
	static const enum ha_slow slow[] = { HA_SLOW_NONE, HA_SLOW_CONNECTING, HA_SLOW_CONNECT };

	for (unsigned i = 0; i < 3; i++) {
		struct ha_bundle *b = rig_begin(true);

		b->rail[RAIL].state = HA_RAIL_JOIN;
		rig_control(b)->slow = (uint8_t)slow[i];
		rig_control(b)->join.deadline = RIG_START + 9 * MS;
		CHECK_INT(rig_step(b, 9 * MS - 1), 9 * MS);
		CHECK_INT(b->rail[RAIL].state, HA_RAIL_JOIN);
		rig_step(b, 9 * MS);
		CHECK_INT(b->rail[RAIL].state, i < 2 ? HA_RAIL_FENCING : HA_RAIL_JOIN);
		CHECK(i == 2 || b->rail[RAIL].loss.cause == HA_CAUSE_STANDBY_FAILED);
		rig_end(b);
	}
}

/* ---- up ---- */

/* It counts as new: nothing of what was observed before says anything. */
static void as_new(void)
{
	struct ha_bundle *b = rig_begin(true);
	struct ha_control *k = rig_control(b);

	k->join.attempts = 4;
	k->out.repeat_at = 7;
	k->heartbeat.sent_at = k->heartbeat.alive_since = 7;
	k->sign.stage = HA_SIGN_ASKED;
	k->heartbeat.doubted = k->answer.due = k->sign.lent = true;
	b->rail[RAIL].sq_retired = b->rail[RAIL].sq_posted = 20;
	rig_come_up(b);
	CHECK_INT(k->join.attempts, 0);
	CHECK_INT(k->join.up_since, RIG_START);
	CHECK_INT(k->out.repeat_at, 0);
	CHECK_INT(k->heartbeat.sent_at + k->heartbeat.alive_since, 0);
	CHECK_INT(k->sign.stage, HA_SIGN_NONE);
	CHECK(!k->heartbeat.doubted && !k->answer.due && !k->sign.lent);
	CHECK_INT(k->heartbeat.retired_seen, 20);
	CHECK_INT(k->heartbeat.still_since, RIG_START);
	CHECK_INT(k->heartbeat.at, RIG_START);
	CHECK_INT(k->heartbeat.look_at, RIG_START);
	CHECK_INT(k->heartbeat.looked_at, RIG_START);
	CHECK(k->heartbeat.idle_seen);
	CHECK(k->working);
	rig_end(b);
}

/* A data rail carries its share again. With HA_NCCL_ENABLE_FAILBACK=0 what took over goes on, and
 * the rail stands by; of a fused device all NICs are wanted. */
static void takes_its_share(void)
{
	for (unsigned i = 0; i < 3; i++) {
		struct ha_bundle *b = rig_begin(true);

		rig.ctx.config.enable_failback = i != 1;
		b->nrails = 3;
		b->balance.ndata = 2;
		b->active = 4;
		b->rail[0].state = HA_RAIL_DOWN;
		b->rail[2] = b->rail[0];
		b->rail[2].index = 2;
		b->rail[2].state = HA_RAIL_UP;
		b->balance.weight[0] = 0;
		b->balance.weight[2] = 1024; /* the spare carries */
		b->rail[0].dev = &rig.device[i == 2 ? 0 : 1];
		b->rail[RAIL].dev = &rig.device[1];
		if (i == 2)
			rig.ctx.config.enable_failback = false;
		rig_come_up(b);
		CHECK_INT(b->balance.weight[RAIL], i == 1 ? 0 : 512);
		CHECK_INT(b->balance.weight[2], i == 1 ? 1024 : 0);
		CHECK_INT(lines_contain("failed back"), i != 1);
		CHECK(lines_contain("recovered"));
		rig_end(b);
	}
}

/* ---- over ---- */

/* Closed because others protect as well: as if it had never been up, and nothing waits. */
static void closed_as_superfluous(void)
{
	struct ha_bundle *b = rig_begin(true);
	struct ha_control *k = rig_control(b);

	b->rail[RAIL].loss.cause = HA_CAUSE_SURPLUS;
	k->join.attempts = k->join.flaps = 3;
	k->join.retry_at = UINT64_MAX;
	k->join.has_offer = true;
	b->registered.rails = 3;
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK(!b->rail[RAIL].proven && !k->join.has_offer);
	CHECK_INT(k->join.attempts + k->join.flaps, 0);
	CHECK_INT(k->join.retry_at, 0);
	CHECK_INT(b->registered.rails, 1);
	CHECK_INT(pthread_mutex_trylock(&b->registered.lock), 0);
	b->rail[RAIL].loss.cause = HA_CAUSE_SURPLUS; /* while NCCL registers its keys stay */
	b->registered.rails = 3;
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(b->registered.rails, 3);
	rig_end(b);
}

/* A time-out, or a silence, may have been a false alarm: it is tried again at once, to find out. */
static void false_alarms(void)
{
	static const struct {
		enum ha_event_cause cause;
		bool doubted, quick;
	} causes[] = { { HA_CAUSE_TIMEOUT, false, true },
		       { HA_CAUSE_SILENCE, false, true },
		       { HA_CAUSE_SIBLING, true, true },
		       { HA_CAUSE_SIBLING, false, false },
		       { HA_CAUSE_PORT_DOWN, false, false } };

	for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct ha_bundle *b = rig_begin(true);
		struct ha_control *k = rig_control(b);

		k->working = true;
		b->rail[RAIL].loss.cause = (uint8_t)causes[i].cause;
		k->heartbeat.doubted = causes[i].doubted;
		k->join.up_since = RIG_START - 5000 * MS;
		b->rail[RAIL].loss.suspected_at = RIG_START;
		ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
		CHECK_INT(k->join.retry_at, RIG_START + (causes[i].quick ? 20 : 100) * MS);
		CHECK_INT(k->fence.by_timeout, causes[i].quick);
		CHECK_INT(b->failover->rto.failed, i == 0);
		k->join.flaps = HA_RTO_FALSE_ALARMS; /* it happens again and again */
		ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
		CHECK_INT(k->join.retry_at, RIG_START + 800 * MS);
		rig_end(b);
	}
}

/* ---- spares without any rail ---- */

/* A spare that any pair of devices may carry, at a connection without a rail. */
static struct ha_bundle *standing_still(bool is_send)
{
	struct ha_bundle *b = rig_begin(is_send);

	b->balance.ndata = 1;
	b->active = 0;
	b->rail[0].state = HA_RAIL_FENCED;
	b->terms.flags |= HA_FLAG_PAIRS;
	b->failover->spares.wanted = 1 << RAIL;
	b->failover->spares.peer_ports = 2;
	rig.device[0].ports = 2;
	return b;
}

/* No time is lost: another device at once, an answer within its own time, and the same for the
 * probes. */
static void without_a_path(void)
{
	struct ha_bundle *b = standing_still(true);

	rig_control(b)->slow = HA_SLOW_DONE;
	rig_control(b)->slow_result = -ENETDOWN;
	CHECK_INT(rig_step(b, 0), 10 * MS);
	rig_control(b)->slow = HA_SLOW_DONE;
	rig_control(b)->slow_result = 0;
	rig_step(b, 0);
	CHECK_INT(rig_control(b)->join.deadline, RIG_START + ha_spares_answer_ns(b));
	rig_control(b)->slow = HA_SLOW_DONE;
	rig_step(b, MS);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_PROBE);
	CHECK_INT(rig_control(b)->join.deadline, RIG_START + MS + ha_spares_probe_ns(b));
	CHECK(b->failover->spares.answered);
	rig_end(b);

	b = standing_still(true); /* nor is a pause kept that grows with each try */
	b->rail[RAIL].state = HA_RAIL_DOWN;
	rig_control(b)->join.attempts = 9;
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(rig_control(b)->join.retry_at, RIG_START + ha_spares_pause_ns(b));
	CHECK_INT(b->failover->spares.failed, 1);
	rig_end(b);

	b = standing_still(false); /* a receiver tries each of its devices for one offer */
	for (unsigned i = 1; i <= 2; i++) {
		rig_control(b)->join.has_offer = true;
		rig_control(b)->slow = HA_SLOW_DONE;
		rig_control(b)->slow_result = -ENETDOWN;
		CHECK_INT(rig_step(b, 0), i == 1 ? 0 : 10 * MS);
		CHECK_INT(rig_control(b)->join.has_offer, i == 1);
	}
	rig_end(b);

	b = standing_still(true); /* one at a time is made */
	b->nrails = 3;
	b->rail[2] = b->rail[RAIL];
	b->rail[2].index = 2;
	b->rail[2].state = HA_RAIL_JOIN;
	b->failover->ctl[2].join.since = RIG_START;
	b->failover->spares.open_ns = 10 * MS;
	CHECK_INT(rig_step(b, 0), 40 * MS);
	CHECK_INT(rig_control(b)->slow, HA_SLOW_NONE);
	b->active = 1; /* with a path nothing waits for that */
	b->failover->spares.open_ns = 0;
	rig_end(b);
}

/* ---- slow verbs ---- */

/* What is registered on a device that failed is given back, so that it can be closed; not while a
 * queue pair is there, something slow is under way, or the program registers. */
static void a_lost_device_is_left(void)
{
	for (unsigned i = 0; i < 5; i++) {
		struct ha_bundle *b = rig_begin(true);
		struct ha_nic nic = { 0 };
		struct ha_opening lost = { .nic = &nic, .dev = &rig.device[RAIL], .users = 5 };

		atomic_store(&nic.lost, i != 1);
		rig_control(b)->compare.stage = HA_COMPARE_TAKEN; /* it is not tried yet */
		b->rail[RAIL].opening = &lost;
		b->rail[RAIL].qp = i == 2 ? &rig.qp[RAIL] : NULL;
		rig_control(b)->slow = i == 3 ? HA_SLOW_CLOSE : HA_SLOW_NONE;
		b->registered.rails = 3;
		if (i == 4)
			pthread_mutex_lock(&b->registered.lock);
		rig_step(b, 0);
		CHECK_INT(!b->rail[RAIL].opening, i == 0);
		CHECK_INT(b->registered.rails, i == 0 ? 1 : 3);
		CHECK_INT(b->schedule->due == RIG_START + 20 * US, i == 4);
		rig_end(b);
	}
}

/* While the program registers memory they wait, a moment. */
static void slow_steps_wait(void)
{
	static const enum ha_slow slow[] = { HA_SLOW_TIDY, HA_SLOW_CLOSE };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_bundle *b = rig_begin(true);

		b->rail[RAIL].qp = NULL;
		rig_control(b)->fence.tidy_at = 7;
		b->failover->spares.open_ns = 5;
		rig_control(b)->slow = (uint8_t)slow[i];
		pthread_mutex_lock(&b->registered.lock);
		CHECK(!ha_incarnation_slow(b, &b->rail[RAIL]));
		CHECK_INT(b->schedule->due, RIG_START + 20 * US);
		CHECK_INT(rig_control(b)->slow, slow[i]);
		pthread_mutex_unlock(&b->registered.lock);
		CHECK(ha_incarnation_slow(b, &b->rail[RAIL]));
		CHECK_INT(rig_control(b)->slow, i ? HA_SLOW_DONE : HA_SLOW_NONE);
		CHECK_INT(rig_control(b)->slow_result, 0);
		CHECK_INT(rig_control(b)->fence.tidy_at, 0);
		CHECK_INT(b->failover->spares.open_ns, 5); /* nothing was made */
		rig_end(b);
	}
}

static int refuse_write(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)to;
	(void)wr;
	(void)bad;
	return EIO;
}

/* The device refuses work on a rail that comes up: it is given up at once. */
static void a_rail_refuses_its_ping(void)
{
	static const struct ha_verbs_hot refusing = { .post_send = refuse_write,
						      .poll_cq = poll_nothing };

	for (unsigned is_send = 0; is_send < 2; is_send++) {
		struct ha_bundle *b = rig_begin(is_send);

		b->rail[RAIL].state = HA_RAIL_JOIN;
		b->rail[RAIL].hot = &refusing;
		rig_control(b)->join.deadline = UINT64_MAX;
		rig_control(b)->slow = is_send ? HA_SLOW_DONE : HA_SLOW_NONE;
		ha_bundle_board(b)->heartbeat[RAIL].ping = rig_probe_value(EPOCH, 1);
		rig_step(b, 0);
		CHECK_INT(b->rail[RAIL].state, HA_RAIL_FENCING);
		CHECK_INT(b->rail[RAIL].loss.cause, HA_CAUSE_WORK_REFUSED);
		rig_end(b);
	}
}

/* Its queue pair is connected, if that is over and went well; and the port must be where the peer
 * was notified: an event of a port that moved meanwhile met no incarnation yet. */
static void queue_pair_is_connected(void)
{
	static const struct {
		bool over;
		int err;
		struct ha_address now;
		bool down;
		int result; /* -EAGAIN: not over */
	} cases[] = {
		{ .over = false, .result = -EAGAIN },
		{ .over = true },
		{ .over = true, .err = -ETIMEDOUT, .result = -ETIMEDOUT },
		{ .over = true, .down = true, .result = -ENETDOWN },
		{ .over = true, .now = { .lid = 1 }, .result = -ENETDOWN },
		{ .over = true, .now = { .gid_index = 1 }, .result = -ENETDOWN },
		{ .over = true, .now = { .gid = { .raw = { 1 } } }, .result = -ENETDOWN },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ha_hookup *h = calloc(1, sizeof(*h));
		struct ha_bundle *b = rig_begin(true);
		bool waits = cases[i].result == -EAGAIN;

		CHECK(h);
		h->ctx = &rig.ctx;
		h->failed = "test";
		h->state = cases[i].over ? HA_HOOKUP_OVER : HA_HOOKUP_RUNNING;
		h->err = cases[i].err;
		b->rail[RAIL].state = HA_RAIL_JOIN;
		b->rail[RAIL].hookup = h;
		rig.device[RAIL].address = cases[i].now;
		rig.device[RAIL].up = !cases[i].down;
		rig_control(b)->slow = HA_SLOW_CONNECTING;
		CHECK_INT(ha_incarnation_slow(b, &b->rail[RAIL]), !waits);
		CHECK_INT(rig_control(b)->slow, waits ? HA_SLOW_CONNECTING : HA_SLOW_DONE);
		CHECK(waits || rig_control(b)->slow_result == cases[i].result);
		CHECK_INT(b->rail[RAIL].connected, cases[i].over && !cases[i].err);
		CHECK_INT(b->rail[RAIL].hookup != NULL, waits);
		CHECK_INT(pthread_mutex_trylock(&b->registered.lock), 0); /* it was given back */
		if (waits)
			free(h);
		rig_end(b);
	}
}

int main(void)
{
	how_long_without_a_path();
	sender_opens();
	receiver_opens();
	no_more_of_it();
	not_opened();
	each_device_for_an_offer();
	waits_are_cut_short();
	offer_is_taken();
	offer_is_answered();
	a_new_epoch_begins();
	sender_proves_it();
	receiver_proves_it();
	too_late();
	as_new();
	takes_its_share();
	closed_as_superfluous();
	false_alarms();
	without_a_path();
	a_lost_device_is_left();
	slow_steps_wait();
	a_rail_refuses_its_ping();
	queue_pair_is_connected();
	return 0;
}
