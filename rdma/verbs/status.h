/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - completion statuses and asynchronous events in words, with what the operator can do
 * about them */
#ifndef HA_VERBS_STATUS_H
#define HA_VERBS_STATUS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Never NULL, also for numbers that no standard knows. */
const char *ha_verbs_status_name(enum ibv_wc_status status);
const char *ha_verbs_status_advice(enum ibv_wc_status status);

/* What a completion says about its path. */
enum ha_status_class {
	HA_STATUS_OK,
	/* the consequence of an earlier error, which another completion or event names */
	HA_STATUS_FLUSHED,
	HA_STATUS_TRANSIENT, /* the peer or the fabric may answer next time */
	/* this path is broken; another one, or a new incarnation of this one, may work */
	HA_STATUS_RECOVERABLE,
	/* the peer's NIC said no: another one may say yes; two that refuse the same, none */
	HA_STATUS_REFUSED,
	HA_STATUS_FATAL, /* a defect that would repeat on any path */
};

/* RECOVERABLE for numbers that no standard knows: trying another path does no harm, and paths are
 * finite. */
enum ha_status_class ha_verbs_status_class(enum ibv_wc_status status);

/* The fault is at our own NIC: every connection on this device probably has it. */
bool ha_verbs_status_local(enum ibv_wc_status status);

const char *ha_verbs_event_name(enum ibv_event_type type);
const char *ha_verbs_event_advice(enum ibv_event_type type);

/* Which object an event is about, i.e. which member of its element is valid. */
enum ha_verbs_scope {
	HA_SCOPE_DEVICE,
	HA_SCOPE_PORT,
	HA_SCOPE_QP,
	HA_SCOPE_CQ,
	HA_SCOPE_SRQ,
	HA_SCOPE_WQ
};
enum ha_verbs_scope ha_verbs_event_scope(enum ibv_event_type type);

/* "active", "down" and so on. */
const char *ha_verbs_port_state_name(enum ibv_port_state state);

/*
 * Make get_async_event return -EAGAIN instead of waiting: sets O_NONBLOCK on the context's
 * async_fd, which can then be polled. 0 or negative errno.
 */
int ha_verbs_events_nonblock(struct ibv_context *context);

#endif
