/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_BASE_RANDOM_H
#define HA_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Fill `len` bytes from the kernel's generator (getrandom). For nonces, PSNs and seeds; not for the
 * hot path. */
void ha_random_bytes(void *buf, size_t len);
uint64_t ha_random_u64(void);

/* From now on the bytes come from `fill`; NULL = the kernel again. For a simulator, whose runs must
 * repeat: one thread. */
void ha_random_set_source(void (*fill)(void *buf, size_t len));

#endif
