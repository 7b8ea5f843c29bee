/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop is waited for with the precision that was asked for, below a millisecond too, and is woken
 * from another thread. */
#include "base/loop.h"

#include "base/check.h"
#include "base/clock.h"

#include <pthread.h>

static void *wake_loop(void *arg)
{
	ha_loop_wake(arg);
	return NULL;
}

static void check_short_waits(struct ha_loop *loop)
{
	for (uint64_t ns = 100 * HA_NS_PER_US; ns < 2 * HA_NS_PER_MS; ns *= 2) {
		uint64_t from = ha_clock_now(&ha_clock_live);

		ha_loop_wait(loop, ns);
		CHECK(ha_clock_now(&ha_clock_live) - from >= ns);
	}
	ha_loop_wait(loop, 0);
}

static void check_wake(struct ha_loop *loop)
{
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, wake_loop, loop), 0);
	ha_loop_wait(loop, 3600 * HA_NS_PER_S); /* a wake-up that were lost would be a hang */
	CHECK_INT(pthread_join(thread, NULL), 0);
	loop->worked = false;
	ha_loop_dispatch(loop);
	CHECK(loop->worked);
}

int main(void)
{
	struct ha_loop loop = { .threaded = true };

	CHECK_INT(ha_loop_open_wake(&loop), 0);
	check_short_waits(&loop);
	check_wake(&loop);
	ha_loop_close(&loop);
	return 0;
}
