/* SPDX-License-Identifier: BSD-3-Clause */
/* A thousand processes that come and go: 100 at a time, each with some connections of some of 50
 * flows; a third says deregistration, a third only closes its socket, a third is killed. Nothing
 * may be left, and no slot may be used twice. */
#include "base/check.h"
#include "tests/agent/rig.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS 1000
#define AT_ONCE 100
#define FLOWS 50
#define CONNECTIONS 6

static void run_client(const struct rig *r, unsigned n)
{
	unsigned random = n * 2654435761u;
	int fd = rig_dial(r);
	uint32_t slot;

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		random = random * 1664525u + 1013904223u;
		CHECK_INT(rig_register(fd, (uint32_t)getpid() << 16 | i, 1 + (random >> 8) % FLOWS,
				       &slot),
			  MPIB_STATUS_OK);
	}
	if (n % 3 == 0)
		for (unsigned i = 0; i < CONNECTIONS; i++)
			CHECK_INT(rig_deregister(fd, (uint32_t)getpid() << 16 | i), MPIB_STATUS_OK);
	if (n % 3 == 1)
		close(fd);
	if (n % 3 == 2)
		raise(SIGKILL);
	_exit(0);
}

static void wait_for_client(int *running)
{
	int status;

	CHECK(wait(&status) > 0);
	CHECK((WIFEXITED(status) && !WEXITSTATUS(status)) ||
	      (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	--*running;
}

int main(int argc, char **argv)
{
	int running = 0;
	struct rig r;

	CHECK(argc >= 2);
	rig_program = argv[1];
	rig_make(&r);
	rig_start(&r, NULL);
	for (unsigned n = 0; n < CLIENTS; n++) {
		pid_t child;

		if (running == AT_ONCE)
			wait_for_client(&running);
		child = fork();
		CHECK(child >= 0);
		if (!child)
			run_client(&r, n);
		running++;
		if (n % 100 == 50)
			CHECK(rig_number(&r, "slots_used") <= FLOWS);
	}
	while (running)
		wait_for_client(&running);
	rig_await(&r, "registered_connections", 0);
	rig_await(&r, "processes", 0);
	CHECK_INT(rig_number(&r, "slots_used"), 0);
	CHECK_INT(rig_number(&r, "registrations"), CLIENTS * CONNECTIONS);
	CHECK_INT(rig_number(&r, "deregistrations"), (CLIENTS + 2) / 3 * CONNECTIONS);
	CHECK_INT(rig_number(&r, "reclaimed"), (CLIENTS - (CLIENTS + 2) / 3) * CONNECTIONS);
	CHECK_INT(rig_number(&r, "refused_invalid"), 0);
	CHECK_INT(rig_number(&r, "dropped"), 0);
	CHECK_INT(rig_stop(&r, SIGTERM), 0);
	rig_remove(&r);
	return 0;
}
