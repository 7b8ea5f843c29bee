/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault-injecting filter: calls that fail, completions that change, vanish or come late,
 * filters on filters. */
#include "tests/rdma/verbs/filter.h"

#include <errno.h>

#include "base/check.h"
#include "tests/rdma/verbs/fake.h"

static struct fake_device device = { .name = "fake0", .nports = 1 };
static struct fake_verbs fake;

static void calls_fail_by_number(void)
{
	struct ha_verbs_filter *filter;
	const struct ha_verbs_ops *v;
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	int n;

	CHECK_INT(ha_verbs_filter_create(&fake.ops, &filter), 0);
	v = ha_verbs_filter_ops(filter);
	CHECK_TEXT(v->name, "fake");
	CHECK(v->optional_access);
	CHECK_INT(v->device_list(v, &list, &n), 0);
	CHECK_INT(n, 1);
	CHECK_INT(v->open(v, list[0], &context), 0);

	CHECK_INT(ha_verbs_filter_fail(filter, HA_FILTER_alloc_pd, 2, 2, -ENOMEM), 0);
	for (int i = 1; i <= 5; i++) {
		int rc = v->alloc_pd(v, context, &pd);

		CHECK_INT(rc, i == 2 || i == 3 ? -ENOMEM : 0);
		if (!rc)
			CHECK_INT(v->dealloc_pd(v, pd), 0);
	}
	CHECK_INT(ha_verbs_filter_calls(filter, HA_FILTER_alloc_pd), 5);
	CHECK_INT(ha_verbs_filter_calls(filter, HA_FILTER_dealloc_pd), 3);
	CHECK_INT(ha_verbs_filter_fail(filter, HA_FILTER_alloc_pd, 1, HA_FILTER_FOREVER, -EIO), 0);
	CHECK_INT(v->alloc_pd(v, context, &pd), -EIO);
	ha_verbs_filter_clear(filter);
	CHECK_INT(v->alloc_pd(v, context, &pd), 0);
	v->dealloc_pd(v, pd);
	CHECK_INT(v->create_qp(v, pd, NULL, NULL), -EOPNOTSUPP); /* the inner table's own answer */

	CHECK_INT(ha_verbs_filter_fail(filter, HA_FILTER_close, 1, 1, -EBUSY), 0);
	CHECK_INT(v->close(v, context), -EBUSY);
	CHECK_INT(v->close(v, context), 0);
	v->device_list_free(v, list);
	for (int i = 1; i < HA_FILTER_RULES_MAX; i++)
		CHECK_INT(ha_verbs_filter_fail(filter, HA_FILTER_close, 1, 1, -EBUSY), 0);
	CHECK_INT(ha_verbs_filter_fail(filter, HA_FILTER_close, 1, 1, -EBUSY), -ENOSPC);
	ha_verbs_filter_destroy(filter);
	ha_verbs_filter_destroy(NULL);
	fake_verbs_done(&fake);
}

/* An open context with a queue pair, a queue and a shared receive queue that belong to it. */
struct rig {
	struct ibv_device **list;
	struct ibv_context *context;
	struct ha_verbs_hot hot;
	struct ibv_qp qp;
	struct ibv_srq srq;
	struct ibv_cq cq;
};

static void rig_open(struct rig *r, const struct ha_verbs_ops *v)
{
	int n;

	CHECK_INT(v->device_list(v, &r->list, &n), 0);
	CHECK_INT(v->open(v, r->list[0], &r->context), 0);
	CHECK_INT(v->hot(v, r->context, &r->hot), 0);
	r->qp.context = r->srq.context = r->cq.context = r->context;
}

static void rig_close(struct rig *r, const struct ha_verbs_ops *v)
{
	CHECK_INT(v->close(v, r->context), 0);
	v->device_list_free(v, r->list);
	fake_verbs_done(&fake);
}

static void posts_fail_by_number(void)
{
	struct ha_verbs_filter *filter;
	struct ibv_send_wr send = { 0 }, *bad_send = NULL;
	struct ibv_recv_wr recv = { 0 }, *bad_recv = NULL;
	struct ibv_wc wc[4];
	struct rig r;

	CHECK_INT(ha_verbs_filter_create(&fake.ops, &filter), 0);
	rig_open(&r, ha_verbs_filter_ops(filter));
	ha_verbs_filter_fail(filter, HA_FILTER_post_send, 2, 1, -ENOMEM);
	ha_verbs_filter_fail(filter, HA_FILTER_post_recv, 1, 1, -EINVAL);
	ha_verbs_filter_fail(filter, HA_FILTER_post_srq_recv, 1, 1, -EINVAL);
	ha_verbs_filter_fail(filter, HA_FILTER_poll_cq, 1, 1, -EIO);
	ha_verbs_filter_fail(filter, HA_FILTER_req_notify_cq, 1, 1, -EIO);
	fake.posted = 0;
	CHECK_INT(r.hot.post_send(&r.qp, &send, &bad_send), 0);
	CHECK_INT(r.hot.post_send(&r.qp, &send, &bad_send), ENOMEM);
	CHECK(bad_send == &send);
	CHECK_INT(r.hot.post_send(&r.qp, &send, &bad_send), 0);
	CHECK_INT(r.hot.post_recv(&r.qp, &recv, &bad_recv), EINVAL);
	CHECK(bad_recv == &recv);
	CHECK_INT(r.hot.post_recv(&r.qp, &recv, &bad_recv), 0);
	CHECK_INT(r.hot.post_srq_recv(&r.srq, &recv, &bad_recv), EINVAL);
	CHECK_INT(r.hot.post_srq_recv(&r.srq, &recv, &bad_recv), 0);
	CHECK_INT(fake.posted, 4);
	CHECK_INT(r.hot.poll_cq(&r.cq, 4, wc), -EIO);
	CHECK_INT(r.hot.poll_cq(&r.cq, 4, wc), 0);
	CHECK_INT(r.hot.req_notify_cq(&r.cq, 0), EIO);
	CHECK_INT(r.hot.req_notify_cq(&r.cq, 0), 0);
	rig_close(&r, ha_verbs_filter_ops(filter));
	ha_verbs_filter_destroy(filter);
}

static void completions_change_vanish_and_wait(void)
{
	struct ha_verbs_filter *filter;
	struct ibv_wc wc[4];
	struct rig r;

	CHECK_INT(ha_verbs_filter_create(&fake.ops, &filter), 0);
	rig_open(&r, ha_verbs_filter_ops(filter));
	fake.next_wr_id = 0;
	ha_verbs_filter_completion_error(filter, 2, 1, IBV_WC_RETRY_EXC_ERR);
	ha_verbs_filter_completion_drop(filter, 3, 1);
	ha_verbs_filter_completion_delay(filter, 4, 1, 2);
	fake.completions = 6;
	CHECK_INT(r.hot.poll_cq(&r.cq, 4, wc), 2); /* 1, 2; 3 is lost, 4 waits */
	CHECK_INT(wc[0].wr_id, 1);
	CHECK_INT(wc[0].status, IBV_WC_SUCCESS);
	CHECK_INT(wc[1].wr_id, 2);
	CHECK_INT(wc[1].status, IBV_WC_RETRY_EXC_ERR);
	CHECK_INT(r.hot.poll_cq(&r.cq, 1, wc), 1);
	CHECK_INT(wc[0].wr_id, 5);
	CHECK_INT(r.hot.poll_cq(&r.cq, 4, wc), 2);
	CHECK_INT(wc[0].wr_id, 6);
	CHECK_INT(wc[1].wr_id, 4);
	CHECK_INT(r.hot.poll_cq(&r.cq, 4, wc), 0);
	CHECK_INT(ha_verbs_filter_completions(filter), 6);

	/* A cleared filter lets go of what it holds; a destroyed one forgets it. */
	ha_verbs_filter_completion_delay(filter, 1, HA_FILTER_FOREVER, 1000);
	fake.completions = 2;
	CHECK_INT(r.hot.poll_cq(&r.cq, 4, wc), 0);
	ha_verbs_filter_clear(filter);
	CHECK_INT(r.hot.poll_cq(&r.cq, 1, wc), 1);
	CHECK_INT(wc[0].wr_id, 7);
	rig_close(&r, ha_verbs_filter_ops(filter));
	ha_verbs_filter_destroy(filter);
}

static void filters_stack(void)
{
	struct ha_verbs_filter *filters[HA_FILTER_DEPTH_MAX + 1];
	const struct ha_verbs_ops *v = &fake.ops;
	struct ibv_send_wr send = { 0 }, *bad = NULL;
	struct ha_verbs_hot hot;
	struct ibv_wc wc[8];
	struct rig r;

	for (int i = 0; i <= HA_FILTER_DEPTH_MAX; i++) {
		CHECK_INT(ha_verbs_filter_create(v, &filters[i]), 0);
		v = ha_verbs_filter_ops(filters[i]);
	}
	CHECK_INT(v->hot(v, NULL, &hot), -ENOSPC); /* one too many */
	ha_verbs_filter_destroy(filters[HA_FILTER_DEPTH_MAX]);
	v = ha_verbs_filter_ops(filters[HA_FILTER_DEPTH_MAX - 1]);
	rig_open(&r, v);
	CHECK_INT(v->hot(v, r.context, &r.hot), 0); /* twice is as once */
	for (int i = 0; i < HA_FILTER_DEPTH_MAX; i++) {
		ha_verbs_filter_fail(filters[i], HA_FILTER_post_send, 1, 1, -100 - i);
		ha_verbs_filter_completion_drop(filters[i], 1, 1);
	}
	/* The outermost fails first, and what fails does not go further down. */
	for (int i = HA_FILTER_DEPTH_MAX - 1; i >= 0; i--)
		CHECK_INT(r.hot.post_send(&r.qp, &send, &bad), 100 + i);
	fake.posted = 0;
	CHECK_INT(r.hot.post_send(&r.qp, &send, &bad), 0);
	CHECK_INT(fake.posted, 1);
	fake.completions = 6;
	CHECK_INT(r.hot.poll_cq(&r.cq, 8, wc), 6 - HA_FILTER_DEPTH_MAX);
	rig_close(&r, v);
	for (int i = 0; i < HA_FILTER_DEPTH_MAX; i++)
		ha_verbs_filter_destroy(filters[i]);
}

static void passes_what_cannot_fail(void)
{
	struct ha_verbs_filter *filter;
	const struct ha_verbs_ops *v;
	struct ibv_async_event event = { 0 };

	CHECK_INT(ha_verbs_filter_create(&fake.ops, &filter), 0);
	v = ha_verbs_filter_ops(filter);
	CHECK_INT(v->device_guid(v, NULL), 0);
	v->ack_async_event(v, &event);
	v->ack_cq_events(v, NULL, 1);
	ha_verbs_filter_destroy(filter);
}

int main(void)
{
	fake_verbs_init(&fake, &device, 1);
	calls_fail_by_number();
	posts_fail_by_number();
	completions_change_vanish_and_wait();
	filters_stack();
	passes_what_cannot_fail();
	return 0;
}
