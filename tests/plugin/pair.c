/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/pair.h"

#include "base/check.h"

#include "base/config.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "rdma/verbs/dlopen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void exit_with_error(const char *what, int err)
{
	fprintf(stderr, "pair: %s: %s\n", what, strerror(-err));
	exit(1);
}

void pair_open(struct pair *p, int nmore)
{
	pair_open_over(p, nmore, NULL);
}

static void connect_by(struct pair *p, struct ha_ctx *ctx, struct ha_comm_opts opts);

static struct ha_ctx *create_context(const struct ha_verbs_ops *verbs)
{
	static struct ha_config config;
	struct ha_ctx_params params = { .config = &config, .verbs = verbs };
	struct ha_ctx *ctx;
	int err;

	ha_config_load_env(&config);
	if ((err = ha_ctx_create(&params, &ctx)) != 0)
		exit_with_error("context", err);
	return ctx;
}

void pair_open_over(struct pair *p, int nmore, const struct ha_verbs_ops *verbs)
{
	pair_connect(p, create_context(verbs), nmore);
}

static int (*hot_below)(const struct ha_verbs_ops *v, struct ibv_context *context,
			struct ha_verbs_hot *hot);
static void (*change_hot)(struct ha_verbs_hot *hot);

static int hot_changed(const struct ha_verbs_ops *v, struct ibv_context *context,
		       struct ha_verbs_hot *hot)
{
	int err = hot_below(v, context, hot);

	change_hot(hot);
	return err;
}

struct ha_verbs_ops *pair_open_library(void (*change)(struct ha_verbs_hot *hot))
{
	struct ha_verbs_ops *library;

	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	hot_below = library->hot;
	change_hot = change;
	library->hot = hot_changed;
	return library;
}

void pair_open_one_sided(struct pair *p, int nmore)
{
	connect_by(
		p, create_context(NULL),
		(struct ha_comm_opts) { .traffic_class = -1, .nmore = nmore, .one_sided = true });
}

void pair_connect(struct pair *p, struct ha_ctx *ctx, int nmore)
{
	connect_by(p, ctx, (struct ha_comm_opts) { .traffic_class = -1, .nmore = nmore });
}

static void connect_by(struct pair *p, struct ha_ctx *ctx, struct ha_comm_opts opts)
{
	char handle[HA_HANDLE_MAX] = { 0 };
	int err;

	memset(p, 0, sizeof(*p));
	p->ctx = ctx;
	for (int i = 0; i < opts.nmore; i++)
		opts.more[i] = i + 1;
	if ((err = ha_listen(p->ctx, 0, &opts, handle, &p->listen)) != 0)
		exit_with_error("listen", err);
	for (int k = 0; !(p->send && p->recv) && k < PAIR_TRIES_MAX; k++) {
		if (!p->send && (err = ha_connect(p->ctx, 0, &opts, handle, &p->send)) != 0)
			exit_with_error("connect", err);
		if (!p->recv && (err = ha_accept(p->listen, &p->recv)) != 0)
			exit_with_error("accept", err);
		pair_idle(p, k);
	}
	if (!p->send || !p->recv)
		exit_with_error("connect", -110);
}

void pair_disconnect(struct pair *p)
{
	ha_close_send(p->send);
	ha_close_recv(p->recv);
	ha_close_listen(p->listen);
}

void pair_close(struct pair *p)
{
	pair_disconnect(p);
	ha_ctx_destroy(p->ctx);
}

void *pair_alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit_with_error("memory", -12);
	return p;
}

void pair_idle(struct pair *p, int k)
{
	if (k > 100)
		usleep(k > 10000 ? 100 : 1);
}

void pair_finish(struct pair *p, struct ha_request *req)
{
	int done = 0;

	for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_test(req, &done, NULL), 0);
		pair_idle(p, k);
	}
	CHECK(done);
}

void pair_flush(struct pair *p, const struct pair_side *recv, int size)
{
	struct ha_request *flush;
	void *data = recv->data;
	struct ha_mr *mr = recv->mr;

	pthread_mutex_lock(&p->ctx->drive); /* the driver takes completions as well */
	CHECK_INT(ha_iflush(p->recv, 1, &data, &size, &mr, &flush), 0);
	CHECK(flush);
	CHECK(flush->pending);
	pthread_mutex_unlock(&p->ctx->drive);
	pair_finish(p, flush);
}

static bool advance_messages(struct pair *p, struct pair_side *s, struct pair_side *r, size_t size)
{
	void *data = r->data;
	int tag = 0;

	if (!r->req && !r->done)
		CHECK_INT(ha_irecv(p->recv, 1, &data, &size, &tag, &r->mr, false, &r->req), 0);
	if (!s->req && !s->done)
		CHECK_INT(ha_isend(p->send, s->data, size, 0, s->mr, &s->req), 0);
	if (r->req && !r->done)
		CHECK_INT(ha_test(r->req, &r->done, NULL), 0);
	if (s->req && !s->done)
		CHECK_INT(ha_test(s->req, &s->done, NULL), 0);
	return s->done && r->done;
}

void pair_messages(struct pair *p, struct pair_side *send, struct pair_side *recv, int n,
		   size_t size)
{
	for (int i = 0; i < n; i++) {
		int k = 0;

		send->req = recv->req = NULL;
		send->done = recv->done = 0;
		send->data[0] = (char)i;
		while (!advance_messages(p, send, recv, size) && k < PAIR_TRIES_MAX)
			pair_idle(p, k++);
		CHECK(send->done && recv->done);
		CHECK_INT(recv->data[0], (char)i);
	}
}
