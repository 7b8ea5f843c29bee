/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/layout.h"

#include <errno.h>
#include <string.h>

void ina_shm_header_fill(struct ina_shm_header *header, uint32_t segments)
{
	*header = (struct ina_shm_header) {
		.magic = INA_SHM_MAGIC,
		.version = INA_SHM_VERSION,
		.entries = INA_SHM_ENTRIES,
		.bytes = ina_shm_bytes(segments),
		.control = INA_SHM_CONTROL,
		.requests = INA_SHM_REQUESTS,
		.responses = INA_SHM_RESPONSES,
		.buffer = INA_SHM_BUFFER,
		.segment = HA_INA_SEGMENT,
		.segments = segments,
	};
}

int ina_shm_header_check(const struct ina_shm_header *header, uint64_t bytes, uint32_t *segments,
			 const char **why)
{
	struct ina_shm_header want;

	if (header->magic != INA_SHM_MAGIC)
		*why = "the memory is not one of hawser's";
	else if (header->version != INA_SHM_VERSION)
		*why = "the memory has another version: client and backend must come from the same "
		       "release";
	else if (!header->segments || header->segments > INA_SHM_SEGMENTS_MAX ||
		 bytes != ina_shm_bytes(header->segments))
		*why = "the memory's size is not what its header says";
	else {
		ina_shm_header_fill(&want, header->segments);
		if (!memcmp(&want, header, sizeof(want))) {
			*segments = header->segments;
			return 0;
		}
		*why = "the memory's offsets are not those of its version";
	}
	return -EPROTO;
}

static bool is_reduction(uint8_t coll)
{
	return coll == HA_INA_ALL_REDUCE || coll == HA_INA_REDUCE || coll == HA_INA_REDUCE_SCATTER;
}

static bool type_is_known(const struct ina_shm_request *request)
{
	return request->type <= HA_INA_FLOAT32 &&
	       (!is_reduction(request->coll) || request->type != HA_INA_BYTES);
}

static bool lies_inside(const struct ina_shm_request *request, uint64_t buffer_bytes)
{
	return request->offset % INA_SHM_BLOCK == 0 && request->offset <= buffer_bytes &&
	       buffer_bytes - request->offset >= ina_shm_blocks(request->bytes);
}

int ina_shm_request_check(const struct ina_shm_request *request, uint64_t buffer_bytes,
			  const char **why)
{
	if (request->coll < HA_INA_ALL_REDUCE || request->coll > HA_INA_ALL_GATHER)
		*why = "a request names no collective";
	else if (!type_is_known(request))
		*why = "a request's type is none that its collective knows";
	else if (request->root >= HA_INA_RANKS ||
		 (request->coll == HA_INA_ALL_REDUCE && request->root))
		*why = "a request's root cannot be";
	else if (!request->bytes || request->bytes > HA_INA_SEGMENT ||
		 (request->type != HA_INA_BYTES && request->bytes % 4))
		*why = "a request's length cannot be";
	else if (!lies_inside(request, buffer_bytes))
		*why = "a request lies outside of the copy buffer";
	else
		return 0;
	return -EPROTO;
}
