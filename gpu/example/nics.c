/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/example/nics.h"

#include "gpu/device/env.h"

#include <string.h>
#include <time.h>

#define HOLD_NS 300000 /* what lands late, lands so much later */

const struct ha_moe_cut_kind ha_moe_cut_kinds[] = {
	{ "die",
	  "the NIC is gone, and the driver reports it",
	  { .then = SOFT_THEN_DIE, .announced = true } },
	{ "die-quiet", "the NIC is gone, without an event", { .then = SOFT_THEN_DIE } },
	{ "port",
	  "the cable is pulled, and the driver reports that the port is down",
	  { .then = SOFT_THEN_CUT, .announced = true } },
	{ "port-quiet", "packets are lost until the NIC gives up", { .then = SOFT_THEN_CUT } },
	{ "silent", "the NIC does nothing more, without an event", { .then = SOFT_THEN_SILENT } },
	{ "unacked",
	  "three entries are executed and not acknowledged, then the NIC fails",
	  { .n = 3, .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_DIE, .announced = true } },
	{ "unplaced",
	  "three entries are acknowledged and never written, then the NIC fails",
	  { .n = 3,
	    .act = SOFT_ACT_UNPLACED,
	    .complete = true,
	    .then = SOFT_THEN_DIE,
	    .announced = true } },
	{ "late",
	  "three entries are under way when the NIC fails, and arrive later",
	  { .n = 3,
	    .act = SOFT_ACT_HOLD,
	    .then = SOFT_THEN_DIE,
	    .hold_ns = HOLD_NS,
	    .announced = true } },
};
const int ha_moe_ncut_kinds = sizeof(ha_moe_cut_kinds) / sizeof(ha_moe_cut_kinds[0]);

static void arm_fault(struct ha_moe_nic *n)
{
	n->nic->fault = n->fault;
	n->nic->fault.at = n->nic->entries + n->after;
	n->nic->fault.armed = true;
	n->nic->begun_ns = 0;
	n->before = n->nic->struck;
	ha_gpu_store(&n->state, HA_MOE_CUT_ARMED);
}

static void record_strike(struct ha_moe_nic *n)
{
	n->struck_ns = ha_gpu_now();
	n->cuts++;
	n->waiting = n->traffic != NULL;
	if (n->waiting)
		n->traffic(n->self, true);
	ha_gpu_store(&n->state, HA_MOE_CUT_STRUCK);
}

static void watch_traffic(struct ha_moe_nic *n)
{
	uint64_t ns;

	if (!n->waiting || !n->traffic(n->self, false))
		return;
	n->waiting = false;
	ns = ha_gpu_now() - n->struck_ns;
	ha_gpu_add(&n->resumed, 1);
	ha_gpu_add(&n->sum_ns, ns);
	if (ns > ha_gpu_load(&n->max_ns))
		ha_gpu_store(&n->max_ns, ns);
}

static void step_cut(struct ha_moe_nic *n)
{
	switch ((enum ha_moe_cut_state)ha_gpu_load(&n->state)) {
	case HA_MOE_CUT_NONE:
		return;
	case HA_MOE_CUT_ORDERED:
		arm_fault(n);
		return;
	case HA_MOE_CUT_ARMED:
		if (n->nic->struck != n->before)
			record_strike(n);
		return;
	case HA_MOE_CUT_STRUCK:
		watch_traffic(n);
		if (n->down_ns == UINT64_MAX || ha_gpu_now() - n->struck_ns < n->down_ns)
			return;
		soft_nic_heal(n->nic);
		break;
	case HA_MOE_CUT_WITHDRAWN:
		if (n->nic->struck != n->before)
			record_strike(n);
		if (n->nic->struck != n->before || n->nic->begun_ns)
			/*
			 * too late, or in its middle: what it has done is not undone, and it comes
			 * to its end by itself
			 */
			return;
		n->nic->fault.armed = false;
		break;
	}
	n->waiting = false;
	ha_gpu_store(&n->state, HA_MOE_CUT_NONE);
}

static void *run_nic(void *arg)
{
	const struct timespec nap = { 0, 100000 };
	struct ha_moe_nic *n = arg;

	while (!ha_gpu_load(&n->nic->stop)) {
		step_cut(n);
		if (!soft_nic_step(n->nic))
			nanosleep(&nap, NULL);
	}
	return NULL;
}

int ha_moe_nic_start(struct ha_moe_nic *n, struct soft_nic *nic)
{
	n->nic = nic;
	return -pthread_create(&n->thread, NULL, run_nic, n);
}

void ha_moe_nic_stop(struct ha_moe_nic *n)
{
	ha_gpu_store(&n->nic->stop, 1);
	pthread_join(n->thread, NULL);
}

void ha_moe_nic_cut(struct ha_moe_nic *n, int kind, uint64_t after, uint64_t down_ns)
{
	if (ha_gpu_load(&n->state) != HA_MOE_CUT_NONE)
		return;
	n->fault = ha_moe_cut_kinds[kind].fault;
	n->after = after;
	n->down_ns = down_ns;
	ha_gpu_store(&n->state, HA_MOE_CUT_ORDERED);
}

void ha_moe_nic_settle(struct ha_moe_nic *n)
{
	const struct timespec nap = { 0, 200000 };
	uint64_t armed = HA_MOE_CUT_ARMED;

	while (ha_gpu_load(&n->state) == HA_MOE_CUT_ORDERED)
		nanosleep(&nap, NULL);
	if (n->down_ns == UINT64_MAX)
		return;
	ha_gpu_cas(&n->state, &armed, HA_MOE_CUT_WITHDRAWN);
	while (ha_gpu_load(&n->state) != HA_MOE_CUT_NONE)
		nanosleep(&nap, NULL);
}
