/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/transfer/guard.h"

#include "plugin/ctx.h"
#include "plugin/report/status.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An owner is inside for less than a microsecond, unless the scheduler has taken it off its
 * processor there. */
#define SPINS 64
#define YIELDS 16

static long call_membarrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0);
}

bool ha_guard_init(void)
{
	return call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

enum ha_entry ha_bundle_enter_slow(struct ha_bundle *b)
{
	if (!b->ctx->loop.threaded) {
		ha_bundle_leave(b);
		b->ctx->progress(b->ctx);
		ha_guard_in(b);
	}
	/* The driver is inside for some microseconds, mostly; "not now" costs the caller a round of
	 * its own. */
	for (int i = 0; atomic_load_explicit(&b->attention, memory_order_seq_cst) & HA_ATTN_HELD;
	     i++) {
		ha_bundle_leave(b);
		if (i == SPINS) {
			ha_status_kept_out(b->ctx);
			sched_yield(); /* the driver may be waiting for this very processor */
			return HA_NOT_NOW;
		}
		cpu_relax();
		ha_guard_in(b);
	}
	return HA_ENTERED_LOOK;
}

void ha_bundle_claim(struct ha_bundle *b)
{
	atomic_fetch_or_explicit(&b->attention, HA_ATTN_HELD, memory_order_seq_cst);
}

void ha_guard_barrier(const struct ha_ctx *ctx)
{
	if (!ctx->own_barrier)
		call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool ha_bundle_claimed(struct ha_bundle *b)
{
	for (int i = 0; i < SPINS + YIELDS; i++) {
		if (!atomic_load_explicit(&b->inside, memory_order_seq_cst))
			return true;
		if (i < SPINS)
			cpu_relax();
		else
			sched_yield();
	}
	ha_bundle_give(b);
	return false;
}

void ha_bundle_give(struct ha_bundle *b)
{
	atomic_fetch_and_explicit(&b->attention, ~(uint32_t)HA_ATTN_HELD, memory_order_release);
}
