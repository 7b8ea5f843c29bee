/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of the program registers a buffer, and that takes for ever (until a gate opens): the
 * connection's failover does not wait for it, its messages go on over the standby; nor does another
 * connection's, nor the end of what is left of a path.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/report/journal.h"
#include "rdma/verbs/dlopen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MESSAGES 20
#define SIZE 4096

struct line {
	struct pair p;
	struct pair_side s, r;
};

static struct ha_verbs_ops below, *library;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;
static _Thread_local bool slow; /* what this thread registers waits for the gate */

static int reg_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, void *addr, size_t length,
		  uint64_t iova, unsigned access, struct ibv_mr **mr)
{
	if (slow) {
		slow = false;
		atomic_store(&held, 1);
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
	}
	return below.reg_mr(v, pd, addr, length, iova, access, mr);
}

static void register_buffers(struct line *l)
{
	l->s = (struct pair_side) { .data = pair_alloc(SIZE) };
	l->r = (struct pair_side) { .data = pair_alloc(SIZE) };
	CHECK_INT(ha_reg_mr((struct ha_bundle *)l->p.send, l->s.data, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &l->s.mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)l->p.recv, l->r.data, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &l->r.mr),
		  0);
	pair_messages(&l->p, &l->s, &l->r, MESSAGES, SIZE);
}

static void await_events(struct line *l, enum ha_event_kind kind, uint64_t n)
{
	for (int k = 0; ha_journal_count(l->p.ctx, kind) < n && k < PAIR_TRIES_MAX; k++)
		pair_idle(&l->p, k);
	CHECK(ha_journal_count(l->p.ctx, kind) >= n);
}

/* The standby has the buffers. */
static void await_keys(struct line *l, struct ha_bundle *b)
{
	for (int k = 0; !(atomic_load(&b->registered.rails) & 2) && k < PAIR_TRIES_MAX; k++)
		pair_idle(&l->p, k);
	CHECK(atomic_load(&b->registered.rails) & 2);
}

/* The first device's path is lost. */
static void fail_first_path(struct line *l)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	CHECK_INT(below.modify_qp(library, ((struct ha_bundle *)l->p.send)->rail[0].qp, &attr,
				  IBV_QP_STATE),
		  0);
}

/* Messages whose clear-to-sends the sender has when its queue pair fails: their data is posted in
 * vain, and again. */
static void lose_with_data(struct line *l)
{
	struct ha_request *recv[4] = { NULL }, *send[4] = { NULL };
	uint64_t head = l->p.send->head;
	size_t size = SIZE;
	void *data = l->r.data;
	int tag = 0, done = 0;

	for (int i = 0; i < 4; i++)
		for (int k = 0; !recv[i] && k < PAIR_TRIES_MAX; k++) {
			CHECK_INT(ha_irecv(l->p.recv, 1, &data, &size, &tag, &l->r.mr, false,
					   &recv[i]),
				  0);
			pair_idle(&l->p, k);
		}
	for (int k = 0; __atomic_load_n(&ha_send_cts(l->p.send, head + 3)->idx, __ATOMIC_ACQUIRE) !=
				head + 4 &&
			k < PAIR_TRIES_MAX;
	     k++)
		pair_idle(&l->p, k);
	fail_first_path(l);
	for (int i = 0; i < 4; i++)
		for (int k = 0; !send[i] && k < PAIR_TRIES_MAX; k++) {
			CHECK_INT(ha_isend(l->p.send, l->s.data, SIZE, 0, l->s.mr, &send[i]), 0);
			pair_idle(&l->p, k);
		}
	for (int i = 0; i < 8; i++, done = 0)
		for (int k = 0; !done; k++) {
			CHECK(k < PAIR_TRIES_MAX);
			CHECK_INT(ha_test(i % 2 ? recv[i / 2] : send[i / 2], &done, NULL), 0);
			pair_idle(&l->p, k);
		}
}

struct registration {
	struct ha_bundle *bundle;
	void *data;
	struct ha_mr *mr;
	int err;
};

static void *do_register(void *arg)
{
	struct registration *g = arg;

	slow = true;
	g->err = ha_reg_mr(g->bundle, g->data, SIZE, HA_MEM_HOST, 0, -1, 0, &g->mr);
	return NULL;
}

/* While an end registers: `which` 0 the sender, 1 the receiver. */
static void during_registration(int which)
{
	struct line one, two;
	struct registration g = { .data = pair_alloc(SIZE) };
	pthread_t thread;

	pair_open_over(&one.p, 0, library);
	register_buffers(&one);
	pair_connect(&two.p, one.p.ctx, 0);
	register_buffers(&two);
	await_events(&one, HA_EVENT_PROTECTED, 4);
	await_keys(&one, (struct ha_bundle *)one.p.send);
	await_keys(&one, (struct ha_bundle *)one.p.recv);
	g.bundle = which ? (struct ha_bundle *)one.p.recv : (struct ha_bundle *)one.p.send;
	pthread_mutex_lock(&gate);
	atomic_store(&held, 0);
	CHECK_INT(pthread_create(&thread, NULL, do_register, &g), 0);
	for (int k = 0; !atomic_load(&held) && k < PAIR_TRIES_MAX; k++)
		pair_idle(&one.p, k);
	lose_with_data(&one);
	pair_messages(&one.p, &one.s, &one.r, MESSAGES, SIZE);
	await_events(&one, HA_EVENT_FAILED_OVER, 2);
	lose_with_data(&two);
	pair_messages(&two.p, &two.s, &two.r, MESSAGES, SIZE);
	await_events(&one, HA_EVENT_FAILED_OVER, 4);
	pthread_mutex_unlock(&gate);
	pthread_join(thread, NULL);
	CHECK_INT(g.err, 0);
	await_events(&one, HA_EVENT_RECOVERED, 4);
	pair_messages(&one.p, &one.s, &one.r, MESSAGES, SIZE);
	CHECK_INT(ha_dereg_mr(g.bundle, g.mr), 0);
	pair_disconnect(&two.p);
	pair_close(&one.p);
}

int main(void)
{
	setenv("HA_NCCL_MR_MODE", "eager", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->reg_mr = reg_mr;
	during_registration(0);
	during_registration(1);
	ha_verbs_close_library(library);
	return 0;
}
