/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/scenario.h"

#include "base/config.h"
#include "base/rng.h"
#include "sim/plugin/faults.h"

#include <string.h>

#define US 1000u
#define MS 1000000u

/* A stream of its own for part `salt` of a seed. */
static struct sr_rng make_stream(uint64_t seed, uint64_t salt)
{
	struct sr_rng rng = { seed * UINT64_C(0x9e3779b97f4a7c15) ^
			      salt * UINT64_C(0xd1342543de82ef95) };

	sr_rng_next(&rng);
	return rng;
}

static uint64_t draw_between(struct sr_rng *rng, uint64_t low, uint64_t high)
{
	return low + sr_rng_below(rng, high - low + 1);
}

static bool draw_chance(struct sr_rng *rng, unsigned percent)
{
	return sr_rng_below(rng, 100) < percent;
}

/* Every order of magnitude of [0, high] is as likely as any other. */
static uint64_t draw_magnitude(struct sr_rng *rng, uint64_t high)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(high | 1);
	uint64_t v = sr_rng_below(rng, UINT64_C(1) << sr_rng_below(rng, bits + 1));

	return v > high ? high : v;
}

static void make_hosts(struct sim_scenario *sc, struct sr_rng *rng)
{
	unsigned n = draw_chance(rng, 30) ? (unsigned)draw_between(rng, 3, SIM_DEVICES_MAX)
					  : (unsigned)draw_between(rng, 1, 3);

	sc->ndevices[0] = sc->ndevices[1] = n;
	if (draw_chance(rng, 25))
		sc->ndevices[sr_rng_below(rng, 2)] =
			(unsigned)draw_between(rng, 1, SIM_DEVICES_MAX);
	sc->limits = (struct sim_limits) {
		.max_qp_wr = draw_chance(rng, 70) ? 8192 : (int)draw_between(rng, 64, 512),
		.max_srq_wr = draw_chance(rng, 70) ? 4096 : (int)draw_between(rng, 4, 1024),
		.max_qp = 4096,
		.mtu = (enum ibv_mtu)draw_between(rng, IBV_MTU_256, IBV_MTU_4096),
		.inflight = draw_chance(rng, 50) ? 0 : (uint32_t)draw_between(rng, 4, 128),
	};
	sc->settings.timeout = (int)draw_between(rng, 8, 14);
	sc->settings.retry = 7;
	sc->settings.poll_batch = (int)draw_between(rng, 1, 64);
	sc->settings.poll_max = (int)draw_between(rng, 1, 64);
	sc->settings.wr_per_conn = draw_chance(rng, 70) ? 64 : (int)draw_between(rng, 4, 64);
	sc->settings.connect_timeout_ms = 5000;
	sc->wire.latency_ns = draw_between(rng, 300, 20000);
	sc->wire.bytes_per_us = draw_chance(rng, 50) ? 12500 : draw_between(rng, 500, 50000);
	sc->oob.latency_ns = draw_between(rng, 5 * US, 300 * US);
	sc->oob.jitter_ns = draw_between(rng, 0, 200 * US);
	sc->oob.piece = draw_chance(rng, 50) ? 0 : (uint32_t)draw_between(rng, 1, 300);
	sc->oob.keepalive_ns = UINT64_C(3000) * MS;
	sc->thread.gap_min_ns = draw_between(rng, 200, 5 * US);
	sc->thread.gap_max_ns = draw_between(rng, 20 * US, 200 * US);
}

/*
 * Which of a connection's devices each rail is on. The two ends must agree on it: 0, 1, 2, ..., or
 * several on each, one device after the other, as NCCL_IB_QPS_PER_CONNECTION and MPIB lay them out.
 */
static void draw_layout(unsigned layout[HA_MAX_RAILS], bool repeat, struct sr_rng *rng)
{
	layout[0] = 0;
	for (unsigned i = 1; i < HA_MAX_RAILS; i++)
		layout[i] = layout[i - 1] + !(repeat && draw_chance(rng, 60));
}

/*
 * As many rails as `devices` devices have, the first of which is any; the others follow it round.
 */
static unsigned lay_out(unsigned *rail, const unsigned layout[HA_MAX_RAILS], unsigned devices,
			unsigned first, unsigned n)
{
	unsigned i = 0;

	for (; i < HA_MAX_RAILS && layout[i] < devices; i++)
		rail[i] = (first + layout[i]) % n;
	return i;
}

static void make_rails(const struct sim_scenario *sc, struct sim_conn_spec *c, struct sr_rng *rng)
{
	/* alone: on one device at both ends, there may be a standby */
	bool alone = draw_chance(rng, 40), repeat = draw_chance(rng, 35);
	unsigned layout[HA_MAX_RAILS];

	draw_layout(layout, repeat, rng);
	for (unsigned end = 0; end < 2; end++) {
		unsigned n = sc->ndevices[end ? 1 - c->from : c->from],
			 most = n < HA_MAX_RAILS ? n : HA_MAX_RAILS;
		unsigned devices =
			alone || draw_chance(rng, 20) ? 1 : (unsigned)draw_between(rng, 1, most);

		c->nrails[end] =
			lay_out(c->rail[end], layout, devices, (unsigned)sr_rng_below(rng, n), n);
		if (repeat && c->nrails[end] > 1 &&
		    draw_chance(rng, 50)) /* the smaller number counts */
			c->nrails[end] = (unsigned)draw_between(rng, 1, c->nrails[end]);
	}
}

/* Mostly the one of its number, as in a rail-optimized fabric; sometimes there are fewer, or a host
 * is cabled crosswise. */
static void make_fabric(struct sim_scenario *sc, struct sr_rng *rng)
{
	unsigned leaves =
		draw_chance(rng, 60) ? SIM_DEVICES_MAX : (unsigned)draw_between(rng, 2, 4);
	bool crossed = draw_chance(rng, 20);

	for (unsigned h = 0; h < 2; h++)
		for (unsigned d = 0; d < SIM_DEVICES_MAX; d++)
			sc->wire.leaf[h][d] = (uint8_t)((d ^ (crossed && h)) % leaves);
	sc->wire.apart = draw_chance(rng, 8);
	if (sc->wire.apart)
		sc->ndevices[1] = sc->ndevices[0];
}

/* Each rail leads to the device of its own number. */
static void align_rails(struct sim_conn_spec *c)
{
	c->nrails[1] = c->nrails[0];
	memcpy(c->rail[1], c->rail[0], sizeof(c->rail[1]));
}

/* Bytes that a connection may have in flight: what is filled and looked at, over and over. */
#define FLIGHT_BYTES (2u << 20)

static uint64_t pick_max_size(struct sr_rng *rng)
{
	if (draw_chance(rng, 10))
		return 2 << 20;
	return draw_chance(rng, 30) ? 256 << 10 : 8 << 10;
}

/* Fewer of the long messages. */
static uint64_t limit_messages(const struct sim_conn_spec *c)
{
	if (c->max_size > 256 << 10)
		return 6;
	return c->max_size > 8 << 10 ? 40 : 150;
}

static bool exceeds_flight(const struct sim_conn_spec *c)
{
	return (uint64_t)c->window * c->group_max * c->max_size > FLIGHT_BYTES;
}

/* How long and how many the messages are, and how many are on their way at once. */
static void make_messages(struct sim_conn_spec *c, struct sr_rng *rng)
{
	c->window = (uint32_t)draw_between(rng, 1, draw_chance(rng, 20) ? SIM_WINDOW_MAX : 8);
	c->max_size = (uint32_t)draw_between(rng, 1, pick_max_size(rng));
	c->group_max = draw_chance(rng, 30) ? (unsigned)draw_between(rng, 2, HA_MAX_RECVS) : 1;
	while (c->window > 1 && exceeds_flight(c))
		c->window--;
	while (c->group_max > 1 && exceeds_flight(c))
		c->group_max--;
	c->messages = (uint32_t)draw_between(rng, 1, limit_messages(c));
	if (c->max_size <= 512 && draw_chance(rng, 10))
		c->messages = (uint32_t)draw_between(rng, 256, 700); /* the rings go round */
	c->optional = c->group_max == 1 && draw_chance(rng, 15);
	if (c->optional && draw_chance(rng, 60)) {
		/* Several stripes, so that data can be there and its notification lost. */
		c->max_size = (uint32_t)draw_between(rng, 64 << 10, 128 << 10);
		c->window = (uint32_t)draw_between(rng, 2, 8);
		c->messages = (uint32_t)draw_between(rng, 10, 60);
	}
}

/* When it starts and how long it waits, and where. */
static void make_times(struct sim_conn_spec *c, struct sr_rng *rng)
{
	for (unsigned end = 0; end < 2; end++) {
		c->start_ns[end] = draw_chance(rng, 70) ? draw_magnitude(rng, 500 * US)
							: draw_magnitude(rng, 50 * MS);
		c->linger_ns[end] = draw_chance(rng, 50) ? 0 : draw_magnitude(rng, 5 * MS);
	}
	c->think_ns = draw_chance(rng, 60) ? 0 : draw_between(rng, 1, 500 * US);
	if (draw_chance(rng, 20) && c->messages <= 150)
		/* faults of every time meet it alive */
		c->think_ns = draw_between(rng, 1 * MS, 10 * MS);
}

static void make_conn(const struct sim_scenario *sc, struct sim_conn_spec *c, struct sr_rng *rng)
{
	memset(c, 0, sizeof(*c));
	c->key = sr_rng_next(rng);
	c->from = (unsigned)sr_rng_below(rng, 2);
	make_rails(sc, c, rng);
	make_messages(c, rng);
	c->gpu = !c->optional && draw_chance(rng, 15);
	/*
	 * An optional receive's data may come once more, so its buffer stays registered, as NCCL's
	 * do.
	 */
	c->reg_each = !c->optional && draw_chance(rng, 15);
	make_times(c, rng);
	c->stays = draw_chance(rng, 15) && c->messages > SIM_TAIL;
}

/* The back-offs of the protocol: 100 ms, then twice as long each time, 30 s at most. */
uint64_t sim_scenario_retry_limit(const struct sim_scenario *sc, unsigned host)
{
	uint64_t ns = 0, pause = 100 * MS;

	for (int i = 0; i < sc->host[host].max_retries; i++) {
		ns += pause;
		pause = pause * 2 < 30000 * (uint64_t)MS ? pause * 2 : 30000 * (uint64_t)MS;
	}
	return ns;
}

static int pick_retries(struct sr_rng *rng)
{
	if (draw_chance(rng, 20))
		return 4;
	return draw_chance(rng, 80) ? 5 : 6;
}

static void make_settings(struct sim_scenario *sc, struct sr_rng *rng)
{
	bool nervous = draw_chance(rng, 20), memory = draw_chance(rng, 25),
	     both = draw_chance(rng, 85);

	for (unsigned h = 0; h < 2; h++) {
		sc->host[h] = (struct sim_host_spec) {
			.backup = both || draw_chance(rng, 50),
			.failback = draw_chance(rng, 50),
			.ack_memory = memory && draw_chance(rng, 70),
			.eager = draw_chance(rng, 30),
			.heartbeat_ms = 200,
			.rto_ms = 1000,
			.max_retries = pick_retries(rng),
		};
		/* Suspicious of everything. Without failover a false alarm is the end. */
		if (nervous && both) {
			sc->host[h].heartbeat_ms = (int)draw_between(rng, 10, 50);
			sc->host[h].rto_ms = (int)draw_between(rng, 10, 200);
		}
	}
	/* Mostly as it comes; some suspect what only rests for a moment. */
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].silence_ms = 5;
		if (draw_chance(rng, 30))
			sc->host[h].silence_ms = (int)draw_between(rng, 1, 20);
		if (draw_chance(rng, 20))
			sc->host[h].silence_ms = 0;
	}
}

/* Some call a path slow that has only had a bad moment. Dice of their own: the other choices of a
 * seed stay what they were. */
static void make_slow_factors(struct sim_scenario *sc, struct sr_rng *rng)
{
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].slow_factor = draw_chance(rng, 20) ? 0 : (int)draw_between(rng, 2, 6);
		sc->host[h].slow_moves = draw_chance(rng, 50) ? 4 : (int)draw_between(rng, 1, 100);
	}
}

/* Most copy what is small, as by default. Dice of their own, as above. */
static void make_copies(struct sim_scenario *sc, struct sr_rng *rng)
{
	for (unsigned h = 0; h < 2; h++)
		sc->host[h].copy_max = draw_chance(rng, 30) ? (int)draw_between(rng, 1, 64) : 64;
	for (unsigned h = 0; h < 2; h++)
		if (draw_chance(rng, 20))
			sc->host[h].copy_max = 0;
}

/* Most keep as many as the switches ask for, as by default. Dice of their own, as above. */
static void make_standbys(struct sim_scenario *sc, struct sr_rng *rng)
{
	for (unsigned h = 0; h < 2; h++)
		sc->host[h].standbys = draw_chance(rng, 10) ? 1 + (int)draw_between(rng, 1, 6) : 0;
}

/* Some let messages arrive in any order; mostly both ends do. Dice of their own, as above. */
static void make_orders(struct sim_scenario *sc, struct sr_rng *rng)
{
	sc->limits.unordered = draw_chance(rng, 30);
	for (unsigned h = 0; h < 2; h++)
		sc->host[h].ooo_rq = sc->limits.unordered && draw_chance(rng, 90);
}

/* How each host shares its data out. */
static void make_policies(struct sim_scenario *sc, struct sr_rng *rng)
{
	static const int policies[] = { HA_POLICY_AUTO,     HA_POLICY_PRIMARY, HA_POLICY_STATIC,
					HA_POLICY_TOPOLOGY, HA_POLICY_AGENT,   HA_POLICY_AGENT,
					HA_POLICY_ADAPTIVE, HA_POLICY_ADAPTIVE };

	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].policy =
			policies[sr_rng_below(rng, sizeof(policies) / sizeof(*policies))];
		for (unsigned i = 0; i < HA_MAX_RAILS; i++)
			sc->host[h].weights[i] =
				draw_chance(rng, 25) ? 0 : (uint16_t)draw_between(rng, 1, 1024);
		sc->host[h].weights[sr_rng_below(rng, HA_MAX_RAILS)] = 512;
		for (unsigned d = 0; d < SIM_DEVICES_MAX; d++) {
			sc->wire.speed[h][d] =
				draw_chance(rng, 30) ? 1u << draw_between(rng, 0, 2) : 0;
			sc->wire.bus_cost[h][d] =
				draw_chance(rng, 20) ? (uint8_t)draw_between(rng, 1, 3) : 0;
			sc->wire.port_rate[h][d] =
				draw_chance(rng, 30)
					? sc->wire.bytes_per_us / draw_between(rng, 1, 20) + 10
					: 0;
		}
		sc->wire.bus_rate[h] = draw_chance(rng, 20)
					       ? sc->wire.bytes_per_us * draw_between(rng, 1, 4) / 2
					       : 0;
	}
}

/*
 * One busy connection over several rails that fail one after the other while packets get lost
 * (sim_faults_storm).
 */
static void make_storm(struct sim_scenario *sc, struct sr_rng *rng)
{
	struct sim_conn_spec *c = &sc->conn[0];
	unsigned rails = (unsigned)draw_between(rng, 1, 6), layout[HA_MAX_RAILS];

	sc->ndevices[0] = sc->ndevices[1] = rails < 2 ? 2 : rails;
	sc->settings.timeout = (int)draw_between(rng, 8, 11);
	sc->nconns = 1;
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].backup = true;
		sc->host[h].max_retries = 6;
	}
	c->nrails[0] = c->nrails[1] = rails;
	for (unsigned i = 0; i < rails; i++)
		c->rail[0][i] = c->rail[1][i] = i;
	if (draw_chance(rng, 30)) {
		draw_layout(layout, true, rng);
		for (unsigned end = 0; end < 2; end++)
			c->nrails[end] = lay_out(c->rail[end], layout, rails, 0, sc->ndevices[0]);
	}
	c->messages = (uint32_t)draw_between(rng, 40, 100);
	c->window = (uint32_t)draw_between(rng, 2, 8);
	c->max_size = (uint32_t)draw_between(rng, 1 << 10, 128 << 10);
	c->group_max = draw_chance(rng, 30) ? 3 : 1;
	c->optional = c->group_max == 1 && draw_chance(rng, 60);
	c->gpu = !c->optional && c->gpu;
	c->reg_each = !c->optional && c->reg_each;
	c->think_ns = draw_chance(rng, 50) ? 0 : draw_between(rng, 1, 200 * US);
	c->start_ns[0] = c->start_ns[1] = 0;
}

/* No dice: the other choices of a seed stay what they were. */
static void choose_one_sided(struct sim_scenario *sc)
{
	for (unsigned i = 0; i < sc->nconns; i++) {
		struct sim_conn_spec *c = &sc->conn[i];

		c->one_sided =
			c->group_max == 1 && !c->optional && !c->reg_each && (c->key >> 40 & 1);
		c->gpu = c->gpu && !c->one_sided;
	}
}

void sim_scenario_make(struct sim_scenario *sc, uint64_t seed, uint32_t allowed)
{
	struct sr_rng rng = make_stream(seed, 1), fabric;

	memset(sc, 0, sizeof(*sc));
	sc->seed = seed;
	sc->wire.reorders = seed % 2; /* no dice: the other choices of a seed stay what they were */
	sc->shrunk.message_cap = UINT32_MAX;
	sc->thread.service_ns = 1000 * US;
	make_hosts(sc, &rng);
	fabric = make_stream(seed, 5);
	make_fabric(sc, &fabric);
	sc->nconns = draw_chance(&rng, 70) ? (unsigned)draw_between(&rng, 1, 4)
					   : (unsigned)draw_between(&rng, 1, SIM_CONNS_DRAWN);
	for (unsigned i = 0; i < sc->nconns; i++) {
		rng = make_stream(seed, 100 + i);
		make_conn(sc, &sc->conn[i], &rng);
		if (sc->wire.apart)
			align_rails(&sc->conn[i]);
	}
	rng = make_stream(seed, 3);
	make_settings(sc, &rng);
	rng = make_stream(seed, 4);
	make_policies(sc, &rng);
	rng = make_stream(seed, 2);
	if (allowed & SIM_STORM || (!allowed && draw_chance(&rng, 5))) {
		make_storm(sc, &rng);
		sim_faults_storm(sc, &rng);
	} else {
		sim_faults_make(sc, &rng, allowed);
	}
	choose_one_sided(sc);
	rng = make_stream(seed, 6);
	make_slow_factors(sc, &rng);
	rng = make_stream(seed, 7);
	make_copies(sc, &rng);
	rng = make_stream(seed, 8);
	make_standbys(sc, &rng);
	rng = make_stream(seed, 9);
	make_orders(sc, &rng);
}

void sim_message_make(const struct sim_conn_spec *c, uint32_t index, struct sim_message *m)
{
	struct sr_rng rng = make_stream(c->key, index);
	int tags = (int)sr_rng_below(&rng, 1 << 20) << 4;

	m->n = c->group_max > 1 ? (unsigned)draw_between(&rng, 1, c->group_max) : 1;
	m->optional = c->optional && draw_chance(&rng, 70);
	for (unsigned i = 0; i < m->n; i++) {
		m->posted[i] =
			(uint32_t)(draw_chance(&rng, 50) ? draw_magnitude(&rng, c->max_size)
							 : draw_between(&rng, 0, c->max_size));
		/* A receive of nothing ends no older one's hold on the buffer. */
		m->posted[i] += c->optional && !m->posted[i];
		m->posted[i] = c->whole ? c->max_size : m->posted[i];
		m->sent[i] = m->posted[i];
		if (!m->optional && !c->whole && draw_chance(&rng, 25))
			m->sent[i] = (uint32_t)draw_between(
				&rng, 0, draw_chance(&rng, 20) ? c->max_size : m->posted[i]);
		m->expect[i] = m->sent[i] < m->posted[i] ? m->sent[i] : m->posted[i];
		m->tag[i] = tags | (int)i;
		m->key[i] = sr_rng_next(&rng);
	}
}

static void print_conn(const struct sim_scenario *sc, unsigned i, FILE *out)
{
	const struct sim_conn_spec *c = &sc->conn[i];
	uint32_t messages =
		c->messages < sc->shrunk.message_cap ? c->messages : sc->shrunk.message_cap;

	fprintf(out, "  connection %u: host %u", i, c->from);
	for (unsigned end = 0; end < 2; end++) {
		fprintf(out, "%s", end ? " -> " : " ");
		for (unsigned r = 0; r < c->nrails[end]; r++)
			fprintf(out, "%ssim%u", r ? "+" : "", c->rail[end][r]);
	}
	fprintf(out,
		", %u messages of up to %u x %u bytes, %u in flight%s%s%s%s%s, starts at %.3f/%.3f "
		"ms\n",
		messages, c->group_max, c->max_size, c->window, c->optional ? ", optional" : "",
		c->gpu ? ", flushed" : "", c->reg_each ? ", registered one by one" : "",
		c->stays ? ", stays" : "", c->one_sided ? ", one-sided" : "",
		(double)c->start_ns[0] / 1e6, (double)c->start_ns[1] / 1e6);
}

static const char *policy_name(int policy)
{
	static const char *const names[] = { "auto",     "primary", "static",
					     "topology", "agent",   "adaptive" };

	return names[policy];
}

void sim_scenario_print(const struct sim_scenario *sc, FILE *out)
{
	fprintf(out,
		"  seed %llu: %u and %u devices%s, MTU %d, wire %.1f us %llu MB/s, timeout %d "
		"(window %.1f ms), "
		"max_qp_wr %d, max_srq_wr %d%s\n",
		(unsigned long long)sc->seed, sc->ndevices[0], sc->ndevices[1],
		sc->wire.apart ? ", rail-only" : "", 128 << sc->limits.mtu,
		(double)sc->wire.latency_ns / 1e3, (unsigned long long)sc->wire.bytes_per_us,
		sc->settings.timeout, (double)sim_scenario_window(sc) / 1e6, sc->limits.max_qp_wr,
		sc->limits.max_srq_wr, sc->wire.reorders ? ", adaptive routing" : "");
	for (unsigned h = 0; h < 2; h++)
		fprintf(out,
			"  host %u: POLICY=%s, ACK=%s, MR_MODE=%s, ENABLE_BACKUP=%d, "
			"ENABLE_FAILBACK=%d, heartbeat %d ms, RTO %d ms, silence %d ms, slow x %d, "
			"copies up to %d B, STANDBYS=%d, OOO_RQ=%d, %d retries (%.1f s)\n",
			h, policy_name(sc->host[h].policy),
			sc->host[h].ack_memory ? "memory" : "nic",
			sc->host[h].eager ? "eager" : "lazy", sc->host[h].backup,
			sc->host[h].failback, sc->host[h].heartbeat_ms, sc->host[h].rto_ms,
			sc->host[h].silence_ms, sc->host[h].slow_factor, sc->host[h].copy_max,
			sc->host[h].standbys, sc->host[h].ooo_rq, sc->host[h].max_retries,
			(double)sim_scenario_retry_limit(sc, h) / 1e9);
	for (unsigned i = 0; i < sc->nconns; i++)
		if (sim_conn_is_on(sc, i))
			print_conn(sc, i, out);
	for (unsigned i = 0; i < sc->nfaults; i++)
		if (!sc->fault[i].off)
			sim_fault_print(&sc->fault[i], i, out);
}
