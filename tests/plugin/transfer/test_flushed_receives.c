/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that breaks a queue pair completes the receives which that one had taken of the shared
 * queue with an error. They are gone from the queue, as those with a message are, and go back into
 * it: it was shorter for good by each.
 */
#include "base/check.h"
#include "tests/plugin/dummy.h"

#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"

#define TAKEN 3 /* receives in one flushed batch; behind them is a clear-to-send */

static unsigned waiting, given_back; /* completions to come; receives */

static int poll_flushed(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int i;

	(void)cq;
	for (i = 0; i < n && waiting; i++) {
		waiting--;
		wc[i] = (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR,
					  .wr_id = waiting ? 0 : ha_wr_id(HA_WR_CTS, 0, 1) };
	}
	return i;
}

static int count_receives(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	(void)bad;
	for (; wr; wr = wr->next)
		given_back++;
	return 0;
}

/* polled: by a test or the driver; then more come at the end, when nobody polls any more. */
static void count_given_back(bool polled)
{
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;
	struct ha_rail *r;
	struct world w;

	world_open(&w);
	world_connect(&w, &listen, &send, &recv);
	r = &recv->b.rail[0];
	r->opening->nic->hot.poll_cq = poll_flushed;
	r->opening->nic->hot.post_srq_recv = count_receives;
	given_back = 0;
	if (polled) {
		waiting = TAKEN + 1;
		pthread_mutex_lock(&w.a->drive);
		CHECK_INT(ha_rail_poll(&recv->b, r), TAKEN + 1);
		pthread_mutex_unlock(&w.a->drive);
		CHECK_INT(r->rq_consumed - r->rq_base, TAKEN);
		CHECK_INT(r->state, HA_RAIL_FENCING);
	}
	waiting = TAKEN + 1;
	ha_close_recv(recv);
	CHECK_INT(waiting, 0);
	CHECK_INT(given_back, polled ? 2 * TAKEN : TAKEN);
	ha_close_send(send);
	ha_close_listen(listen);
	world_close(&w);
}

/* Such a rail is not polled any more, though receives of it came in. */
static void not_polled_again(void)
{
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;
	struct world w;

	world_open(&w);
	world_connect(&w, &listen, &send, &recv);
	recv->b.rail[0].opening->nic->hot.poll_cq = poll_flushed;
	ha_policy_poll(&recv->b, 0);
	waiting = TAKEN + 1;
	ha_bundle_look_around(&recv->b);
	CHECK_INT(recv->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(recv->b.poll.rails, 0);
	ha_close_recv(recv);
	ha_close_send(send);
	ha_close_listen(listen);
	world_close(&w);
}

int main(void)
{
	count_given_back(false);
	count_given_back(true);
	not_polled_again();
	return 0;
}
