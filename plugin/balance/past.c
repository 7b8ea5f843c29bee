/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/past.h"

#define CLASS_SHIFT 12
#define DOWN 4 /* a message that is quicker than usual counts for a quarter */
#define UP 32  /* one that is slower counts for 1/32 */
#define MOST 2 /* and for this many times the usual, at most */

static unsigned class_of(uint64_t queued)
{
	unsigned class =
		queued >> CLASS_SHIFT ? 64 - CLASS_SHIFT - (unsigned)__builtin_clzll(queued) : 0;

	return class < HA_PAST_CLASSES ? class : HA_PAST_CLASSES - 1;
}

bool ha_past_knows(const struct ha_past *p, uint64_t queued)
{
	return p->ns[class_of(queued)] != 0;
}

uint64_t ha_past_expect(const struct ha_past *p, uint64_t queued)
{
	unsigned class = class_of(queued);

	if (p->ns[class])
		return p->ns[class];
	for (unsigned more = class + 1; more < HA_PAST_CLASSES; more++)
		if (p->ns[more])
			return (p->ns[more] >> (more - class)) + 1;
	for (unsigned less = class; less-- > 0;)
		if (p->ns[less])
			return p->ns[less];
	return 0;
}

uint32_t ha_past_ratio(const struct ha_past *p, uint64_t queued, uint64_t ns)
{
	uint64_t usual = ha_past_expect(p, queued), ratio;

	if (!usual)
		return HA_PAST_UNIT;
	ratio = ns * HA_PAST_UNIT / usual;
	if (ns < usual + HA_PAST_LEAST_NS && ratio > HA_PAST_UNIT)
		return HA_PAST_UNIT;
	return ratio < UINT32_MAX ? (uint32_t)ratio : UINT32_MAX;
}

void ha_past_learn(struct ha_past *p, uint64_t queued, uint64_t ns)
{
	uint64_t *usual = &p->ns[class_of(queued)];

	if (!*usual)
		*usual = ns + !ns;
	else if (ns < *usual)
		*usual -= (*usual - ns) / DOWN;
	else
		*usual += ((ns < MOST * *usual ? ns : MOST * *usual) - *usual) / UP;
}

void ha_past_accept(struct ha_past *p, uint32_t ratio)
{
	for (unsigned i = 0; i < HA_PAST_CLASSES; i++)
		p->ns[i] = p->ns[i] * ratio / HA_PAST_UNIT;
}

void ha_past_add(struct ha_past_window *w, uint32_t ratio)
{
	if (w->n < HA_PAST_SAMPLES)
		w->ratio[w->n++] = ratio;
}

uint32_t ha_past_median(const struct ha_past_window *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t below = 0, same = 0;

		for (uint32_t k = 0; k < w->n; k++) {
			below += w->ratio[k] < w->ratio[i];
			same += w->ratio[k] == w->ratio[i];
		}
		if (below <= w->n / 2 && w->n / 2 < below + same)
			return w->ratio[i];
	}
	return 0;
}

uint32_t ha_past_least(const struct ha_past_window *w, uint32_t last)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = w->n > last ? w->n - last : 0; i < w->n; i++)
		least = w->ratio[i] < least ? w->ratio[i] : least;
	return least;
}

uint32_t ha_past_most(const struct ha_past_window *w)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < w->n; i++)
		most = w->ratio[i] > most ? w->ratio[i] : most;
	return most;
}
