/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gin.c - the kernel that resets GIN's signals and counters: all of its own, and no others */
#include "base/check.h"
#include "softcuda/nccl/gin.h"
#include "softcuda/nccl/gin_layout.h"

#define CONNECTIONS 3
#define CONTEXTS 2 /* of a connection */
#define SIGNALS 16
#define COUNTERS 8

static uint64_t signals[CONNECTIONS][CONTEXTS][SIGNALS], counters[CONNECTIONS][CONTEXTS][COUNTERS];
static uint64_t shadows[CONNECTIONS * CONTEXTS][5];

static bool is_ours(unsigned connection, unsigned context, uint32_t first, uint32_t count)
{
	uint32_t index = context * CONNECTIONS + connection;

	return index >= first && index < first + count;
}

int main(void)
{
	static struct gin_proxy_context contexts[CONNECTIONS][CONTEXTS];
	struct gin_device_comm comm = {
		.connection_count = CONNECTIONS,
		.signal_base = 4,
		.signal_count = 5,
		.counter_base = 2,
		.counter_count = 3,
		.signal_shadows = &shadows[0][0],
		.context_count = 3,
		.context_base = 2,
	};
	struct softcuda_launch launch = { .parameters = &comm, .parameters_size = sizeof(comm) };
	const struct softcuda_kernel *kernel =
		find_gin_kernel("ncclDevKernelGinResetSignalsAndCounters11ncclDevComm");

	CHECK(kernel != NULL);
	CHECK(find_gin_kernel("ncclDevKernel_Generic") == NULL);
	CHECK_INT(kernel->parameter_size[0], 224);
	memset(signals, 1, sizeof(signals));
	memset(counters, 1, sizeof(counters));
	memset(shadows, 1, sizeof(shadows));
	for (int i = 0; i < CONNECTIONS; i++) {
		comm.types[i] = GIN_BY_PROXY;
		comm.handles[i] = contexts[i];
		for (int c = 0; c < CONTEXTS; c++) {
			contexts[i][c].signals = signals[i][c];
			contexts[i][c].counters = counters[i][c];
		}
	}
	kernel->run(&launch);
	for (unsigned i = 0; i < CONNECTIONS * CONTEXTS; i++) {
		unsigned connection = i % CONNECTIONS, context = i / CONNECTIONS;
		bool ours = is_ours(connection, context, 2, 3);

		for (unsigned s = 0; s < SIGNALS; s++)
			CHECK_INT(signals[connection][context][s] == 0, ours && s >= 4 && s < 9);
		for (unsigned c = 0; c < COUNTERS; c++)
			CHECK_INT(counters[connection][context][c] == 0, ours && c >= 2 && c < 5);
		for (unsigned s = 0; s < 5; s++)
			CHECK_INT(shadows[i][s] == 0, ours);
	}
	return 0;
}
