/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - what runs beside NCCL: sockets, slow verbs, the devices' events, failover
 *
 * A round looks at everything that is ready and never blocks. The service thread runs rounds and sleeps in between;
 * without it (HA_NCCL_USE_PROGRESS_THREAD=0) the calls that wait for something run them. Whoever runs a round holds
 * ctx->drive.
 */
#ifndef HA_CORE_SERVICE_H
#define HA_CORE_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_ctx;

/* A file descriptor and what to do when it is ready. Embedded in its owner. ready() runs in a round, under ctx->drive;
 * an owner that removes the watch under ctx->drive is never called again. */
struct ha_watch {
	int fd; /* -1: not watched */
	uint32_t events;
	void (*ready)(struct ha_ctx *ctx, struct ha_watch *watch);
};

/* events: EPOLL*. A negative fd is accepted and watches nothing. */
int ha_watch_add(struct ha_ctx *ctx, struct ha_watch *watch, int fd, uint32_t events);
void ha_watch_events(struct ha_ctx *ctx, struct ha_watch *watch, uint32_t events);
void ha_watch_remove(struct ha_ctx *ctx, struct ha_watch *watch);

struct ha_service {
	int epoll; /* -1: not open */
	struct ha_watch wake; /* an eventfd */
	pthread_t thread;
	atomic_bool running; /* there is a thread */
	bool stop;	     /* under ctx->drive */
	uint64_t muted_until; /* listeners are not looked at before; 0 = they are. Under ctx->drive */
	uint64_t rounds;      /* so far. Under ctx->drive */
	bool worked;	      /* something happened in this round. Under ctx->drive */
	bool busy;	      /* more work is due already. Its own */
	int awake;	      /* rounds without work still to come before the thread sleeps. Its own */
};

/* epoll and eventfd; watches can be added from here on. A failure is one line. */
int ha_service_open(struct ha_ctx *ctx);
void ha_service_close(struct ha_ctx *ctx);
/* The thread, when the configuration wants one. */
int ha_service_start(struct ha_ctx *ctx);
/* Joins the thread, if there is one. */
void ha_service_stop(struct ha_ctx *ctx);
/* There is new work: do not sleep on. Any thread. */
void ha_service_wake(struct ha_ctx *ctx);
/*
 * Something has happened, and more may follow at once: the thread does not sleep for the next HA_NCCL_IDLE_SPIN_THRESHOLD
 * rounds. Not for what is due at fixed times (a heartbeat, the status page). Inside a round.
 */
void ha_service_worked(struct ha_ctx *ctx);
/* For loops that run out of descriptors: look at no listener for a while. Inside a round. */
void ha_service_mute_listeners(struct ha_ctx *ctx);

#endif
