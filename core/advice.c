/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/advice.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct text {
	const char *name, *advice;
};

static const char report[] = "this should not happen: please report it with the log of both ranks";
static const char path[] =
	"the path to the peer is broken: cable, switch, the peer's port, or on RoCE its address and flow control (PFC/ECN)";

/* IBTA 11.6.2 lists them. */
static const struct text statuses[] = {
	[IBV_WC_SUCCESS] = { "success", "" },
	[IBV_WC_LOC_LEN_ERR] = { "local length error", report },
	[IBV_WC_LOC_QP_OP_ERR] = { "local queue pair operation error", report },
	[IBV_WC_LOC_EEC_OP_ERR] = { "local EE context operation error", report },
	[IBV_WC_LOC_PROT_ERR] = { "local protection error", "was the buffer deregistered or freed while it was being sent?" },
	[IBV_WC_WR_FLUSH_ERR] = { "flushed after an earlier error", "the first error is in the lines before" },
	[IBV_WC_MW_BIND_ERR] = { "memory window bind error", report },
	[IBV_WC_BAD_RESP_ERR] = { "bad response", "the peer's NIC or its firmware misbehaves" },
	[IBV_WC_LOC_ACCESS_ERR] = { "local access error", report },
	[IBV_WC_REM_INV_REQ_ERR] = { "remote invalid request", report },
	[IBV_WC_REM_ACCESS_ERR] = { "remote access error",
				    "was the peer's buffer deregistered or freed while it was receiving?" },
	[IBV_WC_REM_OP_ERR] = { "remote operation error", "the peer's NIC could not complete it; see the peer's log" },
	[IBV_WC_RETRY_EXC_ERR] = { "no answer from the peer", path },
	[IBV_WC_RNR_RETRY_EXC_ERR] = { "the peer had no receive ready", report },
	[IBV_WC_LOC_RDD_VIOL_ERR] = { "local RDD violation", report },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { "remote invalid RD request", report },
	[IBV_WC_REM_ABORT_ERR] = { "remote abort", "see the peer's log" },
	[IBV_WC_INV_EECN_ERR] = { "invalid EE context number", report },
	[IBV_WC_INV_EEC_STATE_ERR] = { "invalid EE context state", report },
	[IBV_WC_FATAL_ERR] = { "fatal error", "the device has failed; see dmesg" },
	[IBV_WC_RESP_TIMEOUT_ERR] = { "response timeout", path },
	[IBV_WC_GENERAL_ERR] = { "general error", "see dmesg" },
};

static const char port[] = "check cable, transceiver and switch port (ip link, ibstat)";
static const char reset[] = "see dmesg; the driver may need a reset of the device";

/* IBTA 11.6.3. */
static const struct text events[] = {
	[IBV_EVENT_CQ_ERR] = { "completion queue error", report },
	[IBV_EVENT_QP_FATAL] = { "queue pair failed", reset },
	[IBV_EVENT_QP_REQ_ERR] = { "queue pair got an invalid request", report },
	[IBV_EVENT_QP_ACCESS_ERR] = { "queue pair got an access violation",
				      "was a buffer deregistered or freed while it was receiving?" },
	[IBV_EVENT_COMM_EST] = { "communication established", "" },
	[IBV_EVENT_SQ_DRAINED] = { "send queue drained", "" },
	[IBV_EVENT_PATH_MIG] = { "path migrated", "HCA path migration (APM) should be off" },
	[IBV_EVENT_PATH_MIG_ERR] = { "path migration failed", "HCA path migration (APM) should be off" },
	[IBV_EVENT_DEVICE_FATAL] = { "device failed", reset },
	[IBV_EVENT_PORT_ACTIVE] = { "port is active", "" },
	[IBV_EVENT_PORT_ERR] = { "port is down", port },
	[IBV_EVENT_LID_CHANGE] = { "LID has changed", "existing connections may fail" },
	[IBV_EVENT_PKEY_CHANGE] = { "partition keys have changed", "existing connections may fail" },
	[IBV_EVENT_SM_CHANGE] = { "subnet manager has changed", "" },
	[IBV_EVENT_SRQ_ERR] = { "shared receive queue failed", reset },
	[IBV_EVENT_SRQ_LIMIT_REACHED] = { "shared receive queue runs low", "" },
	[IBV_EVENT_QP_LAST_WQE_REACHED] = { "queue pair has used its last receive", "" },
	[IBV_EVENT_CLIENT_REREGISTER] = { "subnet manager asks for registration", "" },
	[IBV_EVENT_GID_CHANGE] = { "GID table has changed", "if an address of the port changed, connections over it fail" },
	[IBV_EVENT_WQ_FATAL] = { "work queue failed", reset },
};

static const struct text *find(const struct text *table, unsigned n, unsigned i)
{
	static const struct text unknown = { "unknown", "see dmesg" };

	return i < n && table[i].name ? &table[i] : &unknown;
}

const char *ha_wc_status_name(enum ibv_wc_status status)
{
	return find(statuses, COUNT(statuses), status)->name;
}

const char *ha_wc_status_advice(enum ibv_wc_status status)
{
	return find(statuses, COUNT(statuses), status)->advice;
}

const char *ha_event_name(enum ibv_event_type type)
{
	return find(events, COUNT(events), type)->name;
}

const char *ha_event_advice(enum ibv_event_type type)
{
	return find(events, COUNT(events), type)->advice;
}
