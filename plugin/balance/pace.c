/* SPDX-License-Identifier: BSD-3-Clause */
/* pace.c - how fast a device works, and how a message is divided so that all are done at once; see
 * adaptive.h */
#include "plugin/balance/adaptive.h"

#define MEMORY_NS 4000000u /* busy time that a rate is measured over */

void ha_pace_posted(struct ha_pace *p, uint64_t bytes, uint64_t now)
{
	if (!p->out)
		p->since = now;
	p->out += bytes;
	if (p->out > p->flight[0])
		p->flight[0] = p->out;
}

void ha_pace_done(struct ha_pace *p, uint64_t bytes, uint64_t now)
{
	p->bytes += bytes;
	p->ns += now - p->since;
	if (now - p->since > p->pause[0])
		p->pause[0] = now - p->since;
	p->since = now;
	p->last = bytes;
	p->out -= bytes < p->out ? bytes : p->out;
	p->parts++;
	if (p->ns > MEMORY_NS && p->parts >= 2 * p->parts_least &&
	    p->bytes >= 2 * ha_pace_flight(p)) {
		p->ns /= 2;
		p->bytes /= 2;
		p->parts /= 2;
		p->flight[1] = p->flight[0];
		p->flight[0] = p->out;
		p->pause[1] = p->pause[0];
		p->pause[0] = 0;
	}
}

void ha_pace_lost(struct ha_pace *p, uint64_t bytes)
{
	p->out -= bytes < p->out ? bytes : p->out;
}

uint64_t ha_pace_rate(const struct ha_pace *p, uint64_t now)
{
	uint64_t ns = p->ns ? p->ns : 1, expected = p->bytes ? p->last * ns / p->bytes : 0, rate;

	for (unsigned i = 0; i < 2; i++)
		expected = p->pause[i] > expected ? p->pause[i] : expected;
	if (p->out && now - p->since > 2 * expected)
		ns += now - p->since - expected;
	rate = (p->bytes << 20) / ns;
	return rate ? rate : 1;
}

/* Water runs into vessels that are filled to different heights: those that stand above the level
 * get none. */
void ha_pace_parts(const uint64_t *rate, const uint64_t *out, unsigned mask, unsigned n,
		   uint64_t size, uint64_t *part)
{
	unsigned dry;

	for (unsigned i = 0; i < n; i++)
		part[i] = 0;
	do {
		uint64_t rates = 0, level = size;

		dry = 0;
		for (unsigned left = mask; left; left &= left - 1) {
			rates += rate[__builtin_ctz(left)];
			level += out[__builtin_ctz(left)];
		}
		for (unsigned left = mask; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctz(left);
			uint64_t full = (uint64_t)((unsigned __int128)level * rate[i] / rates);

			part[i] = full > out[i] ? full - out[i] : 0;
			dry |= part[i] ? 0 : 1u << i;
		}
		mask &= ~dry;
	} while (dry && mask);
}
