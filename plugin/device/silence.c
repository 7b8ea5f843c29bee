/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/silence.h"

#define TIMES 2 /* as long as the longest standstill of late */

void ha_silence_init(struct ha_silence *s, uint64_t base_ns)
{
	*s = (struct ha_silence) { .base_ns = base_ns, .floor_ns = base_ns };
}

static void turn_pages(struct ha_silence *s, uint64_t now)
{
	uint64_t older = s->longest_ns[1] / 2, passed;

	if (now < s->window_until)
		return;
	if (older < s->longest_ns[0])
		older = s->longest_ns[0];
	passed = (now - s->window_until) / HA_SILENCE_WINDOW_NS; /* of which nothing was seen */
	s->longest_ns[1] = passed < 64 ? older >> passed : 0;
	s->longest_ns[0] = 0;
	s->window_until = now + HA_SILENCE_WINDOW_NS;
}

static void relax_floor(struct ha_silence *s, uint64_t now)
{
	if (s->floor_ns == s->base_ns || now < s->learned_at + HA_SILENCE_RELAX_NS)
		return;
	s->floor_ns = s->floor_ns / 2 > s->base_ns ? s->floor_ns / 2 : s->base_ns;
	s->learned_at = now;
}

static uint64_t learned_limit_of(const struct ha_silence *s)
{
	uint64_t longest =
		s->longest_ns[0] > s->longest_ns[1] ? s->longest_ns[0] : s->longest_ns[1];

	return TIMES * longest > s->floor_ns ? TIMES * longest : s->floor_ns;
}

uint64_t ha_silence_limit(struct ha_silence *s, uint64_t now)
{
	if (!s->base_ns || now < s->rest_until)
		return UINT64_MAX;
	turn_pages(s, now);
	relax_floor(s, now);
	return learned_limit_of(s);
}

uint64_t ha_silence_wait(const struct ha_silence *s, uint64_t limit, uint64_t now)
{
	bool known = s->known_at && now >= s->known_at;
	bool lossy = now < s->lossy_until;

	return (known && !lossy) || limit > HA_SILENCE_UNKNOWN_NS ? limit : HA_SILENCE_UNKNOWN_NS;
}

void ha_silence_moved(struct ha_silence *s, uint64_t now)
{
	if (!s->known_at)
		s->known_at = now + HA_SILENCE_LEARN_NS;
}

void ha_silence_ended(struct ha_silence *s, uint64_t stood_ns, uint64_t now)
{
	uint64_t ns = stood_ns < HA_SILENCE_MOST_NS ? stood_ns : HA_SILENCE_MOST_NS;

	turn_pages(s, now);
	if (ns > s->longest_ns[0])
		s->longest_ns[0] = ns;
}

void ha_silence_lossy(struct ha_silence *s, uint64_t now)
{
	s->lossy_until = now + HA_SILENCE_LOSSY_NS;
}

void ha_silence_rest(struct ha_silence *s, uint64_t now)
{
	s->rest_until = now + HA_SILENCE_REST_NS;
}

bool ha_silence_false_alarm(struct ha_silence *s, uint64_t alarm_at, uint64_t now)
{
	uint64_t most = s->base_ns > HA_SILENCE_MOST_NS ? s->base_ns : HA_SILENCE_MOST_NS;

	if (alarm_at < s->false_alarm_before)
		return false; /* the connections of a path give it up together */
	s->false_alarm_before = now;
	ha_silence_rest(s, now);
	s->floor_ns = 2 * s->floor_ns < most ? 2 * s->floor_ns : most;
	s->learned_at = now;
	return true;
}
