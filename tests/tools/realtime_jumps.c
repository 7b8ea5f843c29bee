/* SPDX-License-Identifier: BSD-3-Clause */
/* realtime_jumps.c - preloaded: a wall clock that jumps by up to a day, back and forth, whenever
 * somebody looks at it */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_uint looks;

static long next_jump(void)
{
	unsigned n = atomic_fetch_add(&looks, 1);

	return (long)(n * 2654435761u % 172800) - 86400;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (!rc && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += next_jump();
	return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	*tv = (struct timeval) { .tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *at)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (at)
		*at = ts.tv_sec;
	return ts.tv_sec;
}
