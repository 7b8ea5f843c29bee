/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections over TCP and the software NIC: many at once, with and without the service thread; a
 * peer process that dies, or says BYE; unauthenticated peers at a real port; two threads; IPv6.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/accept.h"
#include "plugin/device/device.h"
#include "plugin/report/journal.h"
#include "tests/base/lines.h"
#include "tests/base/share.h"
#include "tests/plugin/pair.h"

#include "base/clock.h"
#include "base/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES_MAX 1000000 /* times sleep_briefly(): a minute at least */

static void sleep_briefly(void)
{
	nanosleep(&(struct timespec) { .tv_nsec = 50000 }, NULL);
}

/* late: that a peer's process is gone is the socket's news, before its NIC's, however late the
 * driver gets a processor; nor is a path missed that is there, about which messages are sent. */
static struct ha_ctx *context_of(bool thread, bool late)
{
	struct ha_config config;
	struct ha_ctx_params params = { .config = &config };
	struct ha_ctx *ctx;

	ha_config_load_env(&config);
	config.use_progress_thread = thread;
	config.connect_timeout_ms = 600000; /* only a hang gets there: 256 are made at once */
	config.force_ib_timeout = late ? 20 : config.force_ib_timeout;
	config.silence_ms = late ? 0 : config.silence_ms;
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	return ctx;
}

static struct ha_ctx *create_context(bool thread)
{
	return context_of(thread, false);
}

static void connect_pair(struct ha_ctx *ctx, struct pair *p, const void *handle)
{
	for (int i = 0; i < TRIES_MAX && !(p->send && p->recv); i++) {
		if (!p->send)
			CHECK_INT(ha_connect(ctx, 0, NULL, handle, &p->send), 0);
		if (!p->recv)
			CHECK_INT(ha_accept(p->listen, &p->recv), 0);
		sleep_briefly();
	}
	CHECK(p->send && p->recv);
}

/* One message through a connection. */
static void transfer_message(struct ha_send *send, struct ha_recv *recv, uint64_t value)
{
	uint64_t *from = pair_alloc(4096), *to = pair_alloc(4096);
	struct ha_mr *from_mr, *to_mr;
	struct ha_request *s = NULL, *r = NULL;
	void *data = to;
	size_t size = 8;
	int tag = 3, done = 0;

	CHECK_INT(ha_reg_mr(&send->b, from, 4096, HA_MEM_HOST, 0, -1, 0, &from_mr), 0);
	CHECK_INT(ha_reg_mr(&recv->b, to, 4096, HA_MEM_HOST, 0, -1, 0, &to_mr), 0);
	*from = value;
	for (int i = 0; i < TRIES_MAX && !r;
	     i++) { /* the service thread may hold it while it waits for a processor */
		CHECK_INT(ha_irecv(recv, 1, &data, &size, &tag, &to_mr, false, &r), 0);
		if (!r)
			sleep_briefly();
	}
	for (int i = 0; i < TRIES_MAX && !s; i++) {
		CHECK_INT(ha_isend(send, from, 8, 3, from_mr, &s), 0);
		sleep_briefly();
	}
	CHECK(r && s);
	for (int i = 0; i < TRIES_MAX && !done; i++) {
		CHECK_INT(ha_test(r, &done, NULL), 0);
		sleep_briefly();
	}
	CHECK(done && *to == value);
	for (done = 0; !done;)
		CHECK_INT(ha_test(s, &done, NULL), 0);
	CHECK_INT(ha_dereg_mr(&send->b, from_mr), 0);
	CHECK_INT(ha_dereg_mr(&recv->b, to_mr), 0);
}

#ifdef __SANITIZE_THREAD__ /* ten times as slow */
#define MANY 64
#else
#define MANY 256
#endif

static void connect_many(bool thread)
{
	static char handle[MANY][HA_HANDLE_MAX];
	static struct pair p[MANY];
	struct ha_ctx *ctx = create_context(thread);
	int open = 0;

	memset(p, 0, sizeof(p));
	for (int i = 0; i < MANY; i++)
		CHECK_INT(ha_listen(ctx, 0, NULL, handle[i], &p[i].listen), 0);
	for (int k = 0; k < TRIES_MAX && open < MANY; k++) {
		open = 0;
		for (int i = 0; i < MANY; i++) {
			if (!p[i].send)
				CHECK_INT(ha_connect(ctx, 0, NULL, handle[i], &p[i].send), 0);
			if (!p[i].recv)
				CHECK_INT(ha_accept(p[i].listen, &p[i].recv), 0);
			open += p[i].send && p[i].recv;
		}
		sleep_briefly();
	}
	CHECK_INT(open, MANY);
	for (int i = 0; i < MANY; i++)
		transfer_message(p[i].send, p[i].recv, 1000 + (uint64_t)i);
	for (int i = 0; i < MANY; i++) {
		/* Either end first; every other one is left to the context. */
		if (i & 1)
			continue;
		if (i & 2)
			ha_close_send(p[i].send);
		ha_close_recv(p[i].recv);
		if (!(i & 2))
			ha_close_send(p[i].send);
		ha_close_listen(p[i].listen);
	}
	ha_ctx_destroy(ctx);
}

/* ---- two processes ---- */

static double read_clock_s(void)
{
	return (double)ha_clock_now(&ha_clock_live) / 1e9;
}

enum ending {
	CLOSE,
	DEATH,
	/* with control messages in its socket that it has not read: its kernel resets the
	 * connection */
	DEATH_UNREAD,
};

/* The kernel of a process that dies with control messages unread resets the connection, from which
 * nothing follows: so not before the last one was read. Nothing is sent but for a standby. */
static void die_with_all_read(struct ha_ctx *ctx, const struct ha_send *send)
{
	int unread = 1;

	while (unread || !ha_journal_count(ctx, HA_EVENT_PROTECTED)) {
		CHECK(!ioctl(send->b.link->stream->watch.fd, FIONREAD, &unread));
		sleep_briefly();
	}
	raise(SIGKILL);
}

/* The child connects, and ends as it is told to, or is killed. */
static void child_sends(int in, int out, enum ending how)
{
	char handle[HA_HANDLE_MAX], byte;
	struct ha_ctx *ctx = context_of(true, how == DEATH);
	struct ha_send *send = NULL;

	CHECK_INT(read(in, handle, sizeof(handle)), sizeof(handle));
	while (!send) {
		CHECK_INT(ha_connect(ctx, 0, NULL, handle, &send), 0);
		sleep_briefly();
	}
	CHECK_INT(write(out, "x", 1), 1);
	CHECK_INT(read(in, &byte, 1), 1);
	if (how == CLOSE)
		ha_close_send(send);
	else
		die_with_all_read(ctx, send);
	pause();
}

/* It stands still until its rails are missed; what is said about that stays unread. Then it
 * dies. */
static void die_with_unread(struct ha_ctx *ctx, pid_t child, struct ha_request *r)
{
	double start = read_clock_s();
	int done;

	kill(child, SIGSTOP);
	while (!ha_journal_count(ctx, HA_EVENT_SUSPECTED) && read_clock_s() - start < 60) {
		CHECK_INT(ha_test(r, &done, NULL), 0);
		sleep_briefly();
	}
	CHECK(ha_journal_count(ctx, HA_EVENT_SUSPECTED) > 0);
	for (int i = 0; i < 1000; i++)
		sleep_briefly();
	kill(child, SIGKILL);
}

/* A receive that nothing is sent for. */
static struct ha_request *receive_in_vain(struct ha_recv *recv)
{
	void *to = pair_alloc(4096);
	struct ha_request *r;
	int tag = 0, done = 0;
	struct ha_mr *mr;
	size_t size = 8;

	CHECK_INT(ha_reg_mr(&recv->b, to, 4096, HA_MEM_HOST, 0, -1, 0, &mr), 0);
	do
		CHECK_INT(ha_irecv(recv, 1, &to, &size, &tag, &mr, false, &r), 0);
	while (!r);
	for (int i = 0; i < 100; i++) {
		CHECK_INT(ha_test(r, &done, NULL), 0);
		CHECK_INT(done, 0);
		sleep_briefly();
	}
	return r;
}

static void await_protection(struct ha_ctx *ctx, struct ha_request *r)
{
	int done;

	while (!ha_journal_count(ctx, HA_EVENT_PROTECTED)) {
		CHECK_INT(ha_test(r, &done, NULL), 0);
		sleep_briefly();
	}
}

static void await_reset(struct ha_request *r, const char *cause, const struct share *before,
			double start)
{
	int done = 0, err = 0;

	while (!err && !done) {
		err = ha_test(r, &done, NULL);
		sleep_briefly();
	}
	CHECK_INT(err, -ECONNRESET);
	/* The promise is a second; a machine under load gets more. */
	share_check_limit(before, cause, read_clock_s() - start, 10);
	fprintf(stderr, "%s: the request ended after %.3f s\n", cause, read_clock_s() - start);
}

static void peer_ends(enum ending how)
{
	static const char *const names[] = {
		[CLOSE] = "close", [DEATH] = "death", [DEATH_UNREAD] = "death with unread messages"
	};
	char handle[HA_HANDLE_MAX], byte;
	int down[2], up[2];
	struct ha_ctx *ctx;
	struct ha_listen *listen;
	struct ha_recv *recv = NULL;
	struct ha_request *r;
	struct share before;
	double start;
	pid_t child;

	CHECK(!pipe(down) && !pipe(up));
	child = fork();
	if (!child) {
		child_sends(down[0], up[1], how);
		_exit(0);
	}
	ctx = context_of(true, how == DEATH);
	CHECK_INT(ha_listen(ctx, 0, NULL, handle, &listen), 0);
	CHECK_INT(write(down[1], handle, sizeof(handle)), sizeof(handle));
	while (!recv) {
		CHECK_INT(ha_accept(listen, &recv), 0);
		sleep_briefly();
	}
	CHECK_INT(read(up[0], &byte, 1), 1);
	r = receive_in_vain(recv);
	if (how == DEATH_UNREAD)
		die_with_unread(ctx, child, r);
	else
		await_protection(ctx, r);
	before = share_read();
	start = read_clock_s();
	if (how != DEATH_UNREAD)
		CHECK_INT(write(down[1], "x", 1), 1);
	await_reset(r, names[how], &before, start);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ha_close_recv(recv);
	ha_close_listen(listen);
	ha_ctx_destroy(ctx);
}

/* ---- unauthenticated peers on a real port ---- */

static int connect_tcp(const struct ha_wire_addr *a)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(a->port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&in.sin_addr, a->ip, 4);
	CHECK_INT(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void unknown_peers(void)
{
	struct ha_ctx *ctx = create_context(true);
	char handle[HA_HANDLE_MAX], byte;
	struct ha_wire_handle h;
	struct pair p = { 0 };
	int loud, silent;

	CHECK_INT(ha_listen(ctx, 0, NULL, handle, &p.listen), 0);
	memcpy(&h, handle, sizeof(h));
	CHECK_INT(h.oob.family, 4);
	loud = connect_tcp(&h.oob);
	silent = connect_tcp(&h.oob);
	CHECK(send(loud, "GET / HTTP/1.0\r\n\r\n", 18, 0) == 18);
	CHECK(recv(loud, &byte, 1, 0) <= 0); /* turned away */
	connect_pair(ctx, &p, handle);
	transfer_message(p.send, p.recv, 99);
	close(loud);
	close(silent);
	ha_close_listen(p.listen);
	ha_close_send(p.send);
	ha_close_recv(p.recv);
	ha_ctx_destroy(ctx);
}

/* ---- threads ---- */

static struct ha_ctx *shared;

static void *run_worker(void *arg)
{
	for (int round = 0; round < 8; round++) {
		char handle[HA_HANDLE_MAX];
		struct pair p = { 0 };

		CHECK_INT(ha_listen(shared, 0, NULL, handle, &p.listen), 0);
		connect_pair(shared, &p, handle);
		transfer_message(p.send, p.recv, (uintptr_t)arg + (uint64_t)round);
		ha_close_send(p.send);
		ha_close_recv(p.recv);
		ha_close_listen(p.listen);
	}
	return NULL;
}

static void connect_in_threads(bool service)
{
	pthread_t t[4];

	shared = create_context(service);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_INT(pthread_create(&t[i], NULL, run_worker, (void *)(100 * i)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	ha_ctx_destroy(shared);
}

/* Receives come back: a device's shared queue outlives more connections than it has receives
 * for. */
static void receives_come_back(void)
{
	struct ha_ctx *ctx = create_context(true);

	for (int i = 0; i < 40; i++) {
		char handle[HA_HANDLE_MAX];
		struct pair p = { 0 };

		CHECK_INT(ha_listen(ctx, 0, NULL, handle, &p.listen), 0);
		connect_pair(ctx, &p, handle);
		for (int k = 0; k < 20; k++)
			transfer_message(p.send, p.recv, (uint64_t)k);
		CHECK(p.recv->b.rail[0].dev->now->srq_posted <= 2 * (HA_SLOTS + HA_REFILL));
		ha_close_send(p.send);
		ha_close_recv(p.recv);
		ha_close_listen(p.listen);
	}
	ha_ctx_destroy(ctx);
}

int main(void)
{
	lines_catch();
	/* First, while this process has no threads: it forks. */
	peer_ends(DEATH);
	peer_ends(DEATH_UNREAD);
	peer_ends(CLOSE);
	CHECK(lines_contain("process is gone"));
	connect_many(true);
	connect_many(false);
	unknown_peers();
	connect_in_threads(true);
	connect_in_threads(false);
	receives_come_back();
	return 0;
}
