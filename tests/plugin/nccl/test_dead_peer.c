/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that is killed: the requests of the survivor end with an error, never in a hang, whether
 * it was receiving, sending, or both idle and asked later. How soon is printed (the time that the
 * survivor itself waited for a processor is not counted); the limit leaves its service thread and
 * its NIC, threads too, time to wait for theirs.
 */
#include "tests/base/share.h"
#include "tests/plugin/nccl/rig.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S 10.0
#define BYTES 4096

/* Seconds that this thread was ready to run and did not. */
static double read_starved_s(void)
{
	unsigned long long run = 0, wait = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (f) {
		if (fscanf(f, "%llu %llu", &run, &wait) != 2)
			wait = 0;
		fclose(f);
	}
	return (double)wait * 1e-9;
}

static void transfer_all(int fd, void *data, size_t size, bool out)
{
	ssize_t n = out ? send(fd, data, size, 0) : recv(fd, data, size, MSG_WAITALL);

	CHECK(n == (ssize_t)size, "the test's own socket");
}

/* The child: connects (or accepts), posts receives, says so, and waits for its death. */
static void child_main(int argc, char **argv, int fd, bool child_sends)
{
	static uint8_t buffer[BYTES];
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	struct rig_deadline deadline = rig_deadline("the child's connection");
	void *comm = NULL, *listen = NULL, *mr;
	struct rig rig;
	char ready = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig_open(&rig, argc, argv);
	if (child_sends) {
		transfer_all(fd, handle, sizeof(handle), false);
	} else {
		OK(rig.plugin.abi->listen(&rig.plugin, 0, handle, &listen));
		transfer_all(fd, handle, sizeof(handle), true);
	}
	while (!comm) {
		if (child_sends)
			OK(rig.plugin.abi->connect(&rig.plugin, 0, handle, &comm));
		else
			OK(rig.plugin.abi->accept(&rig.plugin, listen, &comm));
		rig_pause(&deadline);
	}
	mr = rig_reg(&rig, comm, buffer, BYTES);
	if (child_sends)
		rig_wait(&rig, rig_isend(&rig, comm, buffer, BYTES, 0, mr), NULL);
	else
		rig_wait(&rig, rig_irecv(&rig, comm, buffer, BYTES, 0, mr), NULL);
	if (!child_sends)
		for (int i = 0; i < 4; i++)
			rig_irecv(&rig, comm, buffer, BYTES, 0, mr);
	transfer_all(fd, &ready, 1, true);
	for (;;)
		pause();
}

static void kill_child(pid_t child)
{
	CHECK(!kill(child, SIGKILL), "kill");
	CHECK(waitpid(child, NULL, 0) == child, "waitpid");
}

/* Drive the survivor until its connection fails; it must within the limit, counted from the peer's
 * death. */
static void must_fail(struct rig *rig, void *comm, bool sends, void *buffer, void *mr,
		      void **requests, int n)
{
	double start = rig_now(), waited = read_starved_s(), took;
	struct share share = share_read();
	ncclResult_t result = ncclSuccess;
	void *request = NULL;
	int done, next = 0;

	while (result == ncclSuccess) {
		if (next < n) {
			result = rig->plugin.test(requests[next], &done, NULL);
			next += done;
		} else if (sends) {
			result = rig->plugin.abi->isend(&rig->plugin, comm, buffer, BYTES, 0, mr,
							&request);
			if (request) {
				requests[0] = request;
				next = 0;
				n = 1;
			}
		}
		took = rig_now() - start - (read_starved_s() - waited);
		share_check_limit(&share, "no error yet, and the wait for it", took, 5 * LIMIT_S);
	}
	took = rig_now() - start - (read_starved_s() - waited);
	share_check_limit(&share, "the error after the peer's death", took, LIMIT_S);
	printf("v%d, %s: an error %.3f s after the peer's death\n", rig->version,
	       sends ? "sender" : "receiver", took);
}

/* The parent's half of a connection to the child, and a transfer over it. */
static void *connect_to_child(struct rig *rig, int fd, bool child_sends, void **listen)
{
	struct rig_deadline deadline = rig_deadline("the parent's connection");
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	void *comm = NULL;

	*listen = NULL;
	if (child_sends)
		OK(rig->plugin.abi->listen(&rig->plugin, 0, handle, listen));
	transfer_all(fd, handle, sizeof(handle), child_sends);
	while (!comm) {
		if (child_sends)
			OK(rig->plugin.abi->accept(&rig->plugin, *listen, &comm));
		else
			OK(rig->plugin.abi->connect(&rig->plugin, 0, handle, &comm));
		rig_pause(&deadline);
	}
	return comm;
}

static void *post_one(struct rig *rig, void *comm, bool child_sends, void *buffer, void *mr)
{
	if (child_sends)
		return rig_irecv(rig, comm, buffer, BYTES, 0, mr);
	return rig_isend(rig, comm, buffer, BYTES, 0, mr);
}

static void one_death(int argc, char **argv, bool child_sends, bool idle_first)
{
	static uint8_t buffer[BYTES];
	void *comm, *listen, *mr, *requests[4];
	struct rig rig;
	int fds[2], under_way = child_sends ? 4 : 2;
	pid_t child;
	char ready;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	child = fork();
	CHECK(child >= 0, "fork");
	if (!child) {
		close(fds[0]);
		child_main(argc, argv, fds[1], child_sends);
	}
	close(fds[1]);
	rig_open(&rig, argc, argv);
	comm = connect_to_child(&rig, fds[0], child_sends, &listen);
	mr = rig_reg(&rig, comm, buffer, BYTES);
	rig_wait(&rig, post_one(&rig, comm, child_sends, buffer, mr), NULL);
	transfer_all(fds[0], &ready, 1, false);
	if (!child_sends && idle_first)
		under_way = 0;
	for (int n = 0; n < under_way; n++)
		requests[n] = post_one(&rig, comm, child_sends, buffer, mr);
	kill_child(child);
	must_fail(&rig, comm, !child_sends, buffer, mr, requests, under_way);
	OK(rig.plugin.dereg(comm, mr));
	OK(child_sends ? rig.plugin.close_recv(comm) : rig.plugin.close_send(comm));
	if (listen)
		OK(rig.plugin.close_listen(listen));
	CHECK(rig_warnings() >= 1, "the death of the peer was not logged");
	rig_close(&rig);
	close(fds[0]);
}

int main(int argc, char **argv)
{
	one_death(argc, argv, true, false);  /* the survivor waits for data */
	one_death(argc, argv, false, false); /* the survivor has sends in flight */
	one_death(argc, argv, false, true);  /* the survivor is idle, and sends only afterwards */
	return 0;
}
