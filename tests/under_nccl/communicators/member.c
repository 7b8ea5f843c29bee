/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "tests/under_nccl/communicators/member.h"

#define UINT32 3 /* ncclUint32 */

void member_check(const struct rank *me, int result, const char *call)
{
	const struct nccl_api *nccl = &me->library.nccl;

	if (!result)
		return;
	fprintf(stderr, "rank %d: %s: %s (%d); %s\n", me->rank, call, nccl->error_string(result),
		result, nccl->last_error(NULL));
	exit(1);
}

void member_await(struct rank *me, nccl_comm comm, int result, const char *call)
{
	while (result == NCCL_IN_PROGRESS) {
		rank_note(me, "%s goes on", call);
		ranks_sleep();
		member_check(me, me->library.nccl.comm_async_error(comm, &result),
			     "ncclCommGetAsyncError");
	}
	member_check(me, result, call);
}

/* ---- elements ---- */

/* What a process contributes to a round: element i is start + i * stride, and both are drawn. */
struct contribution {
	uint32_t start, stride;
};

static struct contribution draw_contribution(const struct member *m, int process, unsigned round)
{
	uint32_t seed = ha_mix32(m->number * 0x9e3779b9u + round * 8u + (uint32_t)process);

	return (struct contribution) { .start = seed, .stride = ha_mix32(seed + 1) | 1 };
}

static void fill_elements(struct member *m, unsigned round)
{
	struct contribution mine = draw_contribution(m, m->me->rank, round);

	for (size_t i = 0; i < m->elements; i++)
		m->host[i] = mine.start + (uint32_t)i * mine.stride;
}

/* Sums of unsigned integers are exact, so the contributions can be added before the elements
 * are. */
static void compare_elements(struct member *m, unsigned round)
{
	struct contribution sum = { 0 }, one;

	for (int p = 0; p < m->me->count; p++) {
		if (!(m->processes >> p & 1))
			continue;
		one = draw_contribution(m, p, round);
		sum.start += one.start;
		sum.stride += one.stride;
	}
	for (size_t i = 0; i < m->elements; i++) {
		uint32_t wanted = sum.start + (uint32_t)i * sum.stride;

		if (m->host[i] == wanted)
			continue;
		fprintf(stderr,
			"rank %d, communicator %u, round %u: element %zu is %u, expected %u\n",
			m->me->rank, m->number, round, i, m->host[i], wanted);
		exit(1);
	}
}

/* ---- making ---- */

struct nccl_config member_config(void)
{
	return (struct nccl_config) {
		.size = sizeof(struct nccl_config),
		.magic = NCCL_CONFIG_MAGIC,
		.version = NCCL_CONFIG_VERSION,
		.blocking = NCCL_UNDEFINED,
		.cga_cluster_size = NCCL_UNDEFINED,
		.min_ctas = NCCL_UNDEFINED,
		.max_ctas = NCCL_UNDEFINED,
		/* Socket: the control */
		.net_name = getenv("TEST_NET") ? getenv("TEST_NET") : "HA",
		.split_share = NCCL_UNDEFINED,
	};
}

static void allocate_buffers(struct member *m)
{
	const struct cuda_api *cuda = &m->me->library.cuda;

	CHECK_INT(cuda->stream_create(&m->stream, CUDA_STREAM_NON_BLOCKING), 0);
	m->host = malloc(m->elements * sizeof(*m->host));
	CHECK(m->host);
	for (int s = 0; s < MEMBER_SLOTS; s++) {
		CHECK_INT(cuda->malloc((void **)&m->in[s], m->elements * sizeof(*m->host)), 0);
		CHECK_INT(cuda->malloc((void **)&m->out[s], m->elements * sizeof(*m->host)), 0);
		CHECK_INT(cuda->event_create(&m->done[s]), 0);
	}
}

static int count_bits(uint32_t bits)
{
	return __builtin_popcount(bits);
}

int member_try_open(struct member *m, struct rank *me, size_t elements, struct nccl_config *config)
{
	struct nccl_unique_id id = rank_next_id(me);
	uint32_t number = me->ids;

	*m = (struct member) {
		.me = me,
		.rank = count_bits(me->alive & ((1u << me->rank) - 1)),
		.count = count_bits(me->alive),
		.processes = me->alive,
		.number = number,
		.elements = elements,
	};
	allocate_buffers(m);
	rank_note(me, "ncclCommInitRankConfig of communicator %u", number);
	return me->library.nccl.comm_init(&m->comm, m->count, id, m->rank, config);
}

void member_open(struct member *m, struct rank *me, size_t elements)
{
	struct nccl_config config = member_config();

	member_check(me, member_try_open(m, me, elements, &config), "ncclCommInitRankConfig");
}

void member_adopt(struct member *m, struct rank *me, nccl_comm comm, uint32_t processes,
		  uint32_t number, size_t elements)
{
	*m = (struct member) { .me = me,
			       .comm = comm,
			       .processes = processes,
			       .number = number,
			       .elements = elements };
	member_check(me, me->calls.count(comm, &m->count), "ncclCommCount");
	member_check(me, me->calls.user_rank(comm, &m->rank), "ncclCommUserRank");
	CHECK_INT(m->count, count_bits(processes));
	allocate_buffers(m);
}

/* ---- rounds ---- */

void member_start(struct member *m)
{
	const struct ha_library *l = &m->me->library;
	unsigned slot = m->started % MEMBER_SLOTS;
	size_t bytes = m->elements * sizeof(*m->host);
	int result;

	CHECK(m->started - m->finished < MEMBER_SLOTS);
	fill_elements(m, m->started);
	CHECK_INT(l->cuda.memcpy(m->in[slot], m->host, bytes, CUDA_TO_DEVICE), 0);
	rank_note(m->me, "ncclAllReduce, round %u of communicator %u", m->started, m->number);
	result = l->nccl.all_reduce(m->in[slot], m->out[slot], m->elements, UINT32, NCCL_OP_SUM,
				    m->comm, m->stream);
	member_await(m->me, m->comm, result, "ncclAllReduce");
	CHECK_INT(l->cuda.event_record(m->done[slot], m->stream), 0);
	m->started++;
}

int member_wait(struct member *m)
{
	const struct ha_library *l = &m->me->library;
	unsigned slot = m->finished % MEMBER_SLOTS;
	int error = 0;

	CHECK(m->finished < m->started);
	rank_note(m->me, "waits for round %u of communicator %u", m->finished, m->number);
	while (l->cuda.event_query(m->done[slot])) {
		member_check(m->me, l->nccl.comm_async_error(m->comm, &error),
			     "ncclCommGetAsyncError");
		if (error && error != NCCL_IN_PROGRESS)
			return error;
		ranks_sleep();
	}
	return 0;
}

void member_finish(struct member *m)
{
	unsigned slot = m->finished % MEMBER_SLOTS;

	member_check(m->me, member_wait(m), "ncclCommGetAsyncError's answer");
	CHECK_INT(m->me->library.cuda.memcpy(m->host, m->out[slot], m->elements * sizeof(*m->host),
					     CUDA_TO_HOST),
		  0);
	compare_elements(m, m->finished);
	m->finished++;
	atomic_fetch_add(&m->me->shared->rounds[m->me->rank], 1);
}

void member_rounds(struct member *m, unsigned rounds)
{
	unsigned until = m->finished + rounds;

	while (m->finished < until) {
		while (m->started < until && m->started - m->finished < MEMBER_SLOTS)
			member_start(m);
		member_finish(m);
	}
}

/* ---- the end ---- */

void member_release(struct member *m)
{
	const struct cuda_api *cuda = &m->me->library.cuda;

	rank_note(m->me, "releases the memory of communicator %u", m->number);
	for (int s = 0; s < MEMBER_SLOTS; s++) {
		CHECK_INT(cuda->event_destroy(m->done[s]), 0);
		CHECK_INT(cuda->free(m->in[s]), 0);
		CHECK_INT(cuda->free(m->out[s]), 0);
	}
	CHECK_INT(cuda->stream_destroy(m->stream), 0);
	free(m->host);
	*m = (struct member) { 0 };
}

void member_close(struct member *m)
{
	CHECK_INT(m->started, m->finished);
	rank_note(m->me, "ncclCommDestroy of communicator %u", m->number);
	member_check(m->me, m->me->library.nccl.comm_destroy(m->comm), "ncclCommDestroy");
	member_release(m);
}

void member_abort(struct member *m)
{
	rank_note(m->me, "ncclCommAbort of communicator %u", m->number);
	member_check(m->me, m->me->library.nccl.comm_abort(m->comm), "ncclCommAbort");
	rank_note(m->me, "cudaStreamSynchronize after ncclCommAbort of communicator %u", m->number);
	(void)m->me->library.cuda.stream_synchronize(m->stream);
	member_release(m);
}
