/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every verb of the set-up fails once, at either end: nothing is left over, the reason is logged in
 * one line, and the next attempt works.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"
#include "tests/rdma/verbs/filter.h"

#include <errno.h>

static struct world w;
static struct ha_verbs_filter *filter;

/* Listen, connect, accept. Returns the first error. */
static int attempt_connection(const struct ha_comm_opts *opts)
{
	char handle[HA_HANDLE_MAX];
	struct ha_listen *listen;
	struct ha_send *send = NULL;
	struct ha_recv *recv = NULL;
	struct ha_mr *mr;
	int err = ha_listen(w.a, 0, opts, handle, &listen);

	if (err)
		return err;
	for (int i = 0; i < 200 && !err && !(send && recv); i++) {
		err = ha_connect(w.b, 0, opts, handle, &send);
		if (send)
			for (; i < 200 && !recv; i++)
				CHECK_INT(ha_accept(listen, &recv), 0);
		else
			CHECK_INT(ha_accept(listen, &recv), 0);
	}
	CHECK(err || (send && recv));
	if (!err)
		err = ha_reg_mr(&recv->b, &w, sizeof(w), HA_MEM_CUDA, 0, -1, 0, &mr);
	if (send)
		ha_close_send(send);
	if (recv)
		ha_close_recv(recv);
	ha_close_listen(listen);
	return err;
}

static void fail_each_call(enum ha_filter_call call, const char *name, bool listener)
{
	const struct ha_comm_opts two = { .traffic_class = -1, .nmore = 1, .more = { 1 } };

	for (uint64_t nth = 1; nth < 100; nth++) {
		uint64_t calls;
		int err, warnings;

		world_prepare(&w);
		CHECK_INT(ha_verbs_filter_create(&w.dummy[!listener].fake.ops, &filter), 0);
		CHECK_INT(world_open_over(&w, listener ? ha_verbs_filter_ops(filter) : NULL,
					  listener ? NULL : ha_verbs_filter_ops(filter)),
			  0);
		CHECK_INT(ha_verbs_filter_fail(filter, call, nth, 1, -EIO), 0);
		calls = ha_verbs_filter_calls(filter, call);
		lines_catch();
		err = attempt_connection(&two);
		warnings = lines_warnings();
		calls = ha_verbs_filter_calls(filter, call) - calls;
		/* Closing changes the queue pair's state too, and cannot fail. */
		if (calls >= nth && call != HA_FILTER_modify_qp && (!err || !warnings)) {
			fprintf(stderr, "%s number %d at the %s: error %d, %d lines\n", name,
				(int)nth, listener ? "listener" : "connector", err, warnings);
			exit(1);
		}
		CHECK(!err == !warnings);
		ha_verbs_filter_clear(filter);
		CHECK_INT(attempt_connection(&two), 0);
		world_close(&w);
		ha_verbs_filter_destroy(filter);
		if (calls < nth)
			return;
	}
	CHECK(0);
}

/* The context itself. */
static void contexts_are_unwound(void)
{
	struct ha_ctx_params params = {
		.config = &w.config, .clock = &w.clock.clock, .oob = &oob_mem_ops, .oob_net = &w.net
	};
	struct ha_ctx *ctx;

	world_prepare(&w);
	params.verbs = &w.dummy[0].fake.ops;
	w.dummy[0].fake.list_error = -EIO;
	CHECK_INT(ha_ctx_create(&params, &ctx), -EIO);
	w.dummy[0].fake.list_error = 0;
	w.dummy[0].devices[0].open_error = w.dummy[0].devices[1].open_error = -EACCES;
	CHECK_INT(ha_ctx_create(&params, &ctx), -ENODEV);
	w.dummy[0].devices[1].open_error = 0;
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	CHECK_INT(ha_ctx_ndevices(ctx), 1);
	ha_ctx_destroy(ctx);
	params.verbs = NULL;
	strcpy(w.config.verbs, "/nonexistent/libibverbs.so");
	CHECK_INT(ha_ctx_create(&params, &ctx), -ENOENT);
	params.verbs = &w.dummy[0].fake.ops;
	params.oob = NULL;
	strcpy(w.config.socket_ifname, "=nosuchinterface");
	CHECK_INT(ha_ctx_create(&params, &ctx), -ENODEV);
	dummy_done(&w.dummy[0]);
}

int main(void)
{
	for (int listener = 0; listener < 2; listener++) {
#define EACH(call) fail_each_call(HA_FILTER_##call, #call, listener)
		EACH(alloc_pd);
		EACH(create_srq);
		EACH(reg_mr);
		EACH(create_cq);
		EACH(create_qp);
		EACH(modify_qp);
	}
	contexts_are_unwound();
	return 0;
}
