/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/transfer/recorder.h"

#include "base/check.h"
#include "base/clock.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/suspect.h"
#include "tests/plugin/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct work work[MOST];
unsigned posted;
int refusal;
unsigned refused;
static struct ibv_qp qp[RAILS];

static int record_post(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	if (refusal) {
		refused++;
		return refusal;
	}
	for (; wr; wr = wr->next) {
		CHECK(posted < MOST);
		work[posted++] = (struct work) { .rail = (unsigned)(to - qp),
						 .opcode = wr->opcode,
						 .flags = wr->send_flags,
						 .num_sge = wr->num_sge,
						 .from = wr->sg_list->addr,
						 .to = wr->wr.rdma.remote_addr,
						 .id = wr->wr_id,
						 .length = wr->num_sge ? wr->sg_list->length : 0,
						 .lkey = wr->sg_list->lkey,
						 .rkey = wr->wr.rdma.rkey,
						 .imm = ntohl(wr->imm_data) };
	}
	return 0;
}

struct ibv_wc arriving;
int arrivals;
unsigned polls;

static int poll_arriving(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int found = arrivals;

	(void)cq;
	(void)n;
	*wc = arriving;
	arrivals = 0;
	polls++;
	return found;
}

static const struct ha_verbs_hot hot = { .post_send = record_post, .poll_cq = poll_arriving };
char data[8 * LARGE];
struct ha_mr mr;

uint32_t lkey_of(unsigned rail)
{
	return 100 + rail;
}
uint32_t rkey_of(unsigned rail, unsigned member)
{
	return 200 + 10 * member + rail;
}

struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	s->b.ctx = calloc(1, sizeof(*s->b.ctx));
	s->b.ring = aligned_alloc(64, (HA_SEND_RING_SIZE + 63) / 64 * 64);
	CHECK(s->b.ctx && s->b.ring);
	memset(s->b.ring, 0, HA_SEND_RING_SIZE);
	s->b.ctx->clock = &ha_clock_live;
	s->b.ctx->loop.threaded = true;
	s->b.is_send = true;
	s->b.nrails = s->b.balance.ndata = RAILS;
	s->b.active = (1 << RAILS) - 1;
	s->b.terms.flags = HA_FLAG_FAILOVER;
	s->b.poll.batch = s->b.poll.most = 16;
	s->b.poll.idle_limit = 100;
	s->b.peer_ring = RING;
	pthread_mutex_init(&s->b.registered.lock, NULL);
	pthread_mutex_init(&s->b.registered.list_lock, NULL);
	ha_send_prepare(s);
	for (unsigned i = 0; i < RAILS; i++) {
		s->b.rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						  .state = HA_RAIL_UP,
						  .hot = &hot,
						  .qp = &qp[i],
						  .sq_depth = 1024,
						  .max_msg = 1U << 30,
						  .ring_rkey = 300 + i,
						  .ring_lkey = 400 + i };
		s->b.balance.weight[i] = 512;
		s->b.balance.lead[i] = (uint8_t)i;
		ha_send_prepare_rail(s, &s->b.rail[i]);
		mr.lkey[i] = lkey_of(i);
	}
	ha_policy_update(&s->b);
	LIST_INSERT_HEAD(&s->b.registered.list, &mr, link);
	atomic_store(&s->b.attention, 0);
	posted = 0;
	refusal = 0;
	return s;
}

void free_sender(struct ha_send *s)
{
	free(s->b.ring);
	free(s->b.ctx);
	free(s);
}

/* The receive at the head: n buffers of `size` bytes, one behind the other, with tags from 7 on. */
struct ha_cts *announce_receive(struct ha_send *s, unsigned n, uint64_t size)
{
	struct ha_cts *cts = ha_send_cts(s, s->head);

	for (unsigned m = 0; m < n; m++) {
		cts[m] = (struct ha_cts) { .addr = THERE + m * (uint64_t)LARGE,
					   .size = size,
					   .tag = 7 + m,
					   .n = (uint8_t)n,
					   .idx = s->head + 1 };
		for (unsigned i = 0; i < RAILS; i++)
			cts[m].rkey[i] = rkey_of(i, m);
	}
	posted = 0;
	return cts;
}

struct ha_request *send_member(struct ha_send *s, unsigned m, size_t size)
{
	struct ha_request *req;

	CHECK_INT(ha_isend(s, data + m * (size_t)LARGE, size, (int)(7 + m), &mr, &req), 0);
	CHECK(!atomic_load(&s->b.inside));
	return req;
}

/* Each byte of buffer `m` is written once, by each rail with its own keys. */
void check_bytes(unsigned m, uint64_t size)
{
	uint64_t from = (uintptr_t)data + m * (uint64_t)LARGE, to = THERE + m * (uint64_t)LARGE;
	uint64_t at = 0;

	for (unsigned w = 0; w < posted; w++)
		if (work[w].to >= to && work[w].to < to + LARGE) {
			CHECK_INT(work[w].to - to, at); /* stripes are cut, and posted, in order */
			CHECK_INT(work[w].from - from, at);
			CHECK_INT(work[w].lkey, lkey_of(work[w].rail));
			CHECK_INT(work[w].rkey, rkey_of(work[w].rail, m));
			at += work[w].length;
		}
	CHECK_INT(at, size);
}
