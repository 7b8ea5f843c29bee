/* SPDX-License-Identifier: BSD-3-Clause */
/* test_check.c - what `ha gpu-check` runs: over two ranks of software NICs all of it holds, and
 * where something is wrong an item says so */
#include "gpu/check/check.h"
#include "tests/gpu/job.h"
#include "tests/ina/switch/named.h"

#include <pthread.h>
#include <unistd.h>

static struct job job;
static struct ha_gpu_check check[2];

static bool no_failback, no_backup;

/* The linker puts ours before the library's. */
void __real_ha_gpu_host_stats(struct ha_gpu_host *h, struct ha_gpu_host_stats *s);
void __wrap_ha_gpu_host_stats(struct ha_gpu_host *h, struct ha_gpu_host_stats *s);

static void cut_nic(void *self, bool away)
{
	struct soft_nic *nic = self;

	if (away)
		job_kill(&job, 1, 0, true);
	else
		soft_nic_heal(nic);
}

static void run_printing(struct job_pe *p, FILE *out)
{
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
	k->out = out;
	p->result = ha_gpu_check_run(k);
}

static void *run_rank(void *arg)
{
	run_printing(arg, stdout);
	return NULL;
}

static void check_all(int nics, bool may_cut)
{
	job_start_with(&job, 2, nics, 32 << 20);
	for (int i = 0; i < 2; i++)
		check[i] = (struct ha_gpu_check) { .cut = may_cut ? cut_nic : NULL };
	job_all(&job, run_rank);
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
	CHECK_INT(check[0].count[HA_GPU_CHECK_FAILED], 1); /* nothing backs it up */
	/* so nothing can be stopped or cut, either */
	CHECK_INT(check[0].count[HA_GPU_CHECK_NOT_HERE], 5);
}

/* What the operator has turned off is no failure of the hardware: it was called one, with advice
 * about the firmware. */
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

/* Who reads the line pulls the cable at once, and both ends have gone on over the backup before the
 * rank that printed it does anything more: the count to compare with was taken after that, and no
 * cable had been pulled. The next line is the item's, and the cable is plugged in again. */
static void both_switch(void)
{
	struct ha_gpu_host_stats s;

	for (int i = 0; i < 2; i++)
		do {
			usleep(1000);
			__real_ha_gpu_host_stats(check[i].host, &s);
		} while (!s.switches);
}

static ssize_t read_line(void *unused, const char *line, size_t n)
{
	if (memmem(line, n, "pull the cable", 14)) {
		job_kill(&job, 1, 0, true);
		both_switch();
	} else if (memmem(line, n, " cut ", 5)) {
		soft_nic_heal(&job.fabric->nic[job.nics]);
	}
	return (ssize_t)n;
}

/* Rank 1's agents count after rank 0's: who has just been notified of a switch by the other does
 * not see its own yet. */
static bool late;

void __wrap_ha_gpu_host_stats(struct ha_gpu_host *h, struct ha_gpu_host_stats *s)
{
	static uint64_t before;
	bool first;

	__real_ha_gpu_host_stats(h, s);
	if (!late || h != check[1].host)
		return;
	first = s->switches != before;
	if (first) {
		uint64_t now = s->switches;

		s->switches = before;
		before = now;
	}
}

static void *run_and_be_pulled(void *arg)
{
	static const cookie_io_functions_t io = { .write = read_line };
	struct job_pe *p = arg;
	FILE *out = p->pe ? NULL : fopencookie(NULL, "w", io);

	CHECK(p->pe || out);
	run_printing(p, out);
	if (out)
		fclose(out);
	return NULL;
}

static void a_cable_is_pulled(void)
{
	for (int i = 0; i < 2; i++) {
		late = i;
		job_start_with(&job, 2, 2, 32 << 20);
		for (int k = 0; k < 2; k++)
			check[k] = (struct ha_gpu_check) { .only = "cut", .cut_s = 120 };
		job_all(&job, run_and_be_pulled);
		for (int k = 0; k < 2; k++) {
			CHECK_INT(job.pe[k].result, 0);
			CHECK_INT(check[k].count[HA_GPU_CHECK_OK], 3);
		}
		job_end(&job);
	}
}

/* Memory that somebody else writes, too, always after the other rank is done: what came is looked
 * at, and the item says so. */
static struct ha_gpu_bootstrap honest;

static int overwrite_heap(void *self, const void *send, void *receive, size_t bytes)
{
	int r = honest.alltoall(honest.self, send, receive, bytes);

	memset((uint8_t *)check[1].config.heap + (1 << 20), 0xee, 64);
	return r;
}

static void *run_beside_a_vandal(void *arg)
{
	struct job_pe *p = arg;

	if (!p->pe)
		return run_rank(arg);
	check[1].config.heap = soft_alloc(job.fabric, HA_GPU_CHECK_HEAP);
	CHECK(check[1].config.heap);
	honest = p->bootstrap;
	p->bootstrap.alltoall = overwrite_heap;
	run_rank(arg);
	p->bootstrap = honest;
	return NULL;
}

static void wrong_bytes_are_seen(void)
{
	job_start_with(&job, 2, 2, 32 << 20);
	for (int i = 0; i < 2; i++)
		check[i] = (struct ha_gpu_check) { .only = "proof" };
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
