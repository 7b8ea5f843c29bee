/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hunt_stage.c - what the traffic of a hunt runs on: a pair drawn from the seed, its NICs and
 * agents, an operator, and what they have counted
 */
#include "sim/gpu/hunt.h"

#include "gpu/emu/fiber.h"

#define US UINT64_C(1000)

static uint64_t draw_below(uint64_t n)
{
	return ha_gpu_fibers_random() % n;
}

void hunt_begin(struct soft_fabric *fabric, uint64_t seed)
{
	ha_gpu_fibers_begin(seed * 0x2545f4914f6cdd1du + 1, 0);
	ha_gpu_fibers_begin(ha_gpu_fibers_random(), 8 + (unsigned)draw_below(120));
	soft_fabric_clear(fabric);
}

void hunt_configure(struct pair_config *c)
{
	pair_defaults(c);
	c->nwqes = draw_below(2) ? 64 : 128;
	c->proof_every = draw_below(4) ? 16 : 0;
	c->cq_log = draw_below(3) ? 0 : 8;
	c->proxied = !draw_below(4);
	c->agent.check_ns = 20 * US;
	c->agent.silent_checks = 10;
	c->agent.recovery_ns = 100 * US + draw_below(400) * US;
	c->agent.no_path_ns = 15000 * US; /* a slow NIC takes 6 ms to flush a full queue */
	c->agent.probes = 2;
	c->agent.failback = draw_below(2);
}

void hunt_set_apart(struct pair_config *c)
{
	c->proof_every = 16;
	c->late_ns = US + draw_below(40) * US;
}

static void run_nic(void *arg)
{
	soft_nic_run(arg);
}

static void run_agent(void *arg)
{
	pair_agent_run(arg);
}

/* Puts right what is broken, after a while. */
static void run_operator(void *arg)
{
	struct soft_fabric *f = arg;
	uint64_t at = ha_gpu_now() + draw_below(3000) * US;

	while (ha_gpu_now() < at)
		ha_gpu_pause();
	for (unsigned i = 0; i < 4; i++)
		soft_nic_heal(&f->nic[i]);
}

void hunt_populate(struct pair *p)
{
	for (unsigned i = 0; i < 4; i++)
		ha_gpu_fiber_add(run_nic, &p->fabric->nic[i], NULL, true);
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_fiber_add(run_agent, &p->end[i], NULL, true);
	if (draw_below(2))
		ha_gpu_fiber_add(run_operator, p->fabric, NULL, true);
}

bool hunt_struck(const struct pair *p, unsigned path)
{
	return p->fabric->nic[path].struck || p->fabric->nic[2 + path].struck;
}

void hunt_end(struct pair *p, struct hunt_result *r)
{
	r->ns = ha_gpu_now();
	for (unsigned i = 0; i < 4; i++) {
		r->struck += p->fabric->nic[i].struck;
		r->landed_late += p->fabric->nic[i].count.held_landed;
		r->entries += p->fabric->nic[i].entries;
	}
	for (unsigned i = 0; i < 2; i++) {
		r->switches += p->end[i].agent.count.switches;
		r->replayed += p->end[i].agent.count.replayed;
		r->skipped += p->end[i].agent.count.skipped;
	}
	pair_free(p);
}
