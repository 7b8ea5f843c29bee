/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything can be closed in every state: a listener alone, a connection half made, one that is
 * idle, one with requests in flight at either end. Nothing crashes or hangs, the plugin still works
 * afterwards, descriptors and threads stay few.
 */
#include "tests/base/share.h"
#include "tests/plugin/nccl/rig.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void listen_only(struct rig *rig)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	void *listen;

	OK(rig->plugin.abi->listen(&rig->plugin, 0, handle, &listen));
	OK(rig->plugin.close_listen(listen));
}

/* The listener goes away while the connector is on its way: the connector must learn it, as an
 * error. */
static void half_connected(struct rig *rig, int steps)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	struct rig_deadline deadline = rig_deadline("the connector of a closed listener");
	ncclResult_t result = ncclSuccess;
	void *listen, *send = NULL, *recv = NULL;

	OK(rig->plugin.abi->listen(&rig->plugin, 0, handle, &listen));
	for (int i = 0; i < steps && !send && result == ncclSuccess; i++) {
		/* it may give up at once: on a busy machine the time for it is over */
		result = rig->plugin.abi->connect(&rig->plugin, 0, handle, &send);
		if (i & 1 && !recv)
			OK(rig->plugin.abi->accept(&rig->plugin, listen, &recv));
		usleep(100);
	}
	OK(rig->plugin.close_listen(listen));
	if (recv)
		OK(rig->plugin.close_recv(recv));
	/* Either it became a connection (whose end it then sees), or connect fails. */
	while (!send && result == ncclSuccess) {
		result = rig->plugin.abi->connect(&rig->plugin, 0, handle, &send);
		rig_pause(&deadline);
	}
	if (send)
		OK(rig->plugin.close_send(send));
}

static void connected_idle(struct rig *rig, int order)
{
	struct rig_pair pair;

	rig_pair_open(rig, &pair);
	if (order & 1)
		OK(rig->plugin.close_listen(pair.listen));
	if (order & 2) {
		OK(rig->plugin.close_recv(pair.recv));
		OK(rig->plugin.close_send(pair.send));
	} else {
		OK(rig->plugin.close_send(pair.send));
		OK(rig->plugin.close_recv(pair.recv));
	}
	if (!(order & 1))
		OK(rig->plugin.close_listen(pair.listen));
}

/* Receives posted, some sends posted, nothing tested; then one end goes first. */
static void in_flight(struct rig *rig, int order, int sends)
{
	static uint8_t from[8][70000], to[8][70000];
	void *from_mr, *to_mr;
	struct rig_pair pair;

	rig_pair_open(rig, &pair);
	from_mr = rig_reg(rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(rig, pair.recv, to, sizeof(to));
	for (int i = 0; i < 8; i++)
		rig_irecv(rig, pair.recv, to[i], sizeof(to[i]), 0, to_mr);
	for (int i = 0; i < sends; i++)
		rig_isend(rig, pair.send, from[i], sizeof(from[i]), 0, from_mr);
	if (order & 1)
		OK(rig->plugin.dereg(pair.recv, to_mr));
	if (order & 2) {
		OK(rig->plugin.close_recv(pair.recv));
		OK(rig->plugin.dereg(pair.send, from_mr));
		OK(rig->plugin.close_send(pair.send));
	} else {
		OK(rig->plugin.dereg(pair.send, from_mr));
		OK(rig->plugin.close_send(pair.send));
		if (!(order & 1))
			OK(rig->plugin.dereg(pair.recv, to_mr));
		OK(rig->plugin.close_recv(pair.recv));
	}
	OK(rig->plugin.close_listen(pair.listen));
}

/* An end that stays when its peer has closed in order. */
#define ANNOUNCED 8
#define POSTS 64

struct survivor {
	struct rig_pair pair;
	uint8_t from[100], to[100];
	void *from_mr, *to_mr, *recv[ANNOUNCED];
};

/* With receives announced that nothing was sent for. */
static void open_announced(struct rig *rig, struct survivor *s)
{
	rig_pair_open(rig, &s->pair);
	s->from_mr = rig_reg(rig, s->pair.send, s->from, sizeof(s->from));
	s->to_mr = rig_reg(rig, s->pair.recv, s->to, sizeof(s->to));
	for (int i = 0; i < ANNOUNCED; i++)
		s->recv[i] = rig_irecv(rig, s->pair.recv, s->to, sizeof(s->to), 0, s->to_mr);
}

/* Every send is taken, whether or not the peer's close is known yet, more of them than NCCL ever
 * has on their way: test() says what has become of each. */
static void check_sender_stays(struct rig *rig)
{
	struct rig_deadline deadline = rig_deadline("an error after the peer closed");
	ncclResult_t result = ncclSuccess;
	struct survivor s;
	void *request;

	open_announced(rig, &s);
	OK(rig->plugin.close_recv(s.pair.recv));
	while (result == ncclSuccess) {
		OK(rig->plugin.abi->isend(&rig->plugin, s.pair.send, s.from, sizeof(s.from), 0,
					  s.from_mr, &request));
		if (request)
			result = rig_wait_any(rig, request, NULL);
		rig_pause(&deadline);
	}
	CHECK(result == ncclRemoteError, "the first send that failed: %d", result);
	for (int i = 0; i < POSTS; i++) {
		request = rig_isend(rig, s.pair.send, s.from, sizeof(s.from), 0, s.from_mr);
		CHECK(rig_wait_any(rig, request, NULL) == ncclRemoteError, "send %d", i);
	}
	OK(rig->plugin.close_send(s.pair.send));
	OK(rig->plugin.close_listen(s.pair.listen));
}

static void check_receiver_stays(struct rig *rig)
{
	struct survivor s;
	void *request;

	open_announced(rig, &s);
	OK(rig->plugin.close_send(s.pair.send));
	for (int i = 0; i < ANNOUNCED; i++)
		CHECK(rig_wait_any(rig, s.recv[i], NULL) == ncclRemoteError,
		      "receive %d, which had no sender", i);
	for (int i = 0; i < POSTS; i++) {
		request = rig_irecv(rig, s.pair.recv, s.to, sizeof(s.to), 0, s.to_mr);
		CHECK(rig_wait_any(rig, request, NULL) == ncclRemoteError, "receive %d", i);
	}
	OK(rig->plugin.close_recv(s.pair.recv));
	OK(rig->plugin.close_listen(s.pair.listen));
}

static void half_made(struct rig *rig)
{
	listen_only(rig);
	for (int steps = 1; steps < 8; steps++)
		half_connected(rig, steps);
}

static void every_state(struct rig *rig)
{
	struct rig_pair pair;

	for (int order = 0; order < 4; order++) {
		connected_idle(rig, order);
		in_flight(rig, order, 0);
		in_flight(rig, order, 5);
		in_flight(rig, order, 8);
	}
	rig_pair_open(rig, &pair);
	rig_exchange(rig, &pair, 10000);
	rig_pair_close(rig, &pair);
}

/* Nothing is logged of a close in order. */
static void survivors(struct rig *rig)
{
	check_sender_stays(rig);
	check_receiver_stays(rig);
	CHECK(!rig_logged(" lost: "), "%s", rig_last_warning());
	rig_check_calm();
}

/* hope_ms: how long a connector hopes that its listener comes up, and both that they become a
 * connection. */
static void again_and_again(int argc, char **argv, const char *hope_ms,
			    void (*run)(struct rig *rig))
{
	struct rig_deadline deadline;
	struct rig rig;
	int fds;

	setenv("HA_NCCL_CONNECT_TIMEOUT_MS", hope_ms, 1);
	rig_open(&rig, argc, argv);
	run(&rig);
	fds = rig_count_fds();
	for (int i = 0; i < 3; i++)
		run(&rig);
	deadline = rig_deadline("descriptors to be given back");
	while (rig_count_fds() > fds + 4)
		rig_pause(&deadline);
	rig_close(&rig);
}

/* Interfaces before v10 have no finalize: what the plugin has read once counts to the end of the
 * process, so that the short hope would be everybody's. */
static void in_own_process(int argc, char **argv, const char *hope_ms, void (*run)(struct rig *rig))
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0, "fork");
	if (!child) {
		again_and_again(argc, argv, hope_ms, run);
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == SHARE_BUSY_STATUS)
		exit(SHARE_BUSY_STATUS);
	CHECK(!status, "hope %s: status %#x", hope_ms, status);
}

int main(int argc, char **argv)
{
	in_own_process(argc, argv, "300", half_made);
	in_own_process(argc, argv, "60000", every_state);
	rig_expect_calm();
	in_own_process(argc, argv, "60000", survivors);
	return 0;
}
