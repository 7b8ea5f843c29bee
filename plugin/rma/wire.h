/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h - what goes in the records of puts from one rank to another */
#ifndef HA_RMA_WIRE_H
#define HA_RMA_WIRE_H

#include "plugin/core.h"

#include <assert.h>

enum ha_rma_record_kind {
	HA_RMA_SIGNAL = 1, /* add `value` to the counter at `offset` of `window` */
	HA_RMA_GET, /* put `size` bytes from `offset` of `window` to `back_offset` of window `back`
		       of rank `rank`; then GOT */
	HA_RMA_GOT, /* get `id` of yours is done, or failed with errno `value` */
};

struct ha_rma_record {
	uint8_t kind; /* enum ha_rma_record_kind; never 0 */
	uint8_t reserved[3];
	uint32_t window;
	uint64_t offset;
	uint64_t value;
	uint64_t size;
	uint64_t back_offset;
	uint32_t back;
	uint32_t rank;
	uint64_t id;
	uint64_t unused;
};
static_assert(sizeof(struct ha_rma_record) == HA_RECORD_SIZE, "wire layout");

#endif
