/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop is waited for with the precision that was asked for, below a millisecond too, and is woken
 * from another thread; what is served one at a time may remove others that are ready. */
#include "base/loop.h"

#include "base/check.h"
#include "base/clock.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

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

static struct ha_loop pair_loop;
static struct ha_watch pair[2]; /* both ready; whichever is served removes the other */
static int served;

static void remove_other(struct ha_watch *watch, uint32_t events)
{
	(void)events;
	ha_loop_remove(&pair_loop, &pair[watch == &pair[0]]);
	CHECK_INT(ha_loop_change(&pair_loop, watch, 0), 0);
	served++;
}

static void check_serve_one(void)
{
	int fd[2];

	CHECK_INT(ha_loop_open(&pair_loop), 0);
	CHECK(!ha_loop_serve_one(&pair_loop, 0));
	CHECK_INT(pipe(fd), 0);
	for (int i = 0; i < 2; i++) {
		pair[i] = (struct ha_watch) { i ? dup(fd[0]) : fd[0], remove_other };
		CHECK_INT(ha_loop_add(&pair_loop, &pair[i], EPOLLIN), 0);
	}
	CHECK_INT(write(fd[1], "x", 1), 1);
	CHECK(ha_loop_serve_one(&pair_loop, -1));
	CHECK(!ha_loop_serve_one(&pair_loop, 0));
	CHECK_INT(served, 1);
	for (int i = 0; i < 2; i++)
		close(pair[i].fd);
	close(fd[1]);
	ha_loop_close(&pair_loop);
}

int main(void)
{
	struct ha_loop loop = { .threaded = true };

	CHECK_INT(ha_loop_open_wake(&loop), 0);
	check_short_waits(&loop);
	check_wake(&loop);
	ha_loop_close(&loop);
	check_serve_one();
	return 0;
}
