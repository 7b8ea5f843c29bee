/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.h - one pair of ports: a connection in each direction by the plugin's own core, measured,
 * and taken off its path
 *
 * Both ends call the same functions in the same order. What fails at one end is closed there, so
 * that the other end sees an error instead of waiting.
 */
#ifndef HAWSER_FABRIC_PROBE_H
#define HAWSER_FABRIC_PROBE_H

#include "plugin/core.h"
#include "tools/doctor/fabric/fabric.h"

struct fabric_probe_options {
	uint64_t time_ns;  /* of each measurement */
	uint64_t limit_ns; /* after which what does not move is given up */
};

struct fabric_end {
	const struct fabric_probe_options *options;
	struct ha_ctx *ctx;
	int dev;
	bool first; /* of the pair: sends first */
	char *memory;
	/* of this pair */
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;
	struct ha_mr *send_mr, *recv_mr;
	uint64_t deadline;
	uint64_t protections; /* of the context: connections that are protected, or are said not to
				 be */
};

/* Bytes of the memory that an end needs. */
size_t fabric_probe_memory(void);

/* handle: HA_HANDLE_MAX bytes for the peer. All return 0 or a negative errno. */
int fabric_end_listen(struct fabric_end *end, void *handle);
int fabric_end_connect(struct fabric_end *end, const void *handle);
/* Always; also what is half made. */
void fabric_end_close(struct fabric_end *end);

/* out: from here to the peer; in: from the peer. Each end fills what it has seen itself. */
int fabric_measure_latency(struct fabric_end *end, struct fabric_cell *out, struct fabric_cell *in);
int fabric_measure_bandwidth(struct fabric_end *end, struct fabric_cell *in);
/* Takes each direction's path away in turn: its queue pair is put into error at the sender's end,
 * as after a cable that is pulled. No port is touched. */
int fabric_measure_failover(struct fabric_end *end, struct fabric_cell *out,
			    struct fabric_cell *in);

#endif
