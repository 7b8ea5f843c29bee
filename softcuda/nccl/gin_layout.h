/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin_layout.h - a device communicator as the host passes it to a kernel, as far as signals and
 * counters need it
 */
#ifndef SOFTCUDA_NCCL_GIN_LAYOUT_H
#define SOFTCUDA_NCCL_GIN_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define GIN_CONNECTIONS_MAX 4
/* value of gin_device_comm.types: a proxy thread carries out what the GPU asks for */
#define GIN_BY_PROXY 2

/* What a proxy connection keeps in memory that the GPU writes; one for each of its contexts. */
struct gin_proxy_context {
	int32_t ranks;
	uint32_t queue_size;
	void *queues;
	uint32_t *produced;
	uint32_t *consumed;
	uint64_t *counters;
	uint64_t *signals;
};

struct gin_device_comm {
	char not_used[136];
	uint8_t connection_count;
	uint8_t types[GIN_CONNECTIONS_MAX];
	void *handles[GIN_CONNECTIONS_MAX];
	uint32_t signal_base;
	int32_t signal_count;
	uint32_t counter_base;
	int32_t counter_count;
	uint64_t *signal_shadows;
	uint32_t context_count;
	uint32_t context_base;
	bool is_railed;
	uint32_t *abort_flag;
};

#endif
