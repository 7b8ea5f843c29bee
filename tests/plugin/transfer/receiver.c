/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/transfer/receiver.h"

#include "base/check.h"
#include "base/clock.h"
#include "plugin/balance/policy.h"
#include "plugin/ctx.h"
#include "tests/plugin/ends.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct note notes[NOTES_MAX];
unsigned nnotes;
int post_refusal;
struct queue data_queue[NRAILS], flush_queue[NRAILS];
unsigned refills, last_refill, all_refilled;
int refill_refusal;
unsigned rounds;
struct ha_device device[NRAILS];

static struct ibv_qp qp[NRAILS], flush_qp[NRAILS];
static struct ibv_cq cq[NRAILS], flush_cq[NRAILS];
static struct ibv_srq srq[NRAILS];
static struct ha_clock_virtual now;

static int note_post(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	bool flush = to >= flush_qp && to < flush_qp + NRAILS;
	struct note *n = &notes[nnotes];

	CHECK(nnotes < NOTES_MAX);
	CHECK(!wr->next);
	CHECK_INT(wr->num_sge, 1);
	*n = (struct note) { .rail = (unsigned)(to - (flush ? flush_qp : qp)),
			     .flush = flush,
			     .opcode = wr->opcode,
			     .flags = wr->send_flags,
			     .from = wr->sg_list->addr,
			     .to = wr->wr.rdma.remote_addr,
			     .id = wr->wr_id,
			     .length = wr->sg_list->length,
			     .lkey = wr->sg_list->lkey,
			     .rkey = wr->wr.rdma.rkey };
	CHECK(n->rail < NRAILS);
	CHECK(n->length <= sizeof(n->cts));
	memcpy(n->cts, (const void *)(uintptr_t)n->from, n->length);
	nnotes++;
	*bad = wr;
	return post_refusal;
}

static int bring_completions(struct ibv_cq *from, int n, struct ibv_wc *wc)
{
	bool flush = from >= flush_cq && from < flush_cq + NRAILS;
	struct queue *q = flush ? &flush_queue[from - flush_cq] : &data_queue[from - cq];
	int found = 0;

	if (q->polls < sizeof(q->asked) / sizeof(q->asked[0]))
		q->asked[q->polls] = n;
	q->polls++;
	if (q->error)
		return q->error;
	while (found < n && q->at < q->have)
		wc[found++] = q->wc[q->at++];
	return found;
}

static int give_back(struct ibv_srq *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	CHECK(to >= srq && to < srq + NRAILS);
	*bad = wr;
	refills++;
	last_refill = 0;
	for (; wr; wr = wr->next)
		last_refill++;
	all_refilled += refill_refusal ? 0 : last_refill;
	return refill_refusal;
}

static const struct ha_verbs_hot hot = { .post_send = note_post,
					 .poll_cq = bring_completions,
					 .post_srq_recv = give_back };

static void make_round(struct ha_ctx *ctx)
{
	(void)ctx;
	rounds++;
}

uint32_t ring_lkey_of(unsigned rail)
{
	return 400 + rail;
}

uint32_t ring_rkey_of(unsigned rail)
{
	return 300 + rail;
}

struct ibv_cq *flush_cq_of(unsigned rail)
{
	return &flush_cq[rail];
}

static void prepare_device(struct ha_device *dev)
{
	memset(dev, 0, sizeof(*dev));
	atomic_store(&dev->portion, HA_REFILL);
	for (unsigned i = 0; i + 1 < HA_REFILL; i++)
		dev->refill[i].next = &dev->refill[i + 1];
}

struct ha_recv *make_receiver(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	c->b.ctx = calloc(1, sizeof(*c->b.ctx));
	c->b.ring = aligned_alloc(64, (HA_RECV_RING_SIZE + 63) / 64 * 64);
	CHECK(c->b.ctx && c->b.ring);
	memset(c->b.ring, 0, HA_RECV_RING_SIZE);
	now = (struct ha_clock_virtual)HA_CLOCK_VIRTUAL_INIT(5 * HA_NS_PER_S);
	c->b.ctx->clock = &now.clock;
	c->b.ctx->loop.threaded = true;
	c->b.ctx->progress = make_round;
	atomic_store(&c->b.ctx->round.called, true); /* there is no loop to wake */
	c->b.nrails = c->b.balance.ndata = NRAILS;
	c->b.active = (1 << NRAILS) - 1;
	c->b.terms.flags = HA_FLAG_FAILOVER;
	c->b.peer_closed = true; /* no event is reported */
	c->b.poll.batch = c->b.poll.most = 16;
	c->b.poll.idle_limit = 100;
	c->b.peer_ring = SENDER_RING;
	pthread_mutex_init(&c->b.registered.list_lock, NULL);
	ha_recv_prepare(c);
	for (unsigned i = 0; i < NRAILS; i++) {
		prepare_device(&device[i]);
		c->b.rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						  .state = HA_RAIL_UP,
						  .hot = &hot,
						  .dev = &device[i],
						  .qp = &qp[i],
						  .cq = &cq[i],
						  .srq = &srq[i],
						  .flush.qp = &flush_qp[i],
						  .sq_depth = 1024,
						  .ring_rkey = ring_rkey_of(i),
						  .ring_lkey = ring_lkey_of(i) };
		c->b.balance.weight[i] = 300;
		c->b.balance.lead[i] = (uint8_t)i;
		ha_recv_prepare_rail(c, &c->b.rail[i]);
	}
	ha_policy_update(&c->b);
	ha_policy_poll(&c->b, 1);
	atomic_store(&c->b.attention, 0);
	memset(data_queue, 0, sizeof(data_queue));
	memset(flush_queue, 0, sizeof(flush_queue));
	nnotes = refills = all_refilled = rounds = 0;
	post_refusal = refill_refusal = 0;
	return c;
}

void free_receiver(struct ha_recv *c)
{
	CHECK(!atomic_load(&c->b.inside));
	free(c->b.ring);
	free(c->b.ctx);
	free(c);
}

void add_completion(struct queue *q, struct ibv_wc wc)
{
	CHECK(q->have < NOTES_MAX);
	q->wc[q->have++] = wc;
}

void add_immediate(unsigned rail, uint32_t imm, uint32_t bytes)
{
	add_completion(&data_queue[rail], (struct ibv_wc) { .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
							    .byte_len = bytes,
							    .imm_data = htonl(imm) });
}

void add_others(unsigned rail, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		add_completion(&data_queue[rail],
			       (struct ibv_wc) { .opcode = IBV_WC_RDMA_WRITE,
						 .wr_id = ha_wr_id(HA_WR_CONTROL, 0, 0) });
}

struct ha_request *receive_one(struct ha_recv *c, bool optional)
{
	struct ha_mr *mr = NULL;
	struct ha_request *req;
	size_t size = 4096;
	void *data = c;
	int tag = 7;

	CHECK_INT(ha_irecv(c, 1, &data, &size, &tag, &mr, optional, &req), 0);
	CHECK(!atomic_load(&c->b.inside));
	return req;
}

void test_is(struct ha_request *req, int size)
{
	int done = -1, is = -1;

	CHECK_INT(ha_test(req, &done, &is), 0);
	CHECK(!atomic_load(&req->bundle->inside));
	CHECK_INT(done, size >= 0);
	CHECK_INT(is, size);
}
