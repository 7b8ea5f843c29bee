/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flaky.h - a hardware table in front of another: counts what is alive, fails the n-th call that
 * may fail
 *
 * Each process (or thread that plays one) has its own.
 */
#ifndef HA_TESTS_GPU_FLAKY_H
#define HA_TESTS_GPU_FLAKY_H

#include "gpu/host/hw.h"

enum flaky_kind {
	FLAKY_DEVICE,
	FLAKY_PD,
	FLAKY_MEMORY,
	FLAKY_BUF,
	FLAKY_MR,
	FLAKY_CQ,
	FLAKY_QP,
	FLAKY_DCT,
	FLAKY_KINDS
};

struct flaky {
	const struct ha_gpu_hw_ops *under;
	void *hw;
	uint64_t fail_at;       /* 0: never; the so-manieth call from 1 */
	uint64_t calls, failed; /* counted by every call that may fail, while `armed` */
	uint64_t armed;
	int64_t live[FLAKY_KINDS];
	/* commands that stop a queue pair; how often was asked whether one is drained */
	uint64_t stops, looks;
};

extern const struct ha_gpu_hw_ops flaky_ops; /* hw: struct flaky */

/* The kinds that are not back, or NULL. */
const char *flaky_leak(const struct flaky *f);

#endif
