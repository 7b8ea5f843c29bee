/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent.c - what agents and the log did wrong once, most of it found by the hunts, each by its
 * name; fibers, virtual time */
#include "tests/gpu/scene.h"
#include "tests/ina/switch/named.h"

#include <errno.h>

#define US UINT64_C(1000)
#define LONG (20000 * US)

/* ---- found by the hunt: one end gave up, the other had a path again, and waited for ever ---- */
static void peer_gave_up_body(void *arg)
{
	scene.pair.end[1].agent.config.no_path_ns = LONG;
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&scene.fabric->nic[i].power, SOFT_DEAD);
	scene_put(0, 1);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
	for (unsigned i = 0; i < 2; i++)
		soft_nic_heal(&scene.fabric->nic[i]);
	CHECK_INT(ha_gpu_wait(scene.b, 0, 1, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
}

static void peer_gave_up(void)
{
	scene_begin();
	scene_run(peer_gave_up_body);
	scene_end();
}

/* ---- found by the hunt: a read acknowledged while the log is frozen was waited for without limit
 * and without pause ---- */
static void frozen_tail_ends(void)
{
	scene_begin();
	scene.a->cons = 5;
	scene.a->tail = HA_GPU_FROZEN | 1;
	CHECK_INT(ha_gpu_wait_read(scene.a, 3, ha_gpu_now() + 10 * US), HA_GPU_TIMEOUT);
	scene.a->resv = HA_GPU_CLOSED | HA_GPU_DOWN | 5;
	CHECK_INT(ha_gpu_wait_read(scene.a, 3, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
	scene_end();
}

/* ---- a thread that read a completion before the switch reports it after: it does not count
 * ---- */
static void stale_report(void)
{
	scene_begin();
	scene.a->cons = HA_GPU_EPOCH_ONE | 5; /* the switch is over; the log goes on from 5 */
	scene.a->tail = HA_GPU_EPOCH_ONE | 5;
	ha_gpu_advance_tail(scene.a, 9, 9); /* cons as it was in epoch 0 */
	CHECK_INT(scene.a->tail, HA_GPU_EPOCH_ONE | 5);
	ha_gpu_advance_tail(scene.a, HA_GPU_EPOCH_ONE | 9, 9);
	CHECK_INT(scene.a->tail, HA_GPU_EPOCH_ONE | 9);
	scene_end();
}

/* ---- a kernel died with slots reserved, behind something acknowledged and not proved: the agent
 * waited for its turn for ever ---- */
static void dead_reservation_body(void *arg)
{
	struct ha_gpu_slots s;

	scene_put(0, 1);
	CHECK_INT(ha_gpu_reserve(scene.a, 3, HA_GPU_FOREVER, &s), HA_GPU_DONE);
	scene_rest(1000 * US);
	CHECK_INT(ha_gpu_load(&scene.a->cons), 1);
	CHECK_INT(ha_gpu_load(&scene.a->tail), 0);
	ha_gpu_store(&scene.fabric->nic[0].link, 0);
	ha_gpu_store(&scene.fabric->nic[0].reported, 1);
	scene_rest(300 * US);
	CHECK_INT(scene.pair.end[0].agent.path[0].state, HA_GPU_PATH_CLOSING); /* it has looked */
}

static void dead_reservation(void)
{
	scene_begin();
	scene_run(dead_reservation_body);
	scene_end();
}

/* ---- a full log goes onto a path whose last probe has no answer yet: it overwrote the probe's
 * entry ---- */
static void probe_under_way_body(void *arg)
{
	unsigned n = 0;

	ha_gpu_store(&scene.fabric->nic[0].pace, UINT64_MAX);
	while (ha_gpu_put_inline(scene.a, pair_remote(&scene.pair, 0, 8 * n), &n, 4, 0, 30 * US) ==
	       HA_GPU_DONE)
		n++;
	CHECK_INT(ha_gpu_load(&scene.a->resv) - ha_gpu_load(&scene.a->tail), scene.config.nwqes);
	ha_gpu_store(&scene.fabric->nic[1].pace, UINT64_MAX);
	scene_rest(500 * US);
	CHECK(scene.pair.end[0].agent.path[1].posted != scene.pair.end[0].agent.path[1].answered);
	ha_gpu_store(&scene.fabric->nic[0].power, SOFT_DEAD);
	ha_gpu_store(&scene.fabric->nic[0].reported, 1);
	scene_rest(500 * US);
	ha_gpu_store(&scene.fabric->nic[1].pace, 0);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(*(uint32_t *)(scene.pair.end[1].heap + 8 * i), i);
}

static void probe_under_way(void)
{
	scene.config.proof_every = 0;
	scene.config.agent.silent_checks = 1000;
	scene_begin();
	scene_run(probe_under_way_body);
	CHECK_INT(scene.fabric->nic[1].count.errors, 0);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 1);
	scene_end();
}

/* ---- the firmware refuses to stop a queue pair: that was taken for a fence, and the log posted
 * again beside it ---- */
static unsigned refusals;

static int refuse_fence(void *path)
{
	if (!refusals)
		return soft_path_ops.fence(path);
	refusals--;
	return -EINVAL;
}

static void fence_refused_body(void *arg)
{
	refusals = 4;
	scene.pair.end[0].agent.ops.fence = refuse_fence;
	scene_strike(0, (struct soft_fault) { .then = SOFT_THEN_CUT, .announced = true });
	scene_put(0, 1);
	scene_rest(250 * US);
	CHECK(refusals && refusals < 4);
	CHECK_INT(scene.pair.end[0].agent.path[0].state, HA_GPU_PATH_FENCING);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 0);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	CHECK_INT(refusals, 0);
}

static void fence_refused(void)
{
	scene_begin();
	scene_run(fence_refused_body);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 1);
	scene_end();
}

/* ---- threads that empty a queue of completions pass each other: what is written for the NIC ran
 * backwards, and it saw an overrun ---- */
static void post_signals(void *arg)
{
	for (unsigned i = 0; i < 60; i++) {
		CHECK_INT(ha_gpu_signal(scene.a, 1, 1, 0, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	}
}

static void consumer_index(void *arg)
{
	uint32_t was = 0, now;

	for (;;) {
		now = ha_gpu_be32(__atomic_load_n(scene.a->path[0].cq_dbrec, __ATOMIC_ACQUIRE));
		CHECK((int32_t)(now - was) >= 0);
		was = now;
		ha_gpu_pause();
	}
}

static void consumer_index_grows(void)
{
	scene.config.cq_log = 6;
	scene_begin();
	CHECK(ha_gpu_fiber_add(consumer_index, NULL, NULL, true));
	for (unsigned i = 0; i < 5; i++)
		CHECK(ha_gpu_fiber_add(post_signals, NULL, NULL, false));
	scene_run(post_signals);
	CHECK_INT(scene.fabric->nic[0].count.errors, 0);
	scene_end();
}

/* ---- failures were counted for ever: after a few days a path rested for minutes for a single flap
 * ---- */
static void flap_path_0(void)
{
	ha_gpu_store(&scene.fabric->nic[0].reported, 1);
	ha_gpu_store(&scene.fabric->nic[0].link, 0);
	scene_rest(300 * US);
	soft_nic_heal(&scene.fabric->nic[0]);
}

static void failures_decay_body(void *arg)
{
	struct ha_gpu_agent_path *p = &scene.pair.end[0].agent.path[0];

	for (unsigned i = 1; i <= 2; i++) {
		flap_path_0();
		CHECK_INT(p->failures, i);
		while (p->state != HA_GPU_PATH_UP)
			ha_gpu_pause();
	}
	scene_rest(50 * 20 * US);
	CHECK_INT(p->failures, 2); /* not yet: it has been up for less than the longest rest */
	scene_rest(2 * 64 * 20 * US);
	CHECK_INT(p->failures, 0);
	CHECK_INT(p->state, HA_GPU_PATH_UP);
}

static void short_rests(void (*body)(void *))
{
	scene.config.agent.recovery_ns = 20 * US;
	scene.config.agent.no_path_ns = LONG;
	scene_begin();
	scene_run(body);
	scene_end();
}

static void failures_decay(void)
{
	short_rests(failures_decay_body);
}

/* ---- and each of a bad night's counted: the path was good for hours, and rested for as long as
 * ever after the next flap ---- */
static void failures_bounded_body(void *arg)
{
	struct ha_gpu_agent_path *p = &scene.pair.end[0].agent.path[0];

	for (unsigned i = 0; i < 10; i++) {
		flap_path_0();
		while (p->state != HA_GPU_PATH_UP)
			ha_gpu_pause();
	}
	CHECK(p->failures > 2);
	scene_rest(9 * 64 * 20 * US);
	CHECK_INT(p->failures, 0);
	CHECK_INT(p->state, HA_GPU_PATH_UP);
}

static void failures_bounded(void)
{
	short_rests(failures_bounded_body);
}

/* ---- a thread at a ring of completions stalls, the path dies and comes back, its queue is as full
 * as it was: it took the new incarnation's completion for its own, and nobody ever reported that
 * one ---- */
static void stalled_poller_body(void *arg)
{
	struct ha_gpu_path *p = &scene.a->path[0];
	uint64_t ci, word;

	scene_put(0, 1);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	ci = ha_gpu_load(&p->cq_ci);
	word = ha_gpu_load((uint64_t *)(void *)p->cq_dbrec);
	CHECK(ci);
	flap_path_0();
	while (scene.pair.end[0].agent.path[0].state != HA_GPU_PATH_UP ||
	       ha_gpu_load(&scene.a->active) || (ha_gpu_load(&p->cq_ci) & HA_GPU_INDEX) < ci) {
		scene_put(0, 2);
		CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	}
	for (uint32_t i = 0; i < 64; i++) { /* wherever it stalled */
		uint64_t mine = (ci & ~HA_GPU_INDEX) | i,
			 consumer = (word & ~UINT64_C(0xffffffff)) | ha_gpu_be32(i);

		CHECK(!ha_gpu_cas(&p->cq_ci, &mine, mine + 1));
		CHECK(!ha_gpu_cas((uint64_t *)(void *)p->cq_dbrec, &consumer, consumer + 1));
	}
	scene_put(0, 3);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
}

static void stalled_poller(void)
{
	scene.config.cq_log = 6;
	scene.config.agent.failback = true;
	scene_begin();
	scene_run(stalled_poller_body);
	CHECK_INT(scene.fabric->nic[0].count.errors, 0);
	scene_end();
}

/* ---- a thread that saw an error before a switch says FAILED after it, of a path that carries the
 * log and moves: so it stayed ---- */
static void late_message_body(void *arg)
{
	ha_gpu_store(&scene.a->health[0], HA_GPU_FAILED);
	for (unsigned i = 0; i < 20; i++) {
		scene_put(i, i);
		CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
		scene_rest(10 * US);
	}
	CHECK_INT(ha_gpu_load(&scene.a->health[0]), HA_GPU_GOOD);
	CHECK_INT(scene.pair.end[0].agent.count.switches, 0);
}

static void late_message(void)
{
	scene_begin();
	scene_run(late_message_body);
	scene_end();
}

/* ---- a thread that read cons before a switch takes a completion out of the queue after it: it was
 * reported by nobody ---- */
static void late_poller_body(void *arg)
{
	uint64_t cons;

	scene_put(0, 1);
	CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
	cons = ha_gpu_load(&scene.a->cons);
	ha_gpu_store(&scene.fabric->nic[0].link, 0);
	ha_gpu_store(&scene.fabric->nic[0].reported, 1);
	while (!ha_gpu_load(&scene.a->active) || !scene.pair.end[0].agent.carrying)
		ha_gpu_pause();
	/* the agent does not look; nobody else does */
	scene.pair.end[0].agent.check_due = UINT64_MAX;
	scene_put(0, 2);
	scene_rest(100 * US);
	CHECK_INT(ha_gpu_load(&scene.a->cons) & HA_GPU_INDEX, ha_gpu_load(&scene.a->ready) - 1);
	ha_gpu_poll_since(scene.a, cons);
	CHECK_INT(ha_gpu_load(&scene.a->cons) & HA_GPU_INDEX, ha_gpu_load(&scene.a->ready));
}

static void late_poller(void)
{
	scene.config.cq_log = 6;
	scene_begin();
	scene_run(late_poller_body);
	scene_end();
}

/* ---- the path that carried the log is the one that comes back, and threads look at its queue all
 * the while: they took the completions of its probes, and a path that nothing happened to any more
 * was given up incarnation after incarnation ---- */
static void heal_nic(void *arg)
{
	for (;;) {
		if (!scene.fabric->nic[1].link) {
			scene_rest(300 * US);
			soft_nic_heal(&scene.fabric->nic[1]);
		}
		ha_gpu_pause();
	}
}

static void probes_are_the_agents_body(void *arg)
{
	struct ha_gpu_agent_path *p = &scene.pair.end[0].agent.path[1];

	scene.fabric->nic[0].reported = 1;
	scene.fabric->nic[0].link = 0;
	while (!ha_gpu_load(&scene.a->active))
		ha_gpu_pause();
	CHECK(ha_gpu_fiber_add(heal_nic, NULL, NULL, true));
	for (unsigned i = 1; i <= 6; i++) {
		scene_put(0, i);
		ha_gpu_store(&scene.fabric->nic[1].reported, 1);
		ha_gpu_store(&scene.fabric->nic[1].link, 0);
		while (p->failures < i)
			ha_gpu_poll(scene.a);
		CHECK_INT(ha_gpu_quiet(scene.a, HA_GPU_FOREVER), HA_GPU_DONE);
		CHECK_INT(p->incarnation, i);
	}
}

static void probes_are_the_agents(void)
{
	scene.config.cq_log = 6;
	scene.config.agent.recovery_ns = US;
	scene.config.agent.no_path_ns = LONG;
	scene_begin();
	scene_run(probes_are_the_agents_body);
	scene_end();
}

static const struct named_test tests[] = {
	{ "peer_gave_up", peer_gave_up },
	{ "frozen_tail_ends", frozen_tail_ends },
	{ "stale_report", stale_report },
	{ "dead_reservation", dead_reservation },
	{ "probe_under_way", probe_under_way },
	{ "fence_refused", fence_refused },
	{ "consumer_index_grows", consumer_index_grows },
	{ "failures_decay", failures_decay },
	{ "failures_bounded", failures_bounded },
	{ "stalled_poller", stalled_poller },
	{ "probes_are_the_agents", probes_are_the_agents },
	{ "late_poller", late_poller },
	{ "late_message", late_message },
};

int main(int argc, char **argv)
{
	scene_configure();
	return NAMED_TESTS_RUN(tests, argc, argv);
}
