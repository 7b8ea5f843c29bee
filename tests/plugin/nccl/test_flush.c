/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iflush behind a receive into memory registered as a GPU's: a NULL request (nothing to do) or one
 * that completes; nothing to flush for receives of no bytes; *request is written in any case. NCCL
 * asks with sizes NULL in test(). With NCCL_GDR_FLUSH_DISABLE=1 ("disabled") there is nothing to
 * do, ever: NCCL asks all the same where it finds that a GPU needs it, and an error ended the job.
 */
#include "tests/plugin/nccl/rig.h"

#define STALE ((void *)0xdeadbeef)

/* Eight buffers of GPU memory, or of host memory where a GPU's is refused. */
struct buffers {
	uint8_t bytes[8][4096];
	void *mr[8], *data[8];
	int sizes[8];
};

static void buffers_register(struct rig *rig, void *comm, struct buffers *to)
{
	for (int i = 0; i < 8; i++) {
		to->data[i] = to->bytes[i];
		to->sizes[i] = sizeof(to->bytes[i]);
		if (rig_reg_type(rig, comm, to->data[i], sizeof(to->bytes[i]), NCCL_PTR_CUDA,
				 &to->mr[i]) == ncclSuccess)
			continue;
		/* A plugin may refuse what its device cannot reach; then ptrSupport must say so. */
		printf("GPU memory is refused on this machine; flushing host memory instead\n");
		OK(rig_reg_type(rig, comm, to->data[i], sizeof(to->bytes[i]), NCCL_PTR_HOST,
				&to->mr[i]));
	}
}

/* A flush of n buffers from the first one on; NULL: it is done. */
static void *post_flush(struct rig *rig, void *comm, int n, struct buffers *to, int first,
			int *sizes)
{
	void *request = STALE;

	OK(rig->plugin.iflush(comm, n, &to->data[first], sizes, &to->mr[first], &request));
	CHECK(request != STALE, "iflush did not write *request");
	return request;
}

static void flush_each(struct rig *rig, struct rig_pair *pair, struct buffers *to)
{
	static uint8_t from[4096];
	void *from_mr = rig_reg(rig, pair->send, from, sizeof(from));

	for (int round = 0; round < 200; round++) {
		int i = round % 8;
		void *recv = rig_irecv(rig, pair->recv, to->data[i], sizeof(from), 0, to->mr[i]);
		void *flush;

		rig_fill(from, sizeof(from), (uint32_t)round);
		rig_wait(rig, rig_isend(rig, pair->send, from, sizeof(from), 0, from_mr), NULL);
		rig_wait(rig, recv, NULL);
		flush = post_flush(rig, pair->recv, 1, to, i, &to->sizes[i]);
		if (flush)
			rig_wait(rig, flush, NULL);
		CHECK(rig_differ(to->data[i], sizeof(from), (uint32_t)round) == sizeof(from),
		      "round %d", round);
	}
	OK(rig->plugin.dereg(pair->send, from_mr));
}

/* A group; a group of empty receives. */
static void flush_groups(struct rig *rig, void *comm, struct buffers *to)
{
	int none[8] = { 0 };
	void *flush = post_flush(rig, comm, 8, to, 0, to->sizes);

	if (flush)
		rig_wait(rig, flush, NULL);
	CHECK(!post_flush(rig, comm, 8, to, 0, none), "nothing was received, yet there is a flush");
}

static void expect_no_flush(struct rig *rig, void *comm, struct buffers *to)
{
	CHECK(!post_flush(rig, comm, 1, to, 0, to->sizes), "flushes are off, yet there is one");
	CHECK(!post_flush(rig, comm, 8, to, 0, to->sizes), "flushes are off, yet there is one");
}

/* As many at once as NCCL may have, finished backwards. */
static void flush_many(struct rig *rig, void *comm, struct buffers *to)
{
	void *flush[NCCL_NET_MAX_REQUESTS];
	int n = 0;

	for (int i = 0; i < NCCL_NET_MAX_REQUESTS; i++) {
		flush[n] = post_flush(rig, comm, 1, to, i % 8, &to->sizes[i % 8]);
		n += flush[n] != NULL;
	}
	while (n)
		rig_wait(rig, flush[--n], NULL);
}

int main(int argc, char **argv)
{
	static struct buffers to;
	struct rig rig;
	struct rig_pair pair;
	bool disabled = argc > 2 && !strcmp(argv[2], "disabled");

	if (disabled)
		setenv("NCCL_GDR_FLUSH_DISABLE", "1", 1);
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	buffers_register(&rig, pair.recv, &to);
	if (disabled)
		expect_no_flush(&rig, pair.recv, &to);
	flush_each(&rig, &pair, &to);
	flush_groups(&rig, pair.recv, &to);
	flush_many(&rig, pair.recv, &to);
	for (int i = 0; i < 8; i++)
		OK(rig.plugin.dereg(pair.recv, to.mr[i]));
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
