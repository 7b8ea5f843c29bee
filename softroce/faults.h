/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults.h - what a test or a person may do to a NIC's packets, and the decision for one packet
 *
 * struct sr_faults is plain data of fixed layout: it lies in the shared control page of a device
 * and in the in-memory wire alike. All zero is a healthy link. Rates are parts per million of the
 * packets, times are nanoseconds.
 */
#ifndef SOFTROCE_FAULTS_H
#define SOFTROCE_FAULTS_H

#include "base/rng.h"
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define SR_PPM 1000000u
#define SR_REORDER_NS 20000u /* how far a reordered packet is held back when reorder_ns is 0 */

/* One direction, seen from the NIC: tx = packets it sends, rx = packets sent to it. */
struct sr_fault_dir {
	uint32_t blackhole;   /* nonzero: every packet vanishes, the link stays up */
	uint32_t drop_ppm;    /* lost */
	uint32_t dup_ppm;     /* delivered twice */
	uint32_t reorder_ppm; /* held back while later packets overtake */
	uint64_t delay_ns;    /* added to every packet */
	uint64_t jitter_ns;   /* uniform in [0, jitter_ns] more; keeps the order */
	uint64_t reorder_ns;  /* how long a reordered packet is held back; 0 = SR_REORDER_NS */
};

struct sr_faults {
	uint32_t cut;  /* nonzero: no carrier; the port goes down */
	uint32_t kill; /* nonzero: the device dies; what was opened stays dead for good */
	struct sr_fault_dir tx, rx;
	/* bytes per millisecond that leave it, at most; 0 = as many as without this. UDP only */
	uint64_t rate;
	uint32_t srq_errors; /* counts: with each, all shared receive queues that there are fail */
	/*
	 * Mbit/s that the port reports; 0 = what the interface says. A change takes the port down
	 * and up
	 */
	uint32_t speed;
	/* nonzero: a dead device is there again for who lists devices next; "" = by its old name */
	uint32_t restore;
	char restore_as[32];
	uint32_t reserved;
};
static_assert(sizeof(struct sr_fault_dir) == 40, "shared between processes");
static_assert(sizeof(struct sr_faults) == 144, "shared between processes");

/* What happens to one packet. */
struct sr_verdict {
	uint8_t copies; /* 0 = lost, 1, or 2 = duplicated */
	/* may be overtaken; otherwise the wire keeps the order of one direction */
	bool reordered;
	uint64_t delay_ns;  /* until the (first) copy arrives */
	uint64_t delay2_ns; /* until the second copy arrives */
};

/* Throws the dice for one packet. A direction without faults draws nothing from rng. */
struct sr_verdict sr_faults_decide(const struct sr_fault_dir *dir, struct sr_rng *rng);
/*
 * True when the direction does anything to packets: the test before sr_faults_decide() on a hot
 * path.
 */
bool sr_faults_any(const struct sr_fault_dir *dir);

#endif
