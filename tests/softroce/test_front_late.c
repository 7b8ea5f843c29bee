/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tool changes the faults of a NIC that answers late: a busy one is waited for and its change
 * made once; one that never answers, and one whose process is stopped, are told apart, and their
 * change is made when they get to it; one that ends meanwhile is gone, unless it has made the
 * change before, as a killed NIC does that is restored.
 *
 * The owner has nothing but a control page. The tool's naps take no time: they move the clock that
 * it reads, and the owner acts when that has come far enough.
 */
#include "softroce/control.h"
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define LATE_S 30 /* a busy machine's */

static struct sr_control control;
static uint64_t tool_ns, act_at;
static void (*act)(void); /* the owner's part, once */

int nanosleep(const struct timespec *nap, struct timespec *left)
{
	void (*now)(void) = act;

	tool_ns += (uint64_t)nap->tv_sec * NS_PER_S + (uint64_t)nap->tv_nsec;
	if (now && tool_ns >= act_at) {
		act = NULL;
		now();
	}
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, t);
	*t = (struct timespec) { (time_t)(tool_ns / NS_PER_S), (long)(tool_ns % NS_PER_S) };
	return 0;
}

static void publish_page(void)
{
	struct sr_control_page page = { .link_up = 1 };

	sr_control_publish(&control, &page);
}

static void open_control(void)
{
	CHECK(!sr_control_open(&control, "late"));
	publish_page();
}

/* What the NIC does when its bell has rung; how often it has been asked to fail its queues. */
static unsigned answer_change(void)
{
	struct pollfd fd = { .fd = control.bell, .events = POLLIN };
	struct sr_faults faults;

	CHECK(poll(&fd, 1, -1) == 1);
	CHECK(!sr_control_read(&control, &faults));
	publish_page();
	return faults.srq_errors;
}

static unsigned answered;

static void answer_late(void)
{
	answered = answer_change();
}

static void close_control(void)
{
	sr_control_close(&control);
}

static void count_error(struct sr_faults *faults, void *arg)
{
	faults->srq_errors++;
}

/* What a tool says that asks the NIC of that process, which does its part meanwhile. */
static int request_change(pid_t pid, void (*part)(void), uint64_t after_s)
{
	struct sr_control_entry *list;
	char selector[64];
	int n, err;

	act = part;
	act_at = tool_ns + after_s * NS_PER_S;
	snprintf(selector, sizeof(selector), "late:%d", (int)pid);
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1);
	err = sr_control_change(list, count_error, NULL);
	free(list);
	return err;
}

static void busy_is_waited_for(void)
{
	open_control();
	CHECK(request_change(getpid(), answer_late, LATE_S) == 0);
	CHECK(answered == 1);
	close_control();
}

static void hanging_is_given_up(void)
{
	const uint64_t began = tool_ns;

	open_control();
	CHECK(request_change(getpid(), NULL, 0) == -EBUSY);
	CHECK(tool_ns - began > LATE_S * NS_PER_S);
	CHECK(answer_change() == 1);
	close_control();
}

static void ended_is_gone(void)
{
	open_control();
	CHECK(request_change(getpid(), close_control, 2) == -ESRCH);
}

static void answer_and_end(void)
{
	answer_late();
	close_control();
}

static void ended_behind_its_answer(void)
{
	open_control();
	CHECK(request_change(getpid(), answer_and_end, 2) == 0);
	CHECK(answered == 1);
}

static void stopped_is_named(void)
{
	const uint64_t began = tool_ns;
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		open_control();
		raise(SIGSTOP);
		_exit((int)answer_change());
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(request_change(pid, NULL, 0) == -ETIMEDOUT);
	CHECK(tool_ns - began < LATE_S * NS_PER_S);
	CHECK(!kill(pid, SIGCONT));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

int main(void)
{
	side_isolate("127.191.0.0/24");
	busy_is_waited_for();
	hanging_is_given_up();
	ended_is_gone();
	ended_behind_its_answer();
	stopped_is_named();
	return 0;
}
