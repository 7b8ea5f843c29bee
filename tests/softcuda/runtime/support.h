/* SPDX-License-Identifier: BSD-3-Clause */
/* support.h - what the tests of the runtime share: calls that must succeed, and a gate that holds a
 * stream up */
#ifndef HA_TESTS_SOFTCUDA_SUPPORT_H
#define HA_TESTS_SOFTCUDA_SUPPORT_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include "base/check.h"
#include "softcuda/runtime/cuda_api_more.h"

#define OK(call) CHECK_INT(call, cudaSuccess)
/* A call that must fail so, and that the thread remembers as its last error. */
#define FAILS(call, error)                            \
	do {                                          \
		CHECK_INT(call, error);               \
		CHECK_INT(cudaGetLastError(), error); \
	} while (0)

/* A stream that comes to a gate waits until it is opened. */
struct gate {
	sem_t open;
	sem_t reached;
};

static inline void make_gate(struct gate *gate)
{
	CHECK(sem_init(&gate->open, 0, 0) == 0);
	CHECK(sem_init(&gate->reached, 0, 0) == 0);
}

static inline void wait_semaphore(sem_t *semaphore)
{
	struct timespec limit;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60; /* a hang, on however busy a machine */
	while (sem_timedwait(semaphore, &limit) != 0)
		CHECK(errno == EINTR);
}

static inline void pass_gate(void *data)
{
	struct gate *gate = data;
	sem_post(&gate->reached);
	wait_semaphore(&gate->open);
}

static inline void close_gate(struct gate *gate, cudaStream_t stream)
{
	OK(cudaLaunchHostFunc(stream, pass_gate, gate));
}

static inline void open_gate(struct gate *gate)
{
	sem_post(&gate->open);
}

/* The driver's function of that name. */
static inline void *find_driver(const char *name)
{
	void *function = NULL;
	int status = -1;
	OK(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &status));
	CHECK_INT(status, cudaDriverEntryPointSuccess);
	CHECK(function != NULL);
	return function;
}

#endif
