/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - a socket that stands where the plugin's out-of-band socket would be, for peers that
 * misbehave
 *
 * The only place of the contract tests that knows what is in a handle (plugin/channel/wire.h).
 */
#ifndef HA_TESTS_NCCL_PEER_H
#define HA_TESTS_NCCL_PEER_H

#include "tests/plugin/nccl/rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugin/channel/wire.h"

static inline struct sockaddr_in peer_address(const struct ha_wire_handle *h)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	CHECK(h->oob.family == 4, "the tests run over IPv4, the handle says %d", h->oob.family);
	memcpy(&a.sin_addr, h->oob.ip, 4);
	a.sin_port = htons(h->oob.port);
	return a;
}

/* A port of an address that is this process's alone (a process's number has 22 bits at most): who
 * dials a port of 127.0.0.1 that another test had until just now does not come here. Points the
 * handle at it. Nobody listens there yet, and nobody else can. */
static inline int peer_bind(struct ha_wire_handle *h)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr =
					 htonl((127u << 24 | 192u << 16) + (uint32_t)getpid()) };
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(getpid() < 1 << 22, "pid %d", getpid());
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)), "socket");
	CHECK(!getsockname(fd, (struct sockaddr *)&a, &length), "getsockname");
	h->oob.family = 4;
	h->oob.port = ntohs(a.sin_port);
	memset(h->oob.ip, 0, sizeof(h->oob.ip));
	memcpy(h->oob.ip, &a.sin_addr, 4);
	return fd;
}

static inline int peer_listen(struct ha_wire_handle *h)
{
	int fd = peer_bind(h);

	CHECK(!listen(fd, 16), "listen");
	return fd;
}

/* Connects to the socket behind a real handle. */
static inline int peer_dial(const struct ha_wire_handle *h)
{
	struct sockaddr_in a = peer_address(h);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)), "port %d",
	      ntohs(a.sin_port));
	return fd;
}

#endif
