/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prompt.h - did a call block?
 *
 * A call that waits for somebody gives the processor away. Wall-clock time alone cannot tell that
 * from a busy machine, so the kernel's accounting of the thread is asked: time asleep = elapsed -
 * running - ready but not scheduled.
 */
#ifndef HA_TESTS_NCCL_PROMPT_H
#define HA_TESTS_NCCL_PROMPT_H

#include "tests/plugin/nccl/rig.h"

#include <time.h>

/* a lock that the service thread holds, even while it waits for a processor, is fine; a wait for
 * the peer takes longer */
#define PROMPT_ASLEEP_S 1.0
#define PROMPT_RUNNING_S 2.0 /* turning in circles is blocking too; generous, for sanitizers */

struct prompt {
	double wall, running, ready;
};

static inline void prompt_read(struct prompt *p)
{
	unsigned long long run = 0, wait = 0;
	struct timespec t;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (f) {
		if (fscanf(f, "%llu %llu", &run, &wait) != 2)
			wait = 0;
		fclose(f);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	p->ready = (double)wait * 1e-9;
	p->running = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	p->wall = rig_now();
}

static inline void prompt_check(const struct prompt *before, const char *call)
{
	double wall = rig_now() - before->wall, running, asleep;
	struct prompt now;

	if (wall < PROMPT_ASLEEP_S)
		return; /* no need to ask */
	prompt_read(&now);
	running = now.running - before->running;
	asleep = wall - running - (now.ready - before->ready);
	CHECK(asleep < PROMPT_ASLEEP_S, "%s slept for %.3f s", call, asleep);
	CHECK(running < PROMPT_RUNNING_S, "%s ran for %.3f s", call, running);
}

/* The value of the call, which must not block. */
#define PROMPT(call)                                 \
	({                                           \
		struct prompt prompt_before;         \
		prompt_read(&prompt_before);         \
		__auto_type prompt_result = call;    \
		prompt_check(&prompt_before, #call); \
		prompt_result;                       \
	})

#endif
