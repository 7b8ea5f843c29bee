/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h - what goes wrong with a software NIC, and when
 *
 * The at-th entry that a NIC comes to (from 0, of all its queue pairs), and the next n - 1, suffer
 * `act`; then `then` happens. With n = 0 the fault strikes before the entry: nothing is done to it.
 */
#ifndef HA_GPU_SOFT_FAULT_H
#define HA_GPU_SOFT_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum soft_act {
	SOFT_ACT_EXECUTE, /* it lands */
	SOFT_ACT_LOSE,    /* it does not */
	SOFT_ACT_HOLD,    /* it lands hold_ns later, if the queue pair there still takes it */
	SOFT_ACT_UNPLACED /* acknowledged by the peer's NIC, and never written */
};

enum soft_then {
	SOFT_THEN_NOTHING,
	SOFT_THEN_DIE,       /* this NIC is gone */
	SOFT_THEN_PEER_DIES, /* the one at the other end is */
	SOFT_THEN_SILENT,    /* this NIC does nothing more, and says nothing */
	/* the link is down: requests are repeated until retry_ns, then an error completion */
	SOFT_THEN_CUT,
	SOFT_THEN_FLAP /* the same for down_ns */
};

struct soft_fault {
	bool armed;
	uint64_t at;
	uint32_t n;
	enum soft_act act;
	bool complete; /* the entries' completions are written all the same */
	enum soft_then then;
	bool announced; /* a port or device event notifies the driver */
	uint64_t hold_ns, down_ns;
};

#endif
