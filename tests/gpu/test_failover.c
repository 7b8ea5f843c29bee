/* SPDX-License-Identifier: BSD-3-Clause */
/* test_failover.c - what GPU-initiated traffic hangs on or corrupts elsewhere, each by its name;
 * fibers, virtual time */
#include "tests/gpu/scene.h"
#include "tests/ina/switch/named.h"

#define US UINT64_C(1000)
#define LONG (20000 * US)
#define NO_PATH (4000 * US)

/* ---- put done, the NIC dies before the signal ---- */
static void dies_before_signal_body(void *arg)
{
	scene_put(3, 33);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	scene_strike(0, (struct soft_fault) { .then = SOFT_THEN_DIE });
	CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(ha_gpu_wait(scene.b, 0, 1, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(*scene_word(1, 3), 33);
	/* it came over the other path, into its own slot */
	CHECK_INT(ha_gpu_load(&scene.b->mailbox->slot[0][0]), 0);
	CHECK_INT(ha_gpu_load(&scene.b->mailbox->slot[1][0]), 1);
}

static void dies_before_signal(void)
{
	scene_begin();
	scene_run(dies_before_signal_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 1);
	scene_end();
}

/* ---- entries that were posted with a doorbell still to come, and a path that dies meanwhile
 * ---- */
static void batch_and_death_body(void *arg)
{
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(ha_gpu_signal(scene.a, 0, 1, HA_GPU_LATER, HA_GPU_FOREVER), HA_GPU_DONE);
	soft_nic_heal(&scene.fabric->nic[0]);
	ha_gpu_store(&scene.fabric->nic[0].power, SOFT_DEAD);
	ha_gpu_store(&scene.fabric->nic[0].reported, 1);
	/* nobody at our end ever rings them */
	CHECK_INT(ha_gpu_wait(scene.b, 0, 3, HA_GPU_FOREVER), HA_GPU_DONE);
}

static void batch_and_death(void)
{
	scene_begin();
	scene_run(batch_and_death_body);
	scene_end();
}

/* ---- another warp's stale health flag: it says GOOD all the time ---- */
static bool over;

static void report_false_health(void *arg)
{
	while (!over) {
		ha_gpu_store(&scene.a->health[0], HA_GPU_GOOD);
		CHECK_INT(ha_gpu_signal(scene.a, 1, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
	}
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
}

static void stale_health_body(void *arg)
{
	for (uint64_t i = 1; i <= 40; i++) {
		if (i == 20)
			scene_strike(2, (struct soft_fault) { .then = SOFT_THEN_DIE });
		scene_put(5, i);
		CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(ha_gpu_wait(scene.b, 0, i, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(*scene_word(1, 5), i);
		CHECK_INT(ha_gpu_signal(scene.b, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(ha_gpu_wait(scene.a, 0, i, HA_GPU_FOREVER), HA_GPU_DONE);
	}
	over = true;
}

static void stale_health(void)
{
	over = false;
	scene_begin();
	CHECK(ha_gpu_fiber_add(report_false_health, NULL, NULL, false));
	scene_run(stale_health_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 1);
	CHECK_INT(ha_gpu_signal_value(scene.b, 1), ha_gpu_load(&scene.a->sent[1]));
	scene_end();
}

/* ---- entries on the backup have its number and its keys; numbers repeat across NICs, tables
 * differ ---- */
static void backup_numbers_body(void *arg)
{
	scene_strike(0, (struct soft_fault) { .then = SOFT_THEN_SILENT });
	for (unsigned i = 0; i < 8; i++)
		scene_put(2048 * i, i + 1); /* a chunk each */
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
}

static void backup_numbers(void)
{
	struct ha_gpu_wqe *e;

	scene_begin();
	CHECK(scene.a->path[0].qpn != scene.a->path[1].qpn);
	/* a foreign queue pair, on the backup's NIC */
	CHECK_INT(scene.fabric->nic[1].qp[0].qpn, scene.a->path[0].qpn);
	for (unsigned i = 0; i < scene.a->path[0].nrkey; i++)
		CHECK(scene.a->path[0].rkey[i] != scene.a->path[1].rkey[i] &&
		      scene.a->path[0].lkey[i] != scene.a->path[1].lkey[i]);
	scene_run(backup_numbers_body);
	for (unsigned i = 0; i < 8; i++) {
		CHECK_INT(*scene_word(1, 2048 * i), i + 1);
		e = (struct ha_gpu_wqe *)(void *)scene.a->path[1].wqe +
		    ((i - scene.a->path[1].base) & (scene.config.nwqes - 1));
		CHECK_INT(ha_gpu_wqe_qpn(e), scene.a->path[1].qpn);
		CHECK_INT((uint32_t)e->w[3], scene.a->path[1].rkey[i]);
		CHECK_INT((uint32_t)(e->w[4] >> 32), scene.a->path[1].lkey[i]);
	}
	CHECK_INT(scene.fabric->nic[1].count.errors, 0);
	scene_end();
}

/* ---- an error in a collapsed queue is overwritten by flushes: nothing that failed counts as done
 * ---- */
static void error_overwritten_body(void *arg)
{
	scene_strike(0, (struct soft_fault) { .at = 4, .then = SOFT_THEN_CUT });
	for (unsigned i = 0; i < 20; i++)
		scene_put(i, 1000 + i);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(*scene_word(1, i), 1000 + i);
}

static void error_overwritten(void)
{
	scene_begin();
	scene_run(error_overwritten_body);
	CHECK(scene.fabric->nic[0].count.flushes > 0);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 1);
	scene_end();
}

/* ---- a NIC stalls and the ring is full: nothing is overwritten, and nobody waits for ever ---- */
static void overrun_body(void *arg)
{
	unsigned n = 0;

	ha_gpu_store(&scene.fabric->nic[0].pace, UINT64_MAX);
	while (ha_gpu_put_inline(scene.a, pair_remote(&scene.pair, 0, 8 * n), &n, 4, 0, 30 * US) ==
	       HA_GPU_DONE)
		n++;
	CHECK(n >= scene.config.nwqes - scene.config.nwqes / scene.config.proof_every - 1 &&
	      n < scene.config.nwqes);
	CHECK(ha_gpu_load(&scene.a->alarm) > 0);
	/* one slot, where a put and a proof are due */
	CHECK(ha_gpu_load(&scene.a->resv) - ha_gpu_load(&scene.a->tail) >= scene.config.nwqes - 1);
	ha_gpu_store(&scene.fabric->nic[0].pace, 0);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(*(uint32_t *)(scene.pair.end[1].heap + 8 * i), i);
}

static void ring_is_not_overrun(void)
{
	scene.config.agent.silent_checks = 1000;
	scene_begin();
	scene_run(overrun_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 0);
	scene_end();
}

/* ---- a write that was under way when the link went lands after it is back: not in memory that is
 * used again ---- */
static void late_after_flap_body(void *arg)
{
	scene_strike(0, (struct soft_fault) { .n = 2,
					      .act = SOFT_ACT_HOLD,
					      .then = SOFT_THEN_FLAP,
					      .hold_ns = 900 * US,
					      .down_ns = 600 * US });
	scene_put(9, 1);
	CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(ha_gpu_wait(scene.b, 0, 1, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(*scene_word(1, 9), 1);
	*scene_word(1, 9) = 77; /* its owner's again */
	scene_rest(2000 * US);
	CHECK_INT(*scene_word(1, 9), 77);
	CHECK_INT(ha_gpu_signal_value(scene.b, 0), 1);
}

static void late_after_flap(void)
{
	scene_begin();
	scene_run(late_after_flap_body);
	CHECK_INT(scene.fabric->nic[2].count.held_landed, 0);
	scene_end();
}

/* ---- acknowledged, and never placed ---- */
static void not_placed_body(void *arg)
{
	scene_strike(0, (struct soft_fault) {
				.n = 2, .act = SOFT_ACT_UNPLACED, .then = SOFT_THEN_PEER_DIES });
	scene_put(9, 5);
	CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
	/* nobody posts anything more */
	CHECK_INT(ha_gpu_wait(scene.b, 0, 1, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(*scene_word(1, 9), 5);
}

static void acknowledged_not_placed(void)
{
	scene_begin();
	scene_run(not_placed_body);
	CHECK(scene.pair.end[0].agent.count.proofs > 0);
	scene_end();
}

/* ---- the peer's memory is a GPU's: data come there late, signals to the host's memory at once. A
 * signal was seen before its data ---- */
static void late_data_body(void *arg)
{
	for (uint64_t i = 1; i <= 40; i++) {
		scene_put(5, i);
		CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(ha_gpu_wait(scene.b, 0, i, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(*scene_word(1, 5), i);
	}
}

static void signal_after_late_data(void)
{
	scene.config.late_ns = 50 * US;
	scene_begin();
	scene_run(late_data_body);
	scene_end();
}

/* ---- the same: a read of the host's memory proved what had not come to the GPU's ---- */
static void quiet_body(void *arg)
{
	for (unsigned i = 0; i < 40; i++)
		scene_put(i, 100 + i);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	for (unsigned i = 0; i < 40; i++)
		CHECK_INT(*scene_word(1, i), 100 + i);
	scene_put(50, 7);
	CHECK_INT(ha_gpu_get(scene.a, scene_word(0, 60), pair_remote(&scene.pair, 0, 8 * 50), 8,
			     HA_GPU_FOREVER),
		  HA_GPU_DONE);
	CHECK_INT(*scene_word(0, 60), 7);
}

static void quiet_after_late_data(void)
{
	scene.config.late_ns = 50 * US;
	scene_begin();
	scene_run(quiet_body);
	scene_end();
}

/* ---- the same, and the peer's NIC dies with what it has acknowledged: it is posted again ---- */
static void late_data_dies_body(void *arg)
{
	for (unsigned i = 0; i < 36; i++)
		scene_put(i, 200 + i);
	while ((ha_gpu_poll(scene.a) & HA_GPU_INDEX) < 36)
		ha_gpu_pause();
	scene_strike(0, (struct soft_fault) { .then = SOFT_THEN_PEER_DIES });
	CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(ha_gpu_wait(scene.b, 0, 1, HA_GPU_FOREVER), HA_GPU_DONE);
	for (unsigned i = 0; i < 36; i++)
		CHECK_INT(*scene_word(1, i), 200 + i);
}

static void late_data_dies(void)
{
	scene.config.late_ns = 400 * US;
	scene_begin();
	scene_run(late_data_dies_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 1);
	scene_end();
}

/* ---- a NIC that is slow, not dead: time limits pass, suspicion comes and goes, nothing is
 * switched ---- */
static void starved_body(void *arg)
{
	unsigned late = 0;

	for (unsigned i = 0; i < 4; i++)
		ha_gpu_store(&scene.fabric->nic[i].pace, 100);
	for (unsigned i = 0; i < 20; i++) {
		scene_put(i, i);
		while (ha_gpu_quiet(scene.a, 5 * US) == HA_GPU_TIMEOUT)
			late++;
	}
	CHECK(late > 20);
	CHECK(ha_gpu_load(&scene.a->resv) < 60); /* waiting again posts nothing again */
}

static void slow_nic_is_kept(void)
{
	scene.config.agent.silent_checks = 20;
	scene_begin();
	scene_run(starved_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches + scene.pair.end[1].agent.count.switches,
		  0);
	CHECK(scene.pair.end[0].agent.count.suspicions > 0);
	CHECK(scene.pair.end[0].agent.count.cleared > 0);
	scene_end();
}

/* ---- a kernel that ended with things under way, and the next one ---- */
static void unfinished_body(void *arg)
{
	scene_strike(0, (struct soft_fault) { .at = 2, .then = SOFT_THEN_DIE });
	for (unsigned i = 0; i < 5; i++) {
		scene_put(i, 50 + i);
		CHECK_INT(ha_gpu_signal(scene.a, 0, 1, HA_GPU_LATER, HA_GPU_FOREVER), HA_GPU_DONE);
	}
	CHECK_INT(ha_gpu_quiet(scene.a, 1), HA_GPU_TIMEOUT); /* the kernel gives up, and returns */
}

static void next_body(void *arg)
{
	scene_put(5, 55);
	CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(ha_gpu_wait(scene.b, 0, 6, HA_GPU_FOREVER), HA_GPU_DONE);
	for (unsigned i = 0; i < 6; i++)
		CHECK_INT(*scene_word(1, i), 50 + i);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(ha_gpu_signal_value(scene.b, 0), 6);
}

static void unfinished_kernel(void)
{
	scene_begin();
	scene_run(unfinished_body);
	scene_run(next_body);
	scene_end();
}

/* ---- no path is left: everything that waits ends, and says so ---- */
static void both_down_body(void *arg)
{
	uint64_t old;
	bool posted;

	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&scene.fabric->nic[i].power, SOFT_DEAD);
	scene_put(0, 1);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
	CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
	CHECK_INT(ha_gpu_wait(scene.a, 0, 1, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
	CHECK_INT(ha_gpu_get(scene.a, scene_word(0, 0), pair_remote(&scene.pair, 0, 0), 8,
			     HA_GPU_FOREVER),
		  HA_GPU_BOTH_DOWN);
	CHECK_INT(ha_gpu_fetch_add(scene.a, pair_remote(&scene.pair, 0, 0), 1, &old, &posted,
				   HA_GPU_FOREVER),
		  HA_GPU_BOTH_DOWN);
	/* the peer learns it, too */
	CHECK_INT(ha_gpu_wait(scene.b, 0, 1, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
}

static void both_down(void)
{
	scene_begin();
	scene_run(both_down_body);
	scene_end();
}

/* ---- both down for a while: it goes on ---- */
static void both_flap_body(void *arg)
{
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&scene.fabric->nic[i].link, 0);
	scene_put(0, 1);
	scene_rest(1500 * US);
	CHECK(!scene.pair.end[0].agent.carrying);
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&scene.fabric->nic[i].link, 1);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(*scene_word(1, 0), 1);
}

static void both_flap(void)
{
	scene.config.agent.no_path_ns = LONG;
	scene_begin();
	scene_run(both_flap_body);
	scene_end();
}

/* ---- the machine is stopped while both are down: what time has passed says nothing, and agents
 * gave up at once when it went on ---- */
static void both_flap_and_stop_body(void *arg)
{
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&scene.fabric->nic[i].link, 0);
	scene_put(0, 1);
	scene_rest(1500 * US);
	CHECK(!scene.pair.end[0].agent.carrying);
	ha_gpu_fibers_stand_still(4 * NO_PATH);
	scene_rest(200 * US);
	CHECK(!scene.pair.end[0].agent.given_up && !scene.pair.end[1].agent.given_up);
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&scene.fabric->nic[i].link, 1);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(*scene_word(1, 0), 1);
}

static void both_flap_and_stop(void)
{
	scene.config.agent.no_path_ns = NO_PATH;
	scene_begin();
	scene_run(both_flap_and_stop_body);
	scene_end();
}

/* ---- failback: fenced, probed, and back on path 0 with traffic going on ---- */
static void failback_body(void *arg)
{
	scene_strike(0, (struct soft_fault) { .at = 3, .then = SOFT_THEN_DIE, .announced = true });
	for (uint64_t i = 1; i <= 3000 && (i < 100 || ha_gpu_load(&scene.a->active)); i++) {
		if (i == 40)
			soft_nic_heal(&scene.fabric->nic[0]);
		scene_put(1, i);
		CHECK_INT(ha_gpu_signal(scene.a, 0, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(ha_gpu_wait(scene.b, 0, i, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(*scene_word(1, 1), i);
		CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	}
	CHECK_INT(ha_gpu_load(&scene.a->active), 0);
}

static void failback_with_traffic(void)
{
	scene.config.agent.failback = true;
	scene_begin();
	scene_run(failback_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 2);
	CHECK_INT(scene.pair.end[0].agent.path[0].incarnation, 1);
	scene_end();
}

/* ---- the backup dies first, unnoticed by any traffic: probes find it ---- */
static void dead_backup_body(void *arg)
{
	ha_gpu_store(&scene.fabric->nic[3].power, SOFT_SILENT);
	scene_rest(1500 * US);
	CHECK(scene.pair.end[0].agent.path[1].state != HA_GPU_PATH_UP);
	scene_put(0, 4);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
}

static void dead_backup(void)
{
	scene_begin();
	scene_run(dead_backup_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 0);
	scene_end();
}

static const struct named_test tests[] = {
	{ "dies_before_signal", dies_before_signal },
	{ "batch_and_death", batch_and_death },
	{ "stale_health", stale_health },
	{ "backup_numbers", backup_numbers },
	{ "error_overwritten", error_overwritten },
	{ "overrun", ring_is_not_overrun },
	{ "late_after_flap", late_after_flap },
	{ "acknowledged_not_placed", acknowledged_not_placed },
	{ "signal_after_late_data", signal_after_late_data },
	{ "quiet_after_late_data", quiet_after_late_data },
	{ "late_data_dies", late_data_dies },
	{ "starved", slow_nic_is_kept },
	{ "unfinished_kernel", unfinished_kernel },
	{ "both_down", both_down },
	{ "both_flap", both_flap },
	{ "both_flap_and_stop", both_flap_and_stop },
	{ "failback", failback_with_traffic },
	{ "dead_backup", dead_backup },
};

int main(int argc, char **argv)
{
	scene_configure();
	return NAMED_TESTS_RUN(tests, argc, argv);
}
