/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/stream.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int parse_address(const char *text, struct sockaddr_storage *to, socklen_t *length)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
			*list;
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0,
	       digits = colon ? strspn(colon + 1, "0123456789") : 0;
	char host[64];

	if (!n || n >= sizeof(host))
		return -EINVAL;
	/* the library takes none for 0, and of more its lower half */
	if (!digits || digits > 5 || colon[1 + digits] || atoi(colon + 1) > UINT16_MAX)
		return -EINVAL;
	if (text[0] == '[' && text[n - 1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)n - 2, text + 1);
	else
		snprintf(host, sizeof(host), "%.*s", (int)n, text);
	if (getaddrinfo(host, colon + 1, &hints, &list))
		return -EINVAL;
	memcpy(to, list->ai_addr, list->ai_addrlen);
	*length = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static int prepare_socket(int fd)
{
	int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

int ha_gpu_stream_listen(const char *address)
{
	struct sockaddr_storage to;
	socklen_t length;
	int fd, on = 1, r = parse_address(address, &to, &length);

	if (r)
		return r;
	fd = prepare_socket(socket(to.ss_family, SOCK_STREAM, 0));
	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&to, length) || listen(fd, 1024)) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

/* 0; -ETIMEDOUT, also of a process that signals interrupt all the time. */
static int await_ready(int fd, short events, unsigned limit_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t now = ha_monotonic_ms(), end = now + limit_ms;
	int r;

	do {
		r = poll(&p, 1, (int)(end - now));
		now = ha_monotonic_ms();
	} while (r < 0 && errno == EINTR && now < end);
	if (r > 0)
		return 0;
	return r && errno != EINTR ? -errno : -ETIMEDOUT;
}

/*
 * While nobody listens at a port of this host that the kernel also gives to those who dial, one of
 * them may be given that port, and reach itself.
 */
static bool reached_itself(int fd)
{
	struct sockaddr_storage ours = { 0 }, theirs = { 0 };
	socklen_t n = sizeof(ours), m = sizeof(theirs);

	return !getsockname(fd, (struct sockaddr *)&ours, &n) &&
	       !getpeername(fd, (struct sockaddr *)&theirs, &m) && n == m &&
	       !memcmp(&ours, &theirs, n);
}

static int dial_once(const struct sockaddr_storage *to, socklen_t length, unsigned limit_ms)
{
	int fd = prepare_socket(socket(to->ss_family, SOCK_STREAM, 0)), error = 0, r;
	socklen_t n = sizeof(error);

	if (fd < 0)
		return fd;
	r = connect(fd, (const struct sockaddr *)to, length) ? -errno : 0;
	if (r == -EINPROGRESS)
		r = await_ready(fd, POLLOUT, limit_ms);
	if (!r && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n))
		r = -error;
	if (!r && reached_itself(fd))
		r = -ECONNREFUSED;
	if (!r)
		return fd;
	close(fd);
	return r;
}

int ha_gpu_stream_connect(const char *address, unsigned limit_ms)
{
	const struct timespec pause = { 0, 20000000 };
	int64_t end = ha_monotonic_ms() + limit_ms;
	struct sockaddr_storage to;
	socklen_t length;
	int r = parse_address(address, &to, &length);

	while (!r) {
		int64_t now = ha_monotonic_ms();

		if (now >= end)
			return -ETIMEDOUT;
		r = dial_once(&to, length, (unsigned)(end - now));
		if (r >= 0 || r == -ETIMEDOUT)
			return r;
		nanosleep(&pause, NULL);
		r = 0;
	}
	return r;
}

int ha_gpu_stream_send(int fd, const void *data, size_t bytes, unsigned limit_ms)
{
	const char *at = data;
	ssize_t n;
	int r;

	while (bytes) {
		n = send(fd, at, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -EPIPE;
		if (n <= 0) {
			r = await_ready(fd, POLLOUT, limit_ms);
			if (r)
				return r;
			continue;
		}
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int ha_gpu_stream_receive(int fd, void *data, size_t bytes, unsigned limit_ms)
{
	char *at = data;
	ssize_t n;
	int r;

	while (bytes) {
		n = recv(fd, at, bytes, 0);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			return -EPIPE;
		if (n < 0) {
			r = await_ready(fd, POLLIN, limit_ms);
			if (r)
				return r;
			continue;
		}
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

bool ha_gpu_stream_ended(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

int ha_gpu_stream_own(int fd, char host[64], uint16_t *port)
{
	struct sockaddr_storage a;
	socklen_t length = sizeof(a);
	char service[8];

	if (getsockname(fd, (struct sockaddr *)&a, &length))
		return -errno;
	if (getnameinfo((struct sockaddr *)&a, length, host, 64, service, sizeof(service),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	if (port)
		*port = (uint16_t)atoi(service);
	return 0;
}

void ha_gpu_stream_text(const char *host, uint16_t port, char text[80])
{
	snprintf(text, 80, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

int ha_gpu_stream_free_local(char text[80])
{
	int fd = ha_gpu_stream_listen("127.0.0.1:0"), r;
	char host[64];
	uint16_t port;

	if (fd < 0)
		return fd;
	r = ha_gpu_stream_own(fd, host, &port);
	close(fd);
	if (!r)
		ha_gpu_stream_text(host, port, text);
	return r;
}
