/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/gpu/scene.h"

#include "base/check.h"

#define US UINT64_C(1000)
#define LIMIT_NS (20000 * US)

struct scene scene;

static void run_nic(void *arg)
{
	soft_nic_run(arg);
}

static void run_agent(void *arg)
{
	pair_agent_run(arg);
}

void scene_configure(void)
{
	struct pair_config *c = &scene.config;

	pair_defaults(c);
	c->nwqes = 64;
	c->proof_every = 16;
	c->agent.check_ns = 20 * US;
	c->agent.silent_checks = 10;
	c->agent.recovery_ns = 100 * US;
	c->agent.no_path_ns = 3000 * US;
	c->agent.probes = 2;
	c->agent.failback = false;
}

void scene_begin(void)
{
	struct soft_fabric *f = soft_fabric_open(4, 4 << 20);

	CHECK(f);
	ha_gpu_fibers_begin(7, 30);
	pair_make(&scene.pair, f, &scene.config);
	scene.fabric = f;
	scene.a = scene.pair.end[0].conn;
	scene.b = scene.pair.end[1].conn;
	for (unsigned i = 0; i < 4; i++) {
		f->nic[i].retry_ns = 100 * US;
		CHECK(ha_gpu_fiber_add(run_nic, &f->nic[i], NULL, true));
	}
	for (unsigned i = 0; i < 2; i++)
		CHECK(ha_gpu_fiber_add(run_agent, &scene.pair.end[i], NULL, true));
}

void scene_run(void (*body)(void *unused))
{
	CHECK(ha_gpu_fiber_add(body, NULL, NULL, false));
	CHECK(ha_gpu_fibers_run(LIMIT_NS));
}

void scene_end(void)
{
	pair_free(&scene.pair);
	soft_fabric_close(scene.fabric);
	scene_configure();
}

void scene_strike(unsigned number, struct soft_fault fault)
{
	struct soft_nic *n = &scene.fabric->nic[number];

	fault.armed = true;
	fault.at += n->entries;
	n->fault = fault;
}

uint64_t *scene_word(unsigned end, unsigned i)
{
	return (uint64_t *)scene.pair.end[end].heap + i;
}

void scene_put(unsigned i, uint64_t value)
{
	uint64_t *from = scene_word(0, i);

	*from = value;
	CHECK_INT(ha_gpu_put_nbi(scene.a, pair_remote(&scene.pair, 0, 8 * i), from, 8, 0,
				 HA_GPU_FOREVER),
		  HA_GPU_DONE);
}

void scene_rest(uint64_t ns)
{
	for (uint64_t until = ha_gpu_now() + ns; ha_gpu_now() < until;)
		ha_gpu_pause();
}
