/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pilot.h - a thread for the calls of libhawser-ina that wait: attaching to the backend, asking the
 * controller
 *
 * It exists as long as one attempt. Between start and ready the library's context is the thread's
 * alone.
 */
#ifndef HA_COLLNET_PILOT_H
#define HA_COLLNET_PILOT_H

#include "plugin/collnet/ops.h"

#include <pthread.h>
#include <stdatomic.h>

enum ha_pilot_task { HA_PILOT_CREATE, HA_PILOT_JOIN };

struct ha_pilot {
	pthread_t thread;
	bool running;
	atomic_bool ready;
	enum ha_pilot_task task;
	const struct ha_ina_ops *ops;
	/* for the thread, and from it */
	struct ha_ina *ina; /* NULL: attach first */
	const char *backend;
	int *give_up; /* outlives the library's context, which looks at it */
	const uint32_t *member;
	unsigned ranks, rank;
	const char *name;
	uint8_t ticket[HA_INA_TICKET];
	struct ha_ina_group *group;
	int error;
	char why[256];
};

int ha_pilot_start(struct ha_pilot *pilot, enum ha_pilot_task task);
/* True: it has ended, its results are the caller's. */
bool ha_pilot_ended(struct ha_pilot *pilot);
/* Has it give up what it waits for: -ECANCELED, soon. */
void ha_pilot_hurry(struct ha_pilot *pilot);
/* The same, and waits for its end. */
void ha_pilot_recall(struct ha_pilot *pilot);

#endif
