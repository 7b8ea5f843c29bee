/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * incarnation.c - how a rail comes (back) up: a fresh queue pair, offered and answered, proven by
 * pings over the rail itself
 *
 * The sender offers, as soon as the receiver has acknowledged the end of the incarnation before;
 * the receiver answers; three pings with their pongs make the rail UP at the sender, the third ping
 * does at the receiver. An incarnation that does not get that far is closed like any other. There
 * is no last try: a rail that stays away is asked again, more and more rarely.
 */
#include "base/clock.h"
#include "base/log.h"
#include "include/hawser/status.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "plugin/device/rail.h"
#include "plugin/failover/choice.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MIN_NS (100 * HA_NS_PER_MS)
#define BACKOFF_MAX_NS (30 * HA_NS_PER_S)
/* while the connection stands still every second counts */
#define BACKOFF_NO_PATH_NS (1 * HA_NS_PER_S)
#define NOT_OPENED_NS (10 * HA_NS_PER_MS) /* for a spare then, which may take another device */
#define FLAP_NS (10 * HA_NS_PER_S)        /* an incarnation shorter than this is a flap */
#define FLAPS_MAX 9
#define PROBE_LOOK_NS 50000u /* between two looks for a ping or pong, at first; then */
#define PROBE_SLOW_NS HA_NS_PER_MS
#define PROBE_FIRST_NS (5 * HA_NS_PER_MS)
#define PROBE_FIRST_NO_PATH_NS (50 * HA_NS_PER_MS) /* everything waits for it */

/* From the offer to the third pong. */
static uint64_t join_ns(const struct ha_bundle *b)
{
	return (uint64_t)b->ctx->config.ib_recovery_ack_timeout * HA_NS_PER_MS;
}

/* NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY; nothing waits while the connection stands still. */
static uint64_t earliest_retry(const struct ha_bundle *b, const struct ha_rail *r)
{
	uint64_t delay = (uint64_t)b->ctx->config.ib_recovery_start_delay * HA_NS_PER_MS;

	return b->active && b->is_send && delay ? r->loss.suspected_at + delay : 0;
}

static uint64_t backoff_ns(unsigned n)
{
	uint64_t ns = n < 16 ? BACKOFF_MIN_NS << n : BACKOFF_MAX_NS;

	return ns < BACKOFF_MAX_NS ? ns : BACKOFF_MAX_NS;
}

uint64_t ha_retry_limit_ns(const struct ha_ctx *ctx)
{
	uint64_t ns = 0;

	for (int i = 0; i < ctx->config.max_retries; i++)
		ns += backoff_ns((unsigned)i);
	return ns;
}

/* ---- up ---- */

void ha_incarnation_begun(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (b->is_send)
		ha_send_prepare_rail((struct ha_send *)b, r);
	else
		ha_recv_prepare_rail((struct ha_recv *)b, r);
	ha_rail_enter(r, HA_RAIL_UP);
	b->active |= (uint8_t)(1u << r->index);
	k->working = r->proven = true;
	k->join.up_since = now;
	r->setup.qp_num = r->qp->qp_num;
	ha_spares_up(b, r);
	ha_adaptive_new_incarnation(b, r);
	k->join.attempts = 0;
	k->out.repeat_at = 0;
	k->heartbeat.retired_seen = r->sq_retired;
	k->heartbeat.arrived_seen = r->rq_consumed;
	k->heartbeat.alive_since = 0;
	k->heartbeat.idle_seen = true;
	k->heartbeat.still_since = k->heartbeat.looked_at = now;
	k->heartbeat.sent_at = 0;
	k->heartbeat.doubted = false;
	k->heartbeat.at = k->heartbeat.look_at = k->heartbeat.busy_at = now;
	ha_sign_enter(b, r, HA_SIGN_NONE);
	k->answer.due = false;
	k->sign.lent = false;
	ha_due(b, now);
}

static const char *explain_spare(const struct ha_bundle *b)
{
	if (b->ctx->config.standbys > 1)
		return "a further standby (HA_NCCL_STANDBYS)";
	if (ha_spares_crossed(b))
		return "a further standby, as the data path leads from one leaf switch to another";
	return "it may stand by better than those there are";
}

/* Beside rails that are up, for the first time: one that stands by for them already has been
 * reported, by what it protects against. */
static void report_added(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	bool silent = ha_spares_adding(b, now);
	const char *why = "the peer has asked for it";

	if (b->is_send)
		why = explain_spare(b);
	if (silent)
		why = "no path that was up gave a sign; this one carries when those are given up";
	else if (b->against == HA_AGAINST_NOTHING)
		return;
	ha_journal_event(b->ctx,
			 &(struct ha_event) { .kind = HA_EVENT_ADDED,
					      .cause = silent ? HA_CAUSE_SILENCE : HA_CAUSE_NONE,
					      .bundle = b,
					      .rail = r,
					      .text = why });
}

/* Before it has its role. */
static void report_up(struct ha_bundle *b, struct ha_rail *r, bool first, uint64_t now)
{
	const struct ha_event e = { .kind = HA_EVENT_RECOVERED, .bundle = b, .rail = r };
	bool spare = r->index >= b->balance.ndata;

	if (b->failover->no_path_since && first && spare)
		ha_journal_eventf(b->ctx, &e, "no rail was up for %.3f s",
				  (double)(now - b->failover->no_path_since) / 1e9);
	else if (!first || !spare)
		ha_journal_eventf(b->ctx, &e, "it was down for %.3f s",
				  (double)(now - r->loss.suspected_at) / 1e9);
	else
		report_added(b, r, now);
}

static void enter_up(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	bool first = !r->proven;

	if (k->fence.by_timeout && ha_rto_recovered(&b->failover->rto, now))
		HA_WARN(b->name,
			"the soft time-out was wrong three times in a row; it is %.0f ms from now "
			"on (HA_NCCL_RTO_MS)",
			(double)b->failover->rto.rto_ns / 1e6);
	k->fence.by_timeout = false;
	ha_sign_recovered(b, r, now);
	ha_incarnation_begun(b, r, now);
	if (!first)
		ha_roles_take(b, r);
	report_up(b, r, first, now);
	ha_roles_update(b);
	ha_spares_beside(b, now);
	ha_due(b, now); /* keys, parked work, further pings */
}

/* ---- a new incarnation ---- */

void ha_incarnation_reset(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	r->loss.cause = HA_CAUSE_NONE;
	k->slow = HA_SLOW_NONE;
	r->loss.marker = HA_MARKER_NONE;
	k->fence.stage = HA_FENCE_START;
	k->fence.peer_knows = k->fence.peer_port = k->working = r->loss.local = false;
	ha_compare_enter(b, r, HA_COMPARE_NONE);
	k->compare.has_peer_state = false;
	k->join.has_offer = false;
	atomic_store_explicit(&k->fence.last_receive, false, memory_order_relaxed);
	k->out.due = k->out.sent = 0;
	k->out.repeat_at = 0;
	k->out.repeats = 0;
	k->windows.sent = k->windows.known;
	ha_keys_incarnation(b, r);
	b->link->board[r->index].out = b->link->board[r->index].in = 0;
	k->join.pings = k->join.pongs = 0;
	k->join.ping_answered = 0;
	k->compare.replayed_requests = k->compare.replayed_bytes = k->compare.registration_ns = 0;
}

/* The first try of a standby that has never been up: the log says so once, and the tries go on. */
static void report_standby_failed(struct ha_bundle *b, struct ha_rail *r, const char *why)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (r->proven || r->index != b->balance.ndata || k->join.attempts != 1 ||
	    b->against != HA_AGAINST_NOTHING || ha_spares_hurry(b, r))
		return;
	ha_journal_eventf(b->ctx,
			  &(struct ha_event) { .kind = HA_EVENT_NOT_PROTECTED,
					       .cause = HA_CAUSE_STANDBY_FAILED,
					       .bundle = b,
					       .rail = r },
			  "%s; it is tried again and again", why);
}

/* Closed because others do as well: it is as if it had never been up. Nobody waits for this, so its
 * keys go at once; while NCCL registers they stay, until it is opened on another device. */
static void not_needed(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	r->proven = false;
	k->join.attempts = k->join.flaps = 0;
	k->join.retry_at = 0;
	k->join.has_offer = false;
	if (!ha_bundle_try_mr(b))
		return;
	ha_keys_forget(b, r);
	pthread_mutex_unlock(&b->registered.lock);
}

/* It was up, for how long it may be. */
static void count_flap(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	ha_spares_lost(b, r);
	if (now - k->join.up_since >= FLAP_NS)
		k->join.flaps = 0;
	else if (k->join.flaps < FLAPS_MAX)
		k->join.flaps++;
	if (r->loss.cause == HA_CAUSE_TIMEOUT) {
		k->fence.by_timeout = true;
		ha_rto_failed(&b->failover->rto, r->loss.suspected_at);
	}
}

/* It never came up. */
static void count_attempt(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	ha_spares_failed(b, r, now);
	b->failover->ctl[r->index].join.attempts++;
	report_standby_failed(b, r, "the standby did not come up");
}

/* Until the next attempt. */
static uint64_t find_pause(const struct ha_bundle *b, const struct ha_rail *r)
{
	const struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t pause = backoff_ns(k->join.attempts + (k->join.flaps ? k->join.flaps - 1 : 0));

	if (k->fence.by_timeout && k->working && k->join.flaps <= HA_RTO_FALSE_ALARMS)
		pause = HA_RTO_QUICK_NS / 5; /* was it a false alarm? */
	if (ha_spares_hurry(b, r))
		return ha_spares_pause_ns(b);
	if (b->active)
		return pause;
	if (!k->join.attempts && !k->fence.peer_port)
		return 0;
	return pause < BACKOFF_NO_PATH_NS ? pause : BACKOFF_NO_PATH_NS;
}

void ha_incarnation_over(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t pause;

	if (r->loss.cause == HA_CAUSE_SURPLUS) {
		not_needed(b, r);
		return;
	}
	b->failover->spares.exchange_ns = now - r->loss.suspected_at;
	if (k->working)
		count_flap(b, r, now);
	else
		count_attempt(b, r, now);
	if ((k->heartbeat.doubted && r->loss.cause == HA_CAUSE_SIBLING) ||
	    r->loss.cause == HA_CAUSE_SILENCE)
		/* tried again as early; but only whose own time-out struck learns */
		k->fence.by_timeout = true;
	pause = find_pause(b, r);
	/* the sender alone decides when; a receiver that also waited might never agree */
	k->join.retry_at = b->is_send ? now + pause : 0;
	if (k->join.retry_at < earliest_retry(b, r))
		k->join.retry_at = earliest_retry(b, r);
	k->join.has_offer = false;
	ha_due(b, k->join.retry_at);
}

void ha_incarnation_hurry(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (b->is_send && r->state == HA_RAIL_JOIN && !k->join.has_offer) {
		k->out.due |= HA_SEND(RAIL_OFFER);
		k->out.repeat_at = 0;
		k->out.repeats = 0;
		ha_due_now(b);
		return;
	}
	/* A rail that keeps flapping waits as long as its flaps require. */
	if (k->join.flaps < 3 || !b->active) {
		k->join.retry_at = earliest_retry(b, r);
		ha_due_now(b);
	}
}

#define MR_AGAIN_NS 20000u /* until it is tried again */

/* The program registers memory, and what is slow on a rail waits for it; the driver does not.
 * False. */
static bool wait_for_registration(struct ha_bundle *b)
{
	ha_due(b, ha_clock_now(b->ctx->clock) + MR_AGAIN_NS);
	return false;
}

static void clear_board(struct ha_bundle *b, const struct ha_rail *r)
{
	struct ha_board *board = ha_bundle_board(b);
	/* it only grows, whatever incarnation it came in */
	uint64_t count = board->heartbeat[r->index].count;

	memset(&board->heartbeat[r->index], 0, sizeof(board->heartbeat[0]));
	memset(board->message[r->index], 0, sizeof(board->message[0]));
	board->heartbeat[r->index].count = count;
}

/* The bundle is taken, and registered.lock: choose the device, so that its keys can go with the
 * owner outside. True: one is there. */
static bool prepare_open(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	struct ha_device *dev = ha_choose_device(b, r, now);

	if (!dev)
		return false;
	/* Also when the device has been away, and is opened anew. */
	if (r->dev && (r->dev != dev || r->opening != dev->now))
		ha_keys_forget(b, r);
	ha_rail_bind(r, dev);
	clear_board(b, r);
	k->slow = HA_SLOW_OPEN;
	return true;
}

static int open_rail(struct ha_bundle *b, struct ha_rail *r)
{
	int err;

	ha_device_refresh(r->dev);
	if (!ha_device_usable(r->dev))
		return -ENETDOWN;
	err = ha_rail_open(b, r, r->dev);
	if (err)
		ha_rail_discard(b, r);
	return err;
}

static void close_rail(struct ha_bundle *b, struct ha_rail *r)
{
	ha_rail_discard(b, r);
	b->failover->ctl[r->index].fence.tidy_at = 0;
}

bool ha_incarnation_tidy(struct ha_bundle *b, struct ha_rail *r)
{
	if (!ha_bundle_try_mr(b))
		return false;
	close_rail(b, r);
	pthread_mutex_unlock(&b->registered.lock);
	return true;
}

static void on_connecting(void *arg)
{
	ha_due_now(arg);
}

/* An event of the port that came meanwhile met no incarnation yet. */
static bool port_moved(const struct ha_rail *r)
{
	return !ha_device_usable(r->dev) || ha_rail_has_moved(r);
}

static int finish_connect(struct ha_bundle *b, struct ha_rail *r)
{
	int err = ha_rail_connected(b, r);

	if (!err && port_moved(r))
		err = -ENETDOWN;
	if (!err && atomic_load_explicit(&b->flushable, memory_order_relaxed) && !b->is_send)
		err = ha_rail_prepare_flush(b, r);
	if (err && err != -EAGAIN && !b->is_send)
		ha_rail_discard(b, r); /* a sender's incarnation has begun, and is fenced */
	return err;
}

/* What follows at once; -EAGAIN: it waits. */
static int slow_step(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	int err = 0;

	if (k->slow == HA_SLOW_OPEN) {
		err = open_rail(b, r);
		if (err || b->is_send)
			return err;
		k->slow = HA_SLOW_CONNECT;
	}
	if (k->slow == HA_SLOW_CONNECT) {
		if (k->keys.behind)
			return -EAGAIN;
		k->slow = HA_SLOW_CONNECTING;
		err = ha_rail_connect(b, r, &k->join.offer, on_connecting, b);
	}
	if (k->slow == HA_SLOW_CONNECTING)
		return err ? err : finish_connect(b, r);
	close_rail(b, r);
	return 0;
}

bool ha_incarnation_slow(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t begun;
	bool opens;
	int err;

	if (k->slow == HA_SLOW_TIDY) {
		if (!ha_incarnation_tidy(b, r))
			return wait_for_registration(b);
		k->slow = HA_SLOW_NONE;
		return true;
	}
	/* Memory may be registered, and flush queue pairs made for it, from other threads
	 * meanwhile. */
	if (!ha_bundle_try_mr(b))
		return wait_for_registration(b);
	opens = k->slow == HA_SLOW_OPEN;
	begun = ha_clock_now(b->ctx->clock);
	err = slow_step(b, r);
	if (opens && (!err || err == -EAGAIN))
		b->failover->spares.open_ns = ha_clock_now(b->ctx->clock) - begun;
	pthread_mutex_unlock(&b->registered.lock);
	if (err == -EAGAIN)
		return false;
	k->slow_result = err;
	k->slow = HA_SLOW_DONE;
	return true;
}

static bool slow_done(struct ha_control *k)
{
	if (k->slow != HA_SLOW_DONE)
		return false;
	k->slow = HA_SLOW_NONE;
	return true;
}

static void begin_incarnation(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	r->epoch++;
	ha_incarnation_reset(b, r);
	ha_rail_enter(r, HA_RAIL_JOIN);
	k->join.since = now;
	k->join.deadline =
		now + (b->is_send && ha_spares_hurry(b, r) ? ha_spares_answer_ns(b) : join_ns(b));
	k->out.due = b->is_send ? HA_SEND(RAIL_OFFER) : HA_SEND(RAIL_ANSWER);
	ha_due(b, now);
}

/* It could not even be opened: the epoch has not begun. */
static void not_opened(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t pause;

	if (k->join.attempts < 30)
		k->join.attempts++;
	report_standby_failed(b, r, "no device for the standby is up");
	pause = b->is_send ? backoff_ns(k->join.attempts + k->join.flaps) : BACKOFF_MIN_NS;
	if (ha_spares_hurry(b, r))
		pause = NOT_OPENED_NS;
	else if (!b->active && pause > BACKOFF_NO_PATH_NS)
		pause = BACKOFF_NO_PATH_NS;
	/* A receiver goes through all of its devices for one offer, and then waits for the next. */
	k->join.tried++;
	if (!b->is_send && ha_spares_hurry(b, r) && k->join.tried < b->rail[0].dev->ports)
		pause = 0;
	else
		k->join.has_offer = false;
	k->join.retry_at = now + pause;
	ha_due(b, k->join.retry_at);
}

/* What is registered on a device that has failed is given back, so that it can be closed; the peer
 * learns of it with the next incarnation. Nobody waits for this. */
static void leave_lost_device(struct ha_bundle *b, struct ha_rail *r)
{
	if (!r->opening || !ha_opening_lost(r->opening) || r->qp || r->cq ||
	    b->failover->ctl[r->index].slow != HA_SLOW_NONE)
		return;
	if (!ha_bundle_try_mr(b)) {
		wait_for_registration(b);
		return;
	}
	ha_keys_forget(b, r);
	ha_rail_unbind(r);
	pthread_mutex_unlock(&b->registered.lock);
}

static bool may_come_back(const struct ha_bundle *b)
{
	return b->terms.flags & HA_FLAG_FAILOVER && !b->abort->error && !b->peer_closed &&
	       !b->error;
}

/* A sender's spare is not made while another one may still come up first: making it may take long,
 * and is done by the thread that the other's answer waits for. */
static bool is_next(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	uint64_t at = b->is_send && ha_spares_hurry(b, r) ? ha_spares_turn_at(b, r) : 0;

	if (now < at && at != UINT64_MAX)
		ha_due(b, at);
	return now >= at;
}

/* False: not now, for which it has been said when. */
static bool begin_open(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	bool prepared;

	if (!is_next(b, r, now))
		return false;
	if (!ha_bundle_try_mr(b)) {
		wait_for_registration(b);
		return false;
	}
	prepared = prepare_open(b, r, now);
	pthread_mutex_unlock(&b->registered.lock);
	if (!prepared)
		not_opened(b, r, now);
	return prepared;
}

static void down_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	bool wanted;

	leave_lost_device(b, r);
	if (!may_come_back(b))
		return;
	ha_keys_follow(b, r, now);
	if (slow_done(k)) {
		if (k->slow_result)
			not_opened(b, r, now);
		else
			begin_incarnation(b, r, now);
		return;
	}
	if (b->is_send && !ha_spares_wanted(b, r))
		return;
	wanted = b->is_send ? k->compare.stage == HA_COMPARE_SETTLED && now >= k->join.retry_at
			    : k->join.has_offer;
	if (wanted && k->fence.tidy_at) {
		k->slow = HA_SLOW_TIDY; /* before the device is chosen, which may be another */
		return;
	}
	if (wanted && k->slow == HA_SLOW_NONE && !begin_open(b, r, now))
		return;
	if (b->is_send && k->compare.stage == HA_COMPARE_SETTLED)
		ha_due(b, k->join.retry_at);
}

void ha_incarnation_offered(struct ha_bundle *b, struct ha_rail *r, const struct ha_wire_rail *end,
			    uint32_t epoch)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (b->is_send)
		return;
	if (epoch == r->epoch) {
		if (r->state == HA_RAIL_JOIN || r->state == HA_RAIL_UP)
			k->out.due |= HA_SEND(RAIL_ANSWER);
		return;
	}
	if (r->state != HA_RAIL_DOWN || k->slow != HA_SLOW_NONE)
		return;          /* it is repeated */
	ha_compare_settle(b, r); /* who offers the next incarnation has our state of the last */
	if (ha_clock_now(b->ctx->clock) < k->join.retry_at && k->join.attempts)
		return; /* the port is not usable here; look again later */
	k->join.tried = 0;
	k->join.offer = *end;
	k->join.has_offer = true;
}

void ha_incarnation_answered(struct ha_bundle *b, struct ha_rail *r, const struct ha_wire_rail *end)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (!b->is_send || r->state != HA_RAIL_JOIN || k->slow != HA_SLOW_NONE || k->join.has_offer)
		return;
	/* It may have been elsewhere meanwhile, and we have received nothing of it. */
	if (end->guid != r->setup.peer.guid || strcmp(end->name, r->setup.peer.name) != 0 ||
	    end->keys != r->setup.peer.keys)
		ha_keys_void(b, r);
	k->join.offer = *end;
	k->join.has_offer = true;
	k->slow = HA_SLOW_CONNECT;
}

/* ---- proof ---- */

static uint64_t probe_value(const struct ha_rail *r, uint32_t number)
{
	return (uint64_t)r->epoch << 32 | number;
}

static void look_again(struct ha_bundle *b, const struct ha_control *k, uint64_t now)
{
	uint64_t first = b->active ? PROBE_FIRST_NS : PROBE_FIRST_NO_PATH_NS;
	bool early = now < k->join.since + first;

	ha_due(b, now + (early ? PROBE_LOOK_NS : PROBE_SLOW_NS));
}

static void send_ping(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	int err = ha_board_write(b, r, &ha_bundle_staged_board(b)->heartbeat[r->index].ping,
				 probe_value(r, ++k->join.pings));

	if (err)
		ha_rail_failed(b, r, NULL, err);
}

static void probe_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	const uint64_t *pong = &ha_bundle_board(b)->heartbeat[r->index].pong;

	/* Acquire: the peer's NIC writes it; nothing else depends on it. */
	if (__atomic_load_n(pong, __ATOMIC_ACQUIRE) == probe_value(r, k->join.pings)) {
		if (++k->join.pongs == HA_PONGS) {
			enter_up(b, r, now);
			return;
		}
		send_ping(b, r);
	}
	look_again(b, k, now);
}

void ha_incarnation_pings(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t word =
		__atomic_load_n(&ha_bundle_board(b)->heartbeat[r->index].ping, __ATOMIC_ACQUIRE);
	int err;

	/* Until the sender has its three. */
	if ((uint32_t)k->join.ping_answered < HA_PONGS && now < k->join.deadline)
		look_again(b, k, now);
	if (word == k->join.ping_answered || word >> 32 != r->epoch)
		return;
	err = ha_board_write(b, r, &ha_bundle_staged_board(b)->heartbeat[r->index].pong, word);
	if (err == -EAGAIN)
		return; /* no room; it stands there still */
	k->join.ping_answered = word;
	if (err)
		ha_rail_failed(b, r, NULL, err);
}

static void join_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (b->is_send) {
		if (!slow_done(k))
			return;
		if (k->slow_result) {
			ha_rail_suspect(b, r, HA_CAUSE_STANDBY_FAILED,
					"the queue pair could not be connected");
			return;
		}
		ha_rail_enter(r, HA_RAIL_PROBE);
		if (ha_spares_hurry(b, r)) {
			k->join.deadline = now + ha_spares_probe_ns(b);
			ha_spares_answered(b, now);
		}
		k->out.repeat_at = 0;
		send_ping(b, r);
		look_again(b, k, now);
		return;
	}
	ha_incarnation_pings(b, r, now);
	/* Each ping but the first says that the pong before it has arrived. */
	if ((uint32_t)k->join.ping_answered >= HA_PONGS && r->state == HA_RAIL_JOIN)
		enter_up(b, r, now);
	else
		look_again(b, k, now);
}

void ha_incarnation_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (r->state == HA_RAIL_DOWN) {
		down_step(b, r, now);
		return;
	}
	if (r->state == HA_RAIL_JOIN)
		join_step(b, r, now);
	else
		probe_step(b, r, now);
	if (r->state != HA_RAIL_JOIN && r->state != HA_RAIL_PROBE)
		return;
	if (now >= k->join.deadline && (k->slow == HA_SLOW_NONE || k->slow == HA_SLOW_CONNECTING))
		ha_rail_suspect(b, r, HA_CAUSE_STANDBY_FAILED, "it did not come up within %.3f s",
				(double)(now - k->join.since) / 1e9);
	else
		ha_due(b, k->join.deadline);
}
