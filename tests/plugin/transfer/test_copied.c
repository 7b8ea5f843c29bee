/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HA_NCCL_COPY_MAX: small sends from host memory are complete when they are posted. Which ones; and
 * that one whose buffer has been given back, and whose connection is closed at once, arrives all
 * the same, over the standby; and that nothing of it is left to the slot's next message.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "rdma/verbs/dlopen.h"
#include "rdma/verbs/ops.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096
#define COPY_MAX 32

static int (*post_below)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static atomic_bool refuse_next; /* the next write with immediate */

static int post_or_refuse(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM || !atomic_exchange(&refuse_next, false))
		return post_below(qp, wr, bad);
	*bad = wr;
	return EIO;
}

static void change_hot(struct ha_verbs_hot *hot)
{
	post_below = hot->post_send;
	hot->post_send = post_or_refuse;
}

struct ends {
	struct pair pair;
	struct ha_verbs_ops *library;
	char *from, *to;
	struct ha_mr *from_mr, *to_mr;
};

static void open_ends(struct ends *e, int from_memory)
{
	e->library = pair_open_library(change_hot);
	pair_open_over(&e->pair, 0, e->library);
	e->from = pair_alloc(SIZE);
	e->to = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e->pair.send, e->from, SIZE, from_memory, 0, -1, 0,
			    &e->from_mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e->pair.recv, e->to, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &e->to_mr),
		  0);
}

static struct ha_request *post_receive(struct ends *e, size_t size)
{
	struct ha_request *req = NULL;
	void *data = e->to;
	int tag = 0;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_irecv(e->pair.recv, 1, &data, &size, &tag, &e->to_mr, false, &req), 0);
		pair_idle(&e->pair, k);
	}
	CHECK(req);
	return req;
}

static struct ha_request *send_now(struct ends *e, size_t size)
{
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(e->pair.send, e->from, size, 0, e->from_mr, &req), 0);
		pair_idle(&e->pair, k);
	}
	CHECK(req);
	return req;
}

/* One message; is it complete when it is posted, and does it arrive? */
static void expect_message(struct ends *e, char mark, size_t size, bool copied)
{
	struct ha_request *recv = post_receive(e, size), *sent;

	memset(e->from, mark, size);
	sent = send_now(e, size);
	CHECK_INT(e->pair.send->slot[sent->entry].copied, copied);
	if (copied)
		CHECK_INT(sent->done, 1);
	pair_finish(&e->pair, recv); /* which sends its delivery count */
	pair_finish(&e->pair, sent);
	for (size_t i = 0; i < size; i++)
		CHECK_INT(e->to[i], mark);
}

static void close_rest(struct ends *e)
{
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e->pair.recv, e->to_mr), 0);
	ha_close_recv(e->pair.recv);
	ha_close_listen(e->pair.listen);
	ha_ctx_destroy(e->pair.ctx);
	ha_verbs_close_library(e->library);
}

static void test_which(int memory, bool any)
{
	struct ends e;

	open_ends(&e, memory);
	expect_message(&e, 1, 1, any);
	expect_message(&e, 2, COPY_MAX, any);
	expect_message(&e, 3, COPY_MAX + 1, false);
	for (int i = 0; i < 3 * HA_SLOTS; i++) /* every slot again and again */
		expect_message(&e, (char)i, 8, any);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e.pair.send, e.from_mr), 0);
	ha_close_send(e.pair.send);
	close_rest(&e);
}

/* A message is complete, and nobody has carried it yet when the program is through with it. */
static void test_last_message(void)
{
	struct ha_request *recv, *sent;
	struct ends e;
	int done = 0;

	open_ends(&e, HA_MEM_HOST);
	expect_message(&e, 1, 8, true);
	recv = post_receive(&e, 8);
	memset(e.from, 2, 8);
	atomic_store(&refuse_next, true);
	sent = send_now(&e, 8);
	CHECK(!atomic_load(&refuse_next));
	CHECK_INT(sent->done, 1);
	for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) /* the driver may be inside */
		CHECK_INT(ha_test(sent, &done, NULL), 0);
	CHECK_INT(done, 1);
	memset(e.from, 3, 8);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e.pair.send, e.from_mr), 0);
	ha_close_send(e.pair.send);
	pair_finish(&e.pair, recv);
	for (int i = 0; i < 8; i++)
		CHECK_INT(e.to[i], 2);
	close_rest(&e);
}

/* What a slot carried before says nothing about the message that it carries next: here, that the
 * key of the ring's copy serves. It waits until its buffer has a key of its own. */
static void test_key_is_missing(void)
{
	uint32_t lkey[HA_MAX_RAILS];
	struct ha_request *recv, *sent;
	struct ends e;

	open_ends(&e, HA_MEM_HOST);
	for (int i = 0; i < HA_SLOTS; i++)
		expect_message(&e, (char)i, 8, true);
	memcpy(lkey, e.from_mr->lkey, sizeof(lkey));
	memset(e.from_mr->lkey, 0, sizeof(lkey)); /* as on a standby that has just taken over */
	recv = post_receive(&e, COPY_MAX + 1);
	memset(e.from, 7, COPY_MAX + 1);
	for (int k = 0; k < 1000; k++) {
		CHECK_INT(ha_isend(e.pair.send, e.from, COPY_MAX + 1, 0, e.from_mr, &sent), 0);
		CHECK(!sent);
		pair_idle(&e.pair, k);
	}
	memcpy(e.from_mr->lkey, lkey, sizeof(lkey));
	sent = send_now(&e, COPY_MAX + 1);
	pair_finish(&e.pair, recv);
	pair_finish(&e.pair, sent);
	for (int i = 0; i < COPY_MAX + 1; i++)
		CHECK_INT(e.to[i], 7);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e.pair.send, e.from_mr), 0);
	ha_close_send(e.pair.send);
	close_rest(&e);
}

int main(void)
{
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	setenv("HA_NCCL_COPY_MAX", "32", 1);
	test_which(HA_MEM_HOST, true);
	test_which(HA_MEM_CUDA, false);
	test_last_message();
	test_key_is_missing();
	setenv("HA_NCCL_ACK", "memory", 1);
	test_which(HA_MEM_HOST, false);
	setenv("HA_NCCL_ACK", "nic", 1);
	setenv("HA_NCCL_COPY_MAX", "0", 1);
	test_which(HA_MEM_HOST, false);
	return 0;
}
