/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.h - stream sockets: listened at, connected and accepted, and whole messages on them
 *
 * Descriptors that are returned do not block and are closed by exec(). Errors are negative errnos.
 * A deadline is a time of ha_monotonic_ms(); one that has passed: what can be done at once is done.
 * Signals neither end a call with a deadline nor prolong it.
 */
#ifndef HA_BASE_SOCKET_H
#define HA_BASE_SOCKET_H

#include "base/sockaddr.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How the kernel finds out that a peer's machine is gone. */
struct ha_keepalive {
	int idle_s;          /* of silence, before the first probe */
	int interval_s;      /* between two probes */
	int count;           /* of unanswered probes that end the connection */
	int user_timeout_ms; /* for which sent data may be unacknowledged; 0: the system's */
};

/*
 * TCP: small messages go at once; probes, unless keepalive is NULL. It only improves things: what
 * the kernel does not know is left out.
 */
void ha_socket_tune(int fd, const struct ha_keepalive *keepalive);

/*
 * A listener for TCP; at an IPv6 address of all interfaces, for IPv4 too. Port 0: one that the
 * kernel chooses. *bound is where it listens; may be NULL.
 */
int ha_socket_listen(const union ha_sockaddr *at, union ha_sockaddr *bound);
/* A tuned socket that connects; it is writable when it has, or has failed (SO_ERROR). */
int ha_socket_begin_connect(const union ha_sockaddr *to, const struct ha_keepalive *keepalive);
/* A tuned socket that is connected. -ECONNREFUSED, -ETIMEDOUT, ... */
int ha_socket_connect(const union ha_sockaddr *to, const struct ha_keepalive *keepalive,
		      int64_t deadline);

/*
 * A listener at `path`, which nobody can connect to before it has its mode. -EADDRINUSE: something
 * is there, be it the socket of a process that has ended; -ENAMETOOLONG (ha_sockaddr_unix).
 */
int ha_socket_listen_unix(const char *path, int type, mode_t mode);
/*
 * limit_ms 0: as all others; else the socket blocks, for so long at most in connecting and in each
 * later call, which then fails with EAGAIN. -EAGAIN: the listener's queue is full; -ECONNREFUSED:
 * nobody listens there any more; -ENAMETOOLONG (ha_sockaddr_unix).
 */
int ha_socket_connect_unix(const char *path, int type, unsigned limit_ms);
/* The process that connected a Unix socket, or listens where it was connected to. */
int ha_socket_peer(int fd, struct ucred *peer);

/* -EAGAIN: nobody waits there, or does no more. */
int ha_socket_accept(int listener);

/* Until one of the events (poll's) is there: 0 or -ETIMEDOUT. */
int ha_socket_wait(int fd, short events, int64_t deadline);
/* All of `size` bytes: 0; -EPIPE: the connection has ended, however; or -ETIMEDOUT. */
int ha_socket_send(int fd, const void *data, size_t size, int64_t deadline);
int ha_socket_receive(int fd, void *data, size_t size, int64_t deadline);

#endif
