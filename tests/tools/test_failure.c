/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that fail under a launcher which, like mpirun, ends all of them as soon as one leaves with
 * a failure: whoever failed, and when, exactly one line says why.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "tools/job/failure.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"

#define RANKS 3
#define STEP_MS \
	250 /* half of what a rank that failed waits for news: another one fails meanwhile */
#define TIMEOUT_S 600

enum part { PART_FAIL, PART_FAIL_LATER, PART_LOOK, PART_QUIT };

static const struct scene {
	const char *name;
	enum part parts[RANKS];
	bool full; /* what is printed waits until somebody reads, a second later */
} scenes[] = {
	{ "one fails", { PART_LOOK, PART_FAIL, PART_LOOK }, false },
	{ "rank 0 fails", { PART_FAIL, PART_LOOK, PART_LOOK }, false },
	{ "rank 0 fails, and its line takes a while", { PART_FAIL, PART_LOOK, PART_LOOK }, true },
	{ "rank 0 after another", { PART_FAIL_LATER, PART_FAIL, PART_LOOK }, false },
	{ "another after rank 0", { PART_FAIL, PART_FAIL_LATER, PART_LOOK }, false },
	{ "all but rank 0", { PART_LOOK, PART_FAIL, PART_FAIL }, false },
	{ "all", { PART_FAIL, PART_FAIL, PART_FAIL }, false },
	{ "one ends as if all were well", { PART_LOOK, PART_LOOK, PART_QUIT }, false },
};

/* ---- a rank ---- */

static void rank_play(struct ha_rendezvous *rendezvous, enum part part)
{
	if (part == PART_QUIT)
		_exit(0);
	while (part == PART_LOOK && !ha_rendezvous_poll(rendezvous))
		usleep(1000);
	if (part == PART_FAIL_LATER)
		usleep(STEP_MS * 1000);
	if (part != PART_LOOK)
		(void)ha_fault(-EIO, "broken");
}

static void rank_run(const struct ha_place *place, enum part part, int errors)
{
	struct ha_rendezvous *rendezvous;

	CHECK(dup2(errors, STDERR_FILENO) >= 0);
	CHECK_INT(ha_rendezvous_open(&rendezvous, place, TIMEOUT_S), 0);
	CHECK_INT(ha_rendezvous_barrier(rendezvous), 0);
	rank_play(rendezvous, part);
	(void)ha_failure_report(rendezvous, place, "test");
	_exit(1);
}

/* ---- the launcher ---- */

static struct ha_place place_make(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ha_place place = { .ranks = RANKS, .launcher = "test", .job = 1 };
	socklen_t length = sizeof(address);

	place.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(place.listener >= 0);
	CHECK_INT(bind(place.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(listen(place.listener, RANKS), 0);
	CHECK_INT(getsockname(place.listener, (struct sockaddr *)&address, &length), 0);
	snprintf(place.host, sizeof(place.host), "127.0.0.1");
	place.port = ntohs(address.sin_port);
	return place;
}

static void ranks_fork(const struct scene *scene, int errors, pid_t *pids)
{
	struct ha_place place = place_make();
	int listener = place.listener;

	for (int i = 0; i < RANKS; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i])
			continue;
		place.rank = i;
		if (i) {
			close(listener);
			place.listener = -1;
		}
		rank_run(&place, scene->parts[i], errors);
	}
	close(listener);
}

/* Until all have ended; the first failure ends the others. */
static bool ranks_reap(pid_t *pids)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < RANKS; i++) {
			if (pids[i] == pid)
				pids[i] = 0;
			else if (pids[i] && status)
				kill(pids[i], SIGKILL);
		}
	return pid < 0;
}

static void pipe_fill(int fd)
{
	static const char filling[4096];

	while (write(fd, filling, sizeof(filling)) > 0)
		;
	CHECK_INT(errno, EAGAIN);
}

static int lines_count(const char *text, size_t length)
{
	static const char begin[] = "test: rank ";
	int n = 0;

	for (size_t i = 0; i + strlen(begin) <= length; i++)
		if (!memcmp(text + i, begin, strlen(begin)))
			n++;
	return n;
}

static void scene_run(const struct scene *scene)
{
	static char text[1 << 20];
	int64_t reads_from = ha_monotonic_ms() + (scene->full ? 1000 : 0);
	size_t length = 0;
	pid_t pids[RANKS];
	int pipes[2];
	bool ended;
	ssize_t n;

	CHECK_INT(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	if (scene->full)
		pipe_fill(pipes[1]);
	CHECK_INT(fcntl(pipes[1], F_SETFL, 0), 0); /* a rank's line waits for room */
	ranks_fork(scene, pipes[1], pids);
	do {
		usleep(1000);
		ended = ranks_reap(pids);
		if (!ended && ha_monotonic_ms() < reads_from)
			continue;
		while ((n = read(pipes[0], text + length, sizeof(text) - length)) > 0)
			length += (size_t)n;
	} while (!ended);
	close(pipes[0]);
	close(pipes[1]);
	if (lines_count(text, length) == 1)
		return;
	printf("%s: not one line but %d:\n", scene->name, lines_count(text, length));
	fwrite(text, 1, length, stdout);
	exit(1);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		scene_run(&scenes[i]);
	puts("all right");
	return 0;
}
