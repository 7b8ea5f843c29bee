/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unordered.c - the software NIC with queue pairs whose messages arrive in any order
 *
 * A libibverbs for HA_NCCL_VERBS: softroce's, but for what is here. It is called libmlx5.so.1, so
 * that whoever looks for that one gets it, too. What is posted on a queue pair of
 * mlx5dv_create_qp() leaves in an order that dice decide (sim/kit/reorder.h). UNORDERED_REPORT
 * names a file to which each queue pair that goes adds a line: how many work requests were posted,
 * and how many of them overtook an older one.
 */
#include "sim/kit/reorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN_US 500
#define MASK_OOO_RECV_WRS (UINT64_C(1) << 16)
#define MAX_RC_AT 176 /* of struct mlx5dv_context since rdma-core 55; Debian 12's ends before */
#define CREATE_OOO_DP (1u << 7)

struct unordered {
	LIST_ENTRY(unordered) entry;
	struct ibv_qp *qp;
	struct sim_reorder reorder;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows, and all in the list */
static LIST_HEAD(, unordered) list;
static struct ibv_context_ops real; /* softroce's, of any of its contexts */

static void *of_softroce(const char *name, const char *version)
{
	static void *library;

	if (!library)
		library = dlopen("libsoftroce.so", RTLD_NOW | RTLD_LOCAL);
	return library ? dlvsym(library, name, version) : NULL;
}
#define REAL(name, version) ((__typeof__(&(name)))of_softroce(#name, version))

static struct unordered *find_qp(const struct ibv_qp *qp)
{
	struct unordered *u;

	LIST_FOREACH(u, &list, entry)
		if (u->qp == qp)
			break;
	return u;
}

static struct unordered *find_cq(const struct ibv_cq *cq)
{
	struct unordered *u;

	LIST_FOREACH(u, &list, entry)
		if (u->qp->send_cq == cq)
			break;
	return u;
}

static int post_held(void *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return real.post_send(qp, wr, &bad);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct unordered *u;
	int err;

	pthread_mutex_lock(&lock);
	u = find_qp(qp);
	err = u ? sim_reorder_post(&u->reorder, wr, bad) : real.post_send(qp, wr, bad);
	pthread_mutex_unlock(&lock);
	return err;
}

/* One of the queue's that its user is to see. */
static bool next_completion(struct unordered *u, struct ibv_cq *cq, struct ibv_wc *wc)
{
	while (!sim_reorder_take(&u->reorder, wc)) {
		if (real.poll_cq(cq, 1, wc) <= 0)
			return false;
		if (!wc->wr_id)
			return true; /* a receive: the plugin's have no number */
		sim_reorder_done(wc);
	}
	return true;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct unordered *u;
	int out = 0;

	pthread_mutex_lock(&lock);
	u = find_cq(cq);
	if (u) {
		sim_reorder_turn(&u->reorder);
		while (out < n && next_completion(u, cq, &wc[out]))
			out++;
	} else {
		out = real.poll_cq(cq, n, wc);
	}
	pthread_mutex_unlock(&lock);
	return out;
}

/* What is held leaves although nobody polls. */
static void *take_turns(void *unused)
{
	struct unordered *u;

	for (;;) {
		usleep(TURN_US);
		pthread_mutex_lock(&lock);
		LIST_FOREACH(u, &list, entry)
			sim_reorder_turn(&u->reorder);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void start_turns(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, take_turns, NULL))
		abort();
	pthread_detach(thread);
}

/* ---- libibverbs, where it differs ---- */

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = REAL(ibv_open_device, "IBVERBS_1.1")(device);

	if (!context)
		return NULL;
	pthread_mutex_lock(&lock);
	real = context->ops;
	context->ops.post_send = post_send;
	context->ops.poll_cq = poll_cq;
	pthread_mutex_unlock(&lock);
	return context;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct unordered *u;

	pthread_mutex_lock(&lock);
	u = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET ? find_qp(qp) : NULL;
	if (u)
		sim_reorder_forget(&u->reorder);
	pthread_mutex_unlock(&lock);
	return REAL(ibv_modify_qp, "IBVERBS_1.1")(qp, attr, mask);
}

static void report(const struct sim_reorder *r)
{
	const char *path = getenv("UNORDERED_REPORT");
	int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

	if (file < 0)
		return;
	dprintf(file, "%llu %llu\n", (unsigned long long)r->left, (unsigned long long)r->overtook);
	close(file);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct unordered *u;

	pthread_mutex_lock(&lock);
	u = find_qp(qp);
	if (u) {
		LIST_REMOVE(u, entry);
		sim_reorder_forget(&u->reorder);
		report(&u->reorder);
		free(u);
	}
	pthread_mutex_unlock(&lock);
	return REAL(ibv_destroy_qp, "IBVERBS_1.1")(qp);
}

/* ---- libmlx5 ---- */

bool mlx5dv_is_supported(struct ibv_device *device)
{
	(void)device;
	return true;
}

int mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
	const uint32_t most = 4096;

	(void)context;
	attr->comp_mask &= MASK_OOO_RECV_WRS;
	if (attr->comp_mask)
		memcpy((char *)attr + MAX_RC_AT, &most, sizeof(most));
	return 0;
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx5dv_qp_init_attr *mlx5_attr)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ibv_qp_init_attr init = { .qp_context = attr->qp_context,
					 .send_cq = attr->send_cq,
					 .recv_cq = attr->recv_cq,
					 .srq = attr->srq,
					 .cap = attr->cap,
					 .qp_type = attr->qp_type,
					 .sq_sig_all = attr->sq_sig_all };
	struct unordered *u = calloc(1, sizeof(*u));

	(void)context;
	if (!u || mlx5_attr->create_flags != CREATE_OOO_DP) {
		free(u);
		errno = EOPNOTSUPP;
		return NULL;
	}
	pthread_once(&once, start_turns);
	u->qp = REAL(ibv_create_qp, "IBVERBS_1.1")(attr->pd, &init);
	if (!u->qp) {
		free(u);
		return NULL;
	}
	attr->cap = init.cap;
	sim_reorder_init(&u->reorder, (uint64_t)getpid() << 32 | u->qp->qp_num, post_held, u->qp);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&list, u, entry);
	pthread_mutex_unlock(&lock);
	return u->qp;
}
