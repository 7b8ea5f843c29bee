/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put_signal.c - two ranks write into each other's memory and signal, while a NIC goes away
 *
 * Threads of the host and software NICs; a GPU and its ConnectX NICs, of the same source:
 *
 *     cc put_signal.c $(pkg-config --cflags --libs hawser-gpu) -o put_signal
 *     nvcc -x cu put_signal.c $(pkg-config --cflags --libs hawser-gpu) -o put_signal
 *
 * The first NIC of rank 0 dies half-way; over ConnectX somebody pulls its cable.
 */
#include "gpu/host/host.h"
#include "gpu/host/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 4000
#define WORDS 512 /* of a message, 8 bytes each */
#define LIMIT_NS (UINT64_C(60) * 1000000000)

/* What the kernel leaves for the host. */
struct outcome {
	uint64_t rounds, wrong;
	enum ha_gpu_result result;
};

/*
 * The kernel, by one thread. A heap has room for two messages that go and two that come: rounds
 * take turns, so a message is overwritten only when the peer has answered it.
 */
HA_GPU_FN void exchange_messages(struct ha_gpu_world *world, uint64_t *heap, struct outcome *o)
{
	struct ha_gpu_conn *c = ha_gpu_world_conn(world, 0, !world->pe);
	enum ha_gpu_result r = HA_GPU_DONE;

	ha_gpu_world_enter(world);
	for (uint64_t round = 1; round <= ROUNDS && r == HA_GPU_DONE; round++) {
		uint64_t *out = heap + round % 2 * WORDS, *in = out + 2 * WORDS;
		uint64_t there = c->remote + (uint64_t)((char *)in - (char *)heap);

		for (uint64_t i = 0; i < WORDS; i++)
			out[i] = round << 32 | world->pe << 16 | i;
		r = ha_gpu_put_nbi(c, there, out, 8 * WORDS, HA_GPU_LATER, LIMIT_NS);
		if (r == HA_GPU_DONE)
			r = ha_gpu_signal(c, 0, 1, 0, LIMIT_NS);
		if (r == HA_GPU_DONE)
			r = ha_gpu_wait(c, 0, round, LIMIT_NS);
		if (r != HA_GPU_DONE)
			break;
		for (uint64_t i = 0; i < WORDS; i++)
			o->wrong += in[i] != (round << 32 | (uint64_t)!world->pe << 16 | i);
		o->rounds = round;
	}
	if (r == HA_GPU_DONE)
		r = ha_gpu_quiet(c, LIMIT_NS);
	ha_gpu_world_leave(world);
	o->result = r;
}

#ifdef __CUDACC__
#include "gpu/host/cuda.h"
#include "rdma/verbs/dlopen.h"

static struct ha_gpu_cuda cuda;
static struct ha_gpu_mlx5 nics;

__global__ void run_kernel(struct ha_gpu_world *world, uint64_t *heap, struct outcome *o)
{
	exchange_messages(world, heap, o);
}

static int before_fork(void)
{
	return 0;
}

static int open_hardware(struct ha_gpu_host_config *c, struct outcome **o)
{
	struct ha_gpu_mlx5_memory memory;
	struct ha_verbs_ops *verbs;
	cudaError_t error = cudaMalloc(&c->heap, c->heap_bytes);

	if (!error)
		error = cudaMallocHost((void **)o, sizeof(**o));
	if (error) {
		fprintf(stderr, "no GPU: %s\n", cudaGetErrorString(error));
		return -1;
	}
	if (ha_gpu_cuda_open(&cuda) || ha_verbs_open_library("system", &verbs))
		return -1;
	ha_gpu_cuda_memory(&cuda, &memory);
	c->ops = &ha_gpu_mlx5_ops;
	c->hw = &nics;
	return ha_gpu_mlx5_init(&nics, verbs, &memory);
}

static void run_exchange(struct ha_gpu_world *world, void *heap, struct outcome *o)
{
	run_kernel<<<1, 1>>>(world, (uint64_t *)heap, o);
	if (cudaDeviceSynchronize())
		o->result = HA_GPU_REFUSED;
}

static void close_hardware(void)
{
	ha_gpu_mlx5_fini(&nics);
	ha_gpu_cuda_close(&cuda);
}
#else
#include "gpu/host/soft.h"

static struct soft_fabric *fabric; /* of both ranks: their NICs, and all memory that these reach */
static struct ha_gpu_soft nics;

static int before_fork(void)
{
	fabric = soft_fabric_open(4, 16 << 20);
	if (fabric)
		soft_nic_dies_after(&fabric->nic[0], ROUNDS);
	return fabric ? 0 : -1;
}

static int open_hardware(struct ha_gpu_host_config *c, struct outcome **o)
{
	c->ops = &ha_gpu_soft_ops;
	c->hw = &nics;
	c->heap = soft_alloc(fabric, c->heap_bytes);
	*o = soft_alloc(fabric, sizeof(**o));
	if (!c->heap || !*o)
		return -1;
	return ha_gpu_soft_start(&nics, fabric, 2 * (unsigned)c->bootstrap->rank, 2);
}

static void run_exchange(struct ha_gpu_world *world, void *heap, struct outcome *o)
{
	exchange_messages(world, heap, o);
}

static void close_hardware(void)
{
	ha_gpu_soft_stop(&nics);
}
#endif

static int run_rank(int rank, const char *root)
{
	struct ha_gpu_bootstrap bootstrap;
	struct ha_gpu_host_config config;
	struct ha_gpu_host_stats stats;
	struct ha_gpu_host *host;
	struct outcome *o;

	memset(&config, 0, sizeof(config));
	config.bootstrap = &bootstrap;
	config.heap_bytes = 4 * WORDS * 8;
	if (ha_gpu_settings_load_env(&config.settings) ||
	    ha_gpu_bootstrap_tcp(&bootstrap, root, rank, 2, 1, 60000))
		return 1;
	if (ha_gpu_bootstrap_agree(&bootstrap, open_hardware(&config, &o)) ||
	    ha_gpu_host_open(&config, &host) || ha_gpu_host_connect(host, 1, 1) ||
	    ha_gpu_host_launch(host, 0))
		return 1;
	run_exchange(ha_gpu_host_world(host), config.heap, o);
	ha_gpu_host_stats(host, &stats);
	printf("rank %d: %d rounds of %d, %d wrong words, %d changes of path: %s\n", rank,
	       (int)o->rounds, ROUNDS, (int)o->wrong, (int)stats.switches,
	       o->result == HA_GPU_DONE ? "done" : "FAILED");
	ha_gpu_host_finalize(host, 10000);
	ha_gpu_bootstrap_close(&bootstrap);
	close_hardware();
	return o->result != HA_GPU_DONE || o->wrong;
}

int main(void)
{
	int status, failed = 0;
	char root[80];

	if (ha_gpu_stream_free_local(root) || before_fork())
		return 1;
	for (int rank = 0; rank < 2; rank++)
		if (!fork())
			exit(run_rank(rank, root));
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
