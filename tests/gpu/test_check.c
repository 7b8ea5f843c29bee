/* SPDX-License-Identifier: BSD-3-Clause */
/* test_check.c - what `ha gpu-check` runs: over two ranks of software NICs all of it holds, and where something is wrong an item says so */
#include "gpu/check/check.h"
#include "tests/gpu/job.h"
#include "tests/ina/named.h"

#include <pthread.h>
#include <unistd.h>

static struct job job;
static struct ha_gpu_check check[2];

static bool no_failback, no_backup;
static uint64_t pulling;

static void cut(void *self, bool away)
{
	struct soft_nic *nic = self;

	if (away)
		job_kill(&job, 1, 0, true);
	else
		soft_nic_heal(nic);
}

static void *run(void *arg)
{
	struct job_pe *p = arg;
	struct ha_gpu_check *k = &check[p->pe];
	void *heap = k->config.heap;

	k->config = p->config;
	k->config.settings.chunk_log = 16;
	k->config.settings.failback = !no_failback;
	k->config.settings.backup = !no_backup;
	k->config.mr_bytes = 0;
	k->config.heap_bytes = HA_GPU_CHECK_HEAP;
	k->config.heap = heap ? heap : soft_alloc(job.fabric, HA_GPU_CHECK_HEAP);
	CHECK(k->config.heap);
	k->cut_self = &job.fabric->nic[job.nics];
	k->rounds = 10;
	k->out = stdout;
	p->result = ha_gpu_check_run(k);
	return NULL;
}

static void check_all(int nics, bool may_cut)
{
	job_start_with(&job, 2, nics, 32 << 20);
	for (int i = 0; i < 2; i++)
		check[i] = (struct ha_gpu_check){ .cut = may_cut ? cut : NULL };
	job_all(&job, run);
	CHECK(job.pe[0].result == job.pe[1].result);
	for (int i = 0; i < 3; i++)
		CHECK_INT(check[0].count[i], check[1].count[i]);
	CHECK_INT(check[0].count[0] + check[0].count[1] + check[0].count[2], ha_gpu_check_nitems);
	job_end(&job);
}

static void all_hold(void)
{
	check_all(2, true);
	CHECK_INT(job.pe[0].result, 0);
	CHECK_INT(check[0].count[HA_GPU_CHECK_FAILED], 0);
	CHECK_INT(check[0].count[HA_GPU_CHECK_NOT_HERE], 3); /* the GPU's own */
}

static void one_port(void)
{
	check_all(1, false);
	CHECK_INT(job.pe[0].result, 1);
	CHECK_INT(check[0].count[HA_GPU_CHECK_FAILED], 1);   /* nothing backs it up */
	CHECK_INT(check[0].count[HA_GPU_CHECK_NOT_HERE], 5); /* so nothing can be stopped or cut, either */
}

/* What the operator has turned off is no failure of the hardware: it was called one, with advice about the firmware. */
static void without_failback(void)
{
	no_failback = true;
	check_all(2, true);
	CHECK_INT(job.pe[0].result, 0);
	CHECK_INT(check[0].count[HA_GPU_CHECK_FAILED], 0);
	CHECK_INT(check[0].count[HA_GPU_CHECK_NOT_HERE], 5); /* stop, cut, and the GPU's own */
}

static void without_backup(void)
{
	no_backup = true;
	check_all(2, true);
	CHECK_INT(job.pe[0].result, 0);
	CHECK_INT(check[0].count[HA_GPU_CHECK_NOT_HERE], 6); /* ports, too */
}

/* Somebody pulls a cable, and plugs it in again. */
static void *pull(void *arg)
{
	while (!ha_gpu_load(&pulling))
		usleep(1000);
	usleep(300000);
	job_kill(&job, 1, 0, true);
	usleep(1000000);
	soft_nic_heal(&job.fabric->nic[job.nics]);
	return NULL;
}

static void *run_and_be_pulled(void *arg)
{
	ha_gpu_store(&pulling, 1);
	return run(arg);
}

static void a_cable_is_pulled(void)
{
	pthread_t t;

	job_start_with(&job, 2, 2, 32 << 20);
	for (int i = 0; i < 2; i++)
		check[i] = (struct ha_gpu_check){ .only = "cut", .cut_s = 20 };
	CHECK(!pthread_create(&t, NULL, pull, NULL));
	job_all(&job, run_and_be_pulled);
	pthread_join(t, NULL);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(job.pe[i].result, 0);
		CHECK_INT(check[i].count[HA_GPU_CHECK_OK], 3);
	}
	job_end(&job);
}

/* Memory that somebody else writes, too, always after the other rank is done: what came is looked at, and the item says so. */
static struct ha_gpu_bootstrap honest;

static int vandal(void *self, const void *send, void *receive, size_t bytes)
{
	int r = honest.alltoall(honest.self, send, receive, bytes);

	memset((uint8_t *)check[1].config.heap + (1 << 20), 0xee, 64);
	return r;
}

static void *run_beside_a_vandal(void *arg)
{
	struct job_pe *p = arg;

	if (!p->pe)
		return run(arg);
	check[1].config.heap = soft_alloc(job.fabric, HA_GPU_CHECK_HEAP);
	CHECK(check[1].config.heap);
	honest = p->bootstrap;
	p->bootstrap.alltoall = vandal;
	run(arg);
	p->bootstrap = honest;
	return NULL;
}

static void wrong_bytes_are_seen(void)
{
	job_start_with(&job, 2, 2, 32 << 20);
	for (int i = 0; i < 2; i++)
		check[i] = (struct ha_gpu_check){ .only = "proof" };
	job_all(&job, run_beside_a_vandal);
	CHECK_INT(job.pe[0].result, 1);
	CHECK_INT(check[0].count[HA_GPU_CHECK_FAILED], 1);
	CHECK_INT(check[0].count[HA_GPU_CHECK_OK], 2);
	job_end(&job);
}

static const struct named_test tests[] = {
	{ "all_hold", all_hold },
	{ "one_port", one_port },
	{ "wrong_bytes_are_seen", wrong_bytes_are_seen },
	{ "without_failback", without_failback },
	{ "without_backup", without_backup },
	{ "a_cable_is_pulled", a_cable_is_pulled },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
