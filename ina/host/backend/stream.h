/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - one worker's share of one rank: the protocol (ina/host/worker.h), and the requests
 * whose blocks go through it
 *
 * Blocks go from the client's shared memory straight into packets, quantised on the way, and from
 * answers straight back to where they came from: a block's sum takes the place of its contribution,
 * which is then no longer needed.
 */
#ifndef INA_BACKEND_STREAM_H
#define INA_BACKEND_STREAM_H

#include "ina/frame/quant.h"
#include "ina/host/worker.h"
#include "include/hawser/ina.h"

#include <sys/queue.h>

struct ha_job;
struct ha_member;
struct ha_net;

struct ha_stream {
	struct ina_worker worker; /* the protocol */
	struct ha_member *member;
	const struct ina_quant *quant;
	uint8_t headroom;
	bool started;  /* `worker` may be looked at */
	bool reported; /* its end has been reported */
	bool leaving;  /* as soon as the switch has what is for it */
	struct ina_entry *entry;
	uint32_t capacity;
	LIST_ENTRY(ha_stream) link, same; /* of the thread; of this group number and rank */
};

LIST_HEAD(ha_stream_list, ha_stream);

/* One worker's part of a job: whole blocks. */
struct ha_part {
	struct ina_op op;
	struct ha_stream *stream;
	struct ha_job *job;
	uint8_t *data;            /* in shared memory, written by the client at any time */
	const _Atomic bool *lost; /* data is not what the client wrote: ina_shm_guard_lost() */
	uint8_t type;             /* enum ha_ina_type */
	uint8_t met;              /* HA_INA_SATURATED, HA_INA_NONFINITE */
	int result;
	void (*done)(struct ha_part *part, void *arg); /* in the worker's thread */
	void *arg;
};

/* The operation of a part whose other fields are set, op.coll, op.root and op.packets too. */
void ha_part_prepare(struct ha_part *part);
/*
 * Without any packet: as if this rank were all `ranks` (NETCCL_WORKER_LOOPBACK,
 * NETCCL_LB_LOOPBACK).
 */
void ha_part_loop(struct ha_part *part, unsigned rank, unsigned ranks);

#endif
