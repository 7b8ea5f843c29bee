/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - polling with more threads than cores
 *
 * A NIC in software needs the cores that its pollers spin on: the peer that is to answer may be
 * waiting for exactly this core. So they yield, or, while that takes long (base/yield.h), sleep on
 * the sockets, up to NAP_NS: a sleeper is woken by its packet, and the scheduler lets it run soon.
 */
#include "softroce/idle.h"

#include "base/yield.h"
#include "softroce/adapter.h"

#include <poll.h>
#include <sys/prctl.h>

#define LONG_NS 200000 /* a yield among pollers takes less */
#define NAP_NS 20000

/*
 * Linux rounds short sleeps up by the thread's timer slack, 50 us by default: longer than the nap
 * itself.
 */
static void sleep_on_sockets(void)
{
	const struct timespec ts = { .tv_nsec = NAP_NS };
	struct pollfd fds[SR_DEVICES_MAX * SR_GIDS];
	int n = sr_adapter_pollfds(fds, SR_DEVICES_MAX * SR_GIDS), slack;

	if (n < 0)
		/*
		 * a device is being served at this moment, perhaps by a thread that waits for this
		 * very core
		 */
		n = 0;
	slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	ppoll(fds, n, &ts, NULL);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
}

void sr_idle_pause(void)
{
	static __thread struct ha_yield yield = { .long_ns = LONG_NS };

	if (!ha_yield(&yield))
		sleep_on_sockets();
}
