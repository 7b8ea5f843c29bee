/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - a socket that stands where the plugin's out-of-band socket would be, for peers that misbehave
 *
 * The only place of the contract tests that knows what is in a handle (core/wire.h).
 */
#ifndef HA_TESTS_NCCL_PEER_H
#define HA_TESTS_NCCL_PEER_H

#include "tests/nccl/rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/wire.h"

static inline struct sockaddr_in peer_address(const struct ha_wire_handle *h)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	CHECK(h->oob.family == 4, "the tests run over IPv4, the handle says %d", h->oob.family);
	memcpy(&a.sin_addr, h->oob.ip, 4);
	a.sin_port = htons(h->oob.port);
	return a;
}

/* Listens on a loopback port of its own and points the handle at it. */
static inline int peer_listen(struct ha_wire_handle *h)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 16), "socket");
	CHECK(!getsockname(fd, (struct sockaddr *)&a, &length), "getsockname");
	h->oob.family = 4;
	h->oob.port = ntohs(a.sin_port);
	memset(h->oob.ip, 0, sizeof(h->oob.ip));
	memcpy(h->oob.ip, &a.sin_addr, 4);
	return fd;
}

/* Connects to the socket behind a real handle. */
static inline int peer_dial(const struct ha_wire_handle *h)
{
	struct sockaddr_in a = peer_address(h);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)), "port %d", ntohs(a.sin_port));
	return fd;
}

#endif
