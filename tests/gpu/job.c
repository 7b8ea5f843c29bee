/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/gpu/job.h"

#include "base/check.h"
#include "gpu/host/stream.h"

#include <errno.h>

#define SECOND UINT64_C(1000000000)
#define LIMIT_MS 120000 /* only a hang reaches it */
#define PIECE 256       /* bytes of a row from one process */
#define SIGNAL 3

uint64_t job_round;

static char root[80];

static void *connect_bootstrap(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_bootstrap_tcp(&p->bootstrap, root, p->pe, p->job->pes, 4711, LIMIT_MS);
	return NULL;
}

void job_all(struct job *j, void *(*body)(void *))
{
	pthread_t t[JOB_PES_MAX];

	for (int i = 0; i < j->pes; i++)
		CHECK(!pthread_create(&t[i], NULL, body, &j->pe[i]));
	for (int i = 0; i < j->pes; i++)
		pthread_join(t[i], NULL);
}

void job_want(struct job *j, int result)
{
	for (int i = 0; i < j->pes; i++)
		CHECK_INT(j->pe[i].result, result);
}

static void set_up(struct job *j, int i)
{
	struct job_pe *p = &j->pe[i];
	struct ha_gpu_host_config *c = &p->config;

	p->job = j;
	p->pe = i;
	p->soft = (struct ha_gpu_soft) { .fabric = j->fabric,
					 .first = (unsigned)(i * j->nics),
					 .n = (unsigned)j->nics };
	p->flaky = (struct flaky) { .under = &ha_gpu_soft_ops, .hw = &p->soft };
	/* of different sizes, so that a table with another's stride is a wrong table */
	p->heap_bytes = (size_t)(4 + i) << 14;
	p->heap = soft_alloc(j->fabric, p->heap_bytes);
	CHECK(p->heap);
	ha_gpu_settings_defaults(&c->settings);
	c->settings.qp_depth = 256;
	c->settings.chunk_log = 13;
	c->settings.check_ms = 2;
	c->settings.silent_checks = 500;
	c->settings.recovery_ms = 20;
	c->settings.qp_timeout = 8;
	c->settings.connect_timeout_ms = LIMIT_MS;
	c->ops = &flaky_ops;
	c->hw = &p->flaky;
	c->bootstrap = &p->bootstrap;
	c->heap = p->heap;
	c->heap_bytes = p->heap_bytes;
	c->mr_bytes = 1 << 14;
}

void job_start_with(struct job *j, int pes, int nics, size_t bytes)
{
	memset(j, 0, sizeof(*j));
	j->pes = pes;
	j->nics = nics;
	j->fabric = soft_fabric_open((unsigned)(pes * nics), bytes);
	CHECK(j->fabric);
	/* Numbers of queue pairs and keys repeat on every NIC, but are not the same for one
	 * connection's two. */
	for (int i = 0; i < pes * nics; i++)
		for (int k = 0; k < i % nics; k++)
			CHECK(soft_qp_create(&j->fabric->nic[i],
					     &(struct soft_qp_attr) { .nwqes = 64 }));
	for (int i = 0; i < pes; i++)
		set_up(j, i);
	for (int i = 0; i < pes * nics; i++)
		CHECK(!pthread_create(&j->nic_thread[i], NULL, soft_nic_serve, &j->fabric->nic[i]));
	CHECK(!ha_gpu_stream_free_local(root));
	job_all(j, connect_bootstrap);
	job_want(j, 0);
}

void job_start(struct job *j, int pes, int nics)
{
	job_start_with(j, pes, nics, 6 << 20);
}

void *job_open(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_open(&p->config, &p->host);
	if (p->result)
		p->host = NULL;
	else
		p->world = ha_gpu_host_world(p->host);
	return NULL;
}

void *job_connect_2_1(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_connect(p->host, 2, 1);
	return NULL;
}

void *job_connect_2_2(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_connect(p->host, 0, 0); /* the default */
	return NULL;
}

void *job_connect_1_1(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_connect(p->host, 1, 1);
	return NULL;
}

void *job_finalize(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_finalize(p->host, LIMIT_MS);
	if (p->result != -EBUSY)
		p->host = NULL;
	return NULL;
}

void job_end(struct job *j)
{
	for (int i = 0; i < j->pes * j->nics; i++)
		ha_gpu_store(&j->fabric->nic[i].stop, 1);
	for (int i = 0; i < j->pes * j->nics; i++)
		pthread_join(j->nic_thread[i], NULL);
	for (int i = 0; i < j->pes; i++) {
		if (flaky_leak(&j->pe[i].flaky)) {
			fprintf(stderr,
				"process %d has not given back: %s (after failure of call %llu)\n",
				i, flaky_leak(&j->pe[i].flaky),
				(unsigned long long)j->pe[i].flaky.fail_at);
			exit(1);
		}
		ha_gpu_bootstrap_close(&j->pe[i].bootstrap);
	}
	soft_fabric_close(j->fabric);
}

void job_kill(struct job *j, int pe, int nic, bool reported)
{
	struct soft_nic *n = &j->fabric->nic[pe * j->nics + nic];

	ha_gpu_store(&n->power, SOFT_DEAD);
	ha_gpu_store(&n->reported, reported);
}

static void check_same_result(struct job *j)
{
	CHECK(!j->pe[0].result == !j->pe[1].result);
}

/* True: the call was reached. */
static bool one_fault(struct job *j, uint64_t at, void *(*const growth[])(void *), unsigned n,
		      void (*look)(void))
{
	uint64_t rows = 0;

	job_start(j, 2, 2);
	j->pe[0].flaky.fail_at = at;
	ha_gpu_store(&j->pe[0].flaky.armed, 1);
	job_all(j, job_open);
	check_same_result(j);
	if (j->pe[0].result)
		return true;
	for (unsigned i = 0; i < n && !j->pe[0].result; i++) {
		rows = ha_gpu_load(&j->pe[0].world->nrows);
		job_all(j, growth[i]);
		check_same_result(j);
	}
	ha_gpu_store(&j->pe[0].flaky.armed, 0);
	if (j->pe[0].result) {
		CHECK_INT(ha_gpu_load(&j->pe[0].world->nrows), rows);
		if (rows)
			look();
		job_all(j, growth[n - 1]);
		job_want(j, 0);
	}
	CHECK(ha_gpu_load(&j->pe[0].world->nrows) > rows);
	look();
	job_all(j, job_finalize);
	job_want(j, 0);
	return j->pe[0].flaky.failed;
}

uint64_t job_each_call_fails(struct job *j, void *(*const growth[])(void *), unsigned n,
			     void (*look)(void))
{
	uint64_t at = 0;
	bool struck = true;

	while (struck) {
		struck = one_fault(j, ++at, growth, n, look);
		job_end(j);
	}
	printf("%llu calls failed, one at a time\n", (unsigned long long)at - 1);
	return at - 1;
}

static uint8_t *source_of(const struct job_pe *p, int to, uint64_t row)
{
	return p->heap + ((uint64_t)to * 16 + row % 16) * PIECE;
}

/* Where a process finds what another sent: in the second half of what the smallest heap has. */
static uint64_t offset_of(int from, uint64_t row)
{
	return (2 << 14) + ((uint64_t)from * 16 + row % 16) * PIECE;
}

static void put_all(struct job_pe *p, uint64_t rows)
{
	for (uint64_t row = 0; row < rows; row++)
		for (int to = 0; to < p->job->pes; to++) {
			struct ha_gpu_conn *c = ha_gpu_world_conn(p->world, row, (uint32_t)to);
			uint8_t *from = source_of(p, to, row);

			if (!c)
				continue;
			memset(from, (int)(job_round * 31 + row * 7 + (uint64_t)p->pe), PIECE);
			CHECK_INT(ha_gpu_put_nbi(c, c->remote + offset_of(p->pe, row), from, PIECE,
						 0, 120 * SECOND),
				  HA_GPU_DONE);
			CHECK_INT(ha_gpu_signal(c, SIGNAL, 1, 0, 120 * SECOND), HA_GPU_DONE);
		}
}

static void look_at_all(struct job_pe *p, uint64_t rows, uint64_t *seen)
{
	for (uint64_t row = 0; row < rows; row++)
		for (int from = 0; from < p->job->pes; from++) {
			struct ha_gpu_conn *c = ha_gpu_world_conn(p->world, row, (uint32_t)from);
			const uint8_t *at = p->heap + offset_of(from, row);

			if (!c)
				continue;
			CHECK_INT(ha_gpu_wait(c, SIGNAL,
					      seen[row * JOB_PES_MAX + (uint64_t)from] + 1,
					      120 * SECOND),
				  HA_GPU_DONE);
			for (unsigned i = 0; i < PIECE; i++)
				CHECK_INT(at[i],
					  (uint8_t)(job_round * 31 + row * 7 + (uint64_t)from));
		}
}

void *job_exchange(void *arg)
{
	struct job_pe *p = arg;
	uint64_t rows = ha_gpu_load(&p->world->nrows), seen[16 * JOB_PES_MAX] = { 0 };

	CHECK(rows <= 16);
	for (uint64_t row = 0; row < rows; row++)
		for (int from = 0; from < p->job->pes; from++) {
			struct ha_gpu_conn *c = ha_gpu_world_conn(p->world, row, (uint32_t)from);

			seen[row * JOB_PES_MAX + (uint64_t)from] =
				c ? ha_gpu_signal_value(c, SIGNAL) : 0;
		}
	CHECK(!ha_gpu_bootstrap_agree(&p->bootstrap, 0));
	ha_gpu_world_enter(p->world);
	put_all(p, rows);
	look_at_all(p, rows, seen);
	for (uint64_t row = 0; row < rows; row++)
		for (int to = 0; to < p->job->pes; to++)
			if (ha_gpu_world_conn(p->world, row, (uint32_t)to))
				CHECK_INT(
					ha_gpu_quiet(ha_gpu_world_conn(p->world, row, (uint32_t)to),
						     120 * SECOND),
					HA_GPU_DONE);
	ha_gpu_world_leave(p->world);
	CHECK(!ha_gpu_bootstrap_agree(&p->bootstrap, 0));
	return NULL;
}
