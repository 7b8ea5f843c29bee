/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

struct words {
	const char *name, *advice;
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char report[] = "this is a defect; please report it with the log";

static const struct words statuses[] = {
	[IBV_WC_SUCCESS] = { "success", "nothing to do" },
	[IBV_WC_LOC_LEN_ERR] = { "local length error",
		"a message was longer than its receive buffer; check that all ranks run the same version" },
	[IBV_WC_LOC_QP_OP_ERR] = { "local queue pair operation error",
		"the NIC could not carry out a request, often because its port went down; check the cable and dmesg" },
	[IBV_WC_LOC_EEC_OP_ERR] = { "local EE context operation error", report },
	[IBV_WC_LOC_PROT_ERR] = { "local protection error",
		"a buffer was freed or unregistered while in use; check that the application keeps it "
		"until its operation ends" },
	[IBV_WC_WR_FLUSH_ERR] = { "flushed", "the queue pair is in error; an earlier line says why" },
	[IBV_WC_MW_BIND_ERR] = { "memory window bind error", report },
	[IBV_WC_BAD_RESP_ERR] = { "bad response",
		"the peer or the fabric answered out of protocol; check firmware versions" },
	[IBV_WC_LOC_ACCESS_ERR] = { "local access error",
		"a buffer was registered without the right that is needed; please report it with the log" },
	[IBV_WC_REM_INV_REQ_ERR] = { "remote invalid request",
		"the peer refused a request; check that all ranks run the same version" },
	[IBV_WC_REM_ACCESS_ERR] = { "remote access error",
		"the peer's buffer is gone or its key is stale; check whether the peer restarted" },
	[IBV_WC_REM_OP_ERR] = { "remote operation error",
		"the peer's NIC could not carry a request out; check the peer's dmesg" },
	[IBV_WC_RETRY_EXC_ERR] = { "transport retries exceeded",
		"the peer does not answer: check cables, switch ports, and on RoCE MTU, flow control and the GID" },
	[IBV_WC_RNR_RETRY_EXC_ERR] = { "receiver not ready retries exceeded",
		"the peer stopped taking data; check whether it hangs" },
	[IBV_WC_LOC_RDD_VIOL_ERR] = { "local RDD violation", report },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { "remote invalid RD request", report },
	[IBV_WC_REM_ABORT_ERR] = { "remote aborted", "the peer gave the operation up; look at its log" },
	[IBV_WC_INV_EECN_ERR] = { "invalid EE context number", report },
	[IBV_WC_INV_EEC_STATE_ERR] = { "invalid EE context state", report },
	[IBV_WC_FATAL_ERR] = { "fatal error", "the NIC failed; check dmesg, reset or replace it" },
	[IBV_WC_RESP_TIMEOUT_ERR] = { "response timeout", "the peer does not answer: check cables and switch ports" },
	[IBV_WC_GENERAL_ERR] = { "general error", "the NIC reports an error of its own; check dmesg" },
};

static const struct words events[] = {
	[IBV_EVENT_CQ_ERR] = { "completion queue error",
		"a completion queue overflowed; lower HA_NCCL_WR_PER_CONN or the number of connections" },
	[IBV_EVENT_QP_FATAL] = { "queue pair fatal error", "check dmesg for the NIC's own report" },
	[IBV_EVENT_QP_REQ_ERR] = { "queue pair request error",
		"a peer sent what the queue pair does not allow; check that all ranks run the same version" },
	[IBV_EVENT_QP_ACCESS_ERR] = { "queue pair access error",
		"a peer wrote where it may not; check whether it restarted" },
	[IBV_EVENT_COMM_EST] = { "communication established", "nothing to do" },
	[IBV_EVENT_SQ_DRAINED] = { "send queue drained", "nothing to do" },
	[IBV_EVENT_PATH_MIG] = { "path migrated",
		"the driver's path migration (APM) acted; disable it, hawser moves paths itself" },
	[IBV_EVENT_PATH_MIG_ERR] = { "path migration failed", "disable the driver's path migration (APM)" },
	[IBV_EVENT_DEVICE_FATAL] = { "device fatal error", "the NIC failed; check dmesg, reset or replace it" },
	[IBV_EVENT_PORT_ACTIVE] = { "port active", "nothing to do" },
	[IBV_EVENT_PORT_ERR] = { "port down", "check the cable, the transceiver and the switch port" },
	[IBV_EVENT_LID_CHANGE] = { "LID changed", "the subnet manager renumbered; nothing to do unless it repeats" },
	[IBV_EVENT_PKEY_CHANGE] = { "partition keys changed",
		"check NCCL_IB_PKEY against the subnet manager's partitions" },
	[IBV_EVENT_SM_CHANGE] = { "subnet manager changed", "nothing to do unless it repeats" },
	[IBV_EVENT_SRQ_ERR] = { "shared receive queue error", "check dmesg for the NIC's own report" },
	[IBV_EVENT_SRQ_LIMIT_REACHED] = { "shared receive queue low", "nothing to do" },
	[IBV_EVENT_QP_LAST_WQE_REACHED] = { "last receive of a queue pair taken", "nothing to do" },
	[IBV_EVENT_CLIENT_REREGISTER] = { "subnet manager asks to register again", "nothing to do" },
	[IBV_EVENT_GID_CHANGE] = { "GID table changed",
		"an address of the interface came or went; nothing to do unless it repeats" },
	[IBV_EVENT_WQ_FATAL] = { "work queue fatal error", "check dmesg for the NIC's own report" },
};

static const struct words *words_at(const struct words *table, size_t n, unsigned index)
{
	static const struct words unknown = { "unknown", "look the number up in the driver's documentation" };

	return index < n && table[index].name ? &table[index] : &unknown;
}

const char *ha_verbs_status_name(enum ibv_wc_status status)
{
	return words_at(statuses, COUNT(statuses), status)->name;
}

const char *ha_verbs_status_advice(enum ibv_wc_status status)
{
	return words_at(statuses, COUNT(statuses), status)->advice;
}

const char *ha_verbs_event_name(enum ibv_event_type type)
{
	return words_at(events, COUNT(events), type)->name;
}

const char *ha_verbs_event_advice(enum ibv_event_type type)
{
	return words_at(events, COUNT(events), type)->advice;
}

enum ha_verbs_scope ha_verbs_event_scope(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return HA_SCOPE_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return HA_SCOPE_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return HA_SCOPE_SRQ;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return HA_SCOPE_PORT;
	case IBV_EVENT_WQ_FATAL:
		return HA_SCOPE_WQ;
	default:
		return HA_SCOPE_DEVICE;
	}
}

const char *ha_verbs_port_state_name(enum ibv_port_state state)
{
	static const char *const names[] = { "in no state", "down", "initialising", "armed", "active", "deferred" };

	return (unsigned)state < COUNT(names) ? names[state] : "in an unknown state";
}

int ha_verbs_events_nonblock(struct ibv_context *context)
{
	int flags = fcntl(context->async_fd, F_GETFL);

	if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return 0;
}
