/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sign.c - work on a rail stands still: is it the rail, or the peer?
 *
 * A NIC takes half a second to give up, a failover a millisecond, and it is exactly once: to leave
 * a path that was sound costs little. So when nothing has moved on a rail for a few of its own
 * round trips (device/silence.h), a sign is asked of it and of its standby at the same moment, a
 * heartbeat each. The standby answers and this one does not within that time again: it is suspect.
 * Neither answers: the peer, or its host, is slow, or a leaf switch has taken all of these paths
 * along. This end cannot distinguish the two, so the sender, which has noticed or been asked,
 * connects further pairs of NICs (spares.c) that have nothing to do with what is silent; a peer
 * that is slow answers nothing of that either. One that comes up answers, all are asked anew, and
 * every path is left that gives no sign within half that time: the peer is known to run. When a
 * sign comes late, all are asked anew, too. So are they when this process itself has stood still.
 *
 * A path can be sound and still bring nothing back on one queue pair. A NIC that misses a packet
 * says so once, with the next packet; the loss of that word, or of the packet's repetition, costs
 * the sender its whole time-out (67 ms by default), whatever it sends meanwhile. Of the last packet
 * before a pause nobody notices the loss: hence some words more for the silent rail, each of which
 * makes the peer's NIC answer, or miss what came before. Two things more must be silent, therefore,
 * before a path is given up:
 *
 * - everybody else's work on the path (ha_heartbeat_path_moves): done, or, at a receiver, arrived.
 *   It is what distinguishes a long queue, as in front of a port that many send to, from a hole.
 *   It excuses this rail for some time only, since a switch may send the others over another link.
 * - what the peer writes on this rail. It is asked over the other carriers (RAIL_ASK), writes some
 *   words here, and says when one was acknowledged, which takes packets both ways (answer.c). Each
 *   direction of a queue pair waits for its own time-outs. A peer that does not answer in time
 *   proves nothing: it may be busy, and the path is given up as if it had not been asked.
 *
 * Either makes this end ask anew. What remains: both directions in a time-out at once; a queue that
 * grows so fast that nothing of anybody's is done in twice the limit, in front of which every path
 * looks dead (a pause of the port does, too). The standstills of late (device/silence.h) are for
 * those; and a sign may take longer while a device has not shown any, in its first second, and
 * where packets have got lost of late, which a queue pair that waits on a sound path shows, at
 * either end.
 *
 * It happens in the driver's looks alone (heartbeat.c). A rail that comes up again at once was
 * alive: a false alarm, which the device remembers.
 */
#include "base/clock.h"
#include "base/log.h"
#include "plugin/channel/board.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/spares.h"
#include "plugin/report/journal.h"

/* Others' work on its path excuses a rail for so long: a switch may send it over another link. */
#define OTHERS_NS HA_SILENCE_MOST_NS
/* Writes that ask a silent rail for its sign, one at each look. */
#define WRITES_MAX 4
/* Up again so soon: it had been alive all the time. */
#define ALIVE_NS HA_NS_PER_S

/* By stage: those that may follow. */
static const uint8_t followers[] = {
	[HA_SIGN_NONE] = 1 << HA_SIGN_NONE | 1 << HA_SIGN_ASKED,
	[HA_SIGN_ASKED] = 1 << HA_SIGN_NONE | 1 << HA_SIGN_ASKED | 1 << HA_SIGN_ANSWERED,
	[HA_SIGN_ANSWERED] = 1 << HA_SIGN_NONE | 1 << HA_SIGN_ASKED,
};

static const char *const stage_names[] = {
	[HA_SIGN_NONE] = "none",
	[HA_SIGN_ASKED] = "asked",
	[HA_SIGN_ANSWERED] = "answered",
};

void ha_sign_enter(struct ha_bundle *b, const struct ha_rail *r, enum ha_sign_stage stage)
{
	struct ha_sign *s = &b->failover->ctl[r->index].sign;

	if (!(followers[s->stage] >> stage & 1))
		HA_WARN(b->name,
			"rail %u, epoch %u: sign '%s' does not lead to '%s'; please report this",
			r->index, r->epoch, stage_names[s->stage], stage_names[stage]);
	s->stage = (uint8_t)stage;
}

/* Somebody whose answer says that the peer is there, and not that this path is. */
static bool is_witness(const struct ha_rail *r, const struct ha_rail *w)
{
	return w != r && w->state == HA_RAIL_UP && !ha_heartbeat_same_path(r, w);
}

static bool has_witness(const struct ha_bundle *b, const struct ha_rail *r)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (is_witness(r, &b->rail[i]))
			return true;
	return false;
}

bool ha_sign_wanted(const struct ha_bundle *b, const struct ha_rail *r)
{
	bool carries = b->balance.weight[r->index] || r->index == b->balance.first ||
		       (b->balance.moves && r->index < b->balance.ndata);

	return r->dev->silence.base_ns && b->terms.flags & HA_FLAG_FAILOVER &&
	       r->state == HA_RAIL_UP && carries && !b->abort->error && !b->peer_closed &&
	       (has_witness(b, r) || ha_spares_may_add(b));
}

/* It has moved since the last look, or has failed. */
static bool moves_now(struct ha_bundle *b, struct ha_rail *r)
{
	ha_rail_poll(b, r);
	return r->state != HA_RAIL_UP ||
	       r->sq_retired != b->failover->ctl[r->index].heartbeat.retired_seen;
}

/* One write more than the heartbeats': the NIC of a peer that has missed the last packet notices
 * with the next. */
static void ask_here(struct ha_bundle *b, struct ha_rail *r)
{
	int err = ha_board_write(b, r, &ha_bundle_staged_board(b)->heartbeat[r->index].still,
				 ha_lag_heartbeat(b, r));

	b->failover->ctl[r->index].sign.writes++;
	if (err && err != -EAGAIN)
		ha_rail_failed(b, r, NULL, err);
}

static void ask_peer(struct ha_bundle *b, struct ha_control *k)
{
	k->sign.number++;
	k->sign.alive = false;
	if (b->terms.flags & HA_FLAG_SIGNS)
		k->out.due |= HA_SEND(RAIL_ASK);
}

void ha_sign_alive(struct ha_bundle *b, const struct ha_rail *r, uint32_t number)
{
	struct ha_sign *s = &b->failover->ctl[r->index].sign;

	s->alive |= s->stage != HA_SIGN_NONE && s->number == number;
}

/* What it has in its completion queue was answered before. */
static void ask_witness(struct ha_bundle *b, struct ha_rail *w, uint64_t now)
{
	struct ha_sign *s = &b->failover->ctl[w->index].sign;

	ha_rail_poll(b, w);
	if (w->state != HA_RAIL_UP)
		return;
	s->retired = w->sq_retired;
	s->lent = true;
	if (w->sq_posted == w->sq_retired)
		ha_heartbeat_send(b, w, now);
}

static void ask_again(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_sign *s = &b->failover->ctl[r->index].sign;

	ha_sign_enter(b, r, HA_SIGN_ASKED);
	s->asked_at = s->seen_at = now;
	ask_peer(b, &b->failover->ctl[r->index]);
	for (unsigned i = 0; i < b->nrails; i++)
		if (is_witness(r, &b->rail[i]))
			ask_witness(b, &b->rail[i], now);
	if (s->writes < WRITES_MAX)
		ask_here(b, r);
}

static void ask_anew(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_sign *s = &b->failover->ctl[r->index].sign;

	s->first_at = now;
	s->waited = false;
	s->soon = false;
	s->writes = 0;
	ask_again(b, r, now);
}

/* Who has answered since it was asked; NULL: nobody. */
static const struct ha_rail *find_answered(struct ha_bundle *b, const struct ha_rail *r)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_rail *w = &b->rail[i];

		if (!is_witness(r, w))
			continue;
		ha_rail_poll(b, w);
		if (w->state == HA_RAIL_UP &&
		    w->sq_retired != b->failover->ctl[w->index].sign.retired)
			return w;
	}
	return NULL;
}

static void record_alarm(struct ha_bundle *b, const struct ha_rail *r, enum ha_alarm_source source,
			 uint64_t now)
{
	struct ha_alarm *alarm = &b->failover->ctl[r->index].alarm;

	if (alarm->source != HA_ALARM_NONE)
		HA_WARN(b->name,
			"rail %u, epoch %u: given up for its silence twice; please report this",
			r->index, r->epoch);
	alarm->source = (uint8_t)source;
	alarm->at = now;
	alarm->dev = r->dev;
}

void ha_sign_peer_alarm(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	if (r->state != HA_RAIL_UP)
		return;
	b->failover->ctl[r->index].fence.by_timeout = true;
	record_alarm(b, r, HA_ALARM_PEER, now);
	ha_heartbeat_silence(b, r);
}

/* How long a rail is given for its sign. */
static uint64_t answer_time(const struct ha_sign *s, uint64_t limit)
{
	return s->soon ? limit / 2 : limit;
}

/* Asked together with the one that is given up, `asked`, and as silent. */
static bool is_silent_too(struct ha_bundle *b, struct ha_rail *o, const struct ha_sign *asked,
			  uint64_t now)
{
	const struct ha_sign *s = &b->failover->ctl[o->index].sign;
	uint64_t limit;

	if (o->state != HA_RAIL_UP || !s->lent)
		return false;
	ha_rail_poll(b, o); /* its answer may be there */
	if (o->state != HA_RAIL_UP || s->retired != o->sq_retired)
		return false;
	limit = ha_silence_limit(&o->dev->silence, now);
	return limit != UINT64_MAX && now - asked->asked_at >= answer_time(asked, limit);
}

/* What stood by on a path that is as dead must not carry next. */
static void give_up_others(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	const struct ha_sign *asked = &b->failover->ctl[r->index].sign;

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_rail *o = &b->rail[i];

		if (o == r || !is_silent_too(b, o, asked, now))
			continue;
		record_alarm(b, o, HA_ALARM_HERE, now);
		ha_rail_suspect(b, o, HA_CAUSE_SILENCE,
				"asked together with rail %u (%s), it gave no sign in %.1f ms "
				"either",
				r->index, ha_device_name(r->dev),
				(double)(now - asked->asked_at) / 1e6);
		ha_heartbeat_silence(b, o);
	}
}

static void give_up(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	const struct ha_rail *w = &b->rail[k->sign.witness];

	ha_spares_added(b);
	give_up_others(b, r, now);
	record_alarm(b, r, HA_ALARM_HERE, now);
	ha_rail_suspect(b, r, HA_CAUSE_SILENCE,
			"silent for %.1f ms; rail %u (%s) answered %.1f ms after both were asked, "
			"this one did not in %.1f ms; %u work requests are outstanding",
			(double)(now - k->heartbeat.still_since) / 1e6, w->index,
			ha_device_name(w->dev),
			(double)(k->sign.answered_at - k->sign.asked_at) / 1e6,
			(double)(now - k->sign.asked_at) / 1e6, r->sq_posted - r->sq_retired);
	ha_heartbeat_silence(b, r);
}

/* The peer is alive: it has answered the connection that proved the path silent. */
static void give_up_too(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	ha_rail_suspect(b, r, HA_CAUSE_SIBLING,
			"another connection has proved its path silent, and nothing moves here "
			"for %.1f ms; %u work requests are outstanding",
			(double)(now - b->failover->ctl[r->index].heartbeat.still_since) / 1e6,
			r->sq_posted - r->sq_retired);
}

/* Has another rail answered, and in time? */
static void await_answer(struct ha_bundle *b, struct ha_rail *r, uint64_t limit, uint64_t now)
{
	struct ha_sign *s = &b->failover->ctl[r->index].sign;
	const struct ha_rail *w = find_answered(b, r);
	bool is_new;

	if (!w) {
		if (now - s->asked_at >= limit)
			ha_spares_add(b, now);
		return;
	}
	if (now - s->asked_at > limit) {
		is_new = b->failover->ctl[w->index].join.up_since > s->asked_at;
		ask_anew(b, r,
			 now); /* the peer was slow, and is back; or this path was made since */
		s->soon = is_new;
		return;
	}
	ha_sign_enter(b, r, HA_SIGN_ANSWERED);
	s->witness = w->index;
	s->answered_at = now;
}

/* Its words to us were acknowledged, and only this queue pair waits. The peer, whose words get lost
 * on the same path, learns of it with the next question. */
static void wait_on_sound_path(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	ha_silence_lossy(&r->dev->silence, now);
	b->failover->ctl[r->index].sign.waited = true;
	ask_again(b, r, now);
}

/* It and others were asked for a sign, and it has given none. */
static void judge_rail(struct ha_bundle *b, struct ha_rail *r, uint64_t limit, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	struct ha_sign *s = &k->sign;

	if (k->heartbeat.doubted && now - s->asked_at >= limit / 2 &&
	    now - k->heartbeat.still_since >= limit)
		give_up_too(b, r, now);
	else if (s->stage == HA_SIGN_ASKED)
		await_answer(b, r, limit, now);
	else if (now - s->asked_at < answer_time(s, limit) ||
		 now - s->answered_at < answer_time(s, limit) / 2)
		return;
	else if (s->alive)
		wait_on_sound_path(b, r, now);
	else if (now - k->heartbeat.still_since < 2 * limit + OTHERS_NS &&
		 ha_heartbeat_path_moves(r, b->ctx, s->asked_at))
		ask_again(b, r, now); /* others' work moves on the same path */
	else
		give_up(b, r, now);
}

/* Between two looks; after a longer one this process stood still itself, and nothing counts. */
static uint64_t longest_gap(uint64_t limit, uint64_t wait)
{
	return wait / 4 > limit ? wait / 4 : limit;
}

static void step_rail(struct ha_bundle *b, struct ha_rail *r, uint64_t limit, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	struct ha_sign *s = &k->sign;
	uint64_t seen_at = s->seen_at, wait = ha_silence_wait(&r->dev->silence, limit, now);
	bool asked = s->stage != HA_SIGN_NONE;

	/* Between two looks only the owner asks the queue, who may have other things to do. */
	if (moves_now(b, r))
		return;
	s->still_at = s->seen_at = now;
	if (asked && s->writes < WRITES_MAX)
		ask_here(b, r);
	if (r->state != HA_RAIL_UP)
		return;
	if (asked && now - seen_at <= longest_gap(limit, wait))
		judge_rail(b, r, wait, now);
	else if (asked || k->heartbeat.doubted || now - k->heartbeat.still_since >= limit)
		ask_anew(b, r,
			 now); /* for the first time, or because this process stood still itself */
}

bool ha_sign_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t limit = ha_silence_limit(&r->dev->silence, now);

	if (limit == UINT64_MAX || now == k->heartbeat.still_since)
		ha_sign_enter(b, r, HA_SIGN_NONE);
	else
		step_rail(b, r, limit, now);
	return r->state == HA_RAIL_UP;
}

void ha_sign_given(struct ha_bundle *b, struct ha_rail *r, uint64_t stood_since, uint64_t now)
{
	struct ha_sign *s = &b->failover->ctl[r->index].sign;
	bool asked = s->stage != HA_SIGN_NONE;

	s->lent = false;
	/* A clear-to-send asks for no answer of its own. */
	if (!b->is_send && asked && stood_since < s->first_at)
		stood_since = s->first_at;
	if ((b->is_send || asked) && s->still_at > stood_since)
		ha_silence_ended(&r->dev->silence, s->still_at - stood_since, now);
	ha_sign_enter(b, r, HA_SIGN_NONE);
}

void ha_sign_recovered(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_alarm *alarm = &b->failover->ctl[r->index].alarm;
	enum ha_alarm_source source = alarm->source;

	alarm->source = HA_ALARM_NONE;
	if (source == HA_ALARM_NONE || now - alarm->at >= ALIVE_NS || alarm->dev != r->dev)
		return;
	if (source == HA_ALARM_PEER) {
		ha_silence_rest(&r->dev->silence, now);
		return;
	}
	ha_silence_false_alarm(&r->dev->silence, alarm->at, now);
	ha_journal_eventf(b->ctx,
			  &(struct ha_event) { .kind = HA_EVENT_FALSE_ALARM,
					       .cause = HA_CAUSE_SILENCE,
					       .bundle = b,
					       .rail = r },
			  "it was silent, but its path was sound: up again after %.1f ms; signs "
			  "are asked for "
			  "after %.0f ms of silence at the least from now on, and not in the next "
			  "minute (HA_NCCL_SILENCE_MS)",
			  (double)(now - alarm->at) / 1e6, (double)r->dev->silence.floor_ns / 1e6);
}
