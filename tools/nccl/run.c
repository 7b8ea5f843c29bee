/* SPDX-License-Identifier: BSD-3-Clause */

#include "tools/nccl/run.h"
#include "base/clock.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/bench.h"
#include "tools/nccl/check.h"
#include "tools/nccl/library.h"
#include "tools/nccl/options.h"
#include "tools/nccl/watch.h"

#define POISON 0xa5 /* what buffers hold before a verified iteration */

struct nccl_call nccl_run_call(const struct nccl_run *run, const struct nccl_gpu *gpu)
{
	const struct nccl_bench *b = run->bench;
	bool in_place = run->placement == HA_IN_PLACE;
	size_t send_at = 0, recv_at = 0;
	ptrdiff_t index = gpu - b->gpus.each;
	struct nccl_call call = {
		.nccl = &b->library->nccl,
		.extent = { gpu->rank, b->gpus.ranks, b->options->run.root, run->block },
		.type = run->type,
		.nccl_type = nccl_type_of(run->type),
		.nccl_op = run->redop == HA_MULSUM ? gpu->mulsum[run->side] : (int)run->redop,
		.comm = gpu->comms[run->side],
		.stream = gpu->stream,
	};

	if (in_place)
		b->options->operation->layout->overlap(&call.extent, &send_at, &recv_at);
	call.send = b->gpus.buffers[0].each[index].device + send_at * run->type->size;
	call.recv =
		b->gpus.buffers[in_place ? 0 : 1].each[index].device + recv_at * run->type->size;
	return call;
}

size_t nccl_run_send_bytes(const struct nccl_run *run)
{
	const struct nccl_bench *b = run->bench;

	return (size_t)b->options->operation->layout->send_blocks(b->gpus.ranks) * run->block *
	       run->type->size;
}

size_t nccl_run_recv_bytes(const struct nccl_run *run)
{
	const struct nccl_bench *b = run->bench;

	return (size_t)b->options->operation->layout->recv_blocks(b->gpus.ranks) * run->block *
	       run->type->size;
}

struct ha_payload nccl_run_payload(const struct nccl_run *run, uint64_t seed)
{
	return (struct ha_payload) {
		.seed = seed,
		.type = run->type,
		.reduced = run->bench->options->operation->layout->reduces,
		.redop = run->redop,
		.ranks = run->bench->gpus.ranks,
		.divides_first = true,
		.one_scale = run->bench->options->one_scale,
	};
}

static int start_one(const struct nccl_run *run, int i, const struct nccl_buffers *send)
{
	const struct nccl_bench *b = run->bench;
	struct nccl_call call = nccl_run_call(run, &b->gpus.each[i]);

	if (send)
		call.send = send->each[i].device;
	if (b->gpus.count > 1)
		(void)b->library->cuda.set_device(b->gpus.each[i].device);
	return b->options->operation->call(&call);
}

int nccl_run_start(const struct nccl_run *run, const struct nccl_buffers *send)
{
	const struct nccl_bench *b = run->bench;
	const struct nccl_api *nccl = &b->library->nccl;
	int result = 0, end = 0;

	if (b->gpus.count == 1)
		return nccl_check(b->library, &b->gpus.each[0], start_one(run, 0, send),
				  b->options->operation->function);
	result = nccl->group_start();
	for (int i = 0; i < b->gpus.count && !result; i++)
		result = start_one(run, i, send);
	end = nccl->group_end();
	return nccl_check(b->library, &b->gpus.each[0], result ? result : end,
			  b->options->operation->function);
}

static int fill_one(const struct nccl_run *run, const struct nccl_gpu *gpu,
		    const struct ha_payload *payload)
{
	struct nccl_bench *b = run->bench;
	const struct cuda_api *cuda = &b->library->cuda;
	struct nccl_call call = nccl_run_call(run, gpu);
	size_t bytes = nccl_run_send_bytes(run);
	int err;

	(void)cuda->set_device(gpu->device);
	err = nccl_cuda_check(b->library, gpu,
			      cuda->memset(call.recv, POISON, nccl_run_recv_bytes(run)),
			      "cudaMemset");
	ha_payload_fill(payload, gpu->rank, 0, bytes / run->type->size, b->host);
	if (!err)
		err = nccl_cuda_check(b->library, gpu,
				      cuda->memcpy((char *)(uintptr_t)call.send, b->host, bytes,
						   CUDA_TO_DEVICE),
				      "cudaMemcpy");
	/* the streams of the operations do not wait for the default stream */
	if (!err)
		err = nccl_cuda_check(b->library, gpu, cuda->stream_synchronize(NULL),
				      "cudaStreamSynchronize");
	return err;
}

int nccl_run_fill(const struct nccl_run *run, uint64_t seed)
{
	struct ha_payload payload = nccl_run_payload(run, seed);
	int err = 0;

	for (int i = 0; i < run->bench->gpus.count && !err; i++)
		err = fill_one(run, &run->bench->gpus.each[i], &payload);
	return err;
}

static int compare_one(const struct nccl_run *run, const struct nccl_gpu *gpu,
		       const struct ha_payload *payload, uint64_t *wrong)
{
	struct nccl_bench *b = run->bench;
	struct nccl_call call = nccl_run_call(run, gpu);
	struct ha_segment s;
	int err;

	(void)b->library->cuda.set_device(gpu->device);
	err = nccl_cuda_check(b->library, gpu,
			      b->library->cuda.memcpy(b->host, call.recv, nccl_run_recv_bytes(run),
						      CUDA_TO_HOST),
			      "cudaMemcpy");
	for (int k = 0; !err && b->options->operation->layout->segment(&call.extent, k, &s); k++) {
		const char *actual = b->host + s.at * run->type->size;

		if (s.rank < 0)
			*wrong += ha_payload_compare_reduced(payload, s.from, s.count, actual);
		else
			*wrong += ha_payload_compare(payload, s.rank, s.from, s.count, actual);
	}
	return err;
}

/* Adds the elements of all GPUs' results that are wrong. */
static int nccl_run_compare(const struct nccl_run *run, uint64_t seed, uint64_t *wrong)
{
	struct ha_payload payload = nccl_run_payload(run, seed);
	int err = 0;

	for (int i = 0; i < run->bench->gpus.count && !err; i++)
		err = compare_one(run, &run->bench->gpus.each[i], &payload, wrong);
	return err;
}

int nccl_run_verified(const struct nccl_run *run, uint64_t seed, struct ha_tally *tally,
		      uint64_t *elapsed_ns)
{
	struct nccl_bench *b = run->bench;
	uint64_t wrong = 0;
	int64_t start, cpu;
	int err = nccl_run_fill(run, seed), left;

	if (!err)
		err = ha_rendezvous_barrier(b->rendezvous);
	if (err)
		return err;
	ha_watch_enter(b->watch, b->options->operation->function);
	cpu = ha_process_cpu_ns();
	start = ha_monotonic_ns();
	err = nccl_run_start(run, NULL);
	if (!err)
		err = nccl_gpus_synchronize(&b->gpus);
	if (elapsed_ns) {
		*elapsed_ns = (uint64_t)(ha_monotonic_ns() - start);
		tally->cpu_ns += (uint64_t)(ha_process_cpu_ns() - cpu);
	}
	left = ha_watch_leave(b->watch);
	err = err ? err : left;
	if (!err)
		err = nccl_run_compare(run, seed, &wrong);
	tally->wrong += wrong;
	tally->verified++;
	b->wrong += wrong;
	return err;
}
