/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics.h - a rank's software NICs on threads of their own, and the cuts that they suffer
 *
 * A cut is ordered by the rank and carried out by the NIC's thread, at an entry: nothing else
 * touches the fault script. After down_ns the thread puts the NIC right again.
 */
#ifndef HA_GPU_EXAMPLE_NICS_H
#define HA_GPU_EXAMPLE_NICS_H

#include "gpu/soft/nic.h"

#include <pthread.h>

struct ha_moe_cut_kind {
	const char *name, *help;
	struct soft_fault fault;
};
extern const struct ha_moe_cut_kind ha_moe_cut_kinds[];
extern const int ha_moe_ncut_kinds;

enum ha_moe_cut_state {
	HA_MOE_CUT_NONE,
	HA_MOE_CUT_ORDERED,
	HA_MOE_CUT_ARMED,  /* waits for its entry */
	HA_MOE_CUT_STRUCK, /* and is not put right yet */
	HA_MOE_CUT_WITHDRAWN
};

struct ha_moe_nic {
	struct soft_nic *nic;
	pthread_t thread;
	/* enum ha_moe_cut_state; the rank orders and withdraws, the NIC's thread does the rest */
	uint64_t state;
	struct soft_fault fault;
	uint64_t after;   /* entries of this NIC from the order on */
	uint64_t down_ns; /* then it is put right; UINT64_MAX: never */
	uint64_t before, struck_ns;
	/*
	 * Called by the NIC's thread: at the stroke, and then now and again until it is true: there
	 * is traffic again.
	 */
	bool (*traffic)(void *self, bool struck);
	void *self;
	bool waiting; /* for traffic */
	/* of those after which traffic was seen: from the stroke to it */
	uint64_t cuts, resumed, sum_ns, max_ns;
};

/* 0, or a negative errno. */
int ha_moe_nic_start(struct ha_moe_nic *n, struct soft_nic *nic);
void ha_moe_nic_stop(struct ha_moe_nic *n);

void ha_moe_nic_cut(struct ha_moe_nic *n, int kind, uint64_t after, uint64_t down_ns);
/*
 * What has not struck yet does not; what has is waited for until it is put right. One for good is
 * left to strike whenever it comes.
 */
void ha_moe_nic_settle(struct ha_moe_nic *n);

#endif
