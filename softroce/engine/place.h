/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h - payload into a program's memory, as a NIC's DMA engine places it */
#ifndef SR_ENGINE_PLACE_H
#define SR_ENGINE_PLACE_H

#include <stdint.h>

/*
 * Copy len bytes in ascending order. Whoever reads an aligned word of 2, 4 or 8 bytes that the
 * payload fills sees it whole or not at all, and after it (load-acquire) everything that stands
 * before it.
 */
void sr_place(void *to, const void *from, uint32_t len);

#endif
