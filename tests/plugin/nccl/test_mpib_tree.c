/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mixed tree of MPIB's testing matrix: eight ranks, four to an island, a binary tree over them
 * that sums upwards and distributes downwards. Ranks 1, 2 and 3 have neighbours of both kinds at
 * the same time, and each of their connections goes its own way: SUP within the island, SOUT
 * between them. Each rank counts what its two NICs have sent.
 *
 * 0              islands {0 1 2 3} and {4 5 6 7}
 * 1       2
 * 3   4   5   6        1-4, 2-5, 2-6 and 3-7 lead out of the island
 * 7
 */
#include "tests/plugin/nccl/rig.h"
#include "tests/plugin/nccl/sent.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RANKS 8
#define WORDS (256 << 10) /* of a message of 1 MiB */
#define BYTES (WORDS * sizeof(uint32_t))
#ifdef __SANITIZE_THREAD__ /* ten times as slow */
#define ROUNDS 2
#else
#define ROUNDS 12
#endif
#define NEIGHBOURS 3
#define NOBODY (-1)

static struct shared {
	atomic_int open[RANKS];                                /* listeners */
	uint8_t handle[RANKS][RANKS][NCCL_NET_HANDLE_MAXSIZE]; /* [whose][for whom] */
	atomic_int left;                                       /* ranks that have counted */
} * shared;

/* A neighbour: a connection each way. */
struct edge {
	int peer;
	void *listen, *send, *recv, *send_mr, *recv_mr;
	uint32_t *out, *in;
};

static struct rig rig;

static int island_of(int rank)
{
	return rank / (RANKS / 2);
}

static int parent_of(int rank)
{
	return rank ? (rank - 1) / 2 : NOBODY;
}

static int find_neighbours(int rank, struct edge *e)
{
	int n = 0;

	if (rank)
		e[n++].peer = parent_of(rank);
	for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < RANKS; child++)
		e[n++].peer = child;
	return n;
}

static void *allocate_buffer(void)
{
	void *p = aligned_alloc(4096, BYTES);

	CHECK(p, "memory");
	return p;
}

static void open_edges(int rank, struct edge *e, int n)
{
	struct rig_deadline deadline = rig_deadline("the tree");

	for (int i = 0; i < n; i++)
		OK(rig.plugin.abi->listen(&rig.plugin, 0, shared->handle[rank][e[i].peer],
					  &e[i].listen));
	atomic_store(&shared->open[rank], 1);
	for (int left = 2 * n; left;) {
		for (int i = 0; i < n; i++) {
			if (!e[i].recv) {
				OK(rig.plugin.abi->accept(&rig.plugin, e[i].listen, &e[i].recv));
				left -= e[i].recv != NULL;
			}
			if (!e[i].send && atomic_load(&shared->open[e[i].peer])) {
				OK(rig.plugin.abi->connect(&rig.plugin, 0,
							   shared->handle[e[i].peer][rank],
							   &e[i].send));
				left -= e[i].send != NULL;
			}
		}
		rig_pause(&deadline);
	}
	for (int i = 0; i < n; i++) {
		e[i].out = allocate_buffer();
		e[i].in = allocate_buffer();
		e[i].send_mr = rig_reg(&rig, e[i].send, e[i].out, BYTES);
		e[i].recv_mr = rig_reg(&rig, e[i].recv, e[i].in, BYTES);
	}
}

static void close_edges(struct edge *e, int n)
{
	for (int i = 0; i < n; i++) {
		OK(rig.plugin.dereg(e[i].send, e[i].send_mr));
		OK(rig.plugin.dereg(e[i].recv, e[i].recv_mr));
		OK(rig.plugin.close_send(e[i].send));
		OK(rig.plugin.close_recv(e[i].recv));
		OK(rig.plugin.close_listen(e[i].listen));
		free(e[i].out);
		free(e[i].in);
	}
}

static uint32_t word_of(int rank, int round, unsigned i)
{
	return (uint32_t)(rank + 1) * 2654435761u ^ (uint32_t)round * 40503u ^ i * 2246822519u;
}

/* Everybody sends what it has; everybody has what it waits for. */
static void receive_from(struct edge *e, int from, int to)
{
	void *request[NEIGHBOURS];

	for (int i = from; i < to; i++)
		request[i] = rig_irecv(&rig, e[i].recv, e[i].in, BYTES, 1, e[i].recv_mr);
	for (int i = from; i < to; i++)
		rig_wait(&rig, request[i], NULL);
}

static void send_to(struct edge *e, int from, int to, const uint32_t *data)
{
	void *request[NEIGHBOURS];

	for (int i = from; i < to; i++) {
		memcpy(e[i].out, data, BYTES);
		request[i] = rig_isend(&rig, e[i].send, e[i].out, BYTES, 1, e[i].send_mr);
	}
	for (int i = from; i < to; i++)
		rig_wait(&rig, request[i], NULL);
}

/* An all-reduce: sums of words, upwards; the whole sum, downwards. */
static void sum_up(int rank, struct edge *e, int n, int round)
{
	static uint32_t sum[WORDS];
	int first_child = rank != 0;

	receive_from(e, first_child, n);
	for (unsigned i = 0; i < WORDS; i++) {
		sum[i] = word_of(rank, round, i);
		for (int k = first_child; k < n; k++)
			sum[i] += e[k].in[i];
	}
	if (rank) {
		send_to(e, 0, 1, sum);
		receive_from(e, 0, 1);
		memcpy(sum, e[0].in, BYTES);
	}
	send_to(e, first_child, n, sum);
	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t all = 0;

		for (int r = 0; r < RANKS; r++)
			all += word_of(r, round, i);
		CHECK(sum[i] == all, "rank %d, round %d: word %u is %#x, not %#x", rank, round, i,
		      sum[i], all);
	}
}

/* Six rails within the island, two between them. */
static void check_rails(int rank, const struct edge *e, int n)
{
	unsigned near = 0;

	for (int i = 0; i < n; i++)
		near += 2 * (island_of(e[i].peer) == island_of(rank));
	CHECK(rig_log_lines("; rail 5: soft1:1") == near, "%u connections with six rails, not %u",
	      rig_log_lines("; rail 5: soft1:1"), near);
	CHECK(rig_log_lines("; rail 1: soft0:1") == 2 * (unsigned)n &&
		      rig_log_lines("; rail 2: ") == near,
	      "rails");
}

static void check_bytes(int rank, const struct edge *e, int n)
{
	double sout = (double)rig_sent_by("soft0"), sup = (double)rig_sent_by("soft1"),
	       all = sout + sup, near = 0, part = sup / all, slack;

	for (int i = 0; i < n; i++)
		near += island_of(e[i].peer) == island_of(rank);
	slack = rig_sent_slack(all, (double)n * ROUNDS * (double)BYTES);
	printf("rank %d, %d neighbours, %.0f of its island: SUP %.4f of %.0f bytes\n", rank, n,
	       near, part, all);
	CHECK(part > near / n - slack && part < near / n + slack,
	      "rank %d: SUP sent %.4f of it, not %.4f", rank, part, near / n);
}

static void run_rank(int rank)
{
	struct rig_deadline deadline = rig_deadline("the others");
	struct edge e[NEIGHBOURS] = { 0 };
	int n = find_neighbours(rank, e);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("MPIB_OOB_IF", island_of(rank) ? "ha_i2" : "ha_i1", 1);
	rig_open(&rig, 1, NULL);
	open_edges(rank, e, n);
	check_rails(rank, e, n);
	for (int round = 0; round < ROUNDS; round++)
		sum_up(rank, e, n, round);
	check_bytes(rank, e, n);
	for (atomic_fetch_add(&shared->left, 1); atomic_load(&shared->left) < RANKS;)
		rig_pause(&deadline);
	close_edges(e, n);
	rig_close(&rig);
}

int main(void)
{
	pid_t child[RANKS];
	bool failed = false;

	if (!rig_islands()) {
		printf("skipped: no network namespaces or veth interfaces here\n");
		return 77;
	}
	setenv("MPIB_HCA_SOUT", "soft0", 1);
	setenv("MPIB_HCA_SUP", "soft1", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED, "mmap");
	for (int rank = 0; rank < RANKS; rank++) {
		child[rank] = fork();
		CHECK(child[rank] >= 0, "fork");
		if (child[rank])
			continue;
		run_rank(rank);
		fflush(stdout);
		_exit(0);
	}
	for (int rank = 0; rank < RANKS; rank++) {
		int status;

		if (waitpid(child[rank], &status, 0) != child[rank] || status) {
			fprintf(stderr, "rank %d: status %#x\n", rank, status);
			failed = true;
		}
	}
	return failed;
}
