/* SPDX-License-Identifier: BSD-3-Clause */
/* An open, connected and armed device that nothing happens to costs nothing: no processor time, no
 * wake-ups. */
#include "tests/softroce/front_side.h"

#include <sys/resource.h>
#include <time.h>

static const struct side_options options;

static double cpu_ms(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1e3 +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e3;
}

static void measure_idle(int fd)
{
	const struct timespec half = { .tv_nsec = 500000000 };
	struct rusage before, after;
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	side_post_send(&side, IBV_WR_RDMA_WRITE, 1, 0, 4096);
	CHECK(side_wait(&side, &wc, 10000) && wc.status == IBV_WC_SUCCESS);
	side_meet(&side); /* nor is the other end's write under way any more */
	CHECK(!ibv_req_notify_cq(side.cq, 0));
	nanosleep(&(struct timespec) { .tv_nsec = 100000000 }, NULL); /* the last timers run out */
	getrusage(RUSAGE_SELF, &before);
	nanosleep(&half, NULL);
	getrusage(RUSAGE_SELF, &after);
	printf("idle for 500 ms: %.2f ms of processor time, %ld wake-ups\n",
	       cpu_ms(&after) - cpu_ms(&before), after.ru_nvcsw - before.ru_nvcsw);
	CHECK(cpu_ms(&after) - cpu_ms(&before) < 20);
	CHECK(after.ru_nvcsw - before.ru_nvcsw < 20);
	side_meet(&side);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.77.0.0/24,127.78.0.0/24");
	side_run(measure_idle, measure_idle);
	return 0;
}
