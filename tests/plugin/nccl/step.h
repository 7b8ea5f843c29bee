/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step.h - how a program that bench-step runs (step.c) asks it to count
 *
 * By a signal to its own first thread, whose value says what; bench-step keeps the signal. Only
 * where STEP_VARIABLE is set: without bench-step the signal would end the program.
 */
#ifndef HA_TESTS_NCCL_STEP_H
#define HA_TESTS_NCCL_STEP_H

#include <pthread.h>
#include <signal.h>

#define STEP_VARIABLE "BENCH_STEP"
#define STEP_SIGNAL SIGRTMAX

enum step_mark {
	STEP_TOGGLE = 1, /* count from here on, or no longer */
	STEP_DUMP,       /* write the count, and begin at 0 */
};

static inline void step_mark(enum step_mark mark)
{
	pthread_sigqueue(pthread_self(), STEP_SIGNAL, (union sigval) { .sival_int = mark });
}
#endif
