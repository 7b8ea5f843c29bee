/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/gin.h"
#include "softcuda/nccl/gin_layout.h"
#include "softcuda/nccl/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Contexts are dealt to the connections in turn. */
static void reset_context(const struct gin_device_comm *comm, uint32_t index)
{
	uint32_t connection = index % comm->connection_count;
	const struct gin_proxy_context *contexts = comm->handles[connection];
	const struct gin_proxy_context *context = &contexts[index / comm->connection_count];
	uint64_t *shadows = comm->signal_shadows + (size_t)index * (size_t)comm->signal_count;

	if (comm->types[connection] != GIN_BY_PROXY) {
		fprintf(stderr,
			"softcuda: a GIN connection of type %u needs a GPU that drives the NIC "
			"itself; use "
			"NCCL_GIN_TYPE=2 (proxy)\n",
			comm->types[connection]);
		abort();
	}
	for (int i = 0; i < comm->signal_count; i++) {
		store_release(&context->signals[comm->signal_base + (uint32_t)i], 0);
		store_relaxed(&shadows[i], 0);
	}
	for (int i = 0; i < comm->counter_count; i++)
		store_release(&context->counters[comm->counter_base + (uint32_t)i], 0);
}

static void run_gin_reset(const struct softcuda_launch *launch)
{
	const struct gin_device_comm *comm = launch->parameters;

	for (uint32_t i = 0; i < comm->context_count; i++)
		reset_context(comm, comm->context_base + i);
}

static const uint16_t parameter_sizes[] = { sizeof(struct gin_device_comm) };

static const struct softcuda_kernel gin_kernel = {
	.run = run_gin_reset,
	.parameter_size = parameter_sizes,
	.parameter_count = 1,
};

const struct softcuda_kernel *find_gin_kernel(const char *name)
{
	static const char reset[] = "ncclDevKernelGinResetSignalsAndCounters";

	return strncmp(name, reset, strlen(reset)) == 0 ? &gin_kernel : NULL;
}
