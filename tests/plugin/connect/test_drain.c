/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that ends while small sends are on their way, and another thread has the driver's lock
 * each time that ha_ctx_drain() wants to look, but for the first: what was seen then is reported.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "rdma/verbs/dlopen.h"
#include "rdma/verbs/ops.h"
#include "tests/base/lines.h"
#include "tests/plugin/pair.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE 8

static int (*post_below)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static atomic_bool refuse; /* whatever ends a message */

static bool ends_message(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			return true;
	return false;
}

static int post_or_refuse(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (!atomic_load(&refuse) || !ends_message(wr))
		return post_below(qp, wr, bad);
	*bad = wr;
	return EIO;
}

static void change_hot(struct ha_verbs_hot *hot)
{
	post_below = hot->post_send;
	hot->post_send = post_or_refuse;
}

static struct pair pair;
static atomic_bool drained;

/* From the first look on, which leaves its mark, until the end. */
static void *hold_lock(void *unused)
{
	pthread_mutex_lock(&pair.ctx->drive);
	while (!pair.send->awaited) {
		pthread_mutex_unlock(&pair.ctx->drive);
		usleep(100);
		pthread_mutex_lock(&pair.ctx->drive);
	}
	while (!atomic_load(&drained))
		usleep(1000);
	pthread_mutex_unlock(&pair.ctx->drive);
	return unused;
}

static struct ha_request *send_small(struct pair_side *from)
{
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(pair.send, from->data, SIZE, 0, from->mr, &req), 0);
		pair_idle(&pair, k);
	}
	CHECK(req);
	return req;
}

static struct ha_request *post_receive(struct pair_side *to)
{
	struct ha_request *req = NULL;
	void *data = to->data;
	size_t size = SIZE;
	int tag = 0;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_irecv(pair.recv, 1, &data, &size, &tag, &to->mr, false, &req), 0);
		pair_idle(&pair, k);
	}
	CHECK(req);
	return req;
}

static void register_side(struct ha_bundle *b, struct pair_side *side)
{
	side->data = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr(b, side->data, SIZE, HA_MEM_HOST, 0, -1, 0, &side->mr), 0);
}

/* From now on: for a tenth of a second and one more. */
static void wait_briefly(struct ha_ctx *ctx)
{
	pthread_mutex_lock(&ctx->drive);
	ctx->config.force_ib_timeout = 8;
	ctx->config.rto_ms = 100;
	pthread_mutex_unlock(&ctx->drive);
}

int main(void)
{
	struct pair_side from, to;
	struct ha_verbs_ops *library;
	struct ha_request *sent, *received;
	pthread_t holder;

	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	setenv("HA_NCCL_FORCE_IB_TIMEOUT", "20", 1);
	setenv("HA_NCCL_MAX_RETRIES", "100", 1); /* the connection outlasts the drain */
	lines_catch();
	library = pair_open_library(change_hot);
	pair_open_over(&pair, 0, library);
	register_side((struct ha_bundle *)pair.send, &from);
	register_side((struct ha_bundle *)pair.recv, &to);
	received = post_receive(&to);
	atomic_store(&refuse, true);
	sent = send_small(&from);
	CHECK_INT(sent->done, 1);
	pair_finish(&pair, sent);
	wait_briefly(pair.ctx);
	CHECK(!pthread_create(&holder, NULL, hold_lock, NULL));
	ha_ctx_drain(pair.ctx);
	atomic_store(&drained, true);
	CHECK(!pthread_join(holder, NULL));
	CHECK_INT(lines_count("the process ends without closing its connections, and 1 small"), 1);
	atomic_store(&refuse, false);
	pair_finish(&pair, received); /* over the rail's next incarnation */
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)pair.send, from.mr), 0);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)pair.recv, to.mr), 0);
	pair_close(&pair);
	ha_verbs_close_library(library);
	return 0;
}
