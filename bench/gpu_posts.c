/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_posts.c - bench-gpu-posts: posts per second of the GPU device library beside the same ring
 * without protection
 *
 * One thread posts puts on one connection. "alone": nothing but posting and polling is in the time;
 * what was rung counts as acknowledged when half the ring is full; time of the thread's own. "NIC":
 * a software NIC takes the entries on another thread and moves the bytes; the protected side has
 * its agents beside it, which nap as the host library's do and step the standby's NICs;
 * the time ends with the last acknowledgement.
 *
 * Each round runs the variants one after the other, in turns of order; a ratio is of one round.
 * Printed is the median over the rounds with the quartiles. "without, again" is the unprotected
 * source once more at other addresses: what the ratio of equals is here.
 *
 * Arguments: rounds (201), puts of a round alone (20000), puts of a round with the NIC (20000),
 * HA_GPU_PROOF_EVERY (its default).
 */
#include "bench/gpu_posts.h"
#include "base/options.h"

#include "gpu/host/settings.h"
#include "sim/gpu/pair.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PLAIN, PROTECTED, AGAIN, VARIANTS };
#define ROUNDS_MAX 1001

static uint64_t (*const loop[VARIANTS])(const struct posts *p) = { posts_plain, posts_protected,
								   posts_plain_again };

static uint32_t proof_every;

struct rig {
	struct soft_fabric *fabric;
	struct pair pair;
	pthread_t nic, agents;
	uint64_t stop;
	bool runs, guarded; /* there is a NIC's thread; an agents' thread */
};

static void *run_agents(void *arg)
{
	const struct timespec nap = { 0, 500000 }; /* gpu/host/agents.c */
	struct rig *r = arg;
	bool moved;

	while (!ha_gpu_load(&r->stop)) {
		moved = false;
		for (unsigned e = 0; e < 2; e++) {
			moved |= ha_gpu_agent_step(&r->pair.end[e].agent);
			moved |= soft_nic_step(r->pair.end[e].nic[1]);
		}
		if (!moved)
			nanosleep(&nap, NULL);
	}
	return NULL;
}

static void open_rig(struct rig *r, bool nic, bool guarded)
{
	struct ha_gpu_settings s;
	struct pair_config c;

	memset(r, 0, sizeof(*r));
	ha_gpu_settings_defaults(&s);
	pair_defaults(&c);
	ha_gpu_settings_agent(&s, &c.agent);
	c.nwqes = (uint32_t)s.qp_depth;
	c.proof_every = guarded ? proof_every : 0;
	r->fabric = soft_fabric_open(4, 4 << 20);
	if (!r->fabric)
		exit(1);
	pair_make(&r->pair, r->fabric, &c);
	r->runs = nic;
	r->guarded = nic && guarded;
	if (r->runs && pthread_create(&r->nic, NULL, soft_nic_run, r->pair.end[0].nic[0]))
		exit(1);
	if (r->guarded && pthread_create(&r->agents, NULL, run_agents, r))
		exit(1);
}

static void close_rig(struct rig *r)
{
	if (r->guarded) {
		ha_gpu_store(&r->stop, 1);
		pthread_join(r->agents, NULL);
	}
	if (r->runs) {
		ha_gpu_store(&r->pair.end[0].nic[0]->stop, 1);
		pthread_join(r->nic, NULL);
	}
	if (r->pair.end[0].agent.count.switches || r->fabric->nic[0].count.errors) {
		fprintf(stderr, "bench-gpu-posts: the path failed while nothing was cut\n");
		exit(1);
	}
	pair_free(&r->pair);
	soft_fabric_close(r->fabric);
}

/* ns per put. */
static double measure_put(struct rig *r, unsigned variant, unsigned bytes, unsigned batch,
			  uint64_t n)
{
	struct posts p = { r->pair.end[0].conn,
			   r->pair.end[0].heap,
			   pair_remote(&r->pair, 0, 1 << 16),
			   n,
			   bytes,
			   batch,
			   r->runs };

	return (double)loop[variant](&p) / (double)n;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double find_quantile(double *v, unsigned n, double part)
{
	qsort(v, n, sizeof(*v), compare_doubles);
	return v[(unsigned)((n - 1) * part + 0.5)];
}

static void print_row(const char *name, unsigned bytes, unsigned batch, unsigned rounds,
		      double ns[][ROUNDS_MAX], double ratio[][ROUNDS_MAX])
{
	printf("%-5s %5u B, %2u per doorbell: %6.1f ns per put without, %6.1f with: ratio of posts "
	       "per second %.3f (quartiles %.3f, %.3f); "
	       "without, again %.3f (%.3f, %.3f)\n",
	       name, bytes, batch, find_quantile(ns[PLAIN], rounds, 0.5),
	       find_quantile(ns[PROTECTED], rounds, 0.5),
	       find_quantile(ratio[PROTECTED], rounds, 0.5),
	       find_quantile(ratio[PROTECTED], rounds, 0.25),
	       find_quantile(ratio[PROTECTED], rounds, 0.75),
	       find_quantile(ratio[AGAIN], rounds, 0.5), find_quantile(ratio[AGAIN], rounds, 0.25),
	       find_quantile(ratio[AGAIN], rounds, 0.75));
	fflush(stdout);
}

static void measure_row(const char *name, unsigned bytes, unsigned batch, bool nic, unsigned rounds,
			uint64_t n)
{
	static double ns[VARIANTS][ROUNDS_MAX], ratio[VARIANTS][ROUNDS_MAX];
	struct rig r[VARIANTS];

	for (unsigned v = 0; v < VARIANTS && !nic; v++)
		open_rig(&r[v], false, v == PROTECTED);
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < VARIANTS; k++) {
			unsigned v = (i & 1 ? VARIANTS - 1 - k : k);

			if (nic)
				open_rig(&r[v], true, v == PROTECTED);
			measure_put(&r[v], v, bytes, batch, n / 8); /* not counted */
			ns[v][i] = measure_put(&r[v], v, bytes, batch, n);
			if (nic)
				close_rig(&r[v]);
		}
		for (unsigned v = 0; v < VARIANTS; v++)
			ratio[v][i] = ns[PLAIN][i] / ns[v][i];
	}
	for (unsigned v = 0; v < VARIANTS && !nic; v++)
		close_rig(&r[v]);
	print_row(name, bytes, batch, rounds, ns, ratio);
}

struct options {
	unsigned rounds, proof_every;
	uint64_t alone, with_nic;
};

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "ROUNDS", 0, NULL, "of each row (201)", HA_NUMBER(rounds, 1, ROUNDS_MAX) },
	{ "PUTS_ALONE", 0, NULL, "of a round without a NIC at work (20000)",
	  HA_NUMBER(alone, 1, UINT64_C(1) << 40) },
	{ "PUTS_WITH_NIC", 0, NULL, "of a round with one (20000)",
	  HA_NUMBER(with_nic, 1, UINT64_C(1) << 40) },
	{ "PROOF_EVERY", 0, NULL, "as HA_GPU_PROOF_EVERY", HA_NUMBER(proof_every, 0, UINT32_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-gpu-posts",
	.about = "Posts per second of the GPU device library beside the same source without "
		 "protection.",
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct options o = { .rounds = 201, .alone = 20000, .with_nic = 20000 };
	struct ha_gpu_settings s;
	int result;

	ha_gpu_settings_defaults(&s);
	o.proof_every = (unsigned)s.proof_every;
	result = ha_options_parse(&program, argc, argv, &o);
	if (result)
		return result - 1;
	s.proof_every = o.proof_every;
	proof_every = o.proof_every;
	if (ha_gpu_settings_check(&s))
		return 2;
	measure_row("alone", 64, 1, false, o.rounds, o.alone);
	measure_row("alone", 64, 4, false, o.rounds, o.alone);
	measure_row("alone", 64, 32, false, o.rounds, o.alone);
	measure_row("NIC", 64, 1, true, o.rounds, o.with_nic);
	measure_row("NIC", 64, 4, true, o.rounds, o.with_nic);
	measure_row("NIC", 4096, 4, true, o.rounds, o.with_nic);
	return 0;
}
