/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/socket.h"
#include "ina/host/shm/listen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACCEPT_PAUSE_MS 50

enum stage {
	NEW,      /* connected */
	WELCOMED, /* its HELLO was right */
	ATTACHED, /* it shares memory with us */
};

enum ending { RUNNING, BEING_ENDED, ENDED };

struct ina_shm_peer {
	struct ha_watch socket; /* open until the release: other threads' answers go nowhere else */
	/*
	 * a pidfd: the process's end, which its children's copies of the socket do not hide; -1:
	 * the kernel has none
	 */
	struct ha_watch process;
	struct ina_shm_server *server; /* control thread only */
	LIST_ENTRY(ina_shm_peer) link;
	struct ucred cred;
	enum stage stage;
	struct ina_shm_memory memory;
	_Atomic uint32_t in_flight;
	atomic_int ending; /* enum ending; whoever takes it from RUNNING writes why */
	char why[INA_SHM_TEXT];
	void *mine;
};

struct ina_shm_server {
	struct ha_watch listener; /* place.fd */
	struct ina_shm_server_config config;
	const struct ina_shm_server_ops *ops;
	void *arg;
	struct ina_shm_place place;
	struct ha_loop loop;
	/* accept() failed: nobody new is looked at before then, ns; 0: it did not */
	uint64_t paused_until;
	bool warned; /* that it does */
	unsigned peers;
	LIST_HEAD(, ina_shm_peer) all; /* newest first */
};

/* ---- the end of a peer ---- */

void ina_shm_peer_release(struct ina_shm_peer *peer)
{
	ina_shm_memory_drop(&peer->memory);
	close(peer->socket.fd);
	if (peer->process.fd >= 0)
		close(peer->process.fd);
	free(peer);
}

void ina_shm_peer_end(struct ina_shm_peer *peer, const char *why)
{
	int running = RUNNING;

	if (!atomic_compare_exchange_strong(&peer->ending, &running, BEING_ENDED))
		return;
	snprintf(peer->why, sizeof(peer->why), "%s", why);
	ina_shm_answer_refused(peer, 0, -EPROTO, peer->why);
	atomic_store(&peer->ending, ENDED); /* with the shutdown: the control thread reads why */
	shutdown(peer->socket.fd, SHUT_RDWR);
}

/* Control thread: nothing is received from the peer from here on. */
static void remove_peer(struct ina_shm_peer *peer, const char *reason)
{
	struct ina_shm_server *server = peer->server;
	char why[INA_SHM_TEXT + 64];
	bool ended = atomic_load(&peer->ending) != RUNNING;

	while (atomic_load(&peer->ending) == BEING_ENDED)
		; /* another thread is between two lines */
	snprintf(why, sizeof(why), "client process %d: %s", (int)peer->cred.pid,
		 ended ? peer->why : reason);
	if (ended)
		HA_WARN("ina", "%s", why);
	ha_loop_remove(&server->loop, &peer->socket);
	ha_loop_remove(&server->loop, &peer->process);
	shutdown(peer->socket.fd, SHUT_RDWR);
	LIST_REMOVE(peer, link);
	server->peers--;
	peer->server = NULL;
	if (peer->stage == ATTACHED)
		server->ops->detach(server->arg, peer, why);
	else
		ina_shm_peer_release(peer);
}

void ina_shm_server_close(struct ina_shm_server *server)
{
	if (!server)
		return;
	while (!LIST_EMPTY(&server->all))
		remove_peer(LIST_FIRST(&server->all), "the backend ends");
	ina_shm_unlisten(server->config.path, &server->place);
	ha_loop_close(&server->loop);
	free((char *)server->config.path);
	free(server);
}

/* ---- messages ---- */

static void send_answer(struct ina_shm_peer *peer, const struct ina_shm_message *m)
{
	int err = ina_shm_message_send(peer->socket.fd, m, -1);

	if (err == -EAGAIN && m->type != INA_SHM_BELL && m->type != INA_SHM_REFUSED)
		ina_shm_peer_end(peer, "it does not read its messages");
}

static void answer_hello(struct ina_shm_peer *peer, const struct ina_shm_message *m)
{
	struct ina_shm_message yes = { .type = INA_SHM_WELCOME, .serial = m->serial };

	if (m->hello.magic != INA_SHM_MAGIC || m->hello.version != INA_SHM_VERSION) {
		ina_shm_peer_end(peer, "it has another version: client and backend must come "
				       "from the same release");
		return;
	}
	yes.hello = (struct ina_shm_hello) { INA_SHM_MAGIC, INA_SHM_VERSION,
					     peer->server->config.address };
	peer->stage = WELCOMED;
	send_answer(peer, &yes);
}

static void attach_peer(struct ina_shm_peer *peer, const struct ina_shm_message *m, int file)
{
	struct ina_shm_message yes = { .type = INA_SHM_ATTACHED, .serial = m->serial };
	struct ina_shm_server *server = peer->server;
	char why[INA_SHM_TEXT];

	if (file < 0 ||
	    ina_shm_memory_take(&peer->memory, file, server->config.bytes, why, sizeof(why))) {
		ina_shm_peer_end(peer, file < 0 ? "no file came with ATTACH" : why);
		return;
	}
	peer->stage = ATTACHED;
	server->ops->attach(server->arg, peer); /* before the client may push */
	send_answer(peer, &yes);
}

/*
 * Of an attached client. Whatever it says wakes the data thread: when its socket was full, it could
 * not ring (ina_shm_client_bell).
 */
static void handle_request(struct ina_shm_peer *peer, const struct ina_shm_message *m)
{
	struct ina_shm_server *server = peer->server;

	if (m->type == INA_SHM_CREATE)
		server->ops->create(server->arg, peer, m->serial, &m->create);
	else if (m->type == INA_SHM_JOIN)
		server->ops->join(server->arg, peer, m->serial, m->join.ticket, m->join.rank);
	else if (m->type == INA_SHM_LEAVE)
		server->ops->leave(server->arg, peer, m->serial, m->leave.handle, m->leave.result);
	else if (m->type != INA_SHM_BELL)
		ina_shm_peer_end(peer, "it attached twice");
	server->ops->wake(server->arg, peer);
}

static void receive_message(struct ha_watch *watch, uint32_t events)
{
	struct ina_shm_peer *peer = (struct ina_shm_peer *)watch; /* its first member */
	struct ina_shm_message m;
	const char *why = "";
	int file, err = ina_shm_message_receive(watch->fd, &m, true, &file, &why);

	if (!err)
		return;
	if (err == -ENOTCONN) {
		remove_peer(peer, "its socket was closed");
		return;
	}
	if (err < 0)
		ina_shm_peer_end(peer, why);
	else if (atomic_load(&peer->ending) != RUNNING)
		; /* REFUSED has been sent to it: this is the end */
	else if (peer->stage == ATTACHED)
		handle_request(peer, &m);
	else if (peer->stage == NEW && m.type == INA_SHM_HELLO)
		answer_hello(peer, &m);
	else if (peer->stage == WELCOMED && m.type == INA_SHM_ATTACH)
		attach_peer(peer, &m, file);
	else
		ina_shm_peer_end(peer, "HELLO comes first, then ATTACH");
	if (file >= 0)
		close(file);
}

/* ---- the beginning ---- */

/* So many that say nothing may wait as there is room for; whoever has waited longest makes room. */
static bool make_room(struct ina_shm_server *server)
{
	struct ina_shm_peer *p, *oldest = NULL;

	LIST_FOREACH(p, &server->all, link)
		if (p->stage != ATTACHED)
			oldest = p;
	if (oldest)
		remove_peer(oldest, "it did not attach");
	return oldest != NULL;
}

static void refuse_client(int fd, const char *text)
{
	struct ina_shm_message m = { .type = INA_SHM_REFUSED, .state.result = -EAGAIN };

	snprintf(m.state.text, sizeof(m.state.text), "%s", text);
	ina_shm_message_send(fd, &m, -1);
	close(fd);
}

/*
 * Who connects waits in the socket's queue, and would make it readable without end: it is left
 * alone for a while.
 */
static void pause_accepting(struct ina_shm_server *server, int err)
{
	if (err == -EAGAIN || ha_loop_change(&server->loop, &server->listener, 0))
		return;
	if (!server->warned)
		HA_WARN("ina",
			"%s: new clients have to wait (%s): a larger LimitNOFILE for the backend "
			"(ulimit -n), or fewer processes on this host",
			server->config.path, strerror(-err));
	server->warned = true;
	server->paused_until = ha_clock_now(&ha_clock_live) + ACCEPT_PAUSE_MS * HA_NS_PER_MS;
}

/* How long epoll may wait, of timeout_ms: no longer than new clients are to. */
static int resume_accepting(struct ina_shm_server *server, int timeout_ms)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	if (!server->paused_until)
		return timeout_ms;
	if (now >= server->paused_until &&
	    !ha_loop_change(&server->loop, &server->listener, EPOLLIN)) {
		server->paused_until = 0;
		return timeout_ms;
	}
	return timeout_ms < 0 || timeout_ms > ACCEPT_PAUSE_MS ? ACCEPT_PAUSE_MS : timeout_ms;
}

static void end_process(struct ha_watch *watch, uint32_t events)
{
	remove_peer((struct ina_shm_peer *)((char *)watch - offsetof(struct ina_shm_peer, process)),
		    "the process has ended");
}

static void accept_one(struct ha_watch *watch, uint32_t events)
{
	struct ina_shm_server *server = (struct ina_shm_server *)watch; /* its first member */
	int fd = ha_socket_accept(watch->fd);
	struct ina_shm_peer *peer;

	if (fd < 0) {
		pause_accepting(server, fd);
		return;
	}
	server->warned = false;
	if (server->peers >= server->config.peers && !make_room(server)) {
		refuse_client(
			fd, "the backend has as many clients as it takes: a larger limit there, or "
			    "fewer processes on this host");
		return;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer || ha_socket_peer(fd, &peer->cred)) {
		free(peer);
		refuse_client(fd, "the backend is out of memory");
		return;
	}
	peer->server = server;
	peer->socket = (struct ha_watch) { fd, receive_message };
	peer->process = (struct ha_watch) { -1, end_process };
	if (peer->cred.pid > 0)
		peer->process.fd = (int)syscall(SYS_pidfd_open, peer->cred.pid, 0);
	LIST_INSERT_HEAD(&server->all, peer, link);
	server->peers++;
	if (ha_loop_add(&server->loop, &peer->socket, EPOLLIN))
		remove_peer(peer, "epoll has no room");
	else
		/* without it, the socket's end still shows it */
		(void)ha_loop_add(&server->loop, &peer->process, EPOLLIN);
}

struct ina_shm_server *ina_shm_server_open(const struct ina_shm_server_config *config,
					   const struct ina_shm_server_ops *ops, void *arg,
					   char *why, size_t size)
{
	struct ina_shm_server *server = calloc(1, sizeof(*server));
	char *path = strdup(config->path);
	int err;

	if (!server || !path) {
		snprintf(why, size, "out of memory");
		free(server);
		free(path);
		return NULL;
	}
	server->config = *config;
	server->config.path = path;
	server->config.peers = config->peers ? config->peers : 64;
	server->config.bytes = config->bytes ? config->bytes : 1u << 30;
	server->ops = ops;
	server->arg = arg;
	if (ina_shm_listen(path, config->mode ? config->mode : 0660, &server->place, why, size))
		goto failed;
	server->listener = (struct ha_watch) { server->place.fd, accept_one };
	err = ha_loop_open(&server->loop);
	if (!err)
		err = ha_loop_add(&server->loop, &server->listener, EPOLLIN);
	if (!err)
		return server;
	snprintf(why, size, "%s: epoll: %s", path, strerror(-err));
	ha_loop_close(&server->loop);
	ina_shm_unlisten(path, &server->place);
failed:
	free(path);
	free(server);
	return NULL;
}

int ina_shm_server_fd(const struct ina_shm_server *server)
{
	return server->loop.fd;
}

void ina_shm_server_poll(struct ina_shm_server *server, int timeout_ms)
{
	timeout_ms = resume_accepting(server, timeout_ms);
	for (unsigned n = 0; n < 256 && ha_loop_serve_one(&server->loop, timeout_ms); n++)
		timeout_ms = 0;
}

/* ---- the peer's things ---- */

void ina_shm_peer_set(struct ina_shm_peer *peer, void *mine)
{
	peer->mine = mine;
}

void *ina_shm_peer_get(const struct ina_shm_peer *peer)
{
	return peer->mine;
}

pid_t ina_shm_peer_pid(const struct ina_shm_peer *peer)
{
	return peer->cred.pid;
}

uint8_t *ina_shm_peer_buffer(const struct ina_shm_peer *peer, uint64_t *bytes)
{
	*bytes = peer->memory.buffer_bytes;
	return peer->memory.buffer;
}

int ina_shm_peer_next(struct ina_shm_peer *peer, struct ina_shm_request *request)
{
	const char *why = "its request ring is torn";
	int n = ina_shm_ring_pop(&peer->memory.requests, request);

	if (n > 0 && ina_shm_request_check(request, peer->memory.buffer_bytes, &why))
		n = -EPROTO;
	if (n > 0 &&
	    atomic_load_explicit(&peer->in_flight, memory_order_relaxed) >= INA_SHM_ENTRIES) {
		why = "it has more requests in flight than there may be";
		n = -EPROTO;
	}
	if (n > 0)
		atomic_fetch_add_explicit(&peer->in_flight, 1, memory_order_relaxed);
	if (ina_shm_guard_lost(&peer->memory.guard->lost)) {
		why = "its memory is lost: pages of it cannot be read any more";
		n = -EPROTO;
	}
	if (n < 0)
		ina_shm_peer_end(peer, why);
	return n;
}

const _Atomic bool *ina_shm_peer_lost(const struct ina_shm_peer *peer)
{
	return &peer->memory.guard->lost;
}

void ina_shm_peer_respond(struct ina_shm_peer *peer, const struct ina_shm_response *response)
{
	static const struct ina_shm_message bell = { .type = INA_SHM_BELL };

	atomic_fetch_sub_explicit(&peer->in_flight, 1, memory_order_relaxed);
	if (ina_shm_ring_push(&peer->memory.responses, response))
		ina_shm_peer_end(peer, "its response ring is torn, or it does not read it");
	else if (ina_shm_ring_bell(&peer->memory.responses))
		send_answer(peer, &bell);
}

bool ina_shm_peer_sleep(struct ina_shm_peer *peer)
{
	return ina_shm_ring_sleep(&peer->memory.requests) &&
	       !ina_shm_guard_lost(&peer->memory.guard->lost);
}

void ina_shm_peer_awake(struct ina_shm_peer *peer)
{
	ina_shm_ring_awake(&peer->memory.requests);
}

/* ---- answers ---- */

void ina_shm_answer_ticket(struct ina_shm_peer *peer, uint32_t serial,
			   const uint8_t ticket[HA_INA_TICKET])
{
	struct ina_shm_message m = { .type = INA_SHM_TICKET, .serial = serial };

	memcpy(m.ticket, ticket, HA_INA_TICKET);
	send_answer(peer, &m);
}

void ina_shm_answer_joined(struct ina_shm_peer *peer, uint32_t serial, uint32_t handle,
			   uint32_t rank, uint32_t ranks)
{
	struct ina_shm_message m = { .type = INA_SHM_JOINED,
				     .serial = serial,
				     .joined = { handle, rank, ranks } };

	send_answer(peer, &m);
}

void ina_shm_answer_left(struct ina_shm_peer *peer, uint32_t serial, uint32_t handle)
{
	struct ina_shm_message m = { .type = INA_SHM_LEFT, .serial = serial, .handle = handle };

	send_answer(peer, &m);
}

static void send_state(struct ina_shm_peer *peer, uint32_t type, uint32_t serial, uint32_t handle,
		       int err, const char *text)
{
	struct ina_shm_message m = { .type = type,
				     .serial = serial,
				     .state = { .handle = handle, .result = err } };

	snprintf(m.state.text, sizeof(m.state.text), "%s", text);
	for (char *c = m.state.text; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c; /* one line */
	send_answer(peer, &m);
}

void ina_shm_answer_refused(struct ina_shm_peer *peer, uint32_t serial, int err, const char *text)
{
	send_state(peer, INA_SHM_REFUSED, serial, 0, err, text);
}

void ina_shm_peer_state(struct ina_shm_peer *peer, uint32_t handle, int err, const char *text)
{
	send_state(peer, INA_SHM_STATE, 0, handle, err, text);
}
