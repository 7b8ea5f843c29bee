/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "tools/nccl/operation.h"

static int call_all_reduce(const struct nccl_call *c)
{
	return c->nccl->all_reduce(c->send, c->recv, c->extent.block, c->nccl_type, c->nccl_op,
				   c->comm, c->stream);
}

static int call_all_gather(const struct nccl_call *c)
{
	return c->nccl->all_gather(c->send, c->recv, c->extent.block, c->nccl_type, c->comm,
				   c->stream);
}

static int call_reduce_scatter(const struct nccl_call *c)
{
	return c->nccl->reduce_scatter(c->send, c->recv, c->extent.block, c->nccl_type, c->nccl_op,
				       c->comm, c->stream);
}

static int call_broadcast(const struct nccl_call *c)
{
	return c->nccl->broadcast(c->send, c->recv, c->extent.block, c->nccl_type, c->extent.root,
				  c->comm, c->stream);
}

static int call_reduce(const struct nccl_call *c)
{
	return c->nccl->reduce(c->send, c->recv, c->extent.block, c->nccl_type, c->nccl_op,
			       c->extent.root, c->comm, c->stream);
}

/* ---- of sends and receives, in a group of their own ---- */

static int send_block(const struct nccl_call *c, int index, int peer)
{
	size_t bytes = c->extent.block * c->type->size;

	return c->nccl->send(c->send + (size_t)index * bytes, c->extent.block, c->nccl_type, peer,
			     c->comm, c->stream);
}

static int recv_block(const struct nccl_call *c, int index, int peer)
{
	size_t bytes = c->extent.block * c->type->size;

	return c->nccl->recv(c->recv + (size_t)index * bytes, c->extent.block, c->nccl_type, peer,
			     c->comm, c->stream);
}

/* Runs the calls of one operation as one group. */
static int call_grouped(const struct nccl_call *c, int (*calls)(const struct nccl_call *c))
{
	int result = c->nccl->group_start(), end;

	if (result)
		return result;
	result = calls(c);
	end = c->nccl->group_end();
	return result ? result : end;
}

static int alltoall_calls(const struct nccl_call *c)
{
	int result = 0;

	for (int peer = 0; peer < c->extent.ranks && !result; peer++) {
		result = send_block(c, peer, peer);
		if (!result)
			result = recv_block(c, peer, peer);
	}
	return result;
}

static int call_alltoall(const struct nccl_call *c)
{
	return call_grouped(c, alltoall_calls);
}

static int sendrecv_calls(const struct nccl_call *c)
{
	int result = send_block(c, 0, (c->extent.rank + 1) % c->extent.ranks);

	return result ? result
		      : recv_block(c, 0, (c->extent.rank + c->extent.ranks - 1) % c->extent.ranks);
}

static int call_sendrecv(const struct nccl_call *c)
{
	return call_grouped(c, sendrecv_calls);
}

static int gather_calls(const struct nccl_call *c)
{
	int result = send_block(c, 0, c->extent.root);

	for (int peer = 0; c->extent.rank == c->extent.root && peer < c->extent.ranks && !result;
	     peer++)
		result = recv_block(c, peer, peer);
	return result;
}

static int call_gather(const struct nccl_call *c)
{
	return call_grouped(c, gather_calls);
}

static int scatter_calls(const struct nccl_call *c)
{
	int result = recv_block(c, 0, c->extent.root);

	for (int peer = 0; c->extent.rank == c->extent.root && peer < c->extent.ranks && !result;
	     peer++)
		result = send_block(c, peer, peer);
	return result;
}

static int call_scatter(const struct nccl_call *c)
{
	return call_grouped(c, scatter_calls);
}

/* ---- the table ---- */

const struct nccl_operation nccl_operations[] = {
	{ "all_reduce", "every rank gets the reduction of all", &ha_layout_allreduce,
	  "ncclAllReduce", call_all_reduce },
	{ "all_gather", "every rank gets all ranks' data", &ha_layout_allgather, "ncclAllGather",
	  call_all_gather },
	{ "reduce_scatter", "every rank gets its part of the reduction", &ha_layout_reducescatter,
	  "ncclReduceScatter", call_reduce_scatter },
	{ "broadcast", "every rank gets the root's data", &ha_layout_broadcast, "ncclBroadcast",
	  call_broadcast },
	{ "reduce", "the root gets the reduction", &ha_layout_reduce, "ncclReduce", call_reduce },
	{ "alltoall", "every rank sends a part to every rank", &ha_layout_alltoall,
	  "ncclSend and ncclRecv", call_alltoall },
	{ "sendrecv", "every rank sends to the next and receives from the previous one",
	  &ha_layout_sendrecv, "ncclSend and ncclRecv", call_sendrecv },
	{ "gather", "the root gets all ranks' data", &ha_layout_gather, "ncclSend and ncclRecv",
	  call_gather },
	{ "scatter", "every rank gets a part of the root's data", &ha_layout_scatter,
	  "ncclSend and ncclRecv", call_scatter },
};

const int nccl_operations_count = (int)(sizeof(nccl_operations) / sizeof(nccl_operations[0]));

/* The name without underscores and without "perf" at its end. */
static void name_reduce(const char *name, char reduced[32])
{
	size_t n = 0;

	for (; *name && n < 31; name++)
		if (*name != '_')
			reduced[n++] = *name;
	reduced[n] = 0;
	if (n > 4 && !strcmp(reduced + n - 4, "perf"))
		reduced[n - 4] = 0;
}

const struct nccl_operation *nccl_operation_find(const char *name)
{
	char wanted[32], known[32];

	name_reduce(name, wanted);
	for (int i = 0; i < nccl_operations_count; i++) {
		name_reduce(nccl_operations[i].name, known);
		if (!strcmp(wanted, known))
			return &nccl_operations[i];
	}
	return NULL;
}

int nccl_type_of(const struct ha_datatype *type)
{
	/* the table is in NCCL's order, tests/tools/test_nccl_parts.c holds it to that */
	return (int)(type - ha_datatypes);
}
