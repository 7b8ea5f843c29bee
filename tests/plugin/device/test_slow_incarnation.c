/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address behind the first device does not answer, and connecting a queue pair to it takes the
 * kernel for ever (until a gate opens; three seconds with rdma_rxe): nobody but the path itself
 * waits for it, on that device or another, and whatever becomes of the connection meanwhile, every
 * queue pair that was made is destroyed once.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/report/journal.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGES 20
#define SIZE 4096

static struct ha_verbs_ops below; /* the table's own functions */
static const char *ha;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int pass,
	/* of the next queue pairs that the first device connects: these pass, then these are
	 * held */
	hold;
static atomic_int held, pairs, queues; /* now */
static _Thread_local bool owner;       /* of a connection; nothing slow may happen in its calls */

static bool take_one(atomic_int *n)
{
	int now = atomic_load(n);

	while (now > 0 && !atomic_compare_exchange_weak(n, &now, now - 1))
		;
	return now > 0;
}

static int modify_behind_the_gate(const struct ha_verbs_ops *v, struct ibv_qp *qp,
				  struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR &&
	    !strcmp(qp->context->device->name, "soft0") && !take_one(&pass) && take_one(&hold)) {
		CHECK(!owner);
		atomic_fetch_add(&held, 1);
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
		atomic_fetch_sub(&held, 1);
		return -ETIMEDOUT;
	}
	return below.modify_qp(v, qp, attr, mask);
}

static int create_qp(const struct ha_verbs_ops *v, struct ibv_pd *pd, struct ibv_qp_init_attr *init,
		     struct ibv_qp **qp)
{
	int err = below.create_qp(v, pd, init, qp);

	atomic_fetch_add(&pairs, !err);
	return err;
}

static int destroy_qp(const struct ha_verbs_ops *v, struct ibv_qp *qp)
{
	atomic_fetch_sub(&pairs, 1);
	return below.destroy_qp(v, qp);
}

static int create_cq(const struct ha_verbs_ops *v, struct ibv_context *context, int n,
		     void *cq_context, struct ibv_comp_channel *channel, int vector,
		     struct ibv_cq **cq)
{
	int err = below.create_cq(v, context, n, cq_context, channel, vector, cq);

	atomic_fetch_add(&queues, !err);
	return err;
}

static int destroy_cq(const struct ha_verbs_ops *v, struct ibv_cq *cq)
{
	atomic_fetch_sub(&queues, 1);
	return below.destroy_cq(v, cq);
}

/* ---- a connection and its traffic ---- */

struct line {
	struct pair p;
	struct pair_side s, r;
};

static struct ha_verbs_ops *library;

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
}

static void send_messages(struct line *l)
{
	pair_messages(&l->p, &l->s, &l->r, MESSAGES, SIZE);
}

static void first_line(struct line *l)
{
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->modify_qp = modify_behind_the_gate;
	library->create_qp = create_qp;
	library->destroy_qp = destroy_qp;
	library->create_cq = create_cq;
	library->destroy_cq = destroy_cq;
	pair_open_over(&l->p, 0, library);
	register_buffers(l);
	send_messages(l);
}

static void further_line(struct line *l, struct ha_ctx *ctx)
{
	pair_connect(&l->p, ctx, 0);
	register_buffers(l);
	send_messages(l);
}

static void close_context(struct ha_ctx *ctx)
{
	ha_ctx_destroy(ctx);
	CHECK_INT(atomic_load(&held), 0);
	CHECK_INT(atomic_load(&pairs), 0);
	CHECK_INT(atomic_load(&queues), 0);
	ha_verbs_close_library(library);
}

static void await_count(struct line *l, atomic_int *n, int want)
{
	for (int k = 0; atomic_load(n) != want && k < PAIR_TRIES_MAX; k++)
		pair_idle(&l->p, k);
	CHECK_INT(atomic_load(n), want);
}

/* Both ends of so many. */
static void await_events(struct line *l, enum ha_event_kind kind, uint64_t n)
{
	for (int k = 0; ha_journal_count(l->p.ctx, kind) < n && k < PAIR_TRIES_MAX; k++)
		pair_idle(&l->p, k);
	CHECK(ha_journal_count(l->p.ctx, kind) >= n);
}

/* The first device's path is lost, and its messages go over the standby. */
static void fail_first_path(struct line *l)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	CHECK_INT(below.modify_qp(library, ((struct ha_bundle *)l->p.send)->rail[0].qp, &attr,
				  IBV_QP_STATE),
		  0);
	send_messages(l);
}

/* The receiver connects its queue pair first, the sender when it has the answer: the n-th of the
 * two is held. */
static void lose_and_hold(struct line *l, int nth)
{
	await_events(l, HA_EVENT_PROTECTED, 2);
	pthread_mutex_lock(&gate);
	atomic_store(&pass, nth - 1);
	atomic_store(&hold, 1);
	fail_first_path(l);
	await_count(l, &held, 1);
}

/* ---- what may happen meanwhile ---- */

/* Others on the same device: one that is opened, and one that loses its path and gets it back. */
static void others_on_the_device(void)
{
	struct line one, two;

	first_line(&one);
	lose_and_hold(&one, 1);
	further_line(&two, one.p.ctx);
	await_events(&two, HA_EVENT_PROTECTED, 4);
	fail_first_path(&two);
	await_events(&two, HA_EVENT_RECOVERED, 2);
	send_messages(&one);
	CHECK_INT(atomic_load(&held), 1);
	pthread_mutex_unlock(&gate);
	await_events(&one, HA_EVENT_RECOVERED, 4);
	send_messages(&one);
	pair_disconnect(&one.p);
	pair_disconnect(&two.p);
	close_context(one.p.ctx);
}

static void *destroy_context(void *ctx)
{
	close_context(ctx);
	return NULL;
}

/* Closing does not wait for it, closing the context does. */
static void closing_does_not_wait(void)
{
	struct line one;
	pthread_t thread;

	first_line(&one);
	lose_and_hold(&one, 2);
	owner = true;
	pair_disconnect(&one.p);
	owner = false;
	CHECK_INT(atomic_load(&held), 1);
	CHECK_INT(pthread_create(&thread, NULL, destroy_context, one.p.ctx), 0);
	usleep(10000);
	CHECK_INT(atomic_load(&held), 1);
	pthread_mutex_unlock(&gate);
	pthread_join(thread, NULL);
}

/* The peer closes: the incarnation that is being made is fenced, and then its error is reported. */
static void fenced_while_being_made(void)
{
	struct ha_request *req;
	struct line one;
	int err = 0;

	first_line(&one);
	lose_and_hold(&one, 2);
	ha_close_recv(one.p.recv);
	owner = true;
	for (int k = 0; !err && k < PAIR_TRIES_MAX; k++) {
		err = ha_isend(one.p.send, one.s.data, SIZE, 0, one.s.mr, &req);
		pair_idle(&one.p, k);
	}
	CHECK_INT(err, -ECONNRESET);
	CHECK_INT(atomic_load(&held), 1);
	ha_close_send(one.p.send);
	owner = false;
	ha_close_listen(one.p.listen);
	pthread_mutex_unlock(&gate);
	close_context(one.p.ctx);
}

static void to_first_device(const char *verb)
{
	char command[512];

	snprintf(command, sizeof(command), "'%s' %s soft0:%d >/dev/null", ha, verb, (int)getpid());
	CHECK_INT(system(command), 0);
}

/* The device dies: that incarnation is over at once, and messages go over the other device. */
static void fail_first_device(int nth)
{
	struct line one;

	first_line(&one);
	lose_and_hold(&one, nth);
	to_first_device("kill");
	await_events(&one, HA_EVENT_DEVICE, 1);
	send_messages(&one);
	CHECK_INT(atomic_load(&held), 1);
	pthread_mutex_unlock(&gate);
	await_count(&one, &held, 0);
	send_messages(&one);
	pair_disconnect(&one.p);
	close_context(one.p.ctx);
	to_first_device("restore");
}

static void lost_by_sender(void)
{
	fail_first_device(2);
}

static void lost_by_receiver(void)
{
	fail_first_device(1);
}

/* A connection that is being made: connect() and accept() return, another is made meanwhile, and
 * the listener is closed. */
static void first_connection(void)
{
	char handle[HA_HANDLE_MAX] = { 0 };
	struct ha_listen *listen;
	struct ha_send *send = NULL;
	struct ha_recv *recv = NULL;
	struct line one, two;

	first_line(&one);
	pthread_mutex_lock(&gate);
	owner = true;
	CHECK_INT(ha_listen(one.p.ctx, 0, NULL, handle, &listen), 0);
	atomic_store(&hold, 1);
	for (int k = 0; !atomic_load(&held) && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_connect(one.p.ctx, 0, NULL, handle, &send), 0);
		CHECK_INT(ha_accept(listen, &recv), 0);
		pair_idle(&one.p, k);
	}
	CHECK(!send && !recv);
	CHECK_INT(atomic_load(&held), 1);
	further_line(&two, one.p.ctx);
	ha_close_listen(listen);
	send_messages(&one);
	owner = false;
	CHECK_INT(atomic_load(&held), 1);
	pthread_mutex_unlock(&gate);
	pair_disconnect(&one.p);
	pair_disconnect(&two.p);
	close_context(one.p.ctx);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "others", others_on_the_device },       { "closing", closing_does_not_wait },
	{ "fenced", fenced_while_being_made },    { "lost_by_sender", lost_by_sender },
	{ "lost_by_receiver", lost_by_receiver }, { "first", first_connection },
};

/* ha [NAME] */
int main(int argc, char **argv)
{
	CHECK(argc > 1);
	ha = argv[1];
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 2 && strcmp(argv[2], tests[i].name) != 0)
			continue;
		tests[i].run();
		printf("%s: ok\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
