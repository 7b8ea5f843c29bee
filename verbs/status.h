/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - completion statuses and asynchronous events in words, with what the operator can do about them */
#ifndef HA_VERBS_STATUS_H
#define HA_VERBS_STATUS_H

#include <infiniband/verbs.h>

/* Never NULL, also for numbers that no standard knows. */
const char *ha_verbs_status_name(enum ibv_wc_status status);
const char *ha_verbs_status_advice(enum ibv_wc_status status);

const char *ha_verbs_event_name(enum ibv_event_type type);
const char *ha_verbs_event_advice(enum ibv_event_type type);

/* Which object an event is about, i.e. which member of its element is valid. */
enum ha_verbs_scope { HA_SCOPE_DEVICE, HA_SCOPE_PORT, HA_SCOPE_QP, HA_SCOPE_CQ, HA_SCOPE_SRQ, HA_SCOPE_WQ };
enum ha_verbs_scope ha_verbs_event_scope(enum ibv_event_type type);

/* "active", "down" and so on. */
const char *ha_verbs_port_state_name(enum ibv_port_state state);

/*
 * Make get_async_event return -EAGAIN instead of waiting: sets O_NONBLOCK on the context's async_fd, which can then be
 * polled. 0 or negative errno.
 */
int ha_verbs_events_nonblock(struct ibv_context *context);

#endif
