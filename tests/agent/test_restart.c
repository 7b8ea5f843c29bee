/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's two halves (plugin/balance/hints.h, plugin/balance/agent_client.h) against a living
 * agent that is killed, stopped, replaced and restarted while four threads read hints as fast as
 * they can. Each share that they get must be the one that was set for the flow; with the agent gone
 * or hanging they must come to get none, and with it back they must get them again.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/balance/agent_client.h"
#include "plugin/balance/hints.h"
#include "tests/agent/rig.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define FLOWS 64
#define READERS 4
#define STALE_MS 1000

static struct ha_hints hints;
static struct ha_agent_client client;
static struct ha_agent_flow flow[FLOWS];
static atomic_ulong got[HA_HINT_KINDS];
static atomic_ulong rounds[READERS]; /* of 256 reads, that are counted in got */
static atomic_bool stop;

/* As the rules say that the test gives the agent. */
static uint32_t share_of(unsigned f)
{
	return f % 2 ? 700 : 300;
}

static void *read_for_ever(void *arg)
{
	unsigned long kinds[HA_HINT_KINDS] = { 0 };

	for (unsigned i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		unsigned f = i % FLOWS;
		uint32_t slot = atomic_load_explicit(&flow[f].slot, memory_order_relaxed), bw = 0;
		enum ha_hint hint =
			ha_hints_read(&hints, slot, flow[f].sout_src, flow[f].sout_dst, &bw);

		CHECK(hint != HA_HINT_OK || bw == share_of(f));
		kinds[hint]++;
		if (i % 256 != 255)
			continue;
		for (int k = 0; k < HA_HINT_KINDS; k++) {
			atomic_fetch_add_explicit(&got[k], kinds[k], memory_order_relaxed);
			kinds[k] = 0;
		}
		atomic_fetch_add((atomic_ulong *)arg, 1);
	}
	return NULL;
}

/* The driver's part, for so long. */
static void run_driver(unsigned ms)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + ms * HA_NS_PER_MS, now;

	while ((now = ha_clock_now(&ha_clock_live)) < until) {
		ha_agent_round(&client, now);
		ha_hints_look(&hints, now);
		rig_sleep(5);
	}
}

static unsigned long take_count(enum ha_hint kind)
{
	return atomic_exchange_explicit(&got[kind], 0, memory_order_relaxed);
}

static bool all_have_advice(void)
{
	for (unsigned f = 0; f < FLOWS; f++) {
		uint32_t bw;

		if (ha_hints_read(&hints, atomic_load(&flow[f].slot), flow[f].sout_src,
				  flow[f].sout_dst, &bw))
			return false;
	}
	return true;
}

static void await_advice(void)
{
	for (int i = 0; i < 600 && !all_have_advice(); i++)
		run_driver(50);
	CHECK(all_have_advice());
}

/* Each reader has begun and ended a round since. */
static void await_rounds(void)
{
	for (int i = 0; i < READERS; i++) {
		unsigned long from = atomic_load(&rounds[i]);

		for (int k = 0; k < 6000 && atomic_load(&rounds[i]) < from + 2; k++)
			rig_sleep(10);
		CHECK(atomic_load(&rounds[i]) >= from + 2);
	}
}

static void await_none(void)
{
	for (int i = 0; i < 600 && hints.state == HA_HINTS_FRESH; i++)
		run_driver(50);
	CHECK_INT(hints.state, HA_HINTS_STALE);
	await_rounds();
	take_count(HA_HINT_OK);
	await_rounds();
	CHECK_INT(take_count(HA_HINT_OK), 0);
}

static void start_agent(struct rig *r)
{
	char path[128];

	snprintf(path, sizeof(path), "static:%s/flows", r->top);
	rig_start(r, "--policy", path, NULL);
}

static void rules_write(const struct rig *r)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/flows", r->top);
	file = fopen(path, "we");
	CHECK(file);
	for (unsigned f = 0; f < FLOWS; f++)
		fprintf(file, "10.0.0.%u 10.1.0.%u %u\n", f, f, share_of(f));
	fclose(file);
}

static void a_short_outage_is_not_felt(struct rig *r)
{
	uint32_t before[FLOWS];

	for (unsigned f = 0; f < FLOWS; f++)
		before[f] = atomic_load(&flow[f].slot);
	for (int i = 0; i < 5; i++) {
		rig_stop(r, i % 2 ? SIGTERM : SIGKILL);
		start_agent(r);
		await_advice();
	}
	for (unsigned f = 0; f < FLOWS; f++)
		CHECK_INT(atomic_load(&flow[f].slot), before[f]);
	for (int i = 0; i < 1000 && rig_number(r, "registered_connections") != FLOWS; i++)
		run_driver(20);
	CHECK_INT(rig_number(r, "registered_connections"), FLOWS);
	CHECK_INT(rig_number(r, "slots_used"), FLOWS);
}

int main(int argc, char **argv)
{
	pthread_t reader[READERS];
	unsigned files;
	struct rig r;

	CHECK(argc >= 2);
	rig_program = argv[1];
	rig_make(&r);
	rules_write(&r);
	start_agent(&r);
	CHECK(!ha_hints_open(&hints, r.hints, STALE_MS * HA_NS_PER_MS));
	CHECK(!ha_agent_client_open(&client, r.socket));
	for (unsigned f = 0; f < FLOWS; f++) {
		flow[f].sout_src = rig_flow_src(f);
		flow[f].sout_dst = rig_flow_dst(f);
		ha_agent_add(&client, &flow[f]);
	}
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&reader[i], NULL, read_for_ever, &rounds[i]));
	await_advice();
	a_short_outage_is_not_felt(&r);
	/* Gone for long. */
	rig_stop(&r, SIGKILL);
	await_none();
	start_agent(&r);
	await_advice();
	/* It hangs. */
	CHECK(!kill(r.agent, SIGSTOP));
	await_none();
	CHECK(!kill(r.agent, SIGCONT));
	await_advice();
	/* Its file is removed under it: it makes another, and readers move there. */
	files = hints.nfiles;
	CHECK(!unlink(r.hints));
	rig_await(&r, "restored", 1);
	for (int i = 0; i < 600 && hints.nfiles == files; i++)
		run_driver(50);
	CHECK_INT(hints.nfiles, files + 1);
	await_advice();
	atomic_store(&stop, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	ha_agent_client_close(&client);
	ha_hints_close(&hints);
	rig_remove(&r);
	return 0;
}
