/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_cuda.h - a CUDA driver of the tests' own (libcuda.so.1): host memory stands for the GPU's,
 * and everything is counted
 *
 * The GPU's memory lies where the test may look. A copy happens when its stream is waited for; what
 * goes to the default stream, which a stream of ours waits for no more than it for ours, just after
 * that. What the real one refuses, it refuses.
 */
#ifndef HA_TESTS_GPU_FAKE_CUDA_H
#define HA_TESTS_GPU_FAKE_CUDA_H

#include <stdint.h>

/* registered memory has this address more at the GPU */
#define FAKE_CUDA_APART (UINT64_C(1) << 40)

struct fake_cuda {
	int has_context, depth;              /* pushed contexts */
	int pinned, pages, devices, streams; /* what is alive */
	int registered;                      /* so many pages ever */
	int calls, fail_at;                  /* of those that may fail; 0: none */
	int dmabuf;                          /* 0: not supported */
	int apart;                           /* 1: pinned memory has another address at the GPU */
	int stream;         /* what a stream answers when it is asked whether it is done */
	int synced;         /* SYNC_MEMOPS was set */
	uint64_t copied;    /* bytes */
	uint64_t order[64]; /* addresses copied to, in their order */
	int norder;
};

struct fake_cuda *fake_cuda(void);

#endif
