/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/job/cues.h"
#include "tools/job/launch.h"
#include "tools/job/self.h"

struct ha_cues {
	const struct ha_launch_options *options;
	/* rank 0 writes the start into it; its end without one means that there will be none */
	int pipe[2];
	pid_t pid;              /* of the process beside the ranks, 0: none */
	pid_t running[HA_CUES]; /* in that process */
	/* that process writes, rank 0 reads: end is stored after (release) what belongs to it */
	struct ha_cue_mark *marks;
};

struct ha_cues *ha_cues_open(const struct ha_launch_options *options)
{
	struct ha_cues *cues;

	if (!options->cues_count)
		return NULL;
	cues = calloc(1, sizeof(*cues));
	if (!cues)
		goto fail;
	cues->options = options;
	cues->marks = mmap(NULL, HA_CUES * sizeof(*cues->marks), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cues->marks == MAP_FAILED || pipe2(cues->pipe, O_CLOEXEC))
		goto fail;
	return cues;
fail:
	fprintf(stderr, "%s: no memory or pipe for the commands of --at\n", options->program);
	free(cues);
	return NULL;
}

/* ---- the process beside the ranks ---- */

static void environment_set(const pid_t *pids, int ranks)
{
	char name[32], text[32], self[PATH_MAX], *path = getenv("PATH"), *both;

	for (int i = 0; i < ranks; i++) {
		snprintf(text, sizeof(text), "%d", (int)pids[i]);
		snprintf(name, sizeof(name), "HA_RANK_PID_%d", i);
		setenv(name, text, 1);
		/* its name before there was `ha nccl` */
		snprintf(name, sizeof(name), "HA_PERF_PID_%d", i);
		setenv(name, text, 1);
	}
	if (asprintf(&both, "%s%s%s", ha_self_folder(self, sizeof(self)), path ? ":" : "",
		     path ? path : "") < 0)
		return;
	setenv("PATH", both, 1);
	free(both);
}

static void command_exec(const char *command)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0); /* it is ended with all that it has started */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void command_start(struct ha_cues *cues, int i)
{
	__atomic_store_n(&cues->marks[i].begin, ha_monotonic_ns(), __ATOMIC_RELEASE);
	cues->running[i] = fork();
	if (!cues->running[i])
		command_exec(cues->options->cues[i].command);
	if (cues->running[i] > 0)
		return;
	fprintf(stderr, "%s: no process for '%s': %s\n", cues->options->program,
		cues->options->cues[i].command, strerror(errno));
	cues->marks[i].status = 127;
	__atomic_store_n(&cues->marks[i].end, ha_monotonic_ns(), __ATOMIC_RELEASE);
}

static void commands_reap(struct ha_cues *cues)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < cues->options->cues_count; i++) {
			if (cues->running[i] != pid)
				continue;
			cues->running[i] = 0;
			cues->marks[i].status =
				WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			__atomic_store_n(&cues->marks[i].end, ha_monotonic_ns(), __ATOMIC_RELEASE);
			if (cues->marks[i].status)
				fprintf(stderr, "%s: status %d of '%s'\n", cues->options->program,
					cues->marks[i].status, cues->options->cues[i].command);
		}
}

/* The earliest that has not begun, of those at the same moment the first one; -1: all have. */
static int find_next(const struct ha_cues *cues)
{
	const struct ha_cue *all = cues->options->cues;
	int next = -1;

	for (int i = 0; i < cues->options->cues_count; i++)
		if (!cues->marks[i].begin && (next < 0 || all[i].at_ns < all[next].at_ns))
			next = i;
	return next;
}

/*
 * Starts what is due, in the order of their moments. Returns the time to wait for the next one, -1
 * when all have ended, INT64_MAX when all run.
 */
static int64_t commands_start(struct ha_cues *cues, int64_t zero)
{
	int64_t left;
	int next;

	while ((next = find_next(cues)) >= 0) {
		left = zero + cues->options->cues[next].at_ns - ha_monotonic_ns();
		if (left > 0)
			return left;
		command_start(cues, next);
	}
	for (int i = 0; i < cues->options->cues_count; i++)
		if (cues->running[i] > 0)
			return INT64_MAX;
	return -1;
}

static void run_cues(struct ha_cues *cues, const sigset_t *signals)
{
	int64_t zero, wait;

	if (read(cues->pipe[0], &zero, sizeof(zero)) != sizeof(zero))
		return;
	while ((wait = commands_start(cues, zero)) >= 0) {
		struct timespec t = { wait / 1000000000, wait % 1000000000 };

		if (sigtimedwait(signals, NULL, wait == INT64_MAX ? NULL : &t) == SIGTERM)
			break;
		commands_reap(cues);
	}
	for (int i = 0; i < cues->options->cues_count; i++)
		if (cues->running[i] > 0)
			kill(-cues->running[i], SIGTERM);
}

int ha_cues_fork(struct ha_cues *cues, const pid_t *pids, int ranks)
{
	pid_t parent = getpid();
	sigset_t signals, before;

	if (!cues)
		return 0;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	/* before the fork: no signal may come too early */
	sigprocmask(SIG_BLOCK, &signals, &before);
	cues->pid = fork();
	if (!cues->pid) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		signal(SIGINT, SIG_IGN);
		close(cues->pipe[1]);
		environment_set(pids, ranks);
		if (getppid() == parent)
			run_cues(cues, &signals);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(cues->pipe[0]);
	close(cues->pipe[1]);
	if (cues->pid > 0)
		return 0;
	fprintf(stderr, "%s: no process for the commands of --at: %s\n", cues->options->program,
		strerror(errno));
	cues->pid = 0;
	return -EAGAIN;
}

/* ---- parent and rank 0 ---- */

void ha_cues_reaped(struct ha_cues *cues, pid_t pid)
{
	if (cues && cues->pid == pid)
		cues->pid = 0;
}

void ha_cues_close(struct ha_cues *cues)
{
	if (!cues)
		return;
	if (cues->pid) {
		kill(cues->pid, SIGTERM);
		waitpid(cues->pid, NULL, 0);
	}
	munmap(cues->marks, HA_CUES * sizeof(*cues->marks));
	free(cues);
}

void ha_cues_rank(struct ha_cues *cues, int rank)
{
	if (!cues)
		return;
	close(cues->pipe[0]);
	if (rank)
		close(cues->pipe[1]);
}

void ha_cues_start(struct ha_cues *cues, int64_t zero)
{
	if (cues && write(cues->pipe[1], &zero, sizeof(zero)) != sizeof(zero))
		fprintf(stderr, "%s: the commands of --at cannot be started: %s\n",
			cues->options->program, strerror(errno));
}

struct ha_cue_mark ha_cues_mark(const struct ha_cues *cues, int i)
{
	struct ha_cue_mark mark = { 0 };

	mark.end = __atomic_load_n(&cues->marks[i].end, __ATOMIC_ACQUIRE);
	mark.begin = __atomic_load_n(&cues->marks[i].begin, __ATOMIC_ACQUIRE);
	mark.status = cues->marks[i].status;
	return mark;
}
