/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work requests themselves, where the software NIC delivers the same bytes whatever is posted:
 * it writes in order and has no PCIe path to flush.
 * NCCL_IB_AR_THRESHOLD: with adaptive routing a larger payload goes ahead as a plain write, and the
 * immediate follows apart. iflush: each rail that may have carried a stripe reads the last bytes,
 * through its own loop-back queue pair.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/device/mr.h"
#include "rdma/verbs/dlopen.h"
#include "rdma/verbs/ops.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (1u << 20)
#define POSTED_MAX 256

struct posted {
	const struct ibv_qp *qp;
	enum ibv_wr_opcode opcode;
	uint32_t length, rkey;
	uint64_t remote;
};

static int (*post_below)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* for the two that follow: the service thread posts, too */
static struct posted posted[POSTED_MAX];
static unsigned posted_count;

static int post_recorded(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	pthread_mutex_lock(&lock);
	for (const struct ibv_send_wr *at = wr; at; at = at->next) {
		struct posted *p = &posted[posted_count++ % POSTED_MAX];

		*p = (struct posted) { .qp = qp,
				       .opcode = at->opcode,
				       .remote = at->wr.rdma.remote_addr,
				       .rkey = at->wr.rdma.rkey };
		for (int i = 0; i < at->num_sge; i++)
			p->length += at->sg_list[i].length;
	}
	pthread_mutex_unlock(&lock);
	return post_below(qp, wr, bad);
}

static void change_hot(struct ha_verbs_hot *hot)
{
	post_below = hot->post_send;
	hot->post_send = post_recorded;
}

static unsigned count_all(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = posted_count;
	pthread_mutex_unlock(&lock);
	return n;
}

struct ends {
	struct pair pair;
	struct ha_verbs_ops *library;
	char *from, *to;
	struct ha_mr *from_mr, *to_mr;
};

static void open_ends(struct ends *e, int more_rails, int memory)
{
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	e->library = pair_open_library(change_hot);
	pair_open_over(&e->pair, more_rails, e->library);
	e->from = pair_alloc(SIZE);
	e->to = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e->pair.send, e->from, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &e->from_mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e->pair.recv, e->to, SIZE, memory, 0, -1, 0,
			    &e->to_mr),
		  0);
}

static void close_ends(struct ends *e)
{
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e->pair.send, e->from_mr), 0);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e->pair.recv, e->to_mr), 0);
	pair_close(&e->pair);
	ha_verbs_close_library(e->library);
}

static void send_one(struct ends *e, size_t size)
{
	struct pair_side send = { .mr = e->from_mr, .data = e->from },
			 recv = { .mr = e->to_mr, .data = e->to };

	pair_messages(&e->pair, &send, &recv, 1, size);
}

/* Work requests posted since posted_count was `since` that write `length` bytes to `remote`; to
 * any, where it is 0. */
static unsigned count_posted(unsigned since, enum ibv_wr_opcode opcode, uint64_t remote,
			     uint32_t length)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	CHECK(posted_count - since <= POSTED_MAX);
	for (unsigned i = since; i < posted_count; i++) {
		const struct posted *p = &posted[i % POSTED_MAX];

		n += p->opcode == opcode && p->length == length && (!remote || p->remote == remote);
	}
	pthread_mutex_unlock(&lock);
	return n;
}

/* A message of so many bytes: with its immediate in one work request, or ahead of it. */
static void expect_message(struct ends *e, uint32_t size, bool together)
{
	unsigned since = count_all();

	send_one(e, size);
	CHECK_INT(count_posted(since, IBV_WR_RDMA_WRITE_WITH_IMM, (uintptr_t)e->to, size),
		  together);
	CHECK_INT(count_posted(since, IBV_WR_RDMA_WRITE, (uintptr_t)e->to, size), !together);
	CHECK_INT(count_posted(since, IBV_WR_RDMA_WRITE_WITH_IMM, 0, sizeof(struct ha_sizes)),
		  !together);
}

static void test_threshold(const char *routing, const char *threshold, uint32_t largest_together)
{
	struct ends e;

	setenv("NCCL_IB_ADAPTIVE_ROUTING", routing, 1);
	setenv("NCCL_IB_AR_THRESHOLD", threshold, 1);
	open_ends(&e, 0, HA_MEM_HOST);
	expect_message(&e, 100, true);
	expect_message(&e, largest_together, true);
	if (largest_together < SIZE)
		expect_message(&e, largest_together + 1, false);
	close_ends(&e);
}

/* Each rail reads one byte of the received data through a queue pair that is not the
 * connection's. */
static void expect_flush(struct ends *e, unsigned since, unsigned rails)
{
	const struct ha_bundle *b = (const struct ha_bundle *)e->pair.recv;

	CHECK_INT(count_posted(since, IBV_WR_RDMA_READ, (uintptr_t)e->to, 1), rails);
	for (unsigned r = 0; r < rails; r++) {
		unsigned reads = 0;

		pthread_mutex_lock(&lock);
		for (unsigned i = since; i < posted_count; i++) {
			const struct posted *p = &posted[i % POSTED_MAX];

			reads += p->opcode == IBV_WR_RDMA_READ && p->qp == b->rail[r].flush.qp &&
				 p->rkey == e->to_mr->rkey[r];
		}
		pthread_mutex_unlock(&lock);
		CHECK_INT(reads, 1);
		CHECK(b->rail[r].flush.qp != b->rail[r].qp);
	}
}

static void test_flush(unsigned rails)
{
	struct ha_request *flush;
	int done = 0, size = SIZE;
	unsigned since;
	struct ends e;
	void *to;

	setenv("NCCL_IB_ADAPTIVE_ROUTING", "0", 1);
	open_ends(&e, (int)rails - 1, HA_MEM_CUDA);
	CHECK_INT(((struct ha_bundle *)e.pair.recv)->balance.ndata, rails);
	to = e.to;
	send_one(&e, SIZE);
	since = count_all();
	CHECK_INT(ha_iflush(e.pair.recv, 1, &to, &size, &e.to_mr, &flush), 0);
	CHECK(flush);
	for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_test(flush, &done, NULL), 0);
		pair_idle(&e.pair, k);
	}
	CHECK(done);
	expect_flush(&e, since, rails);
	close_ends(&e);
}

int main(void)
{
	setenv("HA_NCCL_ENABLE_BACKUP", "0", 1); /* a standby's device has no part in this */
	setenv("SOFTROCE_DEVICES", "127.169.1.0/24,127.169.2.0/24,127.169.3.0/24", 1);
	test_threshold("1", "8192", 8192);
	test_threshold("1", "100", 100);
	test_threshold("0", "8192", SIZE);
	test_threshold("-1", "8192", SIZE); /* RoCE: not by itself */
	for (unsigned rails = 1; rails <= 3; rails++)
		test_flush(rails);
	printf("the split at the threshold, a flush on every rail: ok\n");
	return 0;
}
