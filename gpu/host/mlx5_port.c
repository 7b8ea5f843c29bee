/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5_port.c - how a port of a ConnectX NIC is, and where it is reached
 *
 * Agents ask at every step, and a query is a command to the firmware, so it goes out seldom: what
 * happens, asynchronous events report. A look for them is a read of the context's file, once in a
 * while for all connections of the device together.
 */
#include "base/log.h"
#include "gpu/device/env.h"
#include "gpu/host/mlx5_objects.h"
#include "rdma/verbs/status.h"

#include <errno.h>
#include <string.h>

#define LOOK_NS UINT64_C(1000000)   /* between two looks for events */
#define ASK_NS UINT64_C(1000000000) /* between two queries: an event may not have come */

static int query_port_attr(struct ha_mlx5_device *d, struct ha_port_attr *port)
{
	return d->m->verbs->query_port(d->m->verbs, d->context, d->port, port);
}

/* The kernel's word for a device that is not there. Another error says nothing about it. */
static bool is_gone(int error)
{
	return error == -EIO || error == -ENODEV;
}

bool ha_mlx5_gone(struct ha_mlx5_device *d)
{
	struct ha_port_attr port;

	return is_gone(query_port_attr(d, &port));
}

/* ---- state; under watch.lock ---- */

static void refresh_state(struct ha_mlx5_device *d, uint64_t now)
{
	struct ha_mlx5_watch *w = &d->watch;
	struct ha_port_attr port;
	int r = query_port_attr(d, &port);

	w->ask_at = now + ASK_NS;
	if (!r)
		ha_gpu_store(&w->state, port.attr.state == IBV_PORT_ACTIVE ? HA_GPU_PORT_UP
									   : HA_GPU_PORT_DOWN);
	else if (is_gone(r))
		ha_gpu_store(&w->state, HA_GPU_PORT_GONE);
}

static void handle_event(struct ha_mlx5_device *d, const struct ibv_async_event *e)
{
	struct ha_mlx5_watch *w = &d->watch;

	if (e->event_type == IBV_EVENT_DEVICE_FATAL) {
		w->fatal = true;
		ha_gpu_store(&w->state, HA_GPU_PORT_GONE);
	} else if (e->event_type == IBV_EVENT_PORT_ERR && e->element.port_num == d->port) {
		ha_gpu_store(&w->state, HA_GPU_PORT_DOWN);
	} else if (e->event_type == IBV_EVENT_PORT_ACTIVE && e->element.port_num == d->port) {
		w->ask_at = 0;
	}
}

static void poll_events(struct ha_mlx5_device *d, uint64_t now)
{
	const struct ha_verbs_ops *v = d->m->verbs;
	struct ha_mlx5_watch *w = &d->watch;
	struct ibv_async_event e;
	int r = 0;

	while (!w->no_events && !(r = v->get_async_event(v, d->context, &e))) {
		handle_event(d, &e);
		v->ack_async_event(v, &e);
	}
	/* a device that has gone ends its events: the query shows it */
	if (r && r != -EAGAIN && r != -EINTR) {
		w->no_events = true;
		w->ask_at = 0;
	}
	if (!w->fatal && now >= w->ask_at)
		refresh_state(d, now);
	ha_gpu_store(&w->look_at, now + LOOK_NS);
}

enum ha_gpu_port ha_mlx5_port_state(void *device)
{
	struct ha_mlx5_device *d = device;
	uint64_t now = ha_gpu_now();

	if (now >= ha_gpu_load(&d->watch.look_at) && !pthread_mutex_trylock(&d->watch.lock)) {
		poll_events(d, now);
		pthread_mutex_unlock(&d->watch.lock);
	}
	return (enum ha_gpu_port)ha_gpu_load(&d->watch.state);
}

void ha_mlx5_watch_begin(struct ha_mlx5_device *d)
{
	struct ha_mlx5_watch *w = &d->watch;
	int r = ha_verbs_events_nonblock(d->context);

	pthread_mutex_init(&w->lock, NULL);
	w->no_events = r != 0;
	if (r)
		HA_WARN(d->name,
			"gives no events (%s): that its port fails is noticed within a second only",
			strerror(-r));
	refresh_state(d, ha_gpu_now());
}

void ha_mlx5_watch_end(struct ha_mlx5_device *d)
{
	pthread_mutex_destroy(&d->watch.lock);
}

/* ---- address ---- */

int ha_mlx5_address(void *device, struct ha_gpu_rc_handle *h)
{
	struct ha_mlx5_device *d = device;
	const struct ha_verbs_ops *v = d->m->verbs;
	struct ha_port_attr port;
	union ibv_gid gid;
	int r = query_port_attr(d, &port);

	if (!r)
		r = v->query_gid(v, d->context, d->port, d->gid_index, &gid);
	if (r)
		return r;
	h->lid = port.attr.lid;
	h->mtu = (uint8_t)port.attr.active_mtu;
	h->ethernet = d->ethernet;
	memcpy(&h->spn, gid.raw, 8);
	memcpy(&h->iid, gid.raw + 8, 8);
	return 0;
}
