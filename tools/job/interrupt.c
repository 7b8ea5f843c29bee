/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/job/interrupt.h"

#include <signal.h>

#include "tools/job/rendezvous.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = 1;
}

void ha_interrupt_take(const struct ha_place *place)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	if (place->rank && !place->forked)
		return;
	if (!place->rank) {
		action.sa_handler = on_interrupt;
		action.sa_flags = (int)SA_RESETHAND;
	}
	sigaction(SIGINT, &action, NULL);
}

bool ha_interrupted(void)
{
	return interrupted;
}
