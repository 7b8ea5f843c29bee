/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - several processes of a job, played by threads of one: each with its own software NICs,
 * host library and bootstrap over TCP
 *
 *   process p: NICs p * nics ... p * nics + nics - 1. The NICs run on a thread each, unless a test
 *   steps them.
 */
#ifndef HA_TESTS_GPU_JOB_H
#define HA_TESTS_GPU_JOB_H

#include "gpu/host/host.h"
#include "gpu/host/soft.h"
#include "tests/gpu/flaky.h"

#include <pthread.h>

#define JOB_PES_MAX 4

struct job_pe {
	struct job *job;
	int pe;
	struct ha_gpu_soft soft;
	struct flaky flaky;
	struct ha_gpu_bootstrap bootstrap;
	struct ha_gpu_host_config config;
	struct ha_gpu_host *host;
	struct ha_gpu_world *world;
	uint8_t *heap;
	size_t heap_bytes;
	int result; /* of the last task that it was given */
};

struct job {
	int pes, nics;
	struct soft_fabric *fabric;
	pthread_t nic_thread[SOFT_NICS_MAX];
	uint64_t stop;
	struct job_pe pe[JOB_PES_MAX];
};

/* NICs are there and run, processes have met; hosts are not open. Heaps differ in size. */
void job_start(struct job *j, int pes, int nics);
void job_start_with(struct job *j, int pes, int nics, size_t bytes); /* of the fabric */
/* On a thread for each process; waits for all. */
void job_all(struct job *j, void *(*body)(void *job_pe));
/* Bodies: result in pe->result. */
void *job_open(void *pe);
void *job_connect_2_1(void *pe); /* 2 connections, 1 of them with a backup */
void *job_connect_2_2(void *pe);
void *job_connect_1_1(void *pe);
void *job_finalize(void *pe);
void job_want(struct job *j, int result); /* all have it */
/* After finalize: nothing is left. Then everything ends. */
void job_end(struct job *j);
void job_kill(struct job *j, int pe, int nic, bool reported);

/* Two processes are set up and grow n times, again and again; process 0's 1st, 2nd, ... call that
 * may fail does. Both end each step alike, a growth that fails leaves what was there as it was, and
 * then is done again; at the end `look` sees whether all of it works. How many failed. */
uint64_t job_each_call_fails(struct job *j, void *(*const growth[])(void *pe), unsigned n,
			     void (*look)(void));

/* Writes `bytes` at `offset` of the peer's heap from the same place of ours, then a signal, on
 * every row that there is; everybody waits for everybody's, and looks at what came. `round`: from
 * 1, counts. */
void *job_exchange(void *pe);
extern uint64_t job_round;

#endif
