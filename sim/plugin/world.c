/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/world.h"

#include "base/log.h"
#include "base/random.h"
#include "plugin/ctx.h"
#include "plugin/report/journal.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/mutation.h"
#include "sim/plugin/traffic.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS_MAX 20000000u /* of the wire; the longest scenarios need a tenth */
#define WATCH_NS 10000000u  /* how often a hang is looked for */

/*
 * The core's log and its random numbers are a process's, not a context's; one run at a time has
 * them.
 */
static struct sim_world *current;
static char last_lines[16][256];
static unsigned n_last_lines;

const char *sim_mutation_name(enum sim_mutation m, const char **help)
{
	static const char *const names[SIM_MUTATIONS] = {
		"none", "drop-imm", "double-imm", "shorten", "corrupt", "stray", "leak-qp",
	};
	static const char *const protocol[][2] = { { "nothing", "nothing" },
#define X(id, name, help) { name, help },
						   HA_MUTATION_LIST(X)
#undef X
	};
	unsigned i = (unsigned)m - SIM_MUTATIONS;

	if (help)
		*help = (unsigned)m >= SIM_MUTATIONS && i < HA_MUTATE_COUNT ? protocol[i][1] : NULL;
	if ((unsigned)m < SIM_MUTATIONS)
		return names[m];
	return i < HA_MUTATE_COUNT ? protocol[i][0] : NULL;
}

__attribute__((format(printf, 5, 6))) static void on_log(int level, unsigned long flags,
							 const char *file, int line,
							 const char *fmt, ...)
{
	char text[224];
	va_list args;

	if (!current)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	sim_trace_line(current, "core: %s", text);
	snprintf(last_lines[n_last_lines++ % 16], sizeof(last_lines[0]), "%12.3f us  %s",
		 (double)sim_elapsed(current) / 1e3, text);
}

void sim_world_print_log(FILE *out)
{
	unsigned n = n_last_lines < 16 ? n_last_lines : 16;

	for (unsigned i = n_last_lines - n; i != n_last_lines; i++)
		fprintf(out, "    %s\n", last_lines[i % 16]);
}

static void random_fill(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)sr_rng_next(&current->random);
}

static uint64_t clock_now(const struct ha_clock *clock)
{
	const struct sim_world *w = (const struct sim_world *)clock;

	return sim_now(w) + w->held_ns;
}

static uint64_t oob_now(void *arg)
{
	return sim_now(arg);
}

/* ---- what the NICs do to memory ---- */

static void save_undo(struct sim_host *h, struct sim_device *dev, char *to, uint32_t len)
{
	struct sim_undo *u;

	if (!h->undo || h->nundo == SIM_UNDO_MAX || len > sizeof(u->old))
		return;
	u = &h->undo[h->nundo++];
	u->dev = dev;
	u->to = to;
	u->len = len;
	memcpy(u->old, to, len);
}

static void on_placing(void *user, struct sim_device *dev, void *to, const void *from, uint32_t len)
{
	struct sim_host *h = user;
	struct sim_world *w = h->world;

	for (unsigned i = 0; i < w->sc.nconns; i++)
		for (unsigned end = 0; w->conn[i] && end < 2; end++)
			if (w->conn[i]->side[end].host == h &&
			    sim_arena_placing(&w->conn[i]->side[end].arena, w, to, from, len))
				goto found;
found:
	save_undo(h, dev, to, len);
}

static void on_registered(void *user)
{
	struct sim_host *h = user;
	uint64_t now = sim_now(h->world);

	if (h->world->sc.thread.reg_ns)
		h->stalled_until = (h->stalled_until > now ? h->stalled_until : now) +
				   h->world->sc.thread.reg_ns;
}

static void host_forget(struct sim_host *h, struct sim_device *dev)
{
	while (!h->dead && h->nundo) {
		struct sim_undo *u = &h->undo[--h->nundo];

		if (u->dev == dev)
			memcpy(u->to, u->old, u->len);
	}
	sim_device_forget_completions(dev);
	sim_device_kill(dev);
}

/* ---- the wire ---- */

#define OP_WRITE_MIDDLE 7
#define OP_WRITE_ONLY_IMM 11
#define BTH 12

/* One bit of a message's payload, at the n-th packet that certainly carries some. */
static void corrupt_payload(struct sim_world *w, uint8_t *packet, uint32_t len)
{
	uint32_t header = packet[0] == OP_WRITE_MIDDLE ? BTH : BTH + 16 + 4;
	uint32_t payload = len - header - (packet[1] >> 4 & 3);

	if ((packet[0] != OP_WRITE_MIDDLE && packet[0] != OP_WRITE_ONLY_IMM) || !payload ||
	    payload == sizeof(struct ha_sizes))
		return;
	if (w->mutate_at && --w->mutate_at == 0)
		packet[header + payload / 2] ^= 0x10;
}

static bool on_packet(void *arg, struct sr_memwire_port *from, uint8_t *packet, uint32_t *len)
{
	struct sim_world *w = arg;

	w->result.packets++;
	sim_mix(w, sim_now(w) ^ (uint64_t)packet[0] << 56 ^ (uint64_t)*len << 40 ^
			   ((uint64_t)packet[9] << 16 | packet[10] << 8 | packet[11]));
	if (w->mutation == SIM_CORRUPT)
		corrupt_payload(w, packet, *len);
	return !sim_faults_eat(w, from, packet);
}

/* ---- hosts ---- */

static void stray_write(struct sim_world *w)
{
	struct sim_arena *a = NULL;

	for (unsigned i = 0; i < w->sc.nconns; i++)
		if (w->conn[i] && !SLIST_EMPTY(&w->conn[i]->side[1].arena.free))
			a = &w->conn[i]->side[1].arena;
	if (a && w->mutate_at && --w->mutate_at == 0)
		SLIST_FIRST(&a->free)->data[0] ^= 1;
}

/*
 * Until the next turn. Where nothing happens for long, ever longer: waiting for a rail's return
 * must not take for ever.
 */
static uint64_t next_gap(struct sim_host *h, bool moved)
{
	const struct sim_scenario *sc = &h->world->sc;
	uint64_t now = sim_now(h->world), most = sc->thread.gap_max_ns;

	if (moved) {
		h->moved_at = now;
		return sc->thread.gap_min_ns;
	}
	if (now > h->moved_at + 200000000)
		most *= 10;
	return h->gap * 2 < most ? h->gap * 2 : most;
}

/* When the last rail's work went on elsewhere. */
static void note_moves(struct sim_host *h)
{
	uint64_t n = ha_journal_count(h->ctx, HA_EVENT_FAILED_OVER) +
		     ha_journal_count(h->ctx, HA_EVENT_SLOW);

	if (n != h->moves)
		h->world->result.moved_over_ns = sim_elapsed(h->world);
	h->moves = n;
}

static void on_made_qp(void *user)
{
	struct sim_host *h = user;

	h->world->held_ns += h->world->sc.thread.make_ns;
}

/* The NCCL thread of a host takes a turn, and asks for its next. */
static void host_turn(void *arg)
{
	struct sim_host *h = arg;
	struct sim_world *w = h->world;
	uint64_t now = sim_now(w);

	if (h->dead || sim_has_finding(w))
		return;
	if (now < h->stalled_until) {
		sr_memwire_at(w->wire, h->stalled_until, host_turn, h);
		return;
	}
	h->nundo = 0;
	if (w->mutation == SIM_STRAY)
		stray_write(w);
	if (w->sc.host[h->index].agent.on)
		sim_traffic_advise(h);
	h->gap = next_gap(h, sim_traffic_round(h));
	if (now >= h->next_service) {
		ha_ctx_progress(h->ctx);
		h->next_service =
			now + w->held_ns + 20000 + sr_rng_below(&h->rng, w->sc.thread.service_ns);
		note_moves(h);
		sim_traffic_count_tries(h);
	}
	now += w->held_ns;
	w->held_ns = 0;
	sr_memwire_at(w->wire, now + h->gap / 2 + sr_rng_below(&h->rng, h->gap + 1), host_turn, h);
}

static void watch_progress(void *arg)
{
	struct sim_world *w = arg;

	if (sim_has_finding(w))
		return;
	sim_traffic_watch(w);
	sr_memwire_at(w->wire, sim_now(w) + WATCH_NS, watch_progress, w);
}

static void configure_host(const struct sim_scenario *sc, const struct sim_host_spec *host,
			   struct ha_config *config)
{
	ha_config_defaults(config);
	config->use_progress_thread = false;
	config->force_ib_timeout = sc->settings.timeout;
	config->qp_retry_cnt = sc->settings.retry;
	config->poll_batch = sc->settings.poll_batch;
	config->test_max_poll = sc->settings.poll_max;
	config->poll_always = 0; /* receives may be complete before their data is there */
	config->wr_per_conn = sc->settings.wr_per_conn;
	if (sc->wire.reorders) {
		config->ib_adaptive_routing = 1;
		config->ib_ar_threshold = 1000;
	}
	config->connect_timeout_ms = sc->settings.connect_timeout_ms;
	config->max_retries = host->max_retries;
	config->heartbeat_ms = host->heartbeat_ms;
	config->rto_ms = host->rto_ms;
	config->silence_ms = host->silence_ms;
	config->slow_factor = host->slow_factor;
	config->copy_max = host->copy_max;
	config->ib_ooo_rq = host->ooo_rq;
	config->standbys = host->standbys;
	config->slow_moves = host->slow_moves;
	config->enable_backup = host->backup;
	config->enable_failback = host->failback;
	config->ack = host->ack_memory ? HA_ACK_MEMORY : HA_ACK_NIC;
	config->mr_mode = host->eager ? HA_MR_EAGER : HA_MR_LAZY;
	config->policy = host->policy;
	for (unsigned i = 0, at = 0; host->policy == HA_POLICY_STATIC && i < HA_MAX_RAILS; i++)
		at += (unsigned)snprintf(config->weights + at, sizeof(config->weights) - at, "%s%u",
					 i ? "," : "", host->weights[i]);
	/* This machine's own devices are none of a simulated one's. */
	snprintf(config->sysfs_root, sizeof(config->sysfs_root), "/nowhere");
}

/* The host's ports and their links, with the defect that a mutation asks for. */
static void devices_open(struct sim_world *w, struct sim_host *h)
{
	const struct sim_scenario *sc = &w->sc;
	unsigned i = h->index;
	struct sr_memwire_link link = { .latency_ns = sc->wire.latency_ns,
					.backlog_ns = sc->wire.backlog_ns,
					.bus = sc->wire.bus_rate[i] ? &h->bus : NULL };

	h->bus.bytes_per_us = sc->wire.bus_rate[i];
	for (unsigned d = 0; d < sc->ndevices[i]; d++) {
		struct sim_device *device = h->verbs->device[d];

		link.bytes_per_us =
			sc->wire.port_rate[i][d] ? sc->wire.port_rate[i][d] : sc->wire.bytes_per_us;
		link.bus_cost = sc->wire.bus_cost[i][d];
		sr_memwire_set_link(device->port, &link);
		device->speed = sc->wire.speed[i][d];
		device->knobs.drop_imm = w->mutation == SIM_DROP_IMM ? w->mutate_at : 0;
		device->knobs.double_imm = w->mutation == SIM_DOUBLE_IMM ? w->mutate_at : 0;
		device->knobs.shorten_imm = w->mutation == SIM_SHORTEN ? w->mutate_at : 0;
		device->knobs.leak_qp = w->mutation == SIM_LEAK_QP;
	}
}

/* A NIC that dies after it has answered takes back what it has not placed. */
static bool needs_undo(const struct sim_scenario *sc)
{
	for (unsigned f = 0; f < sc->nfaults; f++)
		if (!strcmp(sim_fault_classes[sc->fault[f].class].name, "kill-acked"))
			return true;
	return false;
}

static int host_open(struct sim_world *w, unsigned i)
{
	struct sim_host *h = &w->host[i];
	const struct sim_scenario *sc = &w->sc;
	struct sim_hooks hooks = {
		.placing = on_placing, .registered = on_registered, .made_qp = on_made_qp, .user = h
	};
	struct ha_ctx_params params = { .config = &h->config,
					.clock = &w->clock,
					.oob = &sim_oob_ops,
					.oob_net = &w->oob.net[i],
					.hints = &h->hints,
					.hookups = &sim_hookup_ops,
					.hookups_arg = h };
	int err;

	h->world = w;
	h->index = i;
	h->gap = sc->thread.gap_min_ns;
	h->rng.state = sc->seed * 31 + i;
	err = sim_verbs_create(w->wire, i, sc->ndevices[i], &sc->limits, &hooks, sc->seed * 97 + i,
			       &h->verbs);
	if (err)
		return err;
	h->verbs->apart = sc->wire.apart;
	devices_open(w, h);
	if (!h->undo && needs_undo(sc))
		h->undo = calloc(SIM_UNDO_MAX, sizeof(*h->undo));
	configure_host(sc, &sc->host[i], &h->config);
	params.verbs = &h->verbs->ops;
	err = ha_ctx_create(&params, &h->ctx);
	if (err)
		return err;
	h->ctx->own_barrier = true; /* one thread: membarrier(2) would only cost time */
	return sr_memwire_at(w->wire, sim_now(w) + sr_rng_below(&h->rng, 10000), host_turn, h);
}

static void host_die(struct sim_host *h, bool power)
{
	if (h->dead)
		return;
	h->dead = true;
	sim_verbs_die(h->verbs);
	for (unsigned d = 0; power && d < h->verbs->ndevices; d++)
		sim_device_kill(h->verbs->device[d]);
	sim_oob_die(&h->world->oob, h->index, power);
	sim_traffic_drop(h);
}

static void host_restore(struct sim_host *h, unsigned dev, bool renamed)
{
	if (h->dead)
		return;
	if (sim_device_restore(h->verbs, dev, renamed))
		abort();
	sim_faults_apply(h->world, h->index, dev);
}

/* What its journal has counted. */
static void context_end(struct sim_host *h)
{
	struct sim_result *r = &h->world->result;

	if (!h->ctx)
		return;
	r->failovers += ha_journal_count(h->ctx, HA_EVENT_FAILED_OVER);
	r->false_alarms += ha_journal_count(h->ctx, HA_EVENT_FALSE_ALARM);
	r->slow_moves += ha_journal_count(h->ctx, HA_EVENT_SLOW);
	r->failbacks += ha_journal_count(h->ctx, HA_EVENT_FAILED_BACK);
	r->recoveries += ha_journal_count(h->ctx, HA_EVENT_RECOVERED);
	ha_ctx_destroy(h->ctx);
	h->ctx = NULL;
}

static void host_quit(struct sim_host *h)
{
	if (h->dead)
		return;
	h->dead = true;
	context_end(h);
	sim_traffic_drop(h);
}

/* ---- a run ---- */

static int world_open(struct sim_world *w)
{
	const struct sim_scenario *sc = &w->sc;
	int err;

	w->clock.now_ns = clock_now;
	w->wire = sr_memwire_create(sc->seed * 3 + 1, &err);
	if (!w->wire)
		return err;
	w->random.state = sc->seed * 5 + 2;
	w->tap_rng.state = sc->seed * 7 + 3;
	w->faults_over = sim_now(w) + sim_faults_over(sc);
	sim_pool_open(&w->pool);
	sim_oob_init(&w->oob, sc->seed * 11 + 4, oob_now, w);
	w->oob.latency_ns = sc->oob.latency_ns;
	w->oob.jitter_ns = sc->oob.jitter_ns;
	w->oob.piece = sc->oob.piece;
	w->oob.keepalive_ns = sc->oob.keepalive_ns;
	sr_memwire_set_tap(w->wire, on_packet, w);
	for (unsigned i = 0; i < SIM_HOSTS && !err; i++)
		err = host_open(w, i);
	for (unsigned i = 0; i < sc->nconns && !err; i++)
		if (sim_conn_is_on(sc, i))
			err = sim_conn_open(w, i);
	sim_faults_schedule(w);
	return err ? err : sr_memwire_at(w->wire, sim_now(w) + WATCH_NS, watch_progress, w);
}

static void check_left(struct sim_world *w, struct sim_host *h)
{
	char left[256];

	if (!h->verbs)
		return;
	sim_verbs_left(h->verbs, left, sizeof(left));
	if (*left)
		sim_report_finding(w, SIM_LEAK, "host %u leaves behind %s", h->index, left);
}

static void world_close(struct sim_world *w)
{
	for (unsigned i = 0; i < SIM_HOSTS; i++)
		context_end(&w->host[i]);
	for (unsigned i = 0; i < SIM_HOSTS; i++)
		check_left(w, &w->host[i]);
	if (w->oob.open)
		sim_report_finding(w, SIM_LEAK, "%u sockets are left open", w->oob.open);
	for (unsigned i = 0; i < w->sc.nconns; i++)
		sim_conn_free(w->conn[i]);
	w->result.control_messages = w->oob.messages;
	w->result.control_bytes = w->oob.bytes;
	sim_oob_fini(&w->oob);
	w->result.ns = w->wire ? sim_elapsed(w) : 0;
	w->result.steps = w->wire ? sr_memwire_steps(w->wire) : 0;
	sim_mix(w, w->result.ns);
	sim_mix(w, w->result.steps);
	for (unsigned i = 0; i < SIM_HOSTS; i++) {
		for (unsigned d = 0; w->host[i].verbs && d < w->host[i].verbs->ndevices; d++)
			w->result.sent[i][d] = sim_device_sent(w->host[i].verbs, d);
		sim_verbs_destroy(w->host[i].verbs);
		sim_hookups_free(&w->host[i]);
		free(w->host[i].undo);
	}
	if (w->wire)
		sr_memwire_destroy(w->wire);
}

static void world_loop(struct sim_world *w)
{
	uint64_t most = w->sc.steps_max ? w->sc.steps_max : STEPS_MAX;

	while (!sim_has_finding(w) && !sim_traffic_done(w) && sr_memwire_step(w->wire))
		if (sr_memwire_steps(w->wire) > most)
			sim_report_finding(w, SIM_ENDLESS, "more than %llu steps",
					   (unsigned long long)most);
	/* What is still on its way must not land anywhere. */
	for (unsigned i = 0; i < SIM_HOSTS; i++)
		w->host[i].dead = true;
	if (!sim_has_finding(w))
		sr_memwire_run_until(w->wire, sim_now(w) + 30000000);
}

/* The lowest free descriptor: it moves when one leaks. */
static int lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd;
}

void sim_world_run(const struct sim_scenario *sc, enum sim_mutation mutation, bool verbose,
		   struct sim_result *result)
{
	int fd = lowest_fd(), err;
	static const struct sim_host_ops hosts = { host_die, host_quit, host_forget, host_restore };
	struct sim_world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	current = w;
	n_last_lines = 0;
	w->hosts = &hosts;
	w->sc = *sc;
	w->verbose = verbose;
	w->mutation = mutation;
	ha_mutation = mutation > SIM_MUTATIONS ? (enum ha_mutation)(mutation - SIM_MUTATIONS)
					       : HA_MUTATE_NOTHING;
	w->mutate_at = 1 + (unsigned)(sc->seed * 2654435761u >> 8) % 12;
	ha_log_set_sink(on_log);
	ha_log_configure(verbose ? "INFO" : "WARN", "ALL", 0);
	ha_random_set_source(random_fill);
	err = world_open(w);
	if (err)
		sim_report_finding(w, SIM_ERROR, "the world cannot be set up: %s", strerror(-err));
	else
		world_loop(w);
	world_close(w);
	ha_random_set_source(NULL);
	ha_log_set_sink(NULL);
	*result = w->result;
	current = NULL;
	free(w);
	if (result->finding == SIM_NOTHING && lowest_fd() != fd) {
		result->finding = SIM_LEAK;
		snprintf(result->text, sizeof(result->text), "a file descriptor is left open");
	}
}
