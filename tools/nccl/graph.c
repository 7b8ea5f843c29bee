/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/bench.h"
#include "tools/nccl/check.h"
#include "tools/nccl/graph.h"
#include "tools/nccl/library.h"
#include "tools/nccl/options.h"
#include "tools/nccl/run.h"
#include "tools/nccl/watch.h"

static int captures_begin(const struct nccl_bench *b)
{
	const struct cuda_api *cuda = &b->library->cuda;
	int err = 0;

	if (!cuda->begin_capture || !cuda->end_capture || !cuda->graph_instantiate ||
	    !cuda->graph_launch)
		return ha_fault(-ENOSYS, "-G: the CUDA runtime %s has no graphs",
				b->library->cuda_path);
	for (int i = 0; i < b->gpus.count && !err; i++) {
		(void)cuda->set_device(b->gpus.each[i].device);
		err = nccl_cuda_check(b->library, &b->gpus.each[i],
				      cuda->begin_capture(b->gpus.each[i].stream,
							  CUDA_CAPTURE_THREAD),
				      "cudaStreamBeginCapture (-G)");
	}
	return err;
}

static int capture_end(const struct nccl_bench *b, const struct nccl_gpu *gpu,
		       cuda_graph_exec *executable)
{
	const struct cuda_api *cuda = &b->library->cuda;
	cuda_graph graph = NULL;
	int err;

	(void)cuda->set_device(gpu->device);
	err = nccl_cuda_check(b->library, gpu, cuda->end_capture(gpu->stream, &graph),
			      "cudaStreamEndCapture (-G)");
	if (!err)
		err = nccl_cuda_check(b->library, gpu,
				      cuda->graph_instantiate(executable, graph, 0),
				      "cudaGraphInstantiateWithFlags (-G)");
	if (!err)
		err = nccl_cuda_check(b->library, gpu, cuda->graph_destroy(graph),
				      "cudaGraphDestroy (-G)");
	return err;
}

static int graphs_make(const struct nccl_run *run, int iterations, cuda_graph_exec *executables)
{
	const struct nccl_bench *b = run->bench;
	int err = captures_begin(b);

	for (int i = 0; i < iterations && !err; i++)
		err = nccl_run_start(run, NULL);
	for (int i = 0; i < b->gpus.count && !err; i++)
		err = capture_end(b, &b->gpus.each[i], &executables[i]);
	return err;
}

static int graphs_launch(const struct nccl_bench *b, cuda_graph_exec *executables)
{
	int err = 0;

	for (int i = 0; i < b->gpus.count && !err; i++) {
		(void)b->library->cuda.set_device(b->gpus.each[i].device);
		err = nccl_cuda_check(b->library, &b->gpus.each[i],
				      b->library->cuda.graph_launch(executables[i],
								    b->gpus.each[i].stream),
				      "cudaGraphLaunch (-G)");
	}
	return err ? err : nccl_gpus_synchronize(&b->gpus);
}

static int graphs_time(const struct nccl_run *run, int iterations, cuda_graph_exec *executables,
		       struct nccl_round *round, struct ha_samples *samples)
{
	struct nccl_bench *b = run->bench;
	int64_t cpu = ha_process_cpu_ns(), start;
	uint64_t took;
	int err = 0;

	for (int n = 0; n < b->options->graphs && !err; n++) {
		start = ha_monotonic_ns();
		err = graphs_launch(b, executables);
		took = (uint64_t)(ha_monotonic_ns() - start);
		round->elapsed_ns += took;
		round->iterations += (uint64_t)iterations;
		for (int i = 0; i < iterations && !err; i++)
			err = ha_samples_add(samples, took / (uint64_t)iterations);
		ha_watch_moved(b->watch);
	}
	round->cpu_ns = (uint64_t)(ha_process_cpu_ns() - cpu);
	return err;
}

int nccl_graph_run(const struct nccl_run *run, int iterations, struct nccl_round *round,
		   struct ha_samples *samples)
{
	struct nccl_bench *b = run->bench;
	cuda_graph_exec *executables = calloc((size_t)b->gpus.count, sizeof(*executables));
	int err = executables ? 0 : ha_fault(-ENOMEM, "out of memory"), left;

	if (!err)
		err = ha_rendezvous_barrier(b->rendezvous);
	if (err)
		goto out;
	ha_watch_enter(b->watch, "a CUDA graph of operations");
	err = graphs_make(run, iterations, executables);
	if (!err)
		err = graphs_time(run, iterations, executables, round, samples);
	for (int i = 0; i < b->gpus.count && !err; i++)
		err = nccl_cuda_check(b->library, &b->gpus.each[i],
				      b->library->cuda.graph_exec_destroy(executables[i]),
				      "cudaGraphExecDestroy (-G)");
	left = ha_watch_leave(b->watch);
	err = err ? err : left;
out:
	free(executables);
	return err;
}
