/* SPDX-License-Identifier: BSD-3-Clause */
/* end.c - one end of a duel: its process loads the plugin, connects, and drives its lanes until all
 * is said */
#include "tests/plugin/failover/lane.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct lane lane_of[DUEL_LANES];

/* Somebody waits in vain: what is each lane at? */
static void print_lanes(int signal)
{
	for (unsigned i = 0; i < DUEL_LANES && lane_of[i].comm; i++) {
		const struct lane *l = &lane_of[i];

		dprintf(2, "lane %u: %llu of %llu messages complete%s\n", i,
			(unsigned long long)l->complete, (unsigned long long)l->begun,
			l->failed ? ", failed" : "");
		for (uint64_t k = l->complete; k < l->begun; k++) {
			const struct lane_slot *s = &l->slot[k % LANE_SLOTS];

			dprintf(2, "  message %llu: n %u, size %zu, posted %u, done %#x%s%s%s\n",
				(unsigned long long)k, s->message.n, s->message.size[0], s->posted,
				s->done, s->message.optional ? ", optional" : "",
				s->message.fresh ? ", fresh" : "", s->over ? ", over" : "");
		}
	}
}

/* A child that does nothing: it holds a copy of everything until its parent ends. */
static void fork_here(struct duel_shared *shared, enum duel_end end)
{
	pid_t child;

	signal(SIGCHLD, SIG_IGN);
	child = fork();
	CHECK(child >= 0, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	atomic_fetch_add(&shared->forked[end], 1);
}

struct part {
	struct lane *lane;
	unsigned lanes, first, every;
};

/* A sender computes between two bursts, as a training job does, and does not take the processors
 * from all other tests for as long as a fault takes to be noticed. */
#define BURST 16 /* messages of each connection */
#define COMPUTE_US 3000

static void compute_after_burst(const struct part *p, uint64_t *bursts)
{
	uint64_t begun = 0, lanes = 0;

	for (unsigned i = p->first; i < p->lanes; i += p->every, lanes++)
		begun += p->lane[i].begun;
	if (p->lane->end != SENDER || begun < (*bursts + 1) * BURST * lanes)
		return;
	(*bursts)++;
	usleep(COMPUTE_US);
}

static void *drive_lanes(void *arg)
{
	const struct part *p = arg;
	uint64_t bursts = 0;
	unsigned idle = 0;
	bool over = false;

	while (!over) {
		bool moved = false;

		if (p->first == 0 && atomic_load(&p->lane->shared->fork[p->lane->end]) >
					     atomic_load(&p->lane->shared->forked[p->lane->end]))
			fork_here(p->lane->shared, p->lane->end);
		over = true;
		for (unsigned i = p->first; i < p->lanes; i += p->every) {
			struct lane *l = &p->lane[i];

			if (lane_over(l))
				continue;
			moved |= lane_step(l);
			over = false;
		}
		idle = moved ? 0 : idle + 1;
		if (idle > 200)
			usleep(50); /* others want to run, too */
		compute_after_burst(p, &bursts);
	}
	return NULL;
}

static void connect_all(struct lane *lane, unsigned n, int dev)
{
	struct rig_deadline deadline = rig_deadline("connections");
	const struct ha_plugin_abi *abi = lane->rig->plugin.abi;
	struct duel_shared *shared = lane->shared;
	unsigned ready = 0;

	if (lane->end == RECEIVER) {
		for (unsigned i = 0; i < n; i++)
			OK(abi->listen(&lane->rig->plugin, dev, shared->handle[i],
				       &lane[i].listen));
		atomic_store(&shared->listening, true);
	}
	while (!atomic_load(&shared->listening))
		rig_pause(&deadline);
	while (ready < n) {
		for (unsigned i = 0; i < n; i++) {
			if (lane[i].comm)
				continue;
			if (lane->end == SENDER)
				OK(abi->connect(&lane->rig->plugin, dev, shared->handle[i],
						&lane[i].comm));
			else
				OK(abi->accept(&lane->rig->plugin, lane[i].listen, &lane[i].comm));
			ready += lane[i].comm != NULL;
		}
		rig_pause(&deadline);
	}
}

static void run_lanes(struct lane *lane, unsigned n, unsigned threads)
{
	pthread_t thread[DUEL_LANES];
	struct part part[DUEL_LANES];

	for (unsigned t = 0; t < threads; t++) {
		part[t] = (struct part) { .lane = lane, .lanes = n, .first = t, .every = threads };
		CHECK(!pthread_create(&thread[t], NULL, drive_lanes, &part[t]), "thread");
	}
	for (unsigned t = 0; t < threads; t++)
		CHECK(!pthread_join(thread[t], NULL), "join");
}

int duel_end(const struct duel_setup *setup, struct duel_shared *shared, enum duel_end end)
{
	struct lane *lane = lane_of;
	char version[8], *argv[] = { "duel", version, NULL };
	struct rig rig;
	int dev = setup->nic[end];

	snprintf(version, sizeof(version), "%d", setup->version);
	signal(SIGUSR1, print_lanes);
	rig_open(&rig, 2, argv);
	if (setup->fused)
		OK(rig.plugin.abi->fuse(&rig.plugin, &dev, 2, (int[]) { 0, 1 }));
	message_prepare(setup->largest);
	for (unsigned i = 0; i < setup->lanes; i++)
		lane[i] = (struct lane) { .rig = &rig,
					  .shared = shared,
					  .number = i,
					  .largest = setup->largest,
					  .end = end };
	connect_all(lane, setup->lanes, dev);
	for (unsigned i = 0; i < setup->lanes; i++)
		lane_prepare(&lane[i]);
	atomic_store(&shared->ready[end], (int)setup->lanes);
	run_lanes(lane, setup->lanes, setup->threads);
	atomic_store(&shared->over[end], true);
	/* An end that closes early would be the reason why the other's connection ends. */
	while (!atomic_load(&shared->leave))
		usleep(1000);
	for (unsigned i = 0; i < setup->lanes; i++)
		lane_close(&lane[i]);
	CHECK(!setup->no_warning || !rig_warnings(), "%s", rig_last_warning());
	rig_close(&rig);
	return 0;
}
