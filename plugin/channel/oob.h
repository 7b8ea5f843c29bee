/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob.h - the out-of-band stream: how two ends exchange messages before their queue pairs can, and
 * beside them later
 *
 * A table, so that a simulator and tests can put memory in the place of TCP. Nothing here blocks.
 * Functions return 0, a count, or a negative errno; -EAGAIN is "not now". A connection belongs to
 * one thread at a time.
 */
#ifndef HA_PLUGIN_OOB_H
#define HA_PLUGIN_OOB_H

#include "plugin/channel/wire.h"

#include <stdbool.h>
#include <sys/types.h>

struct ha_oob_tcp;
struct ha_oob_conn; /* of the implementation: a listener or a stream */

#define HA_OOB_NAME_MAX 64

struct ha_oob_ops {
	const char *name;
	/* This host's address, the port apart. NULL: it has none to send. */
	void (*local)(void *net, struct ha_wire_addr *addr);
	/* A listener that peers reach at *addr. */
	int (*listen)(void *net, struct ha_oob_conn **listener, struct ha_wire_addr *addr);
	int (*accept)(struct ha_oob_conn *listener, struct ha_oob_conn **conn);
	/* Starts to connect; connected() says how it went: -EAGAIN until it is done. */
	int (*connect)(void *net, const struct ha_wire_addr *addr, struct ha_oob_conn **conn);
	int (*connected)(struct ha_oob_conn *conn);
	ssize_t (*send)(struct ha_oob_conn *conn, const void *data, size_t size);
	/* 0: the peer has ended the stream. */
	ssize_t (*recv)(struct ha_oob_conn *conn, void *data, size_t size);
	/* Always frees. What was sent still arrives if it can. */
	void (*close)(struct ha_oob_conn *conn);
	/* For epoll; -1: it has none and must be asked again and again. */
	int (*fd)(struct ha_oob_conn *conn);
	/* The other end's address (a listener's: its own), for log lines. */
	void (*peer)(struct ha_oob_conn *conn, char name[HA_OOB_NAME_MAX]);
};

/* Of a context. */
struct ha_oob {
	const struct ha_oob_ops *ops;
	void *net;                  /* passed to them */
	bool soft;                  /* no stream has a descriptor: every round asks all of them */
	struct ha_oob_tcp *own_tcp; /* what net is by default; NULL: the caller's is used */
};

#endif
