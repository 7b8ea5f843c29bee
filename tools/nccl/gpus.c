/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/fault.h"
#include "tools/job/payload.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/check.h"
#include "tools/nccl/environment.h"
#include "tools/nccl/gpus.h"
#include "tools/nccl/library.h"
#include "tools/nccl/operation.h"
#include "tools/nccl/options.h"
#include "tools/nccl/watch.h"

/* ---- communicators ---- */

static int gpu_open(const struct nccl_gpus *g, struct nccl_gpu *gpu)
{
	const struct cuda_api *cuda = &g->library->cuda;
	int err = nccl_cuda_check(g->library, gpu, cuda->set_device(gpu->device), "cudaSetDevice");

	if (!err)
		err = nccl_cuda_check(g->library, gpu,
				      cuda->stream_create(&gpu->stream, CUDA_STREAM_NON_BLOCKING),
				      "cudaStreamCreateWithFlags");
	if (!err)
		err = nccl_cuda_check(g->library, gpu,
				      cuda->pci_bus_id(gpu->bus, sizeof(gpu->bus), gpu->device),
				      "cudaDeviceGetPCIBusId");
	return err;
}

static int devices_choose(struct nccl_gpus *g, const struct ha_place *place)
{
	int first = place->local_rank * g->count, processes, before, have = 0, err;

	if (g->library->soft) {
		nccl_environment_share(g->options, place, &processes, &before);
		first = before * g->count;
	}
	err = g->library->cuda.get_device_count(&have);
	if (err || have < first + g->count)
		return ha_fault(-ENODEV,
				"process %d needs GPUs %d to %d and the CUDA runtime shows %d "
				"here: fewer ranks on this host, "
				"smaller -g, or CUDA_VISIBLE_DEVICES",
				place->rank, first, first + g->count - 1, have);
	for (int i = 0; i < g->count && !err; i++) {
		g->each[i].device = first + i;
		g->each[i].rank = place->rank * g->count + i;
		err = gpu_open(g, &g->each[i]);
	}
	return err;
}

/* Rank 0's, in all ranks. */
static int unique_id(struct nccl_gpus *g, const struct ha_place *place,
		     struct ha_rendezvous *rendezvous, struct nccl_unique_id *id)
{
	struct nccl_unique_id *all = calloc((size_t)place->ranks, sizeof(*all));
	int err = all ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err && !place->rank)
		err = nccl_check(g->library, &g->each[0], g->library->nccl.get_unique_id(id),
				 "ncclGetUniqueId");
	if (!err)
		err = ha_rendezvous_allgather(rendezvous, id, sizeof(*id), all);
	if (!err)
		*id = all[0];
	free(all);
	return err;
}

static int communicators_make(struct nccl_gpus *g, int side, const struct nccl_net *net,
			      const struct nccl_unique_id *id)
{
	const struct nccl_api *nccl = &g->library->nccl;
	int result = nccl->group_start(), end;

	for (int i = 0; i < g->count && !result; i++) {
		struct nccl_config config = {
			.size = sizeof(config),
			.magic = NCCL_CONFIG_MAGIC,
			.version = NCCL_CONFIG_VERSION,
			.blocking = NCCL_UNDEFINED,
			.cga_cluster_size = NCCL_UNDEFINED,
			.min_ctas = NCCL_UNDEFINED,
			.max_ctas = NCCL_UNDEFINED,
			.net_name = net ? net->nccl_name : NULL,
			.split_share = NCCL_UNDEFINED,
		};

		(void)g->library->cuda.set_device(g->each[i].device);
		result = nccl->comm_init(&g->each[i].comms[side], g->ranks, *id, g->each[i].rank,
					 &config);
	}
	end = nccl->group_end();
	return nccl_check(g->library, &g->each[0], result ? result : end, "ncclCommInitRankConfig");
}

int nccl_gpus_open(struct nccl_gpus *g, const struct nccl_options *options,
		   const struct ha_library *library, const struct ha_place *place,
		   struct ha_rendezvous *rendezvous, struct ha_watch *watch)
{
	const struct nccl_net *nets[HA_SIDES] = { options->net, options->versus };
	struct nccl_unique_id id = { { 0 } };
	int err = 0, left;

	*g = (struct nccl_gpus) {
		.library = library,
		.options = options,
		.watch = watch,
		.count = options->gpus,
		.ranks = place->ranks * options->gpus,
		.sides = options->versus ? 2 : 1,
		.mulsum_type = -1,
	};
	g->each = calloc((size_t)g->count, sizeof(*g->each));
	if (!g->each)
		return ha_fault(-ENOMEM, "out of memory");
	err = devices_choose(g, place);
	for (int s = 0; s < g->sides && !err; s++) {
		err = unique_id(g, place, rendezvous, &id);
		if (err)
			break;
		ha_watch_enter(watch, "ncclCommInitRankConfig");
		err = communicators_make(g, s, nets[s], &id);
		left = ha_watch_leave(watch);
		err = err ? err : left;
	}
	return err;
}

int nccl_gpus_allocate(struct nccl_gpus *g, size_t bytes)
{
	int err = 0;

	for (int k = 0; k < 2 && !err; k++)
		err = nccl_buffers_open(g, bytes, &g->buffers[k]);
	return err;
}

/* ---- operations ---- */

/* The rank's factor as one element. */
static void factor_store(const struct ha_datatype *type, int rank, char element[8])
{
	int factor = ha_payload_factor(rank);
	uint16_t small;
	double wide = factor;
	float single = (float)factor;

	memset(element, 0, 8);
	if (type->kind != HA_FLOATING)
		element[0] = (char)factor; /* little-endian */
	else if (type->size == 8)
		memcpy(element, &wide, 8);
	else if (type->size == 4)
		memcpy(element, &single, 4);
	else {
		small = type->precision == 11 ? ha_half_encode(single) : ha_bfloat16_encode(single);
		memcpy(element, &small, 2);
	}
}

static int mulsum_drop(struct nccl_gpus *g)
{
	int err = 0;

	for (int i = 0; i < g->count && g->mulsum_type >= 0 && !err; i++)
		for (int s = 0; s < g->sides && !err; s++)
			err = nccl_check(g->library, &g->each[i],
					 g->library->nccl.destroy_op(g->each[i].mulsum[s],
								     g->each[i].comms[s]),
					 "ncclRedOpDestroy");
	g->mulsum_type = -1;
	return err;
}

int nccl_gpus_mulsum(struct nccl_gpus *g, const struct ha_datatype *type)
{
	int number = nccl_type_of(type), err = 0;
	char element[8];

	if (number == g->mulsum_type)
		return 0;
	err = mulsum_drop(g);
	for (int i = 0; i < g->count && !err; i++) {
		struct nccl_gpu *gpu = &g->each[i];

		factor_store(type, gpu->rank, element);
		for (int s = 0; s < g->sides && !err; s++)
			err = nccl_check(g->library, gpu,
					 g->library->nccl.create_mulsum(&gpu->mulsum[s], element,
									number, NCCL_SCALAR_ON_HOST,
									gpu->comms[s]),
					 "ncclRedOpCreatePreMulSum");
	}
	g->mulsum_type = err ? -1 : number;
	return err;
}

int nccl_gpus_synchronize(const struct nccl_gpus *g)
{
	int err = 0;

	for (int i = 0; i < g->count && !err; i++) {
		(void)g->library->cuda.set_device(g->each[i].device);
		err = nccl_cuda_check(g->library, &g->each[i],
				      g->library->cuda.stream_synchronize(g->each[i].stream),
				      "cudaStreamSynchronize");
	}
	return err;
}

/* ---- the end ---- */

static int gpu_close(struct nccl_gpus *g, struct nccl_gpu *gpu)
{
	int err = 0;

	(void)g->library->cuda.set_device(gpu->device);
	for (int s = 0; s < g->sides && !err; s++)
		err = nccl_check(g->library, gpu, g->library->nccl.comm_destroy(gpu->comms[s]),
				 "ncclCommDestroy");
	if (!err)
		err = nccl_cuda_check(g->library, gpu, g->library->cuda.stream_destroy(gpu->stream),
				      "cudaStreamDestroy");
	return err;
}

int nccl_gpus_close(struct nccl_gpus *g)
{
	int err, left;

	ha_watch_gpus(g->watch, NULL); /* it must not ask a communicator that is being destroyed */
	ha_watch_enter(g->watch, "the end of the communicators");
	err = mulsum_drop(g);
	for (int k = 0; k < 2 && !err; k++)
		err = nccl_buffers_close(g, &g->buffers[k]);
	for (int i = 0; i < g->count && !err; i++)
		err = gpu_close(g, &g->each[i]);
	left = ha_watch_leave(g->watch);
	err = err ? err : left;
	free(g->each);
	g->each = NULL;
	return err;
}
