/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/job/fault.h"
#include "tools/perf/bench.h"
#include "tools/perf/dataset.h"
#include "tools/perf/stream.h"

#define SETS 7
#define SETS_LARGE 3 /* where one set is larger than LARGE */
#define LARGE (16u << 20)

static size_t send_bytes(const struct ha_job *job)
{
	const struct ha_shape *shape = &job->shape;

	return (size_t)job->operation->layout->send_blocks(shape->ranks) * shape->block *
	       shape->type->size;
}

static size_t recv_bytes(const struct ha_job *job)
{
	const struct ha_shape *shape = &job->shape;

	return (size_t)job->operation->layout->recv_blocks(shape->ranks) * shape->block *
	       shape->type->size;
}

struct ha_payload ha_dataset_payload(const struct ha_bench *bench, const struct ha_job *job,
				     uint64_t seed)
{
	return (struct ha_payload) {
		.seed = seed,
		.type = job->shape.type,
		.reduced = job->operation->layout->reduces,
		.redop = job->shape.redop,
		.ranks = job->shape.ranks,
		.file = bench->input.data,
		.file_count = bench->input.bytes / job->shape.type->size,
	};
}

void ha_dataset_fill(const struct ha_job *job, const struct ha_payload *payload)
{
	const struct ha_shape *shape = &job->shape;
	size_t send_blocks = (size_t)job->operation->layout->send_blocks(shape->ranks);

	memset(shape->recv, HA_POISON, recv_bytes(job));
	ha_payload_fill(payload, shape->rank, 0, send_blocks * shape->block,
			(char *)(uintptr_t)shape->send);
}

uint64_t ha_dataset_verify(const struct ha_job *job, const struct ha_payload *payload)
{
	const struct ha_shape *shape = &job->shape;
	struct ha_extent extent = ha_shape_extent(shape);
	struct ha_segment s;
	uint64_t wrong = 0;

	for (int k = 0; job->operation->layout->segment(&extent, k, &s); k++) {
		const char *actual = shape->recv + s.at * shape->type->size;

		if (s.rank < 0)
			wrong += ha_payload_compare_reduced(payload, s.from, s.count, actual);
		else
			wrong += ha_payload_compare(payload, s.rank, s.from, s.count, actual);
	}
	return wrong;
}

int ha_datasets_open(struct ha_datasets *sets, const struct ha_job *job)
{
	*sets = (struct ha_datasets) { .send_bytes = send_bytes(job),
				       .recv_bytes = recv_bytes(job) };
	sets->count = sets->send_bytes + sets->recv_bytes > LARGE ? SETS_LARGE : SETS;
	sets->memory_bytes = (size_t)sets->count * (sets->send_bytes + sets->recv_bytes) + 1;
	sets->memory = mmap(NULL, sets->memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sets->memory != MAP_FAILED)
		return 0;
	sets->memory = NULL;
	return ha_fault(-ENOMEM, "no memory for %d sets of data in each rank, %zu bytes",
			sets->count, sets->memory_bytes);
}

void ha_datasets_close(struct ha_datasets *sets)
{
	if (sets->memory)
		munmap(sets->memory, sets->memory_bytes);
	*sets = (struct ha_datasets) { 0 };
}

char *ha_datasets_send(const struct ha_datasets *sets, int k)
{
	return sets->memory + (size_t)k * sets->send_bytes;
}

char *ha_datasets_result(const struct ha_datasets *sets, int k)
{
	return sets->memory + (size_t)sets->count * sets->send_bytes + (size_t)k * sets->recv_bytes;
}
