/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every status and event has words, a status a class and an event a scope; libibverbs' numbers
 * beyond them do too. The argument is docs/operations.md, whose table of statuses has to be ours.
 */
#include "rdma/verbs/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "rdma/verbs/ops.h"

static void every_number_has_words(void)
{
	for (int i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
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

static void statuses_have_classes(void)
{
	static const enum ibv_wc_status defects[] = { IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR,
						      IBV_WC_LOC_ACCESS_ERR };
	static const enum ibv_wc_status ours[] = { IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_EEC_OP_ERR,
						   IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR };
	static const enum ibv_wc_status paths[] = { IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_OP_ERR,
						    IBV_WC_REM_ABORT_ERR, IBV_WC_BAD_RESP_ERR };

	CHECK_INT(ha_verbs_status_class(IBV_WC_SUCCESS), HA_STATUS_OK);
	CHECK_INT(ha_verbs_status_class(IBV_WC_WR_FLUSH_ERR), HA_STATUS_FLUSHED);
	CHECK_INT(ha_verbs_status_class(IBV_WC_REM_INV_REQ_ERR), HA_STATUS_REFUSED);
	CHECK_INT(ha_verbs_status_class(IBV_WC_REM_ACCESS_ERR), HA_STATUS_REFUSED);
	CHECK(!ha_verbs_status_local(IBV_WC_REM_INV_REQ_ERR) &&
	      !ha_verbs_status_local(IBV_WC_REM_ACCESS_ERR));
	CHECK_INT(ha_verbs_status_class(IBV_WC_RNR_RETRY_EXC_ERR), HA_STATUS_TRANSIENT);
	CHECK_INT(ha_verbs_status_class(IBV_WC_RESP_TIMEOUT_ERR), HA_STATUS_TRANSIENT);
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		CHECK_INT(ha_verbs_status_class(defects[i]), HA_STATUS_FATAL);
		CHECK(!ha_verbs_status_local(defects[i]));
	}
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		CHECK_INT(ha_verbs_status_class(ours[i]), HA_STATUS_RECOVERABLE);
		CHECK(ha_verbs_status_local(ours[i]));
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		CHECK_INT(ha_verbs_status_class(paths[i]), HA_STATUS_RECOVERABLE);
		CHECK(!ha_verbs_status_local(paths[i]));
	}
}

static const char *name_class(enum ha_status_class class)
{
	static const char *const names[] = {
		[HA_STATUS_OK] = "ok",
		[HA_STATUS_FLUSHED] = "flushed",
		[HA_STATUS_TRANSIENT] = "transient",
		[HA_STATUS_RECOVERABLE] = "recoverable",
		[HA_STATUS_REFUSED] = "refused",
		[HA_STATUS_FATAL] = "fatal",
	};

	return (unsigned)class < sizeof(names) / sizeof(names[0]) ? names[class] : NULL;
}

/* Only the two harmless classes are for what is no error of this path's own. */
static void every_number_has_a_class(void)
{
	for (int i = -2; i < 100; i++) {
		enum ha_status_class class = ha_verbs_status_class(i);

		CHECK(name_class(class));
		CHECK((class == HA_STATUS_OK) == (i == IBV_WC_SUCCESS));
		CHECK((class == HA_STATUS_FLUSHED) == (i == IBV_WC_WR_FLUSH_ERR));
		CHECK(!ha_verbs_status_local(i) || class == HA_STATUS_RECOVERABLE);
		if (i < 0 || i > IBV_WC_TM_RNDV_INCOMPLETE)
			CHECK_INT(class, HA_STATUS_RECOVERABLE);
	}
}

#define SYMBOL(status) [IBV_WC_##status] = "IBV_WC_" #status
static const char *const symbols[] = {
	SYMBOL(SUCCESS),
	SYMBOL(LOC_LEN_ERR),
	SYMBOL(LOC_QP_OP_ERR),
	SYMBOL(LOC_EEC_OP_ERR),
	SYMBOL(LOC_PROT_ERR),
	SYMBOL(WR_FLUSH_ERR),
	SYMBOL(MW_BIND_ERR),
	SYMBOL(BAD_RESP_ERR),
	SYMBOL(LOC_ACCESS_ERR),
	SYMBOL(REM_INV_REQ_ERR),
	SYMBOL(REM_ACCESS_ERR),
	SYMBOL(REM_OP_ERR),
	SYMBOL(RETRY_EXC_ERR),
	SYMBOL(RNR_RETRY_EXC_ERR),
	SYMBOL(LOC_RDD_VIOL_ERR),
	SYMBOL(REM_INV_RD_REQ_ERR),
	SYMBOL(REM_ABORT_ERR),
	SYMBOL(INV_EECN_ERR),
	SYMBOL(INV_EEC_STATE_ERR),
	SYMBOL(FATAL_ERR),
	SYMBOL(RESP_TIMEOUT_ERR),
	SYMBOL(GENERAL_ERR),
	SYMBOL(TM_ERR),
	SYMBOL(TM_RNDV_INCOMPLETE),
};

static void the_docs_have_the_table(const char *path)
{
	static char text[256 * 1024];
	FILE *file = fopen(path, "r");
	int missing = 0;

	CHECK(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	for (int i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
		char row[200];

		snprintf(row, sizeof(row), "| %d | `%s` | %s | %s | %s |\n", i, symbols[i],
			 ha_verbs_status_name(i), name_class(ha_verbs_status_class(i)),
			 ha_verbs_status_local(i) ? "yes" : "no");
		if (strstr(text, row))
			continue;
		missing++;
		fprintf(stderr, "%s misses: %s", path, row);
	}
	CHECK_INT(missing, 0);
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

static void a_gap_is_not_supported(void)
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

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	every_number_has_words();
	statuses_have_classes();
	every_number_has_a_class();
	the_docs_have_the_table(argv[1]);
	events_have_scopes();
	events_do_not_wait();
	a_gap_is_not_supported();
	return 0;
}
