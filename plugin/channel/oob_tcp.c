/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/oob_tcp.h"

#include "base/ifaddr.h"
#include "base/log.h"
#include "base/socket.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

/*
 * A peer whose machine has lost power says nothing; the kernel finds out by keep-alive probes: the
 * first after 10 s of silence, then every 5 s, and unanswered data or probes end the stream after
 * 30 s. A peer whose process dies is known at once: its kernel ends the stream.
 */
static const struct ha_keepalive keepalive = {
	.idle_s = 10, .interval_s = 5, .count = 4, .user_timeout_ms = 30000
};

struct ha_oob_tcp {
	struct ha_ifaddr local;
};

struct ha_oob_conn {
	int fd; /* -1: in a child after fork() */
	bool listener;
	LIST_ENTRY(ha_oob_conn) entry; /* of all of this process, under conns_lock */
};

static void to_wire(const union ha_sockaddr *a, struct ha_wire_addr *wire)
{
	memset(wire, 0, sizeof(*wire));
	if (a->sa.sa_family == AF_INET) {
		wire->family = 4;
		wire->port = ntohs(a->in.sin_port);
		memcpy(wire->ip, &a->in.sin_addr, 4);
	} else {
		wire->family = 6;
		wire->port = ntohs(a->in6.sin6_port);
		memcpy(wire->ip, &a->in6.sin6_addr, 16);
	}
}

/* A scope (which link a fe80:: address is on) means something on its own machine only, so it does
 * not travel: link-local peers are looked for on the link of our own address. */
static void from_wire(const struct ha_wire_addr *wire, const struct ha_oob_tcp *net,
		      union ha_sockaddr *a)
{
	memset(a, 0, sizeof(*a));
	if (wire->family == 4) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(wire->port);
		memcpy(&a->in.sin_addr, wire->ip, 4);
		return;
	}
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons(wire->port);
	memcpy(&a->in6.sin6_addr, wire->ip, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr) && net->local.addr.sa.sa_family == AF_INET6)
		a->in6.sin6_scope_id = net->local.addr.in6.sin6_scope_id;
}

/*
 * A child after fork() without exec (a data loader's) would hold our sockets: when we die, the peer
 * would learn of it only when the child ends, or after the keepalive. So the child closes its
 * copies. fork() is the process's, hence this list is.
 */
static pthread_mutex_t conns_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ha_oob_conn) conns = LIST_HEAD_INITIALIZER(conns);
static pthread_once_t fork_handled = PTHREAD_ONCE_INIT;

static void fork_prepare(void)
{
	pthread_mutex_lock(&conns_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&conns_lock);
}

/* Nothing but close(): a shutdown() would end the parent's stream, too. */
static void fork_child(void)
{
	struct ha_oob_conn *conn;

	LIST_FOREACH(conn, &conns, entry) {
		close(conn->fd);
		conn->fd = -1;
	}
	LIST_INIT(&conns);
	pthread_mutex_unlock(&conns_lock);
}

static void handle_fork(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* Takes fd, also on failure. */
static int conn_new(int fd, bool listener, struct ha_oob_conn **conn)
{
	pthread_once(&fork_handled, handle_fork);
	*conn = malloc(sizeof(**conn));
	if (!*conn) {
		close(fd);
		return -ENOMEM;
	}
	(*conn)->fd = fd;
	(*conn)->listener = listener;
	pthread_mutex_lock(&conns_lock);
	LIST_INSERT_HEAD(&conns, *conn, entry);
	pthread_mutex_unlock(&conns_lock);
	return 0;
}

static void tcp_local(void *net, struct ha_wire_addr *addr)
{
	const struct ha_oob_tcp *tcp = net;

	to_wire(&tcp->local.addr, addr);
}

static int tcp_listen(void *net, struct ha_oob_conn **listener, struct ha_wire_addr *addr)
{
	const struct ha_oob_tcp *tcp = net;
	union ha_sockaddr a;
	int fd = ha_socket_listen(&tcp->local.addr, &a);

	if (fd < 0)
		return fd;
	to_wire(&a, addr);
	return conn_new(fd, true, listener);
}

static int tcp_accept(struct ha_oob_conn *listener, struct ha_oob_conn **conn)
{
	int fd = ha_socket_accept(listener->fd);

	if (fd < 0)
		return fd;
	ha_socket_tune(fd, &keepalive);
	return conn_new(fd, false, conn);
}

static int tcp_connect(void *net, const struct ha_wire_addr *addr, struct ha_oob_conn **conn)
{
	union ha_sockaddr a;
	int fd;

	from_wire(addr, net, &a);
	fd = ha_socket_begin_connect(&a, &keepalive);
	return fd < 0 ? fd : conn_new(fd, false, conn);
}

static int tcp_connected(struct ha_oob_conn *conn)
{
	union ha_sockaddr a;
	socklen_t len = sizeof(a);
	int err = 0;

	if (!getpeername(conn->fd, &a.sa, &len))
		return 0;
	if (errno != ENOTCONN)
		return -errno;
	len = sizeof(err);
	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return err ? -err : -EAGAIN;
}

/* What send() or recv() returned; interrupted: again. */
static ssize_t result_of(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EINTR ? -EAGAIN : -errno;
}

static ssize_t tcp_send(struct ha_oob_conn *conn, const void *data, size_t size)
{
	return result_of(send(conn->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static ssize_t tcp_recv(struct ha_oob_conn *conn, void *data, size_t size)
{
	return result_of(recv(conn->fd, data, size, MSG_DONTWAIT));
}

static void tcp_close(struct ha_oob_conn *conn)
{
	char rest[256];

	/* A socket that is closed with unread bytes in it sends a reset; read what there is, so
	 * that our own last words end the stream in order. */
	if (!conn->listener) {
		shutdown(conn->fd, SHUT_WR);
		for (int i = 0; i < 16 && recv(conn->fd, rest, sizeof(rest), MSG_DONTWAIT) > 0; i++)
			;
	}
	pthread_mutex_lock(&conns_lock);
	if (conn->fd >= 0) { /* not a child's, whose list is empty */
		LIST_REMOVE(conn, entry);
		close(conn->fd);
	}
	pthread_mutex_unlock(&conns_lock);
	free(conn);
}

static int tcp_fd(struct ha_oob_conn *conn)
{
	return conn->fd;
}

static void tcp_peer(struct ha_oob_conn *conn, char name[HA_OOB_NAME_MAX])
{
	union ha_sockaddr a;
	socklen_t len = sizeof(a);

	static_assert(HA_OOB_NAME_MAX >= HA_SOCKADDR_TEXT_MAX, "an address fits");
	if (conn->listener ? getsockname(conn->fd, &a.sa, &len)
			   : getpeername(conn->fd, &a.sa, &len))
		snprintf(name, HA_OOB_NAME_MAX, "?");
	else
		ha_sockaddr_text(&a, name);
}

const struct ha_oob_ops ha_oob_tcp_ops = {
	.name = "TCP",
	.local = tcp_local,
	.listen = tcp_listen,
	.accept = tcp_accept,
	.connect = tcp_connect,
	.connected = tcp_connected,
	.send = tcp_send,
	.recv = tcp_recv,
	.close = tcp_close,
	.fd = tcp_fd,
	.peer = tcp_peer,
};

int ha_oob_tcp_open(const struct ha_config *config, struct ha_oob_tcp **net)
{
	char text[HA_SOCKADDR_TEXT_MAX];
	int err;

	*net = calloc(1, sizeof(**net));
	if (!*net)
		return -ENOMEM;
	err = ha_ifaddr_select(config, &(*net)->local);
	if (err) {
		free(*net);
		*net = NULL;
		return err;
	}
	HA_INFO(NULL, "out-of-band connections over %s, %s", (*net)->local.name,
		ha_sockaddr_text(&(*net)->local.addr, text));
	return 0;
}

void ha_oob_tcp_close(struct ha_oob_tcp *net)
{
	free(net);
}
