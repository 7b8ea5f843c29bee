/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collnet table of each version over the rails alone (HA_NCCL_COLLNET=1): the calls in NCCL's
 * order, sums with the same bits in all ranks, and what is refused. All ranks are in this process;
 * connect waits for the others, so each calls it from its own thread.
 */
#include "tests/plugin/nccl/rig.h"

#include <pthread.h>

#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v9.h"
#include "tools/perf/collnet_table.h"

#define RANKS 4
#define WORDS 70000
#define DEPTH 64 /* more than are taken */

static struct rig rig;
static struct ha_collnet_table table;

struct rank {
	int rank, ranks;
	void **handles;
	uint8_t room[NCCL_NET_HANDLE_MAXSIZE + 64];
	void *listen, *comm, *send_mr, *recv_mr;
	ncclResult_t result;
	float *send, *recv;
};
static struct rank member[RANKS];

static void *connect_rank(void *arg)
{
	struct rank *m = arg;

	m->comm = (void *)1;
	m->result = ha_collnet_table_connect(&table, m->handles, m->ranks, m->rank, m->listen,
					     &m->comm);
	return NULL;
}

static void listen_rank(struct rank *m)
{
	memset(m->room, 0xa5, sizeof(m->room));
	OK(ha_collnet_table_listen(&table, 0, m->room + 32, &m->listen));
	CHECK(m->listen, "no listener");
	for (int i = 0; i < 32; i++)
		CHECK(m->room[i] == 0xa5 && m->room[32 + NCCL_NET_HANDLE_MAXSIZE + i] == 0xa5,
		      "written around the handle");
}

static void team_connect(int ranks)
{
	pthread_t thread[RANKS];
	void *handles[RANKS];

	for (int r = 0; r < ranks; r++) {
		member[r] = (struct rank) { .rank = r, .ranks = ranks, .handles = handles };
		listen_rank(&member[r]);
		handles[r] = member[r].room + 32;
	}
	for (int r = 0; r < ranks; r++)
		CHECK(!pthread_create(&thread[r], NULL, connect_rank, &member[r]), "thread");
	for (int r = 0; r < ranks; r++) {
		struct rank *m = &member[r];

		pthread_join(thread[r], NULL);
		OK(m->result);
		OK(ha_collnet_table_close_listen(&table, m->listen));
		m->send = calloc(WORDS * 2, sizeof(float));
		m->recv = m->send + WORDS;
		OK(ha_collnet_table_reg(&table, m->comm, m->send, WORDS * 2 * sizeof(float),
					NCCL_PTR_HOST, &m->send_mr));
		OK(ha_collnet_table_reg(&table, m->comm, m->send, WORDS * 2 * sizeof(float),
					NCCL_PTR_HOST, &m->recv_mr));
	}
}

static void team_close(int ranks)
{
	for (int r = 0; r < ranks; r++) {
		OK(ha_collnet_table_dereg(&table, member[r].comm, member[r].send_mr));
		OK(ha_collnet_table_dereg(&table, member[r].comm, member[r].recv_mr));
		OK(ha_collnet_table_close_coll(&table, member[r].comm));
		free(member[r].send);
	}
}

static ncclResult_t post_sum(struct rank *m, long words, bool in_place, void **request)
{
	return ha_collnet_table_iallreduce(&table, m->comm, m->send, in_place ? m->send : m->recv,
					   words, ncclFloat32, ncclSum, m->send_mr, m->recv_mr,
					   request);
}

static void exchange_sums(int ranks, long words, bool in_place)
{
	struct rig_deadline deadline = rig_deadline("a sum");
	void *request[RANKS] = { NULL };
	int left = ranks;

	for (int r = 0; r < ranks; r++)
		for (long i = 0; i < words; i++)
			member[r].send[i] = (float)((r + 1) * (i % 1000));
	while (left) {
		for (int r = 0; r < ranks; r++) {
			int done = 0, size = -1;

			if (!request[r]) {
				OK(post_sum(&member[r], words, in_place, &request[r]));
				continue;
			}
			if (request[r] == member)
				continue;
			OK(ha_collnet_table_test(&table, request[r], &done, &size));
			if (!done)
				continue;
			CHECK(size == words * 4, "size %d of %ld words", size, words);
			request[r] = member;
			left--;
		}
		rig_pause(&deadline);
	}
	for (int r = 0; r < ranks; r++)
		for (long i = 0; i < words; i++)
			CHECK((in_place ? member[r].send : member[r].recv)[i] ==
				      (float)(ranks * (ranks + 1) / 2 * (i % 1000)),
			      "%d ranks, rank %d, word %ld of %ld", ranks, r, i, words);
}

static void sums_of_all_sizes(void)
{
	static const long words[] = { 1, 0, 3, 1000, WORDS };

	for (int ranks = 1; ranks <= RANKS; ranks++) {
		team_connect(ranks);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			exchange_sums(ranks, words[i], false);
			exchange_sums(ranks, words[i], true);
		}
		team_close(ranks);
	}
}

/* As many as are taken, and then NULL; tested from the last to the first. */
static void as_many_as_are_taken(void)
{
	struct rig_deadline deadline = rig_deadline("many sums");
	void *request[2][DEPTH] = { { NULL } };
	int posted[2] = { 0, 0 }, left;

	team_connect(2);
	for (int r = 0; r < 2; r++) {
		for (; posted[r] < DEPTH; posted[r]++) {
			request[r][posted[r]] = (void *)1;
			OK(post_sum(&member[r], 10, false, &request[r][posted[r]]));
			if (!request[r][posted[r]])
				break;
		}
		/* NCCL has 8 */
		CHECK(posted[r] >= 8 && posted[r] < DEPTH, "%d in flight", posted[r]);
	}
	left = posted[0] + posted[1];
	while (left) {
		for (int r = 0; r < 2; r++) {
			for (int i = posted[r] - 1; i >= 0; i--) {
				int done = 0;

				if (!request[r][i])
					continue;
				OK(ha_collnet_table_test(&table, request[r][i], &done, NULL));
				if (done)
					request[r][i] = NULL;
				left -= done;
			}
		}
		rig_pause(&deadline);
	}
	team_close(2);
}

static void refused_connect(void **handles, int ranks, int rank, void *listen, const char *what)
{
	void *comm = (void *)1;

	CHECK(ha_collnet_table_connect(&table, handles, ranks, rank, listen, &comm) != ncclSuccess,
	      "connect took %s", what);
	CHECK(!comm, "a communicator of %s", what);
}

/* Each takes a listener of its own: NCCL forgets it when connect fails, and may close it all the
 * same. */
static void refused_connects(void)
{
	void *handles[40];

	for (int i = 0; i < 7; i++) {
		struct rank m = { 0 };
		uint8_t unknown[NCCL_NET_HANDLE_MAXSIZE] = { 0 };

		listen_rank(&m);
		for (int k = 0; k < 40; k++)
			handles[k] = m.room + 32;
		if (i == 0)
			refused_connect(handles, 0, 0, m.listen, "no ranks");
		if (i == 1)
			refused_connect(handles, 2, 2, m.listen, "a rank too many");
		if (i == 2)
			refused_connect(handles, 2, -1, m.listen, "rank -1");
		if (i == 3)
			refused_connect(handles, 33, 0, m.listen, "33 ranks");
		handles[1] = i == 4 ? NULL : unknown;
		if (i == 4)
			refused_connect(handles, 2, 0, m.listen, "no handle");
		if (i == 5)
			refused_connect(handles, 2, 0, m.listen, "a foreign handle");
		handles[0] = unknown;
		if (i == 6)
			refused_connect(handles, 1, 0, NULL, "no listener");
		OK(ha_collnet_table_close_listen(&table, m.listen));
	}
}

static void refused_sum(struct rank *m, float *send, float *recv, long words, ncclDataType_t type,
			ncclRedOp_t op, void *mr, const char *what)
{
	void *request = (void *)1;

	CHECK(ha_collnet_table_iallreduce(&table, m->comm, send, recv, words, type, op, mr,
					  m->recv_mr, &request) != ncclSuccess,
	      "took %s", what);
	CHECK(!request, "a request for %s", what);
}

static void refused_sums(void)
{
	struct rank *m = &member[0];
	void *mr = (void *)1;

	team_connect(2);
	refused_sum(m, m->send, m->recv, 4, ncclFloat64, ncclSum, m->send_mr, "doubles");
	refused_sum(m, m->send, m->recv, 4, ncclInt32, ncclSum, m->send_mr, "integers");
	refused_sum(m, m->send, m->recv, 4, ncclFloat32, ncclMax, m->send_mr, "a maximum");
	refused_sum(m, m->send, m->recv, 4, ncclFloat32, ncclSum, NULL, "what is not registered");
	refused_sum(m, m->send, m->recv, WORDS + 1, ncclFloat32, ncclSum, m->send_mr,
		    "more than is registered");
	refused_sum(m, m->send - 1, m->recv, 1, ncclFloat32, ncclSum, m->send_mr,
		    "what lies before it");
	refused_sum(m, m->send, m->recv, -1, ncclFloat32, ncclSum, m->send_mr, "a negative count");
	CHECK(ha_collnet_table_reg(&table, m->comm, m->send, 64, NCCL_PTR_CUDA, &mr) !=
			      ncclSuccess &&
		      !mr,
	      "CUDA memory");
	if (rig.version < 8) {
		mr = (void *)1;
		CHECK(ha_collnet_table_reg(&table, m->comm, m->send, (size_t)-1, NCCL_PTR_HOST,
					   &mr) != ncclSuccess &&
			      !mr,
		      "a negative size");
	}
	OK(ha_collnet_table_dereg(&table, m->comm, NULL));
	mr = (void *)1;
	OK(ha_collnet_table_iflush(&table, m->comm, m->recv, 64, m->recv_mr, &mr));
	CHECK(!mr, "a flush of host memory has nothing to do");
	exchange_sums(2, 100, false); /* nothing of it did any harm */
	team_close(2);
}

/* Operations in flight, listeners nobody connects to. */
static void closed_in_the_middle(void)
{
	void *request = NULL;

	team_connect(3);
	OK(post_sum(&member[1], WORDS, false, &request));
	CHECK(request, "not taken");
	for (int r = 0; r < 3; r++) {
		OK(ha_collnet_table_close_coll(&table, member[r].comm));
		free(member[r].send);
		free(member[r].send_mr);
		free(member[r].recv_mr);
	}
	listen_rank(&member[0]);
	OK(ha_collnet_table_close_listen(&table, member[0].listen));
}

static void facts_of_the_table(void)
{
	size_t bytes = 0;
	int ptr_support = 0, n, net;

	OK(ha_collnet_table_devices(&table, &n));
	OK(rig.plugin.count(&net));
	CHECK(n == net && n > 0, "%d devices, %d of net", n, net);
	CHECK(!strcmp(table.name, rig.plugin.name), "name %s", table.name);
	for (int dev = 0; dev < n; dev++) {
		OK(ha_collnet_table_max_bytes(&table, dev, &bytes, &ptr_support));
		CHECK(ptr_support == NCCL_PTR_HOST, "ptrSupport %d", ptr_support);
		CHECK(bytes && bytes <= (size_t)NCCL_MAX_NET_SIZE_BYTES, "maxCollBytes %zu", bytes);
	}
	CHECK(ha_collnet_table_max_bytes(&table, n, &bytes, &ptr_support) != ncclSuccess,
	      "device %d of %d", n, n);
	for (int type = ncclInt8; type <= ncclFloat8e5m2; type++) {
		for (int op = ncclSum; op < ncclNumOps; op++) {
			int supported = -1;

			OK(ha_collnet_table_support(&table, (ncclDataType_t)type, (ncclRedOp_t)op,
						    &supported));
			CHECK(supported == (type == ncclFloat32 && op == ncclSum),
			      "type %d, op %d: %d", type, op, supported);
		}
	}
	if (rig.version >= 8) { /* both or none; NCCL asks for NULL */
		CHECK(!((const ncclCollNet_v12_t *)table.table)->iallgather, "iallgather");
		CHECK(!((const ncclCollNet_v12_t *)table.table)->ireducescatter, "ireducescatter");
	}
}

static void *do_nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	struct rank extra = { 0 };
	pthread_t first;
	int threads;

	/* A sanitizer may begin one of its own with the first. */
	CHECK(!pthread_create(&first, NULL, do_nothing, NULL) && !pthread_join(first, NULL),
	      "no thread");
	threads = rig_count_threads(1);
	setenv("HA_NCCL_COLLNET", "1", 1);
	rig_open(&rig, argc, argv);
	CHECK(!ha_collnet_table_open(&table, &rig.plugin, rig.version, rig_logger), "%s",
	      rig_last_log());
	facts_of_the_table();
	sums_of_all_sizes();
	as_many_as_are_taken();
	refused_connects();
	refused_sums();
	closed_in_the_middle();
	/* The last ones NCCL never closes: finalize, or dlclose, does. */
	team_connect(3);
	listen_rank(&extra);
	if (rig.plugin.abi->finalize)
		OK(rig.plugin.abi->finalize(&rig.plugin)); /* NCCL's order: net first */
	rig.plugin.initialized = false;
	CHECK(!ha_collnet_table_close(&table), "finalize");
	if (rig.version >= 11)
		CHECK(rig_count_threads(threads) == threads, "threads are left");
	rig_close(&rig);
	return 0;
}
