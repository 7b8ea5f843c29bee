/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - polling with more threads than cores
 *
 * A NIC in software needs the cores that its pollers spin on: the peer that is to answer may be waiting for exactly
 * this core. Among well-behaved pollers sched_yield() is the best there is: it returns at once when nobody waits. But
 * beside threads that just compute, a yield gives away a whole round of everybody's time slices, milliseconds each. So
 * every yield is timed; one that took long is followed by a while in which the thread sleeps on the sockets instead,
 * up to NAP_NS: a sleeper is woken by its packet, and the scheduler lets it run soon. The while doubles as long as
 * yields take long.
 */
#include "softroce/idle.h"
#include "softroce/adapter.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>

#define LONG_NS 200000	      /* a yield that took longer gave the core to threads that compute */
#define NAP_NS 20000
#define NAPPING_MIN_NS 10000000ull
#define NAPPING_MAX_NS 1000000000ull

static __thread uint64_t napping_until, napping_ns;

/* Linux rounds short sleeps up by the thread's timer slack, 50 us by default: longer than the nap itself. */
static void nap(void)
{
	const struct timespec ts = { .tv_nsec = NAP_NS };
	struct pollfd fds[SR_DEVICES_MAX * SR_GIDS];
	int n = sr_adapter_pollfds(fds, SR_DEVICES_MAX * SR_GIDS), slack;

	if (n < 0)
		n = 0; /* a device is being served at this moment, perhaps by a thread that waits for this very core */
	slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	ppoll(fds, n, &ts, NULL);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
}

void sr_idle_pause(void)
{
	uint64_t start = sr_now(), end;

	if (start < napping_until) {
		nap();
		return;
	}
	sched_yield();
	end = sr_now();
	if (end - start < LONG_NS) {
		napping_ns = 0;
		return;
	}
	napping_ns = napping_ns ? napping_ns * 2 : NAPPING_MIN_NS;
	if (napping_ns > NAPPING_MAX_NS)
		napping_ns = NAPPING_MAX_NS;
	napping_until = end + napping_ns;
}
