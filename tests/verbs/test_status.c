/* SPDX-License-Identifier: BSD-3-Clause */
/* Every status and event has words, and an event a scope; libibverbs' numbers beyond them do too. */
#include "verbs/status.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/base/check.h"
#include "verbs/ops.h"

static void every_number_has_words(void)
{
	for (int i = IBV_WC_SUCCESS; i <= IBV_WC_GENERAL_ERR; i++) {
		CHECK(strcmp(ha_verbs_status_name(i), "unknown"));
		CHECK(*ha_verbs_status_advice(i));
	}
	for (int i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_WQ_FATAL; i++) {
		CHECK(strcmp(ha_verbs_event_name(i), "unknown"));
		CHECK(*ha_verbs_event_advice(i));
	}
	CHECK_TEXT(ha_verbs_status_name(9999), "unknown");
	CHECK_TEXT(ha_verbs_event_name(-1), "unknown");
	CHECK_TEXT(ha_verbs_port_state_name(IBV_PORT_DOWN), "down");
	CHECK_TEXT(ha_verbs_port_state_name(77), "in an unknown state");
}

static void events_have_scopes(void)
{
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_PORT_ERR), HA_SCOPE_PORT);
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_GID_CHANGE), HA_SCOPE_PORT);
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_QP_LAST_WQE_REACHED), HA_SCOPE_QP);
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_CQ_ERR), HA_SCOPE_CQ);
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_SRQ_LIMIT_REACHED), HA_SCOPE_SRQ);
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_WQ_FATAL), HA_SCOPE_WQ);
	CHECK_INT(ha_verbs_event_scope(IBV_EVENT_DEVICE_FATAL), HA_SCOPE_DEVICE);
}

static void events_do_not_wait(void)
{
	struct ibv_context context = { 0 };
	int fds[2];
	char byte;

	CHECK(!pipe(fds));
	context.async_fd = fds[0];
	CHECK_INT(ha_verbs_events_nonblock(&context), 0);
	CHECK_INT(read(fds[0], &byte, 1), -1);
	CHECK_INT(errno, EAGAIN);
	close(fds[0]);
	close(fds[1]);
	context.async_fd = -1;
	CHECK_INT(ha_verbs_events_nonblock(&context), -EBADF);
}

static void a_gap_says_not_supported(void)
{
	struct ha_verbs_ops v = { .name = "empty" };
	struct ibv_async_event event = { 0 };

	ha_verbs_ops_fill(&v);
#define SUPPORTED(function, ...) CHECK_INT(v.function(&v, ##__VA_ARGS__), -EOPNOTSUPP)
	SUPPORTED(device_list, NULL, NULL);
	SUPPORTED(fork_init);
	SUPPORTED(reg_dmabuf_mr, NULL, 0, 0, 0, -1, 0, NULL);
	SUPPORTED(query_ece, NULL, NULL);
	CHECK_INT(v.device_guid(&v, NULL), 0);
	v.device_list_free(&v, NULL);
	v.ack_async_event(&v, &event);
	v.ack_cq_events(&v, NULL, 0);
}

int main(void)
{
	every_number_has_words();
	events_have_scopes();
	events_do_not_wait();
	a_gap_says_not_supported();
	return 0;
}
