/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/gpu/hunt.h"

#include "gpu/emu/fiber.h"

#define US UINT64_C(1000)

const struct hunt_kind hunt_kinds[] = {
	{ "killed before", { .then = SOFT_THEN_DIE } },
	{ "killed after executing, not acknowledged",
	  { .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_DIE } },
	{ "killed after the completion",
	  { .act = SOFT_ACT_EXECUTE, .complete = true, .then = SOFT_THEN_DIE } },
	{ "peer killed", { .then = SOFT_THEN_PEER_DIES } },
	{ "peer killed, executed and not acknowledged",
	  { .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_PEER_DIES } },
	{ "acknowledged and never placed",
	  { .act = SOFT_ACT_UNPLACED, .complete = true, .then = SOFT_THEN_PEER_DIES } },
	{ "cut", { .then = SOFT_THEN_CUT } },
	{ "cut, executed and not acknowledged",
	  { .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_CUT } },
	{ "cut, landing late", { .act = SOFT_ACT_HOLD, .then = SOFT_THEN_DIE } },
	{ "silent", { .then = SOFT_THEN_SILENT } },
	{ "silent, executed and not acknowledged",
	  { .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_SILENT } },
	{ "completion lost", { .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_NOTHING } },
	{ "flap", { .then = SOFT_THEN_FLAP } },
	{ "flap, landing late", { .act = SOFT_ACT_HOLD, .then = SOFT_THEN_FLAP } },
	{ "flap, executed and not acknowledged",
	  { .act = SOFT_ACT_EXECUTE, .then = SOFT_THEN_FLAP } },
	{ "lost", { .act = SOFT_ACT_LOSE, .then = SOFT_THEN_NOTHING } },
};
const int hunt_nkinds = sizeof(hunt_kinds) / sizeof(hunt_kinds[0]);

static uint64_t draw_below(uint64_t n)
{
	return ha_gpu_fibers_random() % n;
}

static uint64_t draw_early(void)
{
	return draw_below(2) ? 60 : 20;
}

/* Faults at NICs of either path; mostly one, sometimes one on each path. */
void hunt_script(struct soft_fabric *f, const struct hunt_options *o, bool believed)
{
	unsigned faults = draw_below(6) ? 1 : 2, path = draw_below(8) ? 0 : 1;

	for (unsigned i = 0; i < faults && o->kind != -2; i++, path = !path) {
		struct soft_nic *n = &f->nic[2 * draw_below(2) + path];
		int kind = o->kind >= 0 ? o->kind : (int)draw_below((uint64_t)hunt_nkinds);

		n->fault = hunt_kinds[kind].fault;
		if (n->fault.act == SOFT_ACT_UNPLACED && believed)
			/* what is believed may be lost: docs/gpu.md */
			n->fault.act = SOFT_ACT_EXECUTE;
		n->fault.at = draw_below(i ? 150 : draw_early());
		n->fault.n = n->fault.act || n->fault.complete || n->fault.then == SOFT_THEN_NOTHING
				     ? 1 + draw_below(4)
				     : draw_below(4);
		n->fault.announced = draw_below(2);
		n->fault.hold_ns = draw_below(600) * US;
		n->fault.down_ns = draw_below(300) * US;
		n->fault.armed = true;
	}
	for (unsigned i = 0; i < 4; i++) {
		f->nic[i].retry_ns = 50 * US + draw_below(300) * US;
		f->nic[i].pace = draw_below(5) ? 0 : draw_below(12);
	}
}
