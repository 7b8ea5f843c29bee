/* SPDX-License-Identifier: BSD-3-Clause */
/* oob_mem.h - an out-of-band network in memory, for one thread: every byte, piece and end of a
 * stream is the test's to choose */
#ifndef HA_TESTS_CORE_OOB_MEM_H
#define HA_TESTS_CORE_OOB_MEM_H

#include "plugin/channel/oob.h"

#include <sys/queue.h>

LIST_HEAD(oob_mem_conns, ha_oob_conn);

struct oob_mem {
	/* Knobs; all 0 = a perfect network. */
	unsigned piece;   /* most bytes that one send or recv moves */
	unsigned stall;   /* of so many sends and recvs about one says "not now" */
	int refuse;       /* negative errno that ends every dial */
	int silent;       /* dials reach nobody */
	uint64_t flip_at; /* number (from 1) of the byte, counted over all streams, of which ... */
	uint8_t flip;     /* ... these bits are turned over on the way */
	uint64_t cut_at;  /* with this byte every stream ends ... */
	int cut_error;    /* ... with this error at both ends; 0: in order */
	int accept_error; /* of the next accept */
	/* Counters. */
	uint64_t bytes, calls;
	int open; /* listeners and streams that nobody has closed */
	struct oob_mem_conns listeners, streams;
	uint16_t next_port;
};

extern const struct ha_oob_ops oob_mem_ops;

/* A raw stream to a listener, for unauthenticated peers; ops' send, recv and close work on it.
 * NULL: nobody listens there. */
struct ha_oob_conn *oob_mem_dial(struct oob_mem *net, const struct ha_wire_addr *addr);
/* End every stream, in order (0) or with a negative errno. */
void oob_mem_cut(struct oob_mem *net, int error);

#endif
