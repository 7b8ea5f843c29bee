/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/faults.h"

#include "plugin/bundle.h"
#include "sim/plugin/fault_draw.h"
#include "sim/plugin/traffic.h"
#include "sim/plugin/world.h"

#include <string.h>

#define US 1000u
#define MS 1000000u
/* A device that is back is found so much later, at most: returns.c looks every five seconds. */
#define FOUND_NS UINT64_C(5500000000)

static uint64_t draw_between(struct sr_rng *rng, uint64_t low, uint64_t high)
{
	return low + sr_rng_below(rng, high - low + 1);
}

static struct sim_device *device_of(struct sim_world *w, const struct sim_fault *f)
{
	return w->host[f->host].verbs->device[f->dev];
}

/* ---- rates: whatever acts on a port at this moment, together ---- */

static bool is_acting(const struct sim_world *w, const struct sim_fault *f)
{
	uint64_t now = sim_elapsed(w);

	return !f->off && now >= f->at && now < f->at + f->len;
}

static bool is_class(const struct sim_fault *f, const char *name)
{
	return !strcmp(sim_fault_classes[f->class].name, name);
}

static bool of_switch(const struct sim_fault *f)
{
	return is_class(f, "switch") || is_class(f, "silent-switch");
}

bool sim_fault_hits(const struct sim_scenario *sc, const struct sim_fault *f, unsigned host,
		    unsigned dev)
{
	if (!of_switch(f))
		return f->host == host && f->dev == dev;
	/* An odd amount: half of its ports only, every second one in the order of hosts and
	 * devices. */
	return sc->wire.leaf[host][dev] == f->dev &&
	       (!(f->amount & 1) || (host + dev / 2 + f->amount / 2) % 2);
}

static void apply_one(struct sr_fault_dir *d, const struct sim_fault *f)
{
	if (is_class(f, "loss"))
		d->drop_ppm += (uint32_t)f->amount;
	else if (is_class(f, "duplicate"))
		d->dup_ppm += (uint32_t)f->amount;
	else if (is_class(f, "reorder"))
		d->reorder_ppm += (uint32_t)f->amount;
	else if (is_class(f, "delay"))
		d->delay_ns += f->amount;
	else if (is_class(f, "jitter"))
		d->jitter_ns += f->amount;
	else if (is_class(f, "mute") || is_class(f, "black-hole") || is_class(f, "silent-switch"))
		d->blackhole = 1;
	else if (is_class(f, "late")) {
		d->reorder_ppm = SR_PPM;
		d->reorder_ns = f->at + f->len; /* until the end: see below */
	}
	if (d->reorder_ppm > SR_PPM)
		d->reorder_ppm = SR_PPM;
}

static void apply_to(struct sim_world *w, unsigned host, unsigned dev, bool rx)
{
	struct sr_faults *faults = sr_memwire_faults(w->host[host].verbs->device[dev]->port);
	struct sr_fault_dir *d = rx ? &faults->rx : &faults->tx;

	memset(d, 0, sizeof(*d));
	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];

		if (sim_fault_hits(&w->sc, f, host, dev) && (of_switch(f) || f->rx == rx) &&
		    is_acting(w, f))
			apply_one(d, f);
	}
	/*
	 * Packets that a dead link still holds come out when it is over, behind those that were
	 * sent since.
	 */
	if (d->reorder_ns)
		d->reorder_ns = d->reorder_ns > sim_elapsed(w) ? d->reorder_ns - sim_elapsed(w) : 0;
}

static void apply_rates(struct sim_world *w, struct sim_fault *f)
{
	apply_to(w, f->host, f->dev, f->rx);
}

/* ---- of a whole switch ---- */

static void each_port(struct sim_world *w, const struct sim_fault *f,
		      void (*act)(struct sim_world *w, unsigned host, unsigned dev, bool on),
		      bool on)
{
	for (unsigned h = 0; h < SIM_HOSTS; h++)
		for (unsigned d = 0; d < w->sc.ndevices[h]; d++)
			if (sim_fault_hits(&w->sc, f, h, d))
				act(w, h, d, on);
}

/* A port that another fault still keeps down stays down. */
static void cut_port(struct sim_world *w, unsigned host, unsigned dev, bool on)
{
	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];

		on |= (is_class(f, "cut") || is_class(f, "flap") || is_class(f, "switch")) &&
		      is_acting(w, f) && sim_fault_hits(&w->sc, f, host, dev);
	}
	sr_memwire_cut(w->host[host].verbs->device[dev]->port, on);
}

static void mute_port(struct sim_world *w, unsigned host, unsigned dev, bool on)
{
	apply_to(w, host, dev, false);
	apply_to(w, host, dev, true);
}

static void lose_switch(struct sim_world *w, struct sim_fault *f)
{
	each_port(w, f, is_class(f, "switch") ? cut_port : mute_port, true);
}

static void regain_switch(struct sim_world *w, struct sim_fault *f)
{
	each_port(w, f, is_class(f, "switch") ? cut_port : mute_port, false);
}

/* ---- single events ---- */

static void cut_link(struct sim_world *w, struct sim_fault *f)
{
	cut_port(w, f->host, f->dev, true);
}

static void heal_link(struct sim_world *w, struct sim_fault *f)
{
	cut_port(w, f->host, f->dev, false);
}

static void kill_device(struct sim_world *w, struct sim_fault *f)
{
	sim_device_kill(device_of(w, f));
}

static void remove_device(struct sim_world *w, struct sim_fault *f)
{
	kill_device(w, f);
	device_of(w, f)->unlisted = !(f->amount & 2);
}

/* Another fault of the same kind may have brought it back, or may keep it away. */
static void come_back(struct sim_world *w, struct sim_fault *f)
{
	if (device_of(w, f)->dead)
		w->hosts->restore(&w->host[f->host], f->dev, f->amount & 1);
}

static void stall_host(struct sim_world *w, struct sim_fault *f)
{
	uint64_t until = sim_now(w) + f->len;

	if (w->host[f->host].stalled_until < until)
		w->host[f->host].stalled_until = until;
}

static void forget_data(struct sim_world *w, struct sim_fault *f)
{
	w->hosts->forget(&w->host[f->host], device_of(w, f));
}

static void kill_at_doorbell(struct sim_world *w, struct sim_fault *f)
{
	device_of(w, f)->knobs.die_at_post = (uint32_t)f->amount;
}

static void hold_completions(struct sim_world *w, struct sim_fault *f)
{
	struct sim_device *dev = device_of(w, f);
	uint64_t until = sim_now(w) + f->len;

	/* What a dead one has shown is in the host's memory. */
	if (!dev->dead && dev->knobs.hold_until < until)
		dev->knobs.hold_until = until;
}

static void break_qps(struct sim_world *w, struct sim_fault *f)
{
	sim_device_break_qps(device_of(w, f));
}

static void new_gid(struct sim_world *w, struct sim_fault *f)
{
	struct sim_device *dev = device_of(w, f);

	dev->gid.raw[14] ^= 1;
	sr_memwire_set_gid(w->wire, dev->nic, 0, &dev->gid);
}

static void reset_sockets(struct sim_world *w, struct sim_fault *f)
{
	w->sockets_lost = true;
	sim_oob_reset(&w->oob, f->host, f->rx);
}

static void silence_sockets(struct sim_world *w, struct sim_fault *f)
{
	w->sockets_lost = true;
	sim_oob_silence(&w->oob);
}

static void stall_sockets(struct sim_world *w, struct sim_fault *f)
{
	w->oob.sick_until = sim_now(w) + f->len;
}

static void process_exit(struct sim_world *w, struct sim_fault *f)
{
	w->hosts->die(&w->host[f->host], false);
}

static void power_off(struct sim_world *w, struct sim_fault *f)
{
	w->hosts->die(&w->host[f->host], true);
}

static void quit_process(struct sim_world *w, struct sim_fault *f)
{
	w->hosts->quit(&w->host[f->host]);
}

/* Down, up, down, ... until its time is over. */
static void flap_link(void *arg);

struct flapping {
	struct sim_world *w;
	struct sim_fault *f;
	bool down;
};

static struct flapping flappings[SIM_FAULTS_MAX];

static void flap_begin(struct sim_world *w, struct sim_fault *f)
{
	struct flapping *p = &flappings[f - w->sc.fault];

	*p = (struct flapping) { w, f, false };
	flap_link(p);
}

static void flap_link(void *arg)
{
	struct flapping *p = arg;
	struct sim_world *w = p->w;

	p->down = !p->down && is_acting(w, p->f);
	sr_memwire_cut(device_of(w, p->f)->port, p->down);
	if (is_acting(w, p->f) || p->down)
		sr_memwire_at(w->wire, sim_now(w) + 1 + sr_rng_below(&w->tap_rng, p->f->amount),
			      flap_link, p);
}

static void set_rate(struct sim_world *w, const struct sim_fault *f, uint64_t slower)
{
	const struct sim_scenario *sc = &w->sc;
	uint64_t rate = sc->wire.port_rate[f->host][f->dev] ? sc->wire.port_rate[f->host][f->dev]
							    : sc->wire.bytes_per_us;
	struct sr_memwire_link link = { .latency_ns = sc->wire.latency_ns,
					.bytes_per_us = rate / slower ? rate / slower : 1,
					.bus = sc->wire.bus_rate[f->host] ? &w->host[f->host].bus
									  : NULL,
					.bus_cost = sc->wire.bus_cost[f->host][f->dev],
					.backlog_ns = sc->wire.backlog_ns };

	sr_memwire_set_link(device_of(w, f)->port, &link);
}

static void slow_port(struct sim_world *w, struct sim_fault *f)
{
	set_rate(w, f, f->amount);
}

static void as_fast_as_before(struct sim_world *w, struct sim_fault *f)
{
	set_rate(w, f, 1);
}

void sim_faults_apply(struct sim_world *w, unsigned host, unsigned dev)
{
	const struct sim_fault port = { .host = host, .dev = dev };
	uint64_t slower = 1;

	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];

		if (is_class(f, "slow") && is_acting(w, f) && sim_fault_hits(&w->sc, f, host, dev))
			slower = f->amount;
	}
	set_rate(w, &port, slower);
	mute_port(w, host, dev, true);
	cut_port(w, host, dev, false);
}

static void steer_shares(void *arg);

static struct steering {
	struct sim_world *w;
	struct sim_fault *f;
} steerings[SIM_FAULTS_MAX];

static void steer_begin(struct sim_world *w, struct sim_fault *f)
{
	struct steering *p = &steerings[f - w->sc.fault];

	*p = (struct steering) { w, f };
	steer_shares(p);
}

static void steer_shares(void *arg)
{
	struct steering *p = arg;

	if (!is_acting(p->w, p->f))
		return;
	sim_traffic_steer(&p->w->host[p->f->host]);
	sr_memwire_at(p->w->wire, sim_now(p->w) + 1 + sr_rng_below(&p->w->tap_rng, p->f->amount),
		      steer_shares, p);
}

/* Names are what --faults takes, and what is_class() compares. */
const struct sim_fault_class sim_fault_classes[] = {
	{ "loss", "packets are lost", SIM_LOSSY, sim_make_rate, apply_rates, apply_rates },
	{ "reorder", "packets overtake each other", SIM_LOSSY, sim_make_reorder, apply_rates,
	  apply_rates },
	{ "duplicate", "packets arrive twice", SIM_LOSSY, sim_make_reorder, apply_rates,
	  apply_rates },
	{ "delay", "packets take longer", SIM_LOSSY, sim_make_delay, apply_rates, apply_rates },
	{ "jitter", "packets take more or less long", SIM_LOSSY, sim_make_delay, apply_rates,
	  apply_rates },
	{ "ack-loss", "acknowledgements are lost, data is not", SIM_LOSSY, sim_make_rate, NULL,
	  NULL },
	{ "late", "packets are held and released behind later ones", SIM_SHORT_OUTAGE,
	  sim_make_short, apply_rates, apply_rates },
	{ "flap", "the port goes down for less than the window", SIM_SHORT_OUTAGE, sim_make_short,
	  cut_link, heal_link },
	{ "mute", "packets vanish for less than the window", SIM_SHORT_OUTAGE, sim_make_short,
	  apply_rates, apply_rates },
	{ "stall", "a host's thread stands still", SIM_HOST_PAUSE, sim_make_stall, stall_host,
	  NULL },
	{ "completion-delay", "completions show late", SIM_HELD, sim_make_hold, hold_completions,
	  NULL },
	{ "oob-stall", "the sockets take and give nothing for a while", SIM_SOCKET_PAUSE,
	  sim_make_sick, stall_sockets, NULL },
	{ "cut", "the port goes down for longer, or for good", SIM_OUTAGE, sim_make_long, cut_link,
	  heal_link },
	{ "black-hole", "packets vanish for longer, or for good", SIM_OUTAGE, sim_make_long,
	  apply_rates, apply_rates },
	{ "flapping", "the port goes down and up again and again", SIM_OUTAGE, sim_make_flaps,
	  flap_begin, NULL },
	{ "kill", "the device dies", SIM_DEATH, sim_make_none, kill_device, NULL },
	{ "kill-acked", "the device dies with data that it has acknowledged and not placed",
	  SIM_DEATH, sim_make_acked, stall_host, forget_data },
	{ "return", "the device fails, and is listed again later, under its old name or another",
	  SIM_RETURN, sim_make_return, remove_device, come_back },
	{ "doorbell", "the device dies in the middle of a doorbell", SIM_DYING, sim_make_count,
	  kill_at_doorbell, NULL },
	{ "qp-error", "a device's queue pairs fail, and the peer is not notified", SIM_BREAK,
	  sim_make_none, break_qps, NULL },
	{ "new-gid", "a port gets another address", SIM_BREAK, sim_make_none, new_gid, NULL },
	{ "oob-reset", "the sockets are reset, at both ends or one", SIM_SOCKETS_LOST,
	  sim_make_none, reset_sockets, NULL },
	{ "oob-silence", "the sockets carry nothing any more, and nobody says so", SIM_SOCKETS_LOST,
	  sim_make_none, silence_sockets, NULL },
	{ "steer", "the shares of rails change again and again, by hints or by hand", SIM_STEERED,
	  sim_make_steering, steer_begin, NULL },
	{ "slow", "a port sends more slowly for a while", SIM_OUTAGE, sim_make_slow, slow_port,
	  as_fast_as_before },
	{ "slow-connect", "connecting a queue pair takes long, and may fail", SIM_CONNECTING,
	  sim_make_connecting, NULL, NULL },
	{ "switch",
	  "a leaf switch fails, or half of its ports do: they go down at both hosts, for longer or "
	  "for good",
	  SIM_OUTAGE, sim_make_switch, lose_switch, regain_switch },
	{ "silent-switch", "the same, and the ports stay up", SIM_OUTAGE, sim_make_switch,
	  lose_switch, regain_switch },
	{ "exit", "a process dies", SIM_PEER_END, sim_make_none, process_exit, NULL },
	{ "power", "a machine dies", SIM_PEER_END, sim_make_none, power_off, NULL },
	{ "quit", "a process ends its context with everything open", SIM_PEER_END, sim_make_none,
	  quit_process, NULL },
};
const unsigned sim_fault_nclasses = sizeof(sim_fault_classes) / sizeof(sim_fault_classes[0]);
_Static_assert(sizeof(sim_fault_classes) / sizeof(sim_fault_classes[0]) <= 31,
	       "a mask has 32 bits, and a storm");

/* ---- by name ---- */

uint32_t sim_faults_parse(const char *list, char bad[32])
{
	uint32_t mask = 0;

	if (!strcmp(list, "all"))
		return (1u << sim_fault_nclasses) - 1;
	while (*list) {
		size_t n = strcspn(list, ",");
		unsigned i = 0;

		if (n == 5 && !strncmp(list, "storm", n)) {
			mask |= SIM_STORM;
			list += n + (list[n] == ',');
			continue;
		}
		while (i < sim_fault_nclasses && (strlen(sim_fault_classes[i].name) != n ||
						  strncmp(sim_fault_classes[i].name, list, n)))
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

/* ---- drawing ---- */

/*
 * A third of the seeds hold only what everybody survives; in the others one or two more may be
 * anything.
 */
static uint32_t draw_mask(struct sr_rng *rng)
{
	bool gentle = sr_rng_below(rng, 3) == 0;
	uint32_t mask = 0;

	for (unsigned i = 0; i < sim_fault_nclasses; i++)
		if (!gentle || SIM_GENTLE(sim_fault_classes[i].effect))
			mask |= 1u << i;
	return mask;
}

/* One of the classes of a mask. */
static unsigned pick_class(uint32_t mask, struct sr_rng *rng)
{
	unsigned n = (unsigned)sr_rng_below(rng, (uint64_t)__builtin_popcount(mask));

	while (n--)
		mask &= mask - 1;
	return (unsigned)__builtin_ctz(mask);
}

static bool on_wire(const struct sim_fault *f)
{
	enum sim_effect effect = sim_fault_classes[f->class].effect;

	return effect == SIM_LOSSY || effect == SIM_SHORT_OUTAGE;
}

static bool is_short_outage(const struct sim_fault *f)
{
	return sim_fault_classes[f->class].effect == SIM_SHORT_OUTAGE;
}

/* Gentle outages wait for each other, and for lost packets: else even they add up to a window. */
static uint64_t shift_time(const struct sim_scenario *sc, const struct sim_fault *f)
{
	uint64_t at = f->at, pause = 2 * sim_scenario_window(sc);

	if (!on_wire(f))
		return at;
	/* a shift may meet one that was passed before */
	for (unsigned k = 0; k < sc->nfaults * sc->nfaults; k++) {
		const struct sim_fault *g = &sc->fault[k % sc->nfaults];

		if ((is_short_outage(f) || is_short_outage(g)) && on_wire(g) &&
		    at < g->at + g->len + pause && g->at < at + f->len + pause)
			at = g->at + g->len + pause;
	}
	return at;
}

/* Mostly one that a connection runs over, or its standby's. */
static void choose_device(const struct sim_scenario *sc, struct sim_fault *f, struct sr_rng *rng)
{
	const struct sim_conn_spec *c = &sc->conn[sr_rng_below(rng, sc->nconns)];
	unsigned end = (unsigned)sr_rng_below(rng, 2);

	f->host = (unsigned)sr_rng_below(rng, 2);
	f->dev = (unsigned)sr_rng_below(rng, sc->ndevices[f->host]);
	f->rx = sr_rng_below(rng, 2);
	if (sr_rng_below(rng, 3) == 0)
		return;
	f->host = end ? 1 - c->from : c->from;
	f->dev = c->rail[end][sr_rng_below(rng, c->nrails[end])];
}

/*
 * Connecting takes the first milliseconds; then transfer, close. Some come when an earlier one is
 * being mended.
 */
static uint64_t choose_time(const struct sim_scenario *sc, struct sr_rng *rng)
{
	const struct sim_fault *before =
		sc->nfaults ? &sc->fault[sr_rng_below(rng, sc->nfaults)] : NULL;
	uint64_t at = sr_rng_below(
		rng, UINT64_C(1) << draw_between(rng, sr_rng_below(rng, 3) ? 19 : 10, 25));
	uint64_t after = sr_rng_below(
		rng, UINT64_C(1) << draw_between(rng, 10, sr_rng_below(rng, 4) ? 22 : 30));

	if (!before || sr_rng_below(rng, 2))
		return at;
	return before->at + (before->len < SIM_FOREVER && sr_rng_below(rng, 2) ? before->len : 0) +
	       after;
}

void sim_faults_make(struct sim_scenario *sc, struct sr_rng *rng, uint32_t allowed)
{
	uint32_t mask = allowed ? allowed : draw_mask(rng);
	unsigned n = sr_rng_below(rng, 8) ? (unsigned)draw_between(rng, 1, 5)
					  : (unsigned)draw_between(rng, 6, 20);

	/* A few kinds per seed, so that some seeds see much of one. */
	while (!allowed && __builtin_popcount(mask) > 4)
		mask &= (uint32_t)sr_rng_next(rng) | 1u << pick_class(mask, rng);
	for (unsigned i = 0; i < n; i++) {
		struct sim_fault *f = &sc->fault[sc->nfaults];

		*f = (struct sim_fault) { .class = pick_class(mask, rng) };
		choose_device(sc, f, rng);
		f->at = choose_time(sc, rng);
		sim_fault_classes[f->class].make(f, sc, rng);
		f->at = shift_time(sc, f);
		sc->nfaults++;
	}
}

static struct sim_fault *add_fault(struct sim_scenario *sc, const char *name, uint64_t at,
				   uint64_t len)
{
	struct sim_fault *f = &sc->fault[sc->nfaults++];
	char bad[32];

	*f = (struct sim_fault) { .class = (unsigned)__builtin_ctz(sim_faults_parse(name, bad)),
				  .at = at,
				  .len = len };
	return f;
}

void sim_faults_storm(struct sim_scenario *sc, struct sr_rng *rng)
{
	static const char *const breaks[] = { "qp-error", "qp-error", "qp-error",
					      "flap",     "cut",      "mute" };
	unsigned n = (unsigned)draw_between(rng, 3, 12);
	uint64_t at = draw_between(rng, 200 * US, 2 * MS);

	for (unsigned h = 0; h < 2; h++)
		for (unsigned d = 0; d < sc->ndevices[h]; d++) {
			struct sim_fault *f =
				add_fault(sc, "loss", draw_between(rng, 0, 1 * MS), 20 * MS);

			f->host = h;
			f->dev = d;
			f->amount = draw_between(rng, 1000, 60000);
		}
	while (n--) {
		const char *name = breaks[sr_rng_below(rng, sizeof(breaks) / sizeof(breaks[0]))];
		struct sim_fault *f = add_fault(
			sc, name, at, name[0] == 'q' ? 0 : draw_between(rng, 100 * US, 20 * MS));

		f->host = (unsigned)sr_rng_below(rng, 2);
		f->dev = (unsigned)sr_rng_below(rng, sc->ndevices[f->host]);
		f->rx = sr_rng_below(rng, 2);
		at += draw_between(rng, 10 * US, 2 * MS);
	}
}

void sim_fault_print(const struct sim_fault *f, unsigned index, FILE *out)
{
	const struct sim_fault_class *c = &sim_fault_classes[f->class];

	if (of_switch(f))
		fprintf(out, "  fault %u at %.3f ms: %s (%s), leaf %u, ", index,
			(double)f->at / 1e6, c->name, c->help, f->dev);
	else
		fprintf(out, "  fault %u at %.3f ms: %s (%s), host %u sim%u %s, ", index,
			(double)f->at / 1e6, c->name, c->help, f->host, f->dev,
			f->rx ? "rx" : "tx");
	if (f->len >= SIM_FOREVER)
		fprintf(out, "for good, amount %llu\n", (unsigned long long)f->amount);
	else
		fprintf(out, "for %.3f ms, amount %llu\n", (double)f->len / 1e6,
			(unsigned long long)f->amount);
}

const char *sim_effect_expected(enum sim_effect effect)
{
	if (SIM_GENTLE(effect))
		return "survived";
	return effect == SIM_PEER_END ? "clean error" : "survived with another path";
}

uint64_t sim_fault_lasts(const struct sim_fault *f)
{
	return f->len + (sim_fault_classes[f->class].effect == SIM_RETURN ? FOUND_NS : 0);
}

uint64_t sim_faults_over(const struct sim_scenario *sc)
{
	uint64_t over = 0;

	for (unsigned i = 0; i < sc->nfaults; i++) {
		const struct sim_fault *f = &sc->fault[i];
		uint64_t end = f->at + (f->len < SIM_FOREVER ? sim_fault_lasts(f) : 0);

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
	sim_trace_line(s->w, "fault: %s begins, host %u sim%u %s", class->name, s->f->host,
		       s->f->dev, s->f->rx ? "rx" : "tx");
	if (class->begin)
		class->begin(s->w, s->f);
}

static void on_end(void *arg)
{
	struct scheduled *s = arg;
	const struct sim_fault_class *class = &sim_fault_classes[s->f->class];

	sim_trace_line(s->w, "fault: %s is over, host %u sim%u", class->name, s->f->host,
		       s->f->dev);
	class->end(s->w, s->f);
}

void sim_faults_schedule(struct sim_world *w)
{
	uint64_t start = sim_now(w);

	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		struct sim_fault *f = &w->sc.fault[i];

		scheduled[i] = (struct scheduled) { w, f };
		if (f->off)
			continue;
		sr_memwire_at(w->wire, start + f->at, on_begin, &scheduled[i]);
		if (sim_fault_classes[f->class].end && f->len < SIM_FOREVER)
			sr_memwire_at(w->wire, start + f->at + f->len, on_end, &scheduled[i]);
	}
}

uint64_t sim_faults_connecting(const struct sim_world *w, unsigned host, unsigned dev, bool *fails)
{
	uint64_t now = sim_elapsed(w), ns = 0;

	*fails = false;
	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];
		uint64_t left = f->at + f->len - now;

		if (f->host != host || f->dev != dev || !is_class(f, "slow-connect") ||
		    !is_acting(w, f))
			continue;
		*fails |= f->amount & 1;
		left = f->amount < left ? f->amount : left;
		ns = left > ns ? left : ns;
	}
	return ns;
}

#define OP_ACKNOWLEDGE 17

/*
 * One end of one connection alone has fallen silent. The peer's queue pair is named in the packet.
 */
static bool mutes_end(const struct sim_world *w, const struct sr_memwire_port *from,
		      const uint8_t *packet)
{
	const struct sim_mute *m = &w->sc.mute;
	const struct sim_side *s =
		m->on && w->conn[m->conn] ? &w->conn[m->conn]->side[m->end] : NULL;
	uint32_t to = (uint32_t)packet[5] << 16 | (uint32_t)packet[6] << 8 | packet[7];
	bool mute = false;

	if (!s || !s->bundle || sim_elapsed(w) < m->at)
		return false;
	for (unsigned i = 0; i < s->conn->spec->nrails[m->end]; i++)
		mute |= s->bundle->rail[i].epoch == 0 &&
			s->bundle->rail[i].setup.peer.qp.qpn == to &&
			s->host->verbs->device[s->conn->spec->rail[m->end][i]]->port == from;
	return mute;
}

bool sim_faults_eat(struct sim_world *w, const struct sr_memwire_port *from, const uint8_t *packet)
{
	if (mutes_end(w, from, packet))
		return true;
	if (packet[0] != OP_ACKNOWLEDGE)
		return false;
	for (unsigned i = 0; i < w->sc.nfaults; i++) {
		const struct sim_fault *f = &w->sc.fault[i];

		if (is_acting(w, f) && is_class(f, "ack-loss") && device_of(w, f)->port == from &&
		    sr_rng_below(&w->tap_rng, SR_PPM) < f->amount)
			return true;
	}
	return false;
}
