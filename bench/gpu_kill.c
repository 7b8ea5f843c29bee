/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_kill.c - bench-gpu-kill: from the moment a NIC fails under a kernel's traffic to the first
 * thing that lands over the other path
 *
 * Two processes of a job (threads of one), each with the host library over two software NICs, its
 * agents' threads as they always run, and the words between the agents over TCP. A "kernel" of one
 * thread puts and signals to the peer without pause, in a window, and waits with time limits. One
 * thread runs all four NICs. Once in a while the sender's first NIC fails, in one of three ways:
 *
 *   error    the link is cut and nobody says so: the NIC repeats for its window of 1 ms, then
 *            writes an error completion
 *   port     the NIC is gone and the driver says so
 *   limit    the NIC falls silent and nobody says so: time limits pass in the kernel (suspicion),
 *            until silent_checks looks saw nothing
 *
 * Then it is healed, the path comes back, and the next cut follows. Prints a line of JSON per cut,
 * nanoseconds from the cut:
 *
 *   said       (error) the error completion is written; (limit) the first time limit has passed in
 *              the kernel
 *   detected   the sender's agent has begun to fence
 *   fenced     both ends have
 *   replayed   the log is posted again on the other path
 *   traffic    the peer has a signal that came over the other path
 *
 * Every word of what was put is looked at in the end. Arguments: error, port or limit; how many
 * cuts (200).
 */
#include "base/check.h"
#include "base/options.h"
#include "gpu/host/host.h"
#include "gpu/host/soft.h"
#include "gpu/host/stream.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define PES 2
#define NICS 2
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define WINDOW 64 /* messages posted and not known to be done */
#define PIECE 256
#define LIMIT (2 * MS) /* of the kernel's waits */

enum trigger { BY_ERROR, BY_PORT, BY_LIMIT };
static const char *const names[] = { "error", "port", "limit", NULL };

enum stamp { CUT, SAID, LIMIT_PASSED, DETECTED, FENCED, PEER_FENCED, REPLAYED, TRAFFIC, STAMPS };

static struct soft_fabric *fabric;
static struct ha_gpu_host *host[PES];
static struct ha_gpu_conn *conn[PES]; /* to the other */
static uint8_t *heap[PES];
static uint64_t at[STAMPS]; /* 0: not yet */
/* made: conn[] is there; limits: results TIMEOUT of the kernel */
static uint64_t made, watching, stop, nics_stop, done, limits;
static char root[80];

static void note_time(enum stamp which)
{
	uint64_t none = 0;

	if (ha_gpu_load(&watching))
		ha_gpu_cas(&at[which], &none, ha_gpu_now());
}

/* ---- the hardware's table, with two calls that note the time ---- */

/* The end whose queue pair of path 0 this is, or PES. */
static unsigned end_of(const struct soft_qp *q)
{
	unsigned e = q->nic->number / NICS;

	return ha_gpu_load(&watching) && q->nic->number % NICS == 0 &&
			       q->qpn == conn[e]->path[0].qpn
		       ? e
		       : PES;
}

static int noted_modify(struct ha_gpu_hw_qp *qp, enum ha_gpu_qp_state to,
			const struct ha_gpu_rc_link *link)
{
	unsigned e = to == HA_GPU_QP_ERR ? end_of(qp->own) : PES;
	int r;

	if (e == 0)
		note_time(DETECTED);
	r = ha_gpu_soft_ops.qp_modify(qp, to, link);
	if (e < PES && r == -EIO)
		note_time(e ? PEER_FENCED : FENCED); /* gone: nothing of it lands any more */
	return r;
}

static int noted_drained(struct ha_gpu_hw_qp *qp)
{
	unsigned e = end_of(qp->own);
	int r = ha_gpu_soft_ops.qp_drained(qp);

	if (!r && e < PES)
		note_time(e ? PEER_FENCED : FENCED);
	return r;
}

static struct ha_gpu_hw_ops noted_ops;

/* ---- threads ---- */

/*
 * Also notes what the agent and the kernel cannot: when the error is written, when the log is
 * posted again, when something lands over path 1.
 */
static void note_progress(uint64_t errors, uint64_t came)
{
	if (!ha_gpu_load(&watching))
		return;
	if (fabric->nic[0].count.errors != errors)
		note_time(SAID);
	if (ha_gpu_load(&conn[0]->active) == 1)
		note_time(REPLAYED);
	if (ha_gpu_load(&conn[1]->mailbox->slot[1][0]) != came)
		note_time(TRAFFIC);
}

static void *run_nics(void *arg)
{
	uint64_t errors, came;
	bool worked;

	while (!ha_gpu_load(&nics_stop)) {
		errors = fabric->nic[0].count.errors;
		came = ha_gpu_load(&made) ? ha_gpu_load(&conn[1]->mailbox->slot[1][0]) : 0;
		worked = false;
		for (unsigned i = 0; i < PES * NICS; i++)
			worked |= soft_nic_step(&fabric->nic[i]);
		note_progress(errors, came);
		if (!worked)
			sched_yield();
	}
	return NULL;
}

/* Until it is done; time limits that pass are counted. */
static void count_timeout(enum ha_gpu_result r)
{
	CHECK(r == HA_GPU_DONE || r == HA_GPU_TIMEOUT);
	if (r == HA_GPU_TIMEOUT) {
		ha_gpu_add(&limits, 1);
		note_time(LIMIT_PASSED);
	}
}

static void *run_kernel(void *arg)
{
	struct ha_gpu_conn *c = conn[0];
	enum ha_gpu_result r;

	for (uint64_t m = 0; !ha_gpu_load(&stop); m++) {
		uint8_t *from = heap[0] + m % WINDOW * PIECE;

		memset(from, (int)(m / WINDOW + m), PIECE);
		do
			count_timeout(r = ha_gpu_put_nbi(c, c->remote + m % WINDOW * PIECE, from,
							 PIECE, HA_GPU_LATER, LIMIT));
		while (r != HA_GPU_DONE);
		do
			count_timeout(r = ha_gpu_signal(c, 0, 1, 0, LIMIT));
		while (r != HA_GPU_DONE);
		ha_gpu_store(&done, m + 1);
		if (m % WINDOW == WINDOW - 1)
			do
				count_timeout(r = ha_gpu_quiet(c, LIMIT));
			while (r != HA_GPU_DONE);
	}
	do
		count_timeout(r = ha_gpu_quiet(c, LIMIT));
	while (r != HA_GPU_DONE);
	return NULL;
}

/* ---- a cut ---- */

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS)) };

	nanosleep(&t, NULL);
}

static bool both_good(void)
{
	for (unsigned e = 0; e < PES; e++)
		for (unsigned p = 0; p < HA_GPU_PATHS; p++)
			if (ha_gpu_load(&conn[e]->active) ||
			    ha_gpu_load(&conn[e]->health[p]) != HA_GPU_GOOD)
				return false;
	return true;
}

static void wait_until(bool (*holds)(void), const char *what)
{
	uint64_t since = ha_gpu_now();

	while (!holds()) {
		if (ha_gpu_now() - since > 60000 * MS) {
			fprintf(stderr, "bench-gpu-kill: after a minute %s\n", what);
			exit(1);
		}
		sleep_ns(200 * US);
	}
}

static bool seen_over_the_other(void)
{
	return ha_gpu_load(&at[TRAFFIC]);
}

static void cut_nic(enum trigger by)
{
	struct soft_nic *n = &fabric->nic[0];

	for (unsigned i = 0; i < STAMPS; i++)
		ha_gpu_store(&at[i], 0);
	ha_gpu_store(&watching, 1);
	note_time(CUT);
	if (by == BY_ERROR) {
		ha_gpu_store(&n->link, 0);
	} else {
		ha_gpu_store(&n->reported, by == BY_PORT);
		ha_gpu_store(&n->power, by == BY_PORT ? SOFT_DEAD : SOFT_SILENT);
	}
}

static void measure_cut(enum trigger by, unsigned number)
{
	uint64_t before = ha_gpu_load(&done), ns[STAMPS];

	wait_until(both_good, "a path is not back");
	sleep_ns(2 * MS + (uint64_t)rand() % (3 * MS));
	while (ha_gpu_load(&done) == before)
		sleep_ns(100 * US);
	cut_nic(by);
	wait_until(seen_over_the_other, "nothing came over the other path");
	ha_gpu_store(&watching, 0);
	for (unsigned i = 0; i < STAMPS; i++) {
		CHECK(ha_gpu_load(&at[i]) || i == SAID || i == LIMIT_PASSED);
		ns[i] = ha_gpu_load(&at[i]) ? ha_gpu_load(&at[i]) - ha_gpu_load(&at[CUT]) : 0;
	}
	printf("{\"trigger\": \"%s\", \"cut\": %u, \"said\": %llu, \"detected\": %llu, \"fenced\": "
	       "%llu, \"replayed\": %llu, \"traffic\": %llu}\n",
	       names[by], number, (unsigned long long)ns[by == BY_LIMIT ? LIMIT_PASSED : SAID],
	       (unsigned long long)ns[DETECTED],
	       (unsigned long long)(ns[FENCED] > ns[PEER_FENCED] ? ns[FENCED] : ns[PEER_FENCED]),
	       (unsigned long long)ns[REPLAYED], (unsigned long long)ns[TRAFFIC]);
	fflush(stdout);
	soft_nic_heal(&fabric->nic[0]);
}

/* ---- set-up ---- */

struct pe {
	int pe;
	struct ha_gpu_soft soft;
	struct ha_gpu_bootstrap bootstrap;
	struct ha_gpu_host_config config;
};

static void *set_up(void *arg)
{
	struct pe *p = arg;
	struct ha_gpu_settings *s = &p->config.settings;

	p->soft = (struct ha_gpu_soft) { .fabric = fabric,
					 .first = (unsigned)(p->pe * NICS),
					 .n = NICS };
	ha_gpu_settings_defaults(s);
	s->check_ms = 1;
	s->silent_checks = 20;
	s->qp_timeout = 6; /* a window of 2 ms as settings count it; the software NIC's is 1 ms */
	s->recovery_ms = 1;
	s->rc_per_pe = 1;
	s->chunk_log = 14;
	p->config.ops = &noted_ops;
	p->config.hw = &p->soft;
	p->config.bootstrap = &p->bootstrap;
	p->config.heap = heap[p->pe];
	p->config.heap_bytes = WINDOW * PIECE;
	CHECK(!ha_gpu_bootstrap_tcp(&p->bootstrap, root, p->pe, PES, 7, 20000));
	CHECK(!ha_gpu_host_open(&p->config, &host[p->pe]));
	CHECK(!ha_gpu_host_connect(host[p->pe], 1, 1));
	conn[p->pe] = ha_gpu_world_conn(ha_gpu_host_world(host[p->pe]), 0, (uint32_t)!p->pe);
	CHECK(conn[p->pe]);
	return NULL;
}

static void *tear_down(void *arg)
{
	struct pe *p = arg;

	CHECK(!ha_gpu_host_finalize(host[p->pe], 10000));
	ha_gpu_bootstrap_close(&p->bootstrap);
	return NULL;
}

static void run_on_both(struct pe *pe, void *(*body)(void *))
{
	pthread_t t[PES];

	for (int i = 0; i < PES; i++)
		CHECK(!pthread_create(&t[i], NULL, body, &pe[i]));
	for (int i = 0; i < PES; i++)
		pthread_join(t[i], NULL);
}

static void check_heap(void)
{
	uint64_t sent = ha_gpu_load(&done);

	CHECK_INT(ha_gpu_signal_value(conn[1], 0), sent);
	for (uint64_t m = sent > WINDOW ? sent - WINDOW : 0; m < sent; m++)
		for (unsigned i = 0; i < PIECE; i++)
			CHECK_INT(heap[1][m % WINDOW * PIECE + i], (uint8_t)(m / WINDOW + m));
}

struct options {
	enum trigger by;
	unsigned cuts;
};

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "TRIGGER", 0, NULL, "error, port or limit: what shows that a NIC is away",
	  HA_CHOICE(by, names) },
	{ "CUTS", 0, NULL, "so many (200)", HA_NUMBER(cuts, 1, 1000000) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-gpu-kill",
	.about = "How long GPU-initiated traffic stands still when a NIC is cut.",
	.operands = operands,
	.needed = 1,
};

int main(int argc, char **argv)
{
	struct pe pe[PES] = { { .pe = 0 }, { .pe = 1 } };
	struct options o = { .cuts = 200 };
	int result = ha_options_parse(&program, argc, argv, &o);
	pthread_t nics, gpu;

	if (result)
		return result - 1;
	fabric = soft_fabric_open(PES * NICS, 4 << 20);
	CHECK(fabric);
	noted_ops = ha_gpu_soft_ops;
	noted_ops.qp_modify = noted_modify;
	noted_ops.qp_drained = noted_drained;
	for (int i = 0; i < PES; i++)
		CHECK((heap[i] = soft_alloc(fabric, WINDOW * PIECE)));
	CHECK(!ha_gpu_stream_free_local(root));
	CHECK(!pthread_create(&nics, NULL, run_nics, NULL));
	run_on_both(pe, set_up);
	ha_gpu_store(&made, 1);
	CHECK(!pthread_create(&gpu, NULL, run_kernel, NULL));
	for (unsigned i = 0; i < o.cuts; i++)
		measure_cut(o.by, i);
	wait_until(both_good, "a path is not back");
	ha_gpu_store(&stop, 1);
	pthread_join(gpu, NULL);
	check_heap();
	run_on_both(pe, tear_down);
	ha_gpu_store(&nics_stop, 1);
	pthread_join(nics, NULL);
	soft_fabric_close(fabric);
	return 0;
}
