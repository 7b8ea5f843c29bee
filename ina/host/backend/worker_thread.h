/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_thread.h - one worker: a thread with a queue of the card, and the streams of all ranks of
 * this host that have this worker's number
 *
 * It polls: packets, what the load balancer hands over, timers; without a system call as long as
 * there is work. After idle_ns without any it sleeps until a packet comes, the balancer wakes it,
 * or a timer is due. On processors that others need, too, it yields between looks that find
 * nothing.
 */
#ifndef INA_BACKEND_WORKER_THREAD_H
#define INA_BACKEND_WORKER_THREAD_H

#include "base/yield.h"
#include "ina/host/backend/net.h"
#include "ina/host/backend/sleeper.h"
#include "ina/host/backend/spsc.h"
#include "ina/host/backend/stream.h"

#include <pthread.h>

/* Notes from the balancer to a worker, and back. */
enum ha_note_kind {
	HA_NOTE_ADD = 1, /* struct ha_stream: begin */
	HA_NOTE_POST,    /* struct ha_part */
	HA_NOTE_ABORT,   /* struct ha_stream: end with err, for all ranks */
	HA_NOTE_REMOVE,  /* struct ha_stream: forget it; err as in ha_member.remove_err */

	HA_NOTE_DONE,    /* struct ha_part */
	HA_NOTE_FAILED,  /* struct ha_stream: its worker's error and why; once */
	HA_NOTE_REMOVED, /* struct ha_stream: nobody here knows it any more */
};

/* Beside the protocol's own counters. */
#define HA_WORKER_COUNTERS(X)                         \
	X(frames, "frames of aggregation that came")  \
	X(faulty, "packets that are no sound frame")  \
	X(foreign, "frames for no rank of this host") \
	X(operations, "operations begun")             \
	X(sleeps, "times it had nothing to do and slept")

/* For anybody to read; the thread refreshes them every few milliseconds. */
struct ha_worker_stats {
#define X(name, help) _Atomic uint64_t name;
	INA_COUNTER_LIST(X)
	HA_WORKER_COUNTERS(X)
#undef X
	/* the last three: of the stream that was busy last */
	_Atomic uint32_t streams, window, left_psn, right_psn, cwnd_tenths;
};

struct ha_worker_limits {
	uint64_t peer_ns, switch_ns; /* as in ina_worker_config */
	uint64_t idle_ns;            /* without work, before it sleeps; 0 = at once */
	bool shared;                 /* others need its processor, too: without work it yields */
	bool loop;                   /* NETCCL_WORKER_LOOPBACK */
};

#define HA_WORKER_GROUPS 256

struct ha_worker_thread {
	unsigned number;
	struct ha_net *net;
	struct ha_worker_limits limits;
	int cpu; /* pinned to; -1: not */
	struct ha_sleeper sleeper, *balancer;
	struct ha_spsc in, out; /* from and to the balancer */
	struct ha_worker_stats stats;
	_Atomic bool stop;
	pthread_t thread;
	bool running;

	/* The thread's own. */
	struct {
		const struct ha_clock *source;
		struct ha_clock_virtual clock; /* once per round */
		struct ha_stream_list streams;
		struct ha_stream *busy;
		struct ha_stream_list same[HA_WORKER_GROUPS][INA_RANKS_MAX];
		struct ina_counters gone; /* of streams that are no more */
		uint64_t frames, faulty, foreign, operations, sleeps;
		uint64_t worked_at, published_at;
		struct ha_yield yield;
	} own;
};

/* 0, or a negative errno. w: zeroed but for number, net, limits, cpu, balancer. */
int ha_worker_thread_start(struct ha_worker_thread *w);
/* Streams that are still there are forgotten. */
void ha_worker_thread_stop(struct ha_worker_thread *w);

#endif
