/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/socket.h"

#include "base/clamp.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static void set_option(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

static int open_socket(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int close_failed(int fd, int err)
{
	close(fd);
	return err;
}

/* ---- TCP ---- */

void ha_socket_tune(int fd, const struct ha_keepalive *keepalive)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!keepalive)
		return;
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive->idle_s);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive->interval_s);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive->count);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, keepalive->user_timeout_ms);
}

int ha_socket_listen(const union ha_sockaddr *at, union ha_sockaddr *bound)
{
	int fd = open_socket(at->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK);
	socklen_t len = sizeof(*bound);

	if (fd < 0)
		return fd;
	/* with it, the kernel may choose a port that somebody else has bound and not listened at */
	if (at->in.sin_port)
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (at->sa.sa_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (!bind(fd, &at->sa, ha_sockaddr_len(at)) && !listen(fd, SOMAXCONN) &&
	    (!bound || !getsockname(fd, &bound->sa, &len)))
		return fd;
	return close_failed(fd, -errno);
}

int ha_socket_begin_connect(const union ha_sockaddr *to, const struct ha_keepalive *keepalive)
{
	int fd = open_socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK);

	if (fd < 0)
		return fd;
	ha_socket_tune(fd, keepalive);
	if (!connect(fd, &to->sa, ha_sockaddr_len(to)) || errno == EINPROGRESS)
		return fd;
	return close_failed(fd, -errno);
}

/*
 * While nobody listens at a port of this host that the kernel also gives to those who connect, one
 * of them may be given that port, and reach itself.
 */
static bool reached_itself(int fd)
{
	union ha_sockaddr ours = { 0 }, theirs = { 0 };
	socklen_t n = sizeof(ours), m = sizeof(theirs);

	return !getsockname(fd, &ours.sa, &n) && !getpeername(fd, &theirs.sa, &m) && n == m &&
	       !memcmp(&ours, &theirs, n);
}

static int finish_connect(int fd, int64_t deadline)
{
	int error = 0, err = ha_socket_wait(fd, POLLOUT, deadline);
	socklen_t len = sizeof(error);

	if (err)
		return err;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	if (error)
		return -error;
	return reached_itself(fd) ? -ECONNREFUSED : 0;
}

int ha_socket_connect(const union ha_sockaddr *to, const struct ha_keepalive *keepalive,
		      int64_t deadline)
{
	int err, fd = ha_socket_begin_connect(to, keepalive);

	if (fd < 0)
		return fd;
	err = finish_connect(fd, deadline);
	return err ? close_failed(fd, err) : fd;
}

/* ---- Unix ---- */

int ha_socket_listen_unix(const char *path, int type, mode_t mode)
{
	struct sockaddr_un at;
	int fd, err = ha_sockaddr_unix(path, &at);

	if (err)
		return err;
	fd = open_socket(AF_UNIX, type | SOCK_NONBLOCK);
	if (fd < 0)
		return fd;
	if (!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !chmod(path, mode) &&
	    !listen(fd, SOMAXCONN))
		return fd;
	return close_failed(fd, -errno);
}

int ha_socket_connect_unix(const char *path, int type, unsigned limit_ms)
{
	const struct timeval limit = { limit_ms / 1000, limit_ms % 1000 * 1000 };
	struct sockaddr_un to;
	int fd, err = ha_sockaddr_unix(path, &to);

	if (err)
		return err;
	fd = open_socket(AF_UNIX, limit_ms ? type : type | SOCK_NONBLOCK);
	if (fd < 0)
		return fd;
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) &&
	    !connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	return close_failed(fd, -errno);
}

int ha_socket_peer(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) ? -errno : 0;
}

/* ---- both ---- */

int ha_socket_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		return fd;
	return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
}

int ha_socket_wait(int fd, short events, int64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = ha_clamp(deadline - ha_monotonic_ms(), 0, INT_MAX);
		n = poll(&p, 1, (int)left);
	} while (n < 0 && errno == EINTR && left);
	if (n > 0)
		return 0;
	return n < 0 && errno != EINTR ? -errno : -ETIMEDOUT;
}

/* events: POLLIN to receive, POLLOUT to send. */
static int move_bytes(int fd, char *at, size_t size, short events, int64_t deadline)
{
	while (size) {
		ssize_t n = events == POLLIN ? recv(fd, at, size, MSG_DONTWAIT)
					     : send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		int err;

		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			return -EPIPE;
		if (n < 0) {
			err = ha_socket_wait(fd, events, deadline);
			if (err)
				return err;
			continue;
		}
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

int ha_socket_send(int fd, const void *data, size_t size, int64_t deadline)
{
	return move_bytes(fd, (char *)data, size, POLLOUT, deadline);
}

int ha_socket_receive(int fd, void *data, size_t size, int64_t deadline)
{
	return move_bytes(fd, data, size, POLLIN, deadline);
}
