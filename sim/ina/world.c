/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ina/world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_NS UINT64_C(1000000)
#define STEPS_MAX 20000000u

static uint64_t clock_now(const struct ha_clock *clock)
{
	return ina_sim_now((const struct ina_sim_world *)clock);
}

/* ---- the controller ---- */

static void install_group(struct ina_sim_world *w)
{
	struct ina_group_config c = {
		.id = INA_SIM_GROUP,
		.ranks = (uint8_t)w->sc.ranks,
		.workers = 1,
		.extended = w->sc.extended,
		.base = INA_SIM_BASE,
		.len = w->sc.len,
		.epoch = ++w->epoch,
		.first_psn = w->sc.first_psn,
		.lease_until = UINT64_MAX,
	};
	const char *why;

	for (unsigned i = 0; i < w->sc.ranks; i++)
		c.member[i].addr = INA_SIM_RANK_ADDR + i;
	if (ina_switch_install(&w->sw, &c, &why))
		ina_sim_report_finding(w, INA_SIM_ERROR, "the switch refuses the group: %s", why);
}

/* All go on where the last of them is. */
static void begin_incarnation(struct ina_sim_world *w)
{
	unsigned resume = w->sc.nops;

	for (unsigned i = 0; i < w->sc.ranks; i++)
		resume = w->rank[i].finished < resume ? w->rank[i].finished : resume;
	install_group(w);
	memset(w->bytes, 0, sizeof(w->bytes));
	w->incarnation_at = w->moved_at = ina_sim_now(w);
	w->result.incarnations++;
	ina_sim_trace_line(w, "incarnation %u begins with operation %u", w->epoch, resume);
	for (unsigned i = 0; i < w->sc.ranks; i++)
		ina_sim_rank_open(&w->rank[i], resume);
}

static bool all_ended(const struct ina_sim_world *w, bool *failed, uint64_t *last)
{
	bool ended = true;

	*failed = false;
	*last = 0;
	for (unsigned i = 0; i < w->sc.ranks; i++) {
		ended &= ina_sim_rank_ended(&w->rank[i]);
		*failed |= w->rank[i].failed;
		if (w->rank[i].failed && w->rank[i].failed_at > *last)
			*last = w->rank[i].failed_at;
	}
	return ended;
}

/*
 * True: the run is over. Old frames have no epoch: their packets must be gone before the group's
 * number is used again.
 */
static bool look_after(struct ina_sim_world *w)
{
	uint64_t last, now = ina_sim_now(w);
	bool failed;

	if (!all_ended(w, &failed, &last))
		return false;
	if (!failed)
		return true;
	if (w->rank[1].dead)
		return true; /* the group is no more; who goes on knows it */
	if (w->away || (!w->sc.extended && now < last + ina_sim_packet_incarnation(&w->sc)))
		return false;
	if (w->result.incarnations >= INA_SIM_INCARNATIONS_MAX) {
		ina_sim_report_finding(w, INA_SIM_HANG, "%u incarnations, and no end",
				       INA_SIM_INCARNATIONS_MAX);
		return true;
	}
	begin_incarnation(w);
	return false;
}

/* ---- what goes wrong ---- */

static void note_fault(struct ina_sim_world *w, uint64_t excused_ns)
{
	w->fault_at = ina_sim_now(w);
	w->excused_ns = excused_ns;
}

static void come_back(void *arg)
{
	struct ina_sim_world *w = arg;

	w->away = false;
	ina_sim_trace_line(w, "the switch is back, and knows nothing");
}

static void restart_switch(void *arg)
{
	struct ina_sim_world *w = arg;
	static const uint8_t mac[6];

	note_fault(w, INA_SIM_PEER_NS);
	w->away = true;
	ina_switch_init(&w->sw, INA_SIM_SWITCH_ADDR, mac, w->slot, INA_SIM_SLOTS);
	ina_sim_trace_line(w, "the switch restarts");
	sr_memwire_at(w->wire, ina_sim_now(w) + w->sc.away_ns, come_back, w);
}

static void kill_rank(void *arg)
{
	struct ina_sim_world *w = arg;

	note_fault(w, INA_SIM_PEER_NS);
	w->rank[1].dead = true;
	ina_sim_trace_line(w, "rank 1 dies");
}

static void expire_lease(void *arg)
{
	struct ina_sim_world *w = arg;

	note_fault(w, INA_SIM_PEER_NS);
	ina_switch_renew(&w->sw, INA_SIM_GROUP, w->epoch, ina_sim_now(w));
	ina_sim_trace_line(w, "the lease ends");
}

static void leave_group(void *arg)
{
	struct ina_sim_world *w = arg;

	note_fault(w, INA_SIM_ABORT_NS);
	w->cut_until = ina_sim_now(w) + w->sc.outage_ns;
	ina_sim_trace_line(w, "rank 1 gives up");
	ina_sim_rank_leave(&w->rank[1]);
}

static void watch_progress(void *arg)
{
	struct ina_sim_world *w = arg;
	uint64_t time_limit = 2 * INA_SIM_PEER_NS + w->sc.skew_ns + w->sc.nops * w->sc.think_ns +
			      w->sc.away_ns + ina_sim_packet_incarnation(&w->sc);

	if (ina_sim_has_finding(w))
		return;
	if (ina_sim_now(w) - w->moved_at > time_limit)
		ina_sim_report_finding(w, INA_SIM_HANG, "nothing has moved for %.0f ms",
				       (double)time_limit / 1e6);
	sr_memwire_at(w->wire, ina_sim_now(w) + WATCH_NS, watch_progress, w);
}

/* ---- a run ---- */

static void schedule_call(struct ina_sim_world *w, uint64_t when, void (*fn)(void *))
{
	if (when)
		sr_memwire_at(w->wire, INA_SIM_START_NS + when, fn, w);
}

static void world_open(struct ina_sim_world *w)
{
	static const uint8_t mac[6];

	w->clock.now_ns = clock_now;
	w->receive = ina_sim_rank_receive;
	w->rng.state = w->sc.seed * 13 + 5;
	ina_switch_init(&w->sw, INA_SIM_SWITCH_ADDR, mac, w->slot, INA_SIM_SLOTS);
	for (unsigned i = 0; i < w->sc.ranks; i++) {
		w->rank[i].world = w;
		w->rank[i].index = i;
		w->rank[i].turn_at = UINT64_MAX;
	}
	begin_incarnation(w);
	schedule_call(w, w->sc.restart_at, restart_switch);
	schedule_call(w, w->sc.dead_at, kill_rank);
	schedule_call(w, w->sc.lapse_at, expire_lease);
	schedule_call(w, w->sc.leave_at, leave_group);
	schedule_call(w, w->sc.hostile_ns, ina_sim_send_foreign);
	schedule_call(w, WATCH_NS, watch_progress);
}

static void run_scenario(const struct ina_sim_scenario *sc, bool verbose,
			 const struct ina_sim_watch *watch, struct ina_sim_result *result)
{
	struct ina_sim_world *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		abort();
	w->sc = *sc;
	w->verbose = verbose;
	w->watch = watch;
	w->wire = sr_memwire_create(sc->seed, &err);
	if (!w->wire)
		abort();
	world_open(w);
	while (!ina_sim_has_finding(w) && !look_after(w) && sr_memwire_step(w->wire))
		if (sr_memwire_steps(w->wire) > STEPS_MAX)
			ina_sim_report_finding(w, INA_SIM_HANG, "more than %u steps", STEPS_MAX);
	for (unsigned i = 0; i < sc->ranks; i++)
		ina_sim_rank_open(&w->rank[i], sc->nops);
	w->result.ns = ina_sim_now(w) - INA_SIM_START_NS;
	w->result.steps = sr_memwire_steps(w->wire);
	w->result.hash ^= w->result.ns;
	*result = w->result;
	sr_memwire_destroy(w->wire); /* and with it what is still on its way */
	ina_sim_packets_free(w);
	free(w);
}

void ina_sim_run(const struct ina_sim_scenario *sc, bool verbose, struct ina_sim_result *result)
{
	run_scenario(sc, verbose, NULL, result);
}

void ina_sim_run_watched(const struct ina_sim_scenario *sc, const struct ina_sim_watch *watch,
			 struct ina_sim_result *result)
{
	run_scenario(sc, false, watch, result);
}
