/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/stream.h"

#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int ha_gpu_stream_listen(const char *address)
{
	union ha_sockaddr at;
	int err = ha_sockaddr_parse(address, &at);

	return err ? err : ha_socket_listen(&at, NULL);
}

int ha_gpu_stream_connect(const char *address, unsigned limit_ms)
{
	const struct timespec pause = { 0, 20000000 };
	int64_t end = ha_monotonic_ms() + limit_ms;
	union ha_sockaddr to;
	int r = ha_sockaddr_parse(address, &to);

	while (!r) {
		if (ha_monotonic_ms() >= end)
			return -ETIMEDOUT;
		r = ha_socket_connect(&to, NULL, end);
		if (r >= 0 || r == -ETIMEDOUT)
			return r;
		nanosleep(&pause, NULL);
		r = 0;
	}
	return r;
}

int ha_gpu_stream_send(int fd, const void *data, size_t bytes, unsigned limit_ms)
{
	return ha_socket_send(fd, data, bytes, ha_monotonic_ms() + limit_ms);
}

int ha_gpu_stream_receive(int fd, void *data, size_t bytes, unsigned limit_ms)
{
	return ha_socket_receive(fd, data, bytes, ha_monotonic_ms() + limit_ms);
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
