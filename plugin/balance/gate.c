/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/gate.h"

#include "base/clamp.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"

#include <errno.h>

#define SAMPLES 16 /* that the shortest and the fastest are looked for in */
#define FIRST 4    /* before the first gate */
#define EVERY 32   /* one large message in so many */
#define ARMED 2    /* samples that a heartbeat asks for */
#define TRIES 64   /* messages among which these are taken */
#define CHANGE 4   /* a gate that would differ by less than 1/4 stays */

static uint32_t measured_bytes(const struct ha_gate *g)
{
	return g->bytes ? g->bytes : HA_GATE_FIRST;
}

uint32_t ha_gate_bytes(const struct ha_bundle *b)
{
	return ha_advice_rules(&b->balance.advised) ? 0 : measured_bytes(&b->balance.gate);
}

void ha_gate_join(struct ha_bundle *b, bool several_devices)
{
	b->balance.gate.on = b->is_send && several_devices;
	if (!several_devices)
		/* queue pairs of one device share whatever they do not take turns for */
		b->balance.gate.bytes = 1;
	ha_gate_arm(b);
}

void ha_gate_arm(struct ha_bundle *b)
{
	if (!b->balance.gate.on || b->balance.stripe_min == UINT64_MAX)
		return;
	b->balance.gate.wanted = ARMED;
	b->balance.gate.tries = TRIES;
	ha_gate_apply(b);
}

/* Whose turn it is must be asked for each message, and so must a hint; those that are to be
 * measured need a look, too. */
void ha_gate_apply(struct ha_bundle *b)
{
	bool each = b->balance.turns || b->balance.gate.wanted ||
		    (b->balance.advised.on && !b->balance.advised.gated);

	if (b->balance.stripe_min != UINT64_MAX)
		b->balance.stripe_min = each ? 0 : ha_gate_bytes(b);
	b->balance.floor = b->balance.stripe_min != UINT64_MAX ? ha_gate_bytes(b) : UINT64_MAX;
}

static void disarm_gate(struct ha_bundle *b)
{
	b->balance.gate.wanted = 0;
	ha_gate_apply(b);
}

/* Is this one of the messages that are measured? */
static bool turn_has_come(struct ha_bundle *b)
{
	struct ha_gate *g = &b->balance.gate;

	if (g->probe_out || g->data_out)
		return false;
	if (g->wanted) {
		if (g->tries)
			g->tries--;
		else
			disarm_gate(b);
		return true;
	}
	if (g->skip) {
		g->skip--;
		return false;
	}
	return true;
}

/* What is out already would be measured too. Of those that are free, the next after the one that
 * was measured last. */
int ha_gate_choose(struct ha_bundle *b, unsigned mask)
{
	unsigned earlier = mask & ((2u << b->balance.gate.rail) - 1),
		 order[] = { mask & ~earlier, earlier };

	if (!b->balance.gate.on || b->balance.stripe_min == UINT64_MAX ||
	    ha_advice_rules(&b->balance.advised) || !turn_has_come(b))
		return -1;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned left = order[k]; left; left &= left - 1) {
			const struct ha_rail *r = &b->rail[__builtin_ctz(left)];

			if (r->index < b->balance.ndata && r->sq_posted == r->sq_retired)
				return r->index;
		}
	return -1;
}

int ha_gate_begin(struct ha_bundle *b, unsigned rail, unsigned entry, uint64_t length)
{
	struct ha_gate *g = &b->balance.gate;
	int err;

	g->at = ha_clock_now(b->ctx->clock);
	err = ha_board_probe(b, &b->rail[rail]);
	if (err)
		return err;
	g->probe_out = g->data_out = true;
	g->rail = (uint8_t)rail;
	g->entry = (uint8_t)entry;
	g->length = length;
	g->skip = EVERY - 1;
	if (g->wanted && !--g->wanted)
		disarm_gate(b);
	return 0;
}

/* Did the data take so much longer than the probe alone that it shows the rate? */
static bool shows_rate(const struct ha_gate_path *p, const struct ha_gate_sample *s)
{
	return s->ns > p->rtt_ns + p->rtt_ns / 4;
}

/* Bytes per 2^20 ns, by what is known of the round trip now; of what was too small to tell, what it
 * is at least. 0: there is none. */
static uint64_t rate_of(const struct ha_gate_path *p, const struct ha_gate_sample *s)
{
	uint64_t ns = shows_rate(p, s) ? s->ns - p->rtt_ns : p->rtt_ns / 4;

	return (s->bytes << 20) / (ns ? ns : 1);
}

/* The rate of the rail for small messages, and the longest way of those that share. */
static void open_or_close(struct ha_bundle *b)
{
	struct ha_gate *g = &b->balance.gate;
	const struct ha_gate_path *first = &g->path[b->balance.lead[b->balance.first]];
	uint64_t rate = rate_of(first, &first->fastest), rtt = 0, bytes;
	uint32_t now = measured_bytes(g);

	for (unsigned i = 0; i < b->balance.ndata; i++)
		if (b->active >> i & 1 && b->balance.weight[i] &&
		    g->path[b->balance.lead[i]].rtt_ns > rtt)
			rtt = g->path[b->balance.lead[i]].rtt_ns;
	if (!rate || !rtt || g->known < FIRST)
		return;
	if (rtt > HA_GATE_FAR_NS)
		rtt = HA_GATE_FAR_NS;
	bytes = (uint64_t)((unsigned __int128)rate * rtt >> 20);
	bytes = (uint64_t)ha_clamp((int64_t)bytes, HA_GATE_LEAST, HA_GATE_MOST);
	if (bytes > now - now / CHANGE && bytes < now + now / CHANGE && g->bytes)
		return;
	g->bytes = (uint32_t)bytes;
	ha_gate_apply(b);
}

/* A new window of samples: what is older than the last does not count. */
static void turn_page(struct ha_gate_path *p)
{
	p->rtt_ns = p->next_rtt;
	/* small messages alone do not make it slower */
	if (shows_rate(p, &p->next) || rate_of(p, &p->next) > rate_of(p, &p->fastest))
		p->fastest = p->next;
	p->next_rtt = 0;
	p->next = (struct ha_gate_sample) { 0 };
	p->samples = 0;
}

void ha_gate_probed(struct ha_bundle *b, unsigned rail)
{
	struct ha_gate *g = &b->balance.gate;
	struct ha_gate_path *p = &g->path[b->balance.lead[rail]];
	uint64_t took;

	if (!g->probe_out || rail != g->rail)
		return;
	g->probe_out = false;
	took = ha_clock_now(b->ctx->clock) - g->at;
	took += !took;
	if (!p->rtt_ns || took < p->rtt_ns)
		p->rtt_ns = took;
	if (!p->next_rtt || took < p->next_rtt)
		p->next_rtt = took;
}

void ha_gate_done(struct ha_bundle *b, unsigned stripe, unsigned entry)
{
	struct ha_gate *g = &b->balance.gate;
	struct ha_gate_path *p = &g->path[b->balance.lead[g->rail]];
	struct ha_gate_sample sample;

	if (!g->data_out || g->probe_out || stripe != g->rail || entry != g->entry)
		return;
	g->data_out = false;
	sample = (struct ha_gate_sample) { g->length, ha_clock_now(b->ctx->clock) - g->at };
	if (rate_of(p, &sample) > rate_of(p, &p->next))
		p->next = sample;
	if (rate_of(p, &sample) > rate_of(p, &p->fastest))
		p->fastest = sample;
	g->known += g->known < FIRST;
	if (++p->samples == SAMPLES)
		turn_page(p);
	open_or_close(b);
}

void ha_gate_forget(struct ha_bundle *b)
{
	if (!(b->active >> b->balance.gate.rail & 1))
		b->balance.gate.probe_out = b->balance.gate.data_out = false;
}
