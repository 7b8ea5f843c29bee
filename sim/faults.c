/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/faults.h"

#include "sim/world.h"

#include <string.h>

#define US 1000u
#define MS 1000000u
#define FOREVER UINT64_C(1000000000000)

static uint64_t between(struct sr_rng *rng, uint64_t low, uint64_t high)
{
	return low + sr_rng_below(rng, high - low + 1);
}

static struct sim_device *device(struct sim_world *w, const struct sim_fault *f)
{
	return &w->host[f->host].verbs->device[f->dev];
}

/* ---- how each is drawn ---- */

static void make_none(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = 0;
}

/* At most 5 %: eight losses in a row, which end a queue pair, must not happen in any number of seeds. */
static void make_rate(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 50 * US, 20 * MS);
	f->amount = between(rng, 100, 50000);
}

static void make_reorder(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	make_rate(f, sc, rng);
	f->amount = between(rng, 100, 300000);
}

static void make_delay(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 50 * US, 20 * MS);
	/* A detour longer than a queue pair's timer looks like loss; far below it, nothing may come of it. */
	f->amount = between(rng, 1 * US, (UINT64_C(4096) << sc->timeout) / 4);
}

/* Well below the window, timers' fourfold tolerance (IBTA 9.7.6.1.3) included. */
static void make_short(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 10 * US, sim_scenario_window(sc) * 4 / 10);
}

static void make_long(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len =
		sr_rng_below(rng, 3) ? between(rng, sim_scenario_window(sc) / 2, 4 * sim_scenario_window(sc)) : FOREVER;
}

static void make_stall(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, 3) ? between(rng, 10 * US, 5 * MS) : between(rng, 5 * MS, 1500u * MS);
}

/* A farewell that comes later than a queue pair gives up cannot settle a send whose acknowledgement was lost. */
static void make_sick(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 10 * US, sim_scenario_window(sc) / 4);
}

/* A NIC that has acknowledged shows the completion soon after; the core waits a second for it behind a farewell. */
static void make_hold(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 1 * US, sr_rng_below(rng, 3) ? 1 * MS : 400 * MS);
}

static void make_acked(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 5 * US, 300 * US);
}

static void make_count(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = 0;
	f->amount = between(rng, 1, 6);
}

static void make_flaps(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 1 * MS, 2 * sim_scenario_window(sc));
	f->amount = between(rng, 20 * US, sim_scenario_window(sc) / 4); /* up to this long down, then up */
}

/* ---- rates: whatever acts on a port at this moment, together ---- */

static bool acts(const struct sim_world *w, const struct sim_fault *f)
{
	uint64_t now = sim_elapsed(w);

	return !f->off && now >= f->at && now < f->at + f->len;
}

static bool is(const struct sim_fault *f, const char *name)
{
	return !strcmp(sim_fault_classes[f->class].name, name);
}

static void apply_one(struct sr_fault_dir *d, const struct sim_fault *f)
{
	if (is(f, "loss"))
		d->drop_ppm += (uint32_t)f->amount;
	else if (is(f, "duplicate"))
		d->dup_ppm += (uint32_t)f->amount;
	else if (is(f, "reorder"))
		d->reorder_ppm += (uint32_t)f->amount;
	else if (is(f, "delay"))
		d->delay_ns += f->amount;
	else if (is(f, "jitter"))
		d->jitter_ns += f->amount;
	else if (is(f, "mute") || is(f, "black-hole"))
		d->blackhole = 1;
	else if (is(f, "late")) {
		d->reorder_ppm = SR_PPM;
		d->reorder_ns = f->at + f->len; /* until the end: see below */
	}
	if (d->reorder_ppm > SR_PPM)
		d->reorder_ppm = SR_PPM;
}

static void apply(struct sim_world *w, struct sim_fault *which)
{
	struct sr_faults *faults = sr_memwire_faults(device(w, which)->port);
	struct sr_fault_dir *d = which->rx ? &faults->rx : &faults->tx;

	memset(d, 0, sizeof(*d));
	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];

		if (f->host == which->host && f->dev == which->dev && f->rx == which->rx && acts(w, f))
			apply_one(d, f);
	}
	/* Packets that a dead link still holds come out when it is over, behind those that were sent since. */
	if (d->reorder_ns)
		d->reorder_ns = d->reorder_ns > sim_elapsed(w) ? d->reorder_ns - sim_elapsed(w) : 0;
}

/* ---- single events ---- */

static void cut(struct sim_world *w, struct sim_fault *f)
{
	sr_memwire_cut(device(w, f)->port, true);
}

static void heal(struct sim_world *w, struct sim_fault *f)
{
	sr_memwire_cut(device(w, f)->port, false);
}

static void kill(struct sim_world *w, struct sim_fault *f)
{
	sim_device_kill(device(w, f));
}

static void stall(struct sim_world *w, struct sim_fault *f)
{
	uint64_t until = sim_now(w) + f->len;

	if (w->host[f->host].stalled_until < until)
		w->host[f->host].stalled_until = until;
}

static void forget(struct sim_world *w, struct sim_fault *f)
{
	sim_host_forget(&w->host[f->host], device(w, f));
}

static void doorbell(struct sim_world *w, struct sim_fault *f)
{
	device(w, f)->knobs.die_at_post = (uint32_t)f->amount;
}

static void lose(struct sim_world *w, struct sim_fault *f)
{
	device(w, f)->knobs.lose += (uint32_t)f->amount;
}

static void hold(struct sim_world *w, struct sim_fault *f)
{
	device(w, f)->knobs.hold_until = sim_now(w) + f->len;
}

static void break_qps(struct sim_world *w, struct sim_fault *f)
{
	sim_device_break_qps(device(w, f));
}

static void new_gid(struct sim_world *w, struct sim_fault *f)
{
	struct sim_device *dev = device(w, f);

	dev->gid.raw[14] ^= 1;
	sr_memwire_set_gid(w->wire, dev->nic, 0, &dev->gid);
}

static void reset(struct sim_world *w, struct sim_fault *f)
{
	w->sockets_lost = true;
	sim_oob_reset(&w->oob, f->host, f->rx);
}

static void silence(struct sim_world *w, struct sim_fault *f)
{
	w->sockets_lost = true;
	sim_oob_silence(&w->oob);
}

static void sick(struct sim_world *w, struct sim_fault *f)
{
	w->oob.sick_until = sim_now(w) + f->len;
}

static void process_exit(struct sim_world *w, struct sim_fault *f)
{
	sim_host_die(&w->host[f->host], false);
}

static void power_off(struct sim_world *w, struct sim_fault *f)
{
	sim_host_die(&w->host[f->host], true);
}

static void quit(struct sim_world *w, struct sim_fault *f)
{
	sim_host_quit(&w->host[f->host]);
}

/* Down, up, down, ... until its time is over. */
static void flap(void *arg);

struct flapping {
	struct sim_world *w;
	struct sim_fault *f;
	bool down;
};

static struct flapping flappings[SIM_FAULTS_MAX];

static void flap_begin(struct sim_world *w, struct sim_fault *f)
{
	struct flapping *p = &flappings[f - w->sc.fault];

	*p = (struct flapping){ w, f, false };
	flap(p);
}

static void flap(void *arg)
{
	struct flapping *p = arg;
	struct sim_world *w = p->w;

	p->down = !p->down && acts(w, p->f);
	sr_memwire_cut(device(w, p->f)->port, p->down);
	if (acts(w, p->f) || p->down)
		sr_memwire_at(w->wire, sim_now(w) + 1 + sr_rng_below(&w->tap_rng, p->f->amount), flap, p);
}

/* Names are what --faults takes, and what is() compares. What is expected is today's promise: a connection has the
 * rails it was opened with, and loses one only together with itself. */
const struct sim_fault_class sim_fault_classes[] = {
	{ "loss", "packets are lost", SIM_SURVIVES, false, make_rate, apply, apply },
	{ "reorder", "packets overtake each other", SIM_SURVIVES, false, make_reorder, apply, apply },
	{ "duplicate", "packets arrive twice", SIM_SURVIVES, false, make_reorder, apply, apply },
	{ "delay", "packets take longer", SIM_SURVIVES, false, make_delay, apply, apply },
	{ "jitter", "packets take more or less long", SIM_SURVIVES, false, make_delay, apply, apply },
	{ "ack-loss", "acknowledgements are lost, data is not", SIM_SURVIVES, false, make_rate, NULL, NULL },
	{ "late", "packets are held and released behind later ones", SIM_SURVIVES, true, make_short, apply, apply },
	{ "flap", "the port goes down for less than the window", SIM_SURVIVES, true, make_short, cut, heal },
	{ "mute", "packets vanish for less than the window", SIM_SURVIVES, true, make_short, apply, apply },
	{ "stall", "a host's thread stands still", SIM_SURVIVES, false, make_stall, stall, NULL },
	{ "completion-delay", "completions show late", SIM_SURVIVES, false, make_hold, hold, NULL },
	{ "oob-stall", "the sockets take and give nothing for a while", SIM_SURVIVES, false, make_sick, sick, NULL },
	{ "cut", "the port goes down for longer, or for good", SIM_CLEAN, true, make_long, cut, heal },
	{ "black-hole", "packets vanish for longer, or for good", SIM_CLEAN, true, make_long, apply, apply },
	{ "flapping", "the port goes down and up again and again", SIM_CLEAN, true, make_flaps, flap_begin, NULL },
	{ "kill", "the device dies", SIM_CLEAN, false, make_none, kill, NULL },
	{ "kill-acked", "the device dies with data that it has acknowledged and not placed", SIM_CLEAN, false,
	  make_acked, stall, forget },
	{ "doorbell", "the device dies in the middle of a doorbell", SIM_CLEAN, false, make_count, doorbell, NULL },
	{ "qp-error", "a device's queue pairs fail, and the peer is not told", SIM_CLEAN, false, make_none, break_qps,
	  NULL },
	{ "new-gid", "a port gets another address", SIM_CLEAN, false, make_none, new_gid, NULL },
	{ "oob-reset", "the sockets are reset, at both ends or one", SIM_CLEAN, false, make_none, reset, NULL },
	{ "oob-silence", "the sockets carry nothing any more, and nobody says so", SIM_CLEAN, false, make_none, silence,
	  NULL },
	{ "exit", "a process dies", SIM_CLEAN, false, make_none, process_exit, NULL },
	{ "power", "a machine dies", SIM_CLEAN, false, make_none, power_off, NULL },
	{ "quit", "a process ends its context with everything open", SIM_CLEAN, false, make_none, quit, NULL },
	{ "completion-loss", "completions never show", SIM_LATER, false, make_count, lose, NULL },
};
const unsigned sim_fault_nclasses = sizeof(sim_fault_classes) / sizeof(sim_fault_classes[0]);
_Static_assert(sizeof(sim_fault_classes) / sizeof(sim_fault_classes[0]) <= 32, "a mask has 32 bits");

/* ---- drawing ---- */

uint32_t sim_faults_parse(const char *list, char bad[32])
{
	uint32_t mask = 0;

	if (!strcmp(list, "all"))
		return (1u << sim_fault_nclasses) - 1;
	while (*list) {
		size_t n = strcspn(list, ",");
		unsigned i = 0;

		while (i < sim_fault_nclasses &&
		       (strlen(sim_fault_classes[i].name) != n || strncmp(sim_fault_classes[i].name, list, n)))
			i++;
		if (i == sim_fault_nclasses) {
			snprintf(bad, 32, "%.*s", (int)n, list);
			return 0;
		}
		mask |= 1u << i;
		list += n + (list[n] == ',');
	}
	return mask;
}

/* Half of the seeds hold only what must be survived; the others one or two more. */
static uint32_t usual(struct sr_rng *rng)
{
	bool gentle = sr_rng_below(rng, 2);
	uint32_t mask = 0;

	for (unsigned i = 0; i < sim_fault_nclasses; i++)
		if (sim_fault_classes[i].expect == SIM_SURVIVES ||
		    (!gentle && sim_fault_classes[i].expect == SIM_CLEAN))
			mask |= 1u << i;
	return mask;
}

/* A connection whose sockets are lost does not hear any more that its peer has failed: nothing is promised for both
 * together. */
static uint32_t sockets_alone(uint32_t mask)
{
	uint32_t sockets = 0, others = 0;

	for (unsigned i = 0; i < sim_fault_nclasses; i++)
		if (mask >> i & 1 && sim_fault_classes[i].expect == SIM_CLEAN) {
			if (sim_fault_classes[i].begin == reset || sim_fault_classes[i].begin == silence)
				sockets |= 1u << i;
			else
				others |= 1u << i;
		}
	return sockets && others ? mask & ~others : mask;
}

/* One of the classes of a mask. */
static unsigned pick(uint32_t mask, struct sr_rng *rng)
{
	unsigned n = (unsigned)sr_rng_below(rng, (uint64_t)__builtin_popcount(mask));

	while (n--)
		mask &= mask - 1;
	return (unsigned)__builtin_ctz(mask);
}

/* Faults of one kind at a time, or outages that wait for each other: else even what must be survived adds up to a
 * window. */
static uint64_t separate(const struct sim_scenario *sc, const struct sim_fault *f)
{
	const struct sim_fault_class *class = &sim_fault_classes[f->class];
	bool wire =
		class->outage || class->make == make_rate || class->make == make_reorder || class->make == make_delay;
	uint64_t at = f->at, pause = 2 * sim_scenario_window(sc);

	if (class->expect != SIM_SURVIVES)
		return at;

	for (unsigned k = 0; k < sc->nfaults * sc->nfaults; k++) { /* a shift may meet one that was passed before */
		const struct sim_fault *g = &sc->fault[k % sc->nfaults];
		const struct sim_fault_class *other = &sim_fault_classes[g->class];
		bool lossy =
			other->expect == SIM_SURVIVES && (other->outage || other->make == make_rate ||
							  other->make == make_reorder || other->make == make_delay);

		if (!(class->outage || (other->outage && wire)))
			continue;
		if (lossy && at < g->at + g->len + pause && g->at < at + f->len + pause)
			at = g->at + g->len + pause;
	}
	return at;
}

void sim_faults_make(struct sim_scenario *sc, struct sr_rng *rng, uint32_t allowed)
{
	uint32_t mask = allowed ? allowed : usual(rng);
	unsigned n = sr_rng_below(rng, 8) ? (unsigned)between(rng, 1, 5) : (unsigned)between(rng, 6, 20);

	/* A few kinds per seed, so that some seeds see much of one. */
	while (!allowed && __builtin_popcount(mask) > 4)
		mask &= (uint32_t)sr_rng_next(rng) | 1u << pick(mask, rng);
	if (!allowed)
		mask = sockets_alone(mask);
	for (unsigned i = 0; i < n; i++) {
		struct sim_fault *f = &sc->fault[sc->nfaults];

		*f = (struct sim_fault){ .class = pick(mask, rng), .host = (unsigned)sr_rng_below(rng, 2) };
		f->dev = (unsigned)sr_rng_below(rng, sc->ndevices[f->host]);
		f->rx = sr_rng_below(rng, 2);
		/* Connecting takes the first milliseconds; then transfer, close. */
		f->at = sr_rng_below(rng, UINT64_C(1) << between(rng, sr_rng_below(rng, 3) ? 19 : 10, 25));
		sim_fault_classes[f->class].make(f, sc, rng);
		f->at = separate(sc, f);
		sc->nfaults++;
	}
}

void sim_fault_print(const struct sim_fault *f, unsigned index, FILE *out)
{
	const struct sim_fault_class *c = &sim_fault_classes[f->class];

	fprintf(out, "  fault %u at %.3f ms: %s (%s), host %u sim%u %s, ", index, (double)f->at / 1e6, c->name, c->help,
		f->host, f->dev, f->rx ? "rx" : "tx");
	if (f->len >= FOREVER)
		fprintf(out, "for good, amount %llu\n", (unsigned long long)f->amount);
	else
		fprintf(out, "for %.3f ms, amount %llu\n", (double)f->len / 1e6, (unsigned long long)f->amount);
}

enum sim_expect sim_faults_expect(const struct sim_scenario *sc)
{
	enum sim_expect weakest = SIM_SURVIVES;

	for (unsigned i = 0; i < sc->nfaults; i++)
		if (!sc->fault[i].off && sim_fault_classes[sc->fault[i].class].expect > weakest)
			weakest = sim_fault_classes[sc->fault[i].class].expect;
	return weakest;
}

uint64_t sim_faults_over(const struct sim_scenario *sc)
{
	uint64_t over = 0;

	for (unsigned i = 0; i < sc->nfaults; i++) {
		const struct sim_fault *f = &sc->fault[i];
		uint64_t end = f->at + (f->len < FOREVER ? f->len : 0);

		if (!f->off && end > over)
			over = end;
	}
	return over;
}

/* ---- while it runs ---- */

struct scheduled {
	struct sim_world *w;
	struct sim_fault *f;
};

static struct scheduled scheduled[SIM_FAULTS_MAX]; /* of the one run that a process has at a time */

static void on_begin(void *arg)
{
	struct scheduled *s = arg;
	const struct sim_fault_class *class = &sim_fault_classes[s->f->class];

	sim_mix(s->w, 0xfa17 + s->f->class);
	sim_say(s->w, "fault: %s begins, host %u sim%u %s", class->name, s->f->host, s->f->dev, s->f->rx ? "rx" : "tx");
	if (class->begin)
		class->begin(s->w, s->f);
}

static void on_end(void *arg)
{
	struct scheduled *s = arg;
	const struct sim_fault_class *class = &sim_fault_classes[s->f->class];

	sim_say(s->w, "fault: %s is over, host %u sim%u", class->name, s->f->host, s->f->dev);
	class->end(s->w, s->f);
}

void sim_faults_schedule(struct sim_world *w)
{
	uint64_t start = sim_now(w);

	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		struct sim_fault *f = &w->sc.fault[i];

		scheduled[i] = (struct scheduled){ w, f };
		if (f->off)
			continue;
		sr_memwire_at(w->wire, start + f->at, on_begin, &scheduled[i]);
		if (sim_fault_classes[f->class].end && f->len < FOREVER)
			sr_memwire_at(w->wire, start + f->at + f->len, on_end, &scheduled[i]);
	}
}

#define OP_ACKNOWLEDGE 17

bool sim_faults_eat(struct sim_world *w, const struct sr_memwire_port *from, const uint8_t *packet)
{
	if (packet[0] != OP_ACKNOWLEDGE)
		return false;
	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];

		if (acts(w, f) && is(f, "ack-loss") && device(w, f)->port == from &&
		    sr_rng_below(&w->tap_rng, SR_PPM) < f->amount)
			return true;
	}
	return false;
}
