/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/verbs/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

struct words {
	const char *name, *advice;
};

struct status {
	struct words words;
	enum ha_status_class class;
	bool local;
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define UNKNOWN "unknown", "look the number up in the driver's documentation"

static const char report[] = "this is a defect; please report it with the log";

#define LOCAL true
#define STATUS(s, c, local, ...) [IBV_WC_##s] = { { __VA_ARGS__ }, HA_STATUS_##c, local }

/*
 * What a reliable connection without memory windows, EE contexts and tag matching cannot cause
 * (MW_BIND_ERR, the EE and RD statuses, TM) is the NIC's own confusion, so another NIC may do
 * better: recoverable, as are numbers that nobody knows. A negative acknowledgement
 * (REM_ACCESS_ERR, REM_INV_REQ_ERR) proves that packets travel, not that the request was wrong: a
 * key, an MTU or the state of a queue pair can be wrong at this pair of NICs alone.
 */
static const struct status statuses[] = {
	STATUS(SUCCESS, OK, false, "success", "nothing to do"),
	STATUS(LOC_LEN_ERR, FATAL, false, "local length error",
	       "a message was longer than its receive buffer; check that all ranks run the same "
	       "version"),
	STATUS(LOC_QP_OP_ERR, RECOVERABLE, LOCAL, "local queue pair operation error",
	       "the NIC could not carry out a request, often because its port went down; check the "
	       "cable and dmesg"),
	STATUS(LOC_EEC_OP_ERR, RECOVERABLE, LOCAL, "local EE context operation error", report),
	STATUS(LOC_PROT_ERR, FATAL, false, "local protection error",
	       "a buffer was freed or unregistered while in use; check that the application keeps "
	       "it "
	       "until its operation ends"),
	STATUS(WR_FLUSH_ERR, FLUSHED, false, "flushed",
	       "the queue pair is in error; an earlier line says why"),
	STATUS(MW_BIND_ERR, RECOVERABLE, false, "memory window bind error", report),
	STATUS(BAD_RESP_ERR, RECOVERABLE, false, "bad response",
	       "the peer or the fabric answered out of protocol; check firmware versions"),
	STATUS(LOC_ACCESS_ERR, FATAL, false, "local access error",
	       "a buffer was registered without the right that is needed; please report it with "
	       "the log"),
	STATUS(REM_INV_REQ_ERR, REFUSED, false, "remote invalid request",
	       "the peer refused a request; check that all ranks run the same version"),
	STATUS(REM_ACCESS_ERR, REFUSED, false, "remote access error",
	       "the peer's buffer is gone or its key is stale; check whether the peer restarted"),
	STATUS(REM_OP_ERR, RECOVERABLE, false, "remote operation error",
	       "the peer's NIC could not carry a request out; check the peer's dmesg"),
	STATUS(RETRY_EXC_ERR, RECOVERABLE, false, "transport retries exceeded",
	       "the peer does not answer: check cables, switch ports, and on RoCE MTU, flow "
	       "control and the GID"),
	STATUS(RNR_RETRY_EXC_ERR, TRANSIENT, false, "receiver not ready retries exceeded",
	       "the peer stopped taking data; check whether it hangs"),
	STATUS(LOC_RDD_VIOL_ERR, RECOVERABLE, false, "local RDD violation", report),
	STATUS(REM_INV_RD_REQ_ERR, RECOVERABLE, false, "remote invalid RD request", report),
	STATUS(REM_ABORT_ERR, RECOVERABLE, false, "remote aborted",
	       "the peer gave the operation up; look at its log"),
	STATUS(INV_EECN_ERR, RECOVERABLE, LOCAL, "invalid EE context number", report),
	STATUS(INV_EEC_STATE_ERR, RECOVERABLE, LOCAL, "invalid EE context state", report),
	STATUS(FATAL_ERR, RECOVERABLE, LOCAL, "fatal error",
	       "the NIC failed; check dmesg, reset or replace it"),
	STATUS(RESP_TIMEOUT_ERR, TRANSIENT, false, "response timeout",
	       "the peer does not answer: check cables and switch ports"),
	STATUS(GENERAL_ERR, RECOVERABLE, LOCAL, "general error",
	       "the NIC reports an error of its own; check dmesg"),
	STATUS(TM_ERR, RECOVERABLE, false, "tag matching error", report),
	STATUS(TM_RNDV_INCOMPLETE, RECOVERABLE, false, "tag matching rendezvous incomplete",
	       report),
};

static const struct words events[] = {
	[IBV_EVENT_CQ_ERR] = { "completion queue error",
			       "a completion queue overflowed; lower HA_NCCL_WR_PER_CONN or the "
			       "number of connections" },
	[IBV_EVENT_QP_FATAL] = { "queue pair fatal error", "check dmesg for the NIC's own report" },
	[IBV_EVENT_QP_REQ_ERR] = { "queue pair request error",
				   "a peer sent what the queue pair does not allow; check that all "
				   "ranks run the same version" },
	[IBV_EVENT_QP_ACCESS_ERR] = { "queue pair access error",
				      "a peer wrote where it may not; check whether it restarted" },
	[IBV_EVENT_COMM_EST] = { "communication established", "nothing to do" },
	[IBV_EVENT_SQ_DRAINED] = { "send queue drained", "nothing to do" },
	[IBV_EVENT_PATH_MIG] = { "path migrated", "the driver's path migration (APM) acted; "
						  "disable it, hawser moves paths itself" },
	[IBV_EVENT_PATH_MIG_ERR] = { "path migration failed",
				     "disable the driver's path migration (APM)" },
	[IBV_EVENT_DEVICE_FATAL] = { "device fatal error",
				     "the NIC failed; check dmesg, reset or replace it: it is "
				     "used again when it is listed again" },
	[IBV_EVENT_PORT_ACTIVE] = { "port active", "nothing to do" },
	[IBV_EVENT_PORT_ERR] = { "port down",
				 "check the cable, the transceiver and the switch port" },
	[IBV_EVENT_LID_CHANGE] = { "LID changed", "the subnet manager renumbered; nothing to do "
						  "unless it repeats" },
	[IBV_EVENT_PKEY_CHANGE] = { "partition keys changed",
				    "check NCCL_IB_PKEY against the subnet manager's partitions" },
	[IBV_EVENT_SM_CHANGE] = { "subnet manager changed", "nothing to do unless it repeats" },
	[IBV_EVENT_SRQ_ERR] = { "shared receive queue error",
				"check dmesg for the NIC's own report" },
	[IBV_EVENT_SRQ_LIMIT_REACHED] = { "shared receive queue low", "nothing to do" },
	[IBV_EVENT_QP_LAST_WQE_REACHED] = { "last receive of a queue pair taken", "nothing to do" },
	[IBV_EVENT_CLIENT_REREGISTER] = { "subnet manager asks to register again",
					  "nothing to do" },
	[IBV_EVENT_GID_CHANGE] = { "GID table changed", "an address of the interface came or went; "
							"nothing to do unless it repeats" },
	[IBV_EVENT_WQ_FATAL] = { "work queue fatal error", "check dmesg for the NIC's own report" },
};

static const struct status *status_at(enum ibv_wc_status number)
{
	static const struct status unknown = { { UNKNOWN }, HA_STATUS_RECOVERABLE, false };

	return (unsigned)number < COUNT(statuses) && statuses[number].words.name ? &statuses[number]
										 : &unknown;
}

const char *ha_verbs_status_name(enum ibv_wc_status status)
{
	return status_at(status)->words.name;
}

const char *ha_verbs_status_advice(enum ibv_wc_status status)
{
	return status_at(status)->words.advice;
}

enum ha_status_class ha_verbs_status_class(enum ibv_wc_status status)
{
	return status_at(status)->class;
}

bool ha_verbs_status_local(enum ibv_wc_status status)
{
	return status_at(status)->local;
}

static const struct words *event_at(enum ibv_event_type type)
{
	static const struct words unknown = { UNKNOWN };

	return (unsigned)type < COUNT(events) && events[type].name ? &events[type] : &unknown;
}

const char *ha_verbs_event_name(enum ibv_event_type type)
{
	return event_at(type)->name;
}

const char *ha_verbs_event_advice(enum ibv_event_type type)
{
	return event_at(type)->advice;
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
	static const char *const names[] = { "in no state", "down",   "initialising",
					     "armed",       "active", "deferred" };

	return (unsigned)state < COUNT(names) ? names[state] : "in an unknown state";
}

int ha_verbs_events_nonblock(struct ibv_context *context)
{
	int flags = fcntl(context->async_fd, F_GETFL);

	if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return 0;
}
