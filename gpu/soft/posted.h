/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * posted.h - memory behind another bridge than the rest, as a GPU's is: what a NIC writes there
 * comes late, in its order, while what it writes elsewhere is there at once
 *
 * A read or fetch-add there by the same NIC comes after what it has written there; one elsewhere
 * waits for nothing. What has not come when the NIC is gone never does; a queue pair's error or
 * reset waits for all.
 */
#ifndef HA_GPU_SOFT_POSTED_H
#define HA_GPU_SOFT_POSTED_H

#include "gpu/soft/nic.h"

/* Before anybody runs: writes to this range come `late_ns` late. At most SOFT_APART_MAX ranges. */
void soft_posted_apart(struct soft_fabric *f, const void *memory, uint64_t bytes, uint64_t late_ns);
/* Words one by one where somebody may be looking at them; the rest as it comes, with the scheduler
 * in between. */
void soft_copy_data(uint64_t to, uint64_t from, uint64_t bytes);
/* NIC n writes: at once, or later. */
void soft_posted_write(struct soft_nic *n, uint64_t to, uint64_t from, uint64_t bytes);
/* NIC n is about to read or add at `address`. */
void soft_posted_order(struct soft_nic *n, uint64_t address);
/* All that NIC n has posted is there now. */
void soft_posted_flush(struct soft_nic *n);
/* What is due; true: something was. */
bool soft_posted_land(struct soft_nic *n);
/* None of it ever comes. */
void soft_posted_drop(struct soft_nic *n);

#endif
