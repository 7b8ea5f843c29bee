/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/idle.h"

#include <time.h>

#define POLLS_WITHOUT_YIELD 50u
#define YIELD_NS (200 * HA_NS_PER_US)
#define NAP_MAX_NS (200 * HA_NS_PER_US)

static void pause_processor(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void sleep_while_idle(struct idle *idle, uint64_t idle_ns)
{
	uint64_t ns = ha_idle_sleep_ns(idle_ns);
	struct timespec pause = { 0 };

	if (!idle->naps_exactly) {
		idle->naps_exactly = true;
		ha_set_exact_sleeps();
	}
	if (ns > NAP_MAX_NS)
		ns = NAP_MAX_NS;
	pause.tv_nsec = (long)ns;
	nanosleep(&pause, NULL);
}

void wait_idle(struct idle *idle)
{
	uint64_t now;

	idle->polls++;
	if (idle->polls < POLLS_WITHOUT_YIELD) {
		pause_processor();
		return;
	}
	now = ha_clock_now(&ha_clock_live);
	if (idle->polls == POLLS_WITHOUT_YIELD)
		idle->since_ns = now;
	if (now - idle->since_ns < YIELD_NS && ha_yield(&idle->yield))
		return;
	sleep_while_idle(idle, now - idle->since_ns);
}
