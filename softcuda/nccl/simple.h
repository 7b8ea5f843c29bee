/* SPDX-License-Identifier: BSD-3-Clause */
/* simple.h - parts of the Simple protocol that other ways to fill a slice are made of */
#ifndef SOFTCUDA_NCCL_SIMPLE_H
#define SOFTCUDA_NCCL_SIMPLE_H

#include "softcuda/nccl/lane.h"

/* Can all endpoints that take part in the current operation take one slice more? */
bool peers_are_ready(struct lane *lane);

/* Where the slice lies in the connection's buffer. */
char *slot_address(const struct endpoint *endpoint);

/*
 * The slice was moved: announce `count` elements and move the counters of all endpoints that take
 * part.
 */
void post_slice(struct lane *lane, size_t count);

#endif
