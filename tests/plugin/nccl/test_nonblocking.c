/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen, connect, accept, isend, irecv and test return at once, whatever the peer does: it never
 * answers, it never accepts, it sends garbage, it stops half way, it closes. A connect to such a
 * peer stays NULL or becomes an error with a line in the log; a listener that unauthenticated peers
 * connect to still takes the real connection.
 */
#include "tests/plugin/nccl/peer.h"
#include "tests/plugin/nccl/prompt.h"
#include "tests/plugin/nccl/rig.h"

#include <fcntl.h>
#include <poll.h>

#define TURNS 200       /* calls while the peer stays silent */
#define SHORT_MS "2000" /* how long an absent peer is waited for; more than PROMPT_ASLEEP_S */
#define LONG_MS "40000" /* a silent one: longer than so many turns take on any machine */

static struct rig rig;

static ncclResult_t turn_connect(void *handle, void **send)
{
	usleep(500);
	return PROMPT(rig.plugin.abi->connect(&rig.plugin, 0, handle, send));
}

static ncclResult_t turn_accept(void *listen, void **recv)
{
	usleep(500);
	return PROMPT(rig.plugin.abi->accept(&rig.plugin, listen, recv));
}

/* A handle of ours that leads to our own socket: one that listens, or one that does not. */
static int make_impostor(struct ha_wire_handle *h, void **listen,
			 int (*stand)(struct ha_wire_handle *h))
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];

	OK(PROMPT(rig.plugin.abi->listen(&rig.plugin, 0, handle, listen)));
	memcpy(h, handle, sizeof(*h));
	return stand(h);
}

/* What dials an impostor is the connection under test. Listening at 127.0.0.1 it took whoever
 * dialled that port, of any test. */
static void strays_do_not_come(void)
{
	struct ha_wire_handle h;
	void *listen;
	struct sockaddr_in a;
	struct pollfd p;
	int fd = make_impostor(&h, &listen, peer_listen),
	    stray = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	a = peer_address(&h);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)!connect(stray, (struct sockaddr *)&a,
		       /* over the loopback it is in the queue, or refused, when the call returns */
		       sizeof(a));
	p = (struct pollfd) { .fd = fd, .events = POLLIN };
	CHECK(!poll(&p, 1, 0), "somebody who dials 127.0.0.1 comes to the impostor");
	close(stray);
	close(fd);
	OK(rig.plugin.close_listen(listen));
}

/* The peer's socket takes the connection and never says a word. */
static void never_answers(void)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE] = { 0 };
	struct ha_wire_handle *h = (struct ha_wire_handle *)handle;
	void *listen, *send = NULL;
	int fd = make_impostor(h, &listen, peer_listen);

	for (int i = 0; i < TURNS; i++) {
		OK(turn_connect(handle, &send));
		CHECK(!send, "connected to a peer that never sent anything");
	}
	OK(rig.plugin.close_listen(listen));
	close(fd);
}

/* Nobody calls accept. */
static void never_accepts(void)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	ncclResult_t result = ncclSuccess;
	struct rig_deadline deadline = rig_deadline("connect to a listener that closed");
	void *listen, *send = NULL;

	OK(rig.plugin.abi->listen(&rig.plugin, 0, handle, &listen));
	for (int i = 0; i < TURNS && !send; i++)
		OK(turn_connect(handle, &send));
	OK(rig.plugin.close_listen(listen));
	while (!send && result == ncclSuccess) {
		result = turn_connect(handle, &send);
		rig_pause(&deadline);
	}
	if (send)
		OK(rig.plugin.close_send(send));
}

/* The peer answers with `size` bytes of `text`, then closes (or waits, when `hold`). */
static void check_answer(const void *text, size_t size, bool hold)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE] = { 0 };
	struct ha_wire_handle *h = (struct ha_wire_handle *)handle;
	struct rig_deadline deadline = rig_deadline("an error from connect");
	ncclResult_t result = ncclSuccess;
	int fd, conn = -1, turns = 0, warned = rig_warnings();
	void *listen, *sender = NULL;

	fd = make_impostor(h, &listen, peer_listen);
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
	while (result == ncclSuccess && turns < TURNS) {
		result = turn_connect(handle, &sender);
		CHECK(!sender, "connected to garbage");
		if (conn < 0) {
			conn = accept(fd, NULL, NULL);
			if (conn >= 0 && send(conn, text, size, MSG_NOSIGNAL) < 0)
				CHECK(0, "send");
			if (conn >= 0 && !hold)
				shutdown(conn, SHUT_RDWR);
		}
		/* A peer that stopped half way may be waited for; any other ends in an error. */
		turns += hold;
		rig_pause(&deadline);
	}
	CHECK(hold || result != ncclSuccess, "no error");
	CHECK(result == ncclSuccess || rig_warnings() > warned,
	      "an error without a line in the log");
	OK(rig.plugin.close_listen(listen));
	if (conn >= 0)
		close(conn);
	close(fd);
}

/* Nobody listens at the handle's port. */
static void nobody_there(void)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE] = { 0 };
	struct ha_wire_handle *h = (struct ha_wire_handle *)handle;
	struct rig_deadline deadline = rig_deadline("an error from connect");
	int warned = rig_warnings();
	void *listen, *send = NULL;
	int fd = make_impostor(h, &listen, peer_bind);

	while (turn_connect(handle, &send) == ncclSuccess) {
		CHECK(!send, "connected to nobody");
		rig_pause(&deadline);
	}
	CHECK(rig_warnings() > warned, "an error without a line in the log");
	OK(rig.plugin.close_listen(listen));
	close(fd);
}

/* Unauthenticated peers at the listener's socket, in every posture, and then the real
 * connection. */
static void unknown_peers_connect(void)
{
	static const uint8_t noise[4096] = { 0x16, 3, 1, 2, 0, 1, 0, 1 };
	struct ha_msg_header half = {
		.magic = HA_MSG_MAGIC,
		.version = HA_WIRE_VERSION,
		.type = HA_MSG_HELLO,
		.length = 160,
	};
	struct ha_wire_handle h;
	struct rig_pair pair;
	int fd[5];

	OK(rig.plugin.abi->listen(&rig.plugin, 0, pair.handle, &pair.listen));
	memcpy(&h, pair.handle, sizeof(h));
	for (int i = 0; i < 5; i++)
		fd[i] = peer_dial(&h);
	CHECK(send(fd[1], noise, sizeof(noise), MSG_NOSIGNAL) > 0, "send");
	/* and the rest never comes */
	CHECK(send(fd[2], &half, sizeof(half), MSG_NOSIGNAL) > 0, "send");
	CHECK(send(fd[3], &half, 5, MSG_NOSIGNAL) > 0, "send");
	close(fd[3]);
	for (int i = 0; i < TURNS; i++) {
		OK(turn_accept(pair.listen, &pair.recv));
		CHECK(!pair.recv, "an unauthenticated peer was accepted");
	}
	close(fd[4]);
	rig_pair_connect(&rig, &pair, 0);
	rig_exchange(&rig, &pair, 5000);
	rig_pair_close(&rig, &pair);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

/* A connected peer that posts nothing and sends nothing. */
static void silent_connection(void)
{
	uint8_t from[64] = { 1 }, to[64];
	struct rig_pair pair;
	void *from_mr, *to_mr, *request, *recv[4], *data = to;
	size_t size = sizeof(to);
	int tag = 0, done;

	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
	for (int i = 0; i < TURNS; i++) {
		OK(PROMPT(rig.plugin.abi->isend(&rig.plugin, pair.send, from, 64, 0, from_mr,
						&request)));
		CHECK(!request, "a send without a receive");
	}
	for (int i = 0; i < 4; i++) {
		/* "Not now" for a moment is possible: the service thread may be at work on the
		 * connection. */
		recv[i] = NULL;
		for (int k = 0; k < TURNS && !recv[i]; k++, usleep(recv[i] ? 0 : 1000))
			OK(PROMPT(rig.plugin.abi->irecv(&rig.plugin, pair.recv, 1, &data, &size,
							&tag, &to_mr, &recv[i])));
		CHECK(recv[i], "no room for the first receives");
	}
	for (int i = 0; i < TURNS; i++) {
		OK(PROMPT(rig.plugin.test(recv[i % 4], &done, NULL)));
		CHECK(!done, "a receive without a send");
	}
	for (int i = 0; i < 4; i++)
		rig_wait(&rig, rig_isend(&rig, pair.send, from, 64, 0, from_mr), NULL);
	for (int i = 0; i < 4; i++)
		rig_wait(&rig, recv[i], NULL);
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_pair_close(&rig, &pair);
}

int main(int argc, char **argv)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
	static const uint8_t zeros[4096];
	struct ha_msg_header huge = {
		.magic = HA_MSG_MAGIC, .version = 1, .type = HA_MSG_WELCOME, .length = ~0u
	};
	struct ha_msg_header half = {
		.magic = HA_MSG_MAGIC, .version = 1, .type = HA_MSG_WELCOME, .length = 160
	};
	struct rig_pair pair;

	setenv("HA_NCCL_CONNECT_TIMEOUT_MS", SHORT_MS, 1);
	rig_open(&rig, argc, argv);
	nobody_there();
	rig_close(&rig);
	setenv("HA_NCCL_CONNECT_TIMEOUT_MS", LONG_MS, 1);
	rig_open(&rig, argc, argv);
	strays_do_not_come();
	never_answers();
	never_accepts();
	check_answer(http, sizeof(http), false);
	check_answer(zeros, sizeof(zeros), false);
	check_answer(&huge, sizeof(huge), false);
	check_answer(&half, sizeof(half), false);
	check_answer(&half, sizeof(half), true);
	check_answer("", 0, false);
	unknown_peers_connect();
	silent_connection();
	rig_pair_open(&rig, &pair);
	rig_exchange(&rig, &pair, 100000);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
