/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define RETRY_S 1
#define RETRY_NS ((int64_t)(RETRY_S * HA_NS_PER_S))
#define END_NS ((int64_t)(30 * HA_NS_PER_S)) /* of tries, once the drill has ended */

struct guard_memory {
	/* written by the drill, before it asks */
	struct fault wanted;
	int64_t wanted_until;
	/* The guard's, and the drill's once the guard is gone. The places of `saved` that are
	 * touched say what is still to be put back: as long as there is one, `fault` stays. */
	struct fault fault;
	struct fault_saved saved;
	int64_t until; /* CLOCK_MONOTONIC ns: when the guard acts, or tries again, by itself */
	bool failed;   /* the last undo */
};

enum request { REQUEST_APPLY, REQUEST_UNDO };

static bool is_pending(const struct guard_memory *memory)
{
	for (unsigned i = 0; i < memory->fault.places; i++)
		if (memory->saved.touched[i])
			return true;
	return false;
}

/* 0, also when there is nothing to undo; else it is to be tried again at `until`. */
static int undo_pending(struct guard_memory *memory)
{
	int err = 0;

	if (is_pending(memory))
		err = fault_undo(&memory->fault, &memory->saved);
	memory->failed = err != 0;
	if (err)
		memory->until = (int64_t)ha_clock_now(&ha_clock_live) + RETRY_NS;
	return err;
}

/* ---- the guard's process ---- */

/* Of many tries in a row, the first and the one that succeeds are said. */
static void undo_alone(struct guard_memory *memory, const char *why)
{
	bool again = memory->failed;
	int err;

	if (!is_pending(memory))
		return;
	err = undo_pending(memory);
	if (!err)
		fprintf(stderr, "ha drill: %s; what it had taken away has been put back\n",
			again ? "tried again" : why);
	else if (!again)
		fprintf(stderr,
			"ha drill: %s; what it had taken away could not be put back: %s; it is "
			"tried again\n",
			why, strerror(-err));
}

static void undo_at_end(struct guard_memory *memory)
{
	int64_t until = (int64_t)ha_clock_now(&ha_clock_live) + END_NS;

	undo_alone(memory, "the drill has ended in the middle");
	while (is_pending(memory) && (int64_t)ha_clock_now(&ha_clock_live) < until) {
		nanosleep(&(struct timespec) { .tv_sec = RETRY_S }, NULL);
		undo_alone(memory, "the drill has ended in the middle");
	}
	if (is_pending(memory))
		fprintf(stderr, "ha drill: given up; what it had taken away is not put back\n");
}

static int serve_apply(struct guard_memory *memory)
{
	int err;

	if (undo_pending(memory))
		return -EALREADY;
	memory->fault = memory->wanted;
	memory->until = memory->wanted_until;
	err = fault_apply(&memory->fault, &memory->saved);
	if (err)
		(void)undo_pending(memory);
	return err;
}

/* poll()'s time-out until the guard acts by itself. */
static int time_left(const struct guard_memory *memory)
{
	int64_t left = memory->until - (int64_t)ha_clock_now(&ha_clock_live);

	if (!is_pending(memory))
		return -1;
	return left > 0 ? (int)(left / (int64_t)HA_NS_PER_MS) + 1 : 0;
}

static void serve_requests(int fd, struct guard_memory *memory)
{
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		enum request request;
		int n = poll(&wait, 1, time_left(memory)), err;

		if (n < 0 && errno == EINTR)
			continue;
		if (!n) {
			undo_alone(memory, "the drill did not end in time");
			continue;
		}
		if (n < 0 || recv(fd, &request, sizeof(request), 0) != sizeof(request))
			break;
		err = request == REQUEST_APPLY ? serve_apply(memory) : undo_pending(memory);
		if (send(fd, &err, sizeof(err), MSG_NOSIGNAL) != sizeof(err))
			break;
	}
	undo_at_end(memory);
}

static void become_guard(int fd, struct guard_memory *memory)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };

	setsid();
	(void)prctl(PR_SET_NAME, "ha-drill-guard");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	serve_requests(fd, memory);
	_exit(0);
}

/* ---- the drill's side ---- */

int guard_open(struct guard *guard)
{
	int pair[2], err;

	*guard = (struct guard) { .fd = -1 };
	guard->memory = mmap(NULL, sizeof(*guard->memory), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->memory == MAP_FAILED)
		return -ENOMEM;
	err = fault_saved_open(&guard->memory->saved);
	if (err)
		goto unmap;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		goto close_saved;
	}
	guard->pid = fork();
	if (!guard->pid) {
		close(pair[0]);
		become_guard(pair[1], guard->memory);
	}
	close(pair[1]);
	if (guard->pid > 0) {
		guard->fd = pair[0];
		return 0;
	}
	err = -errno;
	close(pair[0]);
close_saved:
	fault_saved_close(&guard->memory->saved);
unmap:
	munmap(guard->memory, sizeof(*guard->memory));
	return err;
}

/* The guard's answer; -EPIPE: it is gone. */
static int ask_guard(struct guard *guard, enum request request)
{
	ssize_t n;
	int err;

	if (send(guard->fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return -EPIPE;
	do
		n = recv(guard->fd, &err, sizeof(err), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? err : -EPIPE;
}

int guard_apply(struct guard *guard, const struct fault *fault, int64_t until)
{
	int err;

	guard->memory->wanted = *fault;
	guard->memory->wanted_until = until;
	err = ask_guard(guard, REQUEST_APPLY);
	if (err == -EPIPE)
		(void)undo_pending(guard->memory);
	return err;
}

int guard_undo(struct guard *guard)
{
	int err = ask_guard(guard, REQUEST_UNDO);

	if (err == -EPIPE)
		err = undo_pending(guard->memory);
	return err;
}

int guard_close(struct guard *guard)
{
	int err;

	if (guard->fd < 0)
		return 0;
	err = guard_undo(guard);
	close(guard->fd);
	guard->fd = -1;
	waitpid(guard->pid, NULL, 0);
	if (!is_pending(guard->memory))
		err = 0; /* by the guard, in the end */
	fault_saved_close(&guard->memory->saved);
	munmap(guard->memory, sizeof(*guard->memory));
	return err;
}
