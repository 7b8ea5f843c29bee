/* SPDX-License-Identifier: BSD-3-Clause */
/* A limit that was missed: a defect when the test itself used the processors, a busy machine when
 * others did. */
#include "base/check.h"
#include "base/clock.h"
#include "tests/base/share.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPINNERS_MAX 64

static void keep_cpu_busy(double seconds)
{
	double end = ha_monotonic_s() + seconds;

	while (ha_monotonic_s() < end)
		;
}

static long start_spinners(pid_t *pid)
{
	long n = 2 * sysconf(_SC_NPROCESSORS_ONLN);

	CHECK(n > 0);
	n = n < SPINNERS_MAX ? n : SPINNERS_MAX;
	for (long i = 0; i < n; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			keep_cpu_busy(3600);
		}
	}
	return n;
}

static void end_spinners(const pid_t *pid, long n)
{
	for (long i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* Status of a process that misses a limit while `spinning` spin beside it: its own children, or the
 * test's. */
static int miss_a_limit(bool own)
{
	pid_t pid[SPINNERS_MAX], child;
	int status = -1;
	long n = own ? 0 : start_spinners(pid);

	child = fork();
	CHECK(child >= 0);
	if (!child) {
		pid_t mine[SPINNERS_MAX];
		struct share before = share_read();
		long spinners = own ? start_spinners(mine) : 0;

		sleep(2);
		end_spinners(mine, spinners);
		share_check_limit(&before, "nothing", 1, 2);
		share_check_limit(&before, "a nap", 2, 1);
		_exit(99);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	end_spinners(pid, n);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	struct share before = share_read();
	int own;

	CHECK(before.all_s > 0 && before.idle_s >= 0 && before.own_s >= 0);
	CHECK_INT(miss_a_limit(false), SHARE_BUSY_STATUS);
	own = miss_a_limit(true);
	/* Where others already have more than half of this machine, that is what it must say. */
	CHECK(own == 1 ||
	      (own == SHARE_BUSY_STATUS && share_of_others(&before) > SHARE_OTHERS_MAX / 2));
	printf("a missed limit: defect or busy machine: ok\n");
	return 0;
}
