/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - what runs beside NCCL: sockets, slow verbs, the devices' events, failover
 *
 * A round looks at everything that is ready and never blocks. The service thread runs rounds and
 * sleeps in between; without it (HA_NCCL_USE_PROGRESS_THREAD=0, ctx->loop.threaded is false) the
 * calls that wait for something run them. Whoever runs a round holds ctx->drive.
 *
 * What a round finds to do and may be followed by more at once sets ctx->loop.worked: the thread
 * does not sleep for the next HA_NCCL_IDLE_SPIN_THRESHOLD rounds, or 2 us for each. Not for what is
 * due at fixed times (a heartbeat, the status page).
 */
#ifndef HA_PLUGIN_SERVICE_H
#define HA_PLUGIN_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_ctx;

struct ha_service {
	pthread_t thread;
	bool stop; /* under ctx->drive */
	/* listeners are not looked at before; 0 = they are. Under ctx->drive */
	uint64_t muted_until;
	uint64_t rounds; /* so far. Under ctx->drive */
	bool busy;       /* more work is due already. Its own */
	int awake;       /* rounds without work still to come before the thread sleeps. Its own */
	uint64_t awake_until; /* it sleeps from then on, whatever is left of them. Its own */
};

/* Opens ctx->loop: watches can be added from here on. A failure is one line. */
int ha_service_open(struct ha_ctx *ctx);
void ha_service_close(struct ha_ctx *ctx);
/* The thread, when the configuration wants one. */
int ha_service_start(struct ha_ctx *ctx);
/* Joins the thread, if there is one. */
void ha_service_stop(struct ha_ctx *ctx);
#endif
