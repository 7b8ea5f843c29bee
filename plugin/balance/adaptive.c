/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/adaptive.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/balance/policy.h"
#include "plugin/balance/share.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"

#include <inttypes.h>
#include <string.h>

#define LEAST 64         /* a part of less than 1/64 is not worth a work request */
#define PROBE_PART 16    /* a probe is 1/16 of a message */
#define PROBE_MAX 65536u /* bytes of a probe, at most */
#define PROBE_MIN 4096u
#define PROBE_FIRST_NS (20 * HA_NS_PER_MS)
#define PROBE_LAST_NS HA_NS_PER_S
#define TRIAL_FIRST_NS (8 * HA_NS_PER_MS)
#define TRIAL_RARER 32 /* so many times the pause after a trial that changed nothing */
#define TRIAL_LAST_NS (10 * HA_NS_PER_S)
#define SETTLE_NS HA_NS_PER_MS
#define MEASURE_NS (4 * HA_NS_PER_MS)
#define MEASURE_PARTS 8
#define LONG_TRIAL_NS (10 * HA_NS_PER_MS) /* a trial that takes longer, on slow rails, is long */
#define TRIAL_SHARE 8     /* durations of a long trial that changed nothing: the pause after it */
#define COMPARED_PARTS 16 /* what trials compare forgets none of the last so many */
#define STALL 2 /* nothing is complete in so many times what all that is out should take */
#define GAIN 32 /* more than 1/32 is a difference */

static uint64_t now_of(const struct ha_bundle *b)
{
	return ha_clock_now(b->ctx->clock);
}

void ha_adaptive_join(struct ha_bundle *b)
{
	struct ha_adaptive *a = &b->balance.adaptive;

	if (!b->is_send || b->ctx->config.policy != HA_POLICY_ADAPTIVE || !b->balance.moves)
		return;
	for (unsigned i = 0; i < b->balance.ndata; i++) {
		int mbps = b->rail[i].dev->topo->speed_mbps;

		/* What the port says, until an eighth of a millisecond has been measured. */
		a->pace[i].ns = HA_NS_PER_MS / 8;
		a->pace[i].bytes = (uint64_t)(mbps > 0 ? mbps : 1000) * 125 / 8;
		a->probe[i].pause = PROBE_FIRST_NS;
	}
	a->all.parts_least = COMPARED_PARTS;
	a->trial.pause = TRIAL_FIRST_NS;
	a->trial.at = now_of(b) + TRIAL_FIRST_NS;
	a->active = b->active;
	a->on = true;
}

/* The devices with a data rail that is up. */
static unsigned devices_up(const struct ha_bundle *b)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		if (b->active >> i & 1)
			mask |= 1u << b->balance.lead[i];
	return mask;
}

static unsigned find_fastest(const uint64_t *rate, unsigned mask)
{
	unsigned best = (unsigned)__builtin_ctz(mask);

	for (; mask; mask &= mask - 1)
		if (rate[__builtin_ctz(mask)] > rate[best])
			best = (unsigned)__builtin_ctz(mask);
	return best;
}

/* ---- trials ---- */

/* Of the devices that are used, those whose absence has not been tried; 0: all have. */
static unsigned find_untried(const struct ha_adaptive *a, unsigned used)
{
	unsigned mask = 0;

	for (unsigned left = used & (used - 1) ? used : 0; left; left &= left - 1)
		if (!a->without[__builtin_ctz(left)])
			mask |= left & -left;
	return mask;
}

/* Each device soon after a change, then more and more rarely. */
static void next_trial(struct ha_bundle *b, uint64_t now, bool changed)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	uint64_t took = a->trial.stage == HA_TRIAL_NONE ? 0 : now - a->trial.begun, rest;

	a->trial.stage = HA_TRIAL_NONE;
	a->seen = (struct ha_seen) { 0 };
	if (changed) {
		memset(a->without, 0, sizeof(a->without));
		a->trial.pause = TRIAL_FIRST_NS;
	}
	if (find_untried(a, devices_up(b) & ~(unsigned)a->left_out))
		a->trial.pause = TRIAL_FIRST_NS;
	else
		a->trial.pause = a->trial.pause < TRIAL_LAST_NS / TRIAL_RARER
					 ? a->trial.pause * TRIAL_RARER
					 : TRIAL_LAST_NS;
	rest = !changed && took > LONG_TRIAL_NS ? TRIAL_SHARE * took : 0;
	a->trial.at = now + (a->trial.pause > rest ? a->trial.pause : rest);
}

/* More than may come back in so many bursts. */
static bool has_seen_enough(const struct ha_seen *seen, const struct ha_pace *p, unsigned bursts)
{
	return seen->parts >= MEASURE_PARTS && seen->bytes >= bursts * ha_pace_flight(p);
}

/* Other devices are up, or what was kept is slower now: what was left out may be of use again. */
static void reconsider_left_out(struct ha_bundle *b, uint64_t now)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	bool known = a->trial.stage == HA_TRIAL_NONE && has_seen_enough(&a->seen, &a->all, 1);
	bool worse = a->left_out && known && ha_pace_rate(&a->all, now) < a->kept / 4 * 3;

	if (a->active == b->active && !worse)
		return;
	a->active = b->active;
	a->left_out = 0;
	next_trial(b, now, true);
}

/* Who is missed most, once all have been: that trial is not made again. */
static unsigned missed_most(const struct ha_adaptive *a, unsigned used)
{
	unsigned worst = (unsigned)__builtin_ctz(used);

	for (; used; used &= used - 1)
		if (a->without[__builtin_ctz(used)] < a->without[worst])
			worst = (unsigned)__builtin_ctz(used);
	return 1u << worst;
}

/* Who does so much more than the others together that there is nothing to learn from leaving it
 * out; 0: nobody. */
static unsigned find_dominant(const uint64_t *rate, unsigned used)
{
	unsigned mask = 0;
	uint64_t sum = 0;

	for (unsigned left = used; left; left &= left - 1)
		sum += rate[__builtin_ctz(left)];
	for (unsigned left = used; left; left &= left - 1)
		if (rate[__builtin_ctz(left)] > sum / 4 * 3)
			mask |= left & -left;
	return mask;
}

/* The next device in turn, the last first. */
static void begin_trial(struct ha_bundle *b, const uint64_t *rate, unsigned up, uint64_t now)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	unsigned used = up & ~(unsigned)a->left_out, others = used ? find_untried(a, used) : 0,
		 earlier;

	if (!others && used)
		others = up & ~missed_most(a, used);
	others &= ~find_dominant(rate, used);
	if (!others) {
		next_trial(b, now, false);
		return;
	}
	earlier = others & ((1u << a->trial.device) - 1);
	a->trial.device = (uint8_t)(31 - __builtin_clz(earlier ? earlier : others));
	a->trial.before = ha_pace_rate(&a->all, now);
	a->trial.stage = HA_TRIAL_SETTLE;
	a->trial.at = now + SETTLE_NS;
	a->trial.begun = now;
}

static void judge_trial(struct ha_bundle *b, uint64_t now)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	uint64_t rate = ha_pace_rate(&a->trial.pace, now);
	unsigned bit = 1u << a->trial.device;
	bool better = rate > a->trial.before + a->trial.before / GAIN;

	if (better) {
		a->left_out ^= (uint8_t)bit;
		a->kept = rate;
		a->all.bytes = a->trial.pace.bytes; /* this is how it goes from here on */
		a->all.ns = a->trial.pace.ns;
		a->all.parts = a->trial.pace.parts;
		HA_INFO(b->name, "%s %s: %" PRIu64 " MB/s with it, %" PRIu64 " without",
			ha_device_name(b->rail[a->trial.device].dev),
			a->left_out & bit ? "slows the others and is left out"
					  : "adds to the others and is taken in",
			(a->left_out & bit ? a->trial.before : rate) / 1049,
			(a->left_out & bit ? rate : a->trial.before) / 1049);
	}
	a->without[a->trial.device] = rate;
	next_trial(b, now, better);
}

/* So much slower that more of it will not make it better. */
static bool is_much_slower(const struct ha_adaptive *a, uint64_t now)
{
	return ha_pace_rate(&a->trial.pace, now) < a->trial.before - a->trial.before / 2;
}

/* The devices that this message goes over. */
static unsigned choose_devices(struct ha_bundle *b, const uint64_t *rate, unsigned up, uint64_t now)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	unsigned mask, bit;

	reconsider_left_out(b, now);
	if (a->trial.stage == HA_TRIAL_NONE && now >= a->trial.at &&
	    has_seen_enough(&a->seen, &a->all, 1))
		begin_trial(b, rate, up, now);
	bit = 1u << a->trial.device;
	if (a->trial.stage == HA_TRIAL_SETTLE && now >= a->trial.at &&
	    (a->left_out & bit || !a->pace[a->trial.device].out)) {
		a->trial.stage = HA_TRIAL_MEASURE;
		a->trial.at = now + MEASURE_NS;
		a->trial.seen = (struct ha_seen) { 0 };
		a->trial.pace = (struct ha_pace) { .since = now,
						   .out = a->all.out,
						   .parts_least = COMPARED_PARTS };
	} else if (a->trial.stage == HA_TRIAL_MEASURE && now >= a->trial.at &&
		   has_seen_enough(&a->trial.seen, &a->trial.pace,
				   is_much_slower(a, now) ? 0 : 2)) {
		judge_trial(b, now);
	}
	mask = up & ~(unsigned)a->left_out;
	if (a->trial.stage != HA_TRIAL_NONE)
		mask ^= up & bit;
	return mask ? mask : up;
}

/* ---- a message ---- */

/* Devices whose part is too small rest; now and then one of them gets a probe. */
static void rest_and_probe(struct ha_adaptive *a, const uint64_t *rate, unsigned mask,
			   uint64_t size, uint64_t now, uint64_t *part)
{
	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);
		uint64_t probe = size / PROBE_PART < PROBE_MAX ? size / PROBE_PART : PROBE_MAX;

		/* no more than it did in a millisecond: the message waits for it */
		if (probe > rate[i])
			probe = rate[i] > PROBE_MIN ? rate[i] : PROBE_MIN;

		if (part[i] >= size / LEAST && part[i]) {
			a->probe[i].pause = PROBE_FIRST_NS;
			a->probe[i].at = now + PROBE_FIRST_NS;
			continue;
		}
		part[i] = 0;
		if (a->pace[i].out || now < a->probe[i].at)
			continue;
		part[i] = probe > size / 1024 ? probe : size / 1024 + 1;
		ha_pace_forget(&a->pace[i]); /* what it did long ago says nothing */
		a->probe[i].at = now + a->probe[i].pause;
		if (a->probe[i].pause < PROBE_LAST_NS)
			a->probe[i].pause *= 2;
	}
}

static void take_parts(struct ha_bundle *b, const uint64_t *part, unsigned best)
{
	uint16_t share[HA_MAX_RAILS];
	uint32_t small[HA_MAX_RAILS];
	uint64_t most = 0;
	unsigned scale = 0;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		most = part[i] > most ? part[i] : most;
	while (most >> scale > UINT32_MAX)
		scale++;
	for (unsigned i = 0; i < b->balance.ndata; i++)
		small[i] = (uint32_t)(part[i] >> scale);
	ha_share_out(small, b->balance.ndata, share);
	for (unsigned i = 0; i < b->balance.ndata; i++) {
		b->balance.share[i] = share[b->balance.lead[i]];
		b->balance.weight[i] = b->active >> i & 1 ? b->balance.share[i] : 0;
	}
	/* A spare that carried; the data rail that came back had no share to take then. */
	for (unsigned i = b->balance.ndata; i < b->nrails; i++)
		b->balance.weight[i] = 0;
	for (unsigned i = b->balance.ndata; i-- > 0;)
		if (b->active >> i & 1 && b->balance.lead[i] == best)
			b->balance.first = (uint8_t)i;
	ha_policy_weigh(b);
}

void ha_adaptive_cut(struct ha_send *s, uint64_t size)
{
	struct ha_bundle *b = &s->b;
	struct ha_adaptive *a = &b->balance.adaptive;
	uint64_t now = now_of(b), rate[HA_MAX_RAILS], out[HA_MAX_RAILS], part[HA_MAX_RAILS];
	unsigned up = devices_up(b), mask;

	if (!up || !size)
		return;
	for (unsigned i = 0; i < b->balance.ndata; i++) {
		rate[i] = ha_pace_rate(&a->pace[i], now);
		out[i] = a->pace[i].out;
	}
	mask = choose_devices(b, rate, up, now);
	ha_pace_parts(rate, out, mask, b->balance.ndata, size, part);
	rest_and_probe(a, rate, mask, size, now, part);
	take_parts(b, part, find_fastest(rate, mask));
}

void ha_adaptive_posted(struct ha_bundle *b, unsigned mask, const uint64_t *bytes)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	uint64_t now = now_of(b);

	for (unsigned left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (i >= b->balance.ndata)
			continue;
		a->out[i] += bytes[i];
		ha_pace_posted(&a->pace[b->balance.lead[i]], bytes[i], now);
		ha_pace_posted(&a->all, bytes[i], now);
		ha_pace_posted(&a->trial.pace, bytes[i], now);
	}
}

/* All stood still, for one rail or for the processor: what a trial has to compare with is measured
 * anew behind it. */
static bool forget_if_stalled(struct ha_adaptive *a, uint64_t now)
{
	uint64_t usual = a->all.bytes ? (uint64_t)((unsigned __int128)ha_pace_flight(&a->all) *
						   a->all.ns / a->all.bytes)
				      : 0;

	if (!a->all.bytes || now - a->all.since < MEASURE_NS || now - a->all.since < STALL * usual)
		return false;
	ha_pace_forget(&a->all);
	a->seen = (struct ha_seen) { 0 };
	return true;
}

static void count_part(struct ha_seen *seen, uint64_t bytes)
{
	seen->parts++;
	seen->bytes += bytes;
}

void ha_adaptive_done(struct ha_bundle *b, unsigned stripe, uint64_t bytes)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	uint64_t now = now_of(b);

	if (!a->on || a->out[stripe] < bytes)
		return; /* of an incarnation that is over */
	a->out[stripe] -= bytes;
	ha_pace_done(&a->pace[b->balance.lead[stripe]], bytes, now);
	if (a->trial.stage == HA_TRIAL_NONE && !forget_if_stalled(a, now)) {
		ha_pace_done(&a->all, bytes, now);
		count_part(&a->seen, bytes);
	} else {
		ha_pace_lost(&a->all, bytes);
		a->all.since = now;
	}
	ha_pace_done(&a->trial.pace, bytes, now);
	count_part(&a->trial.seen, bytes);
}

void ha_adaptive_new_incarnation(struct ha_bundle *b, const struct ha_rail *r)
{
	struct ha_adaptive *a = &b->balance.adaptive;
	uint64_t lost = a->out[r->index];

	if (!a->on || r->index >= b->balance.ndata)
		return;
	a->out[r->index] = 0;
	ha_pace_lost(&a->pace[b->balance.lead[r->index]], lost);
	ha_pace_lost(&a->all, lost);
	ha_pace_lost(&a->trial.pace, lost);
}
