/* SPDX-License-Identifier: BSD-3-Clause */
/* closing.h - a buffer was given back, or a request was refused, lately: what fails now may be how
 * the peer, or the program here, ends the connection */
#ifndef HA_REPORT_CLOSING_H
#define HA_REPORT_CLOSING_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HA_CLOSING_NS (2 * HA_NS_PER_S) /* for so long */

/* at: when it was, ns; 0: never. */
static inline bool ha_closing_since(const _Atomic uint64_t *at, uint64_t now)
{
	uint64_t then = atomic_load_explicit(at, memory_order_relaxed);

	return then && (int64_t)(now - then) < (int64_t)HA_CLOSING_NS;
}

#endif
