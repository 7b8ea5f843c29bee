/* SPDX-License-Identifier: BSD-3-Clause */
/* ids.c - ids and the events on their way to programs; see manager.h */
#include "softroce/cm/manager.h"
#include "softroce/devices.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

pthread_mutex_t sr_cm_lock = PTHREAD_MUTEX_INITIALIZER;
struct sr_cm_id_list sr_cm_ids = LIST_HEAD_INITIALIZER(sr_cm_ids);
static uint32_t last_handle;

/* ---- events ---- */

struct sr_cm_note *sr_cm_note(struct sr_cm_id *id, enum sr_cm_event event, int status)
{
	struct sr_cm_note *note = id->uid ? calloc(1, sizeof(*note)) : NULL;

	if (!note)
		return NULL;
	note->id = id;
	note->event.uid = id->uid;
	note->event.id = id->handle;
	note->event.event = event;
	note->event.status = (uint32_t)status;
	return note;
}

void sr_cm_push(struct sr_cm_note *note)
{
	struct sr_cm_channel *channel = note->id->channel;

	if (TAILQ_EMPTY(&channel->notes))
		eventfd_write(channel->fd, 1);
	TAILQ_INSERT_TAIL(&channel->notes, note, link);
}

void sr_cm_post_event(struct sr_cm_id *id, enum sr_cm_event event, int status)
{
	struct sr_cm_note *note = sr_cm_note(id, event, status);

	if (note)
		sr_cm_push(note);
}

void sr_cm_unlink(struct sr_cm_channel *channel, struct sr_cm_note *note)
{
	eventfd_t value;

	TAILQ_REMOVE(&channel->notes, note, link);
	if (TAILQ_EMPTY(&channel->notes))
		eventfd_read(channel->fd, &value);
}

struct sr_cm_note *sr_cm_take(struct sr_cm_channel *channel)
{
	struct sr_cm_note *note = TAILQ_FIRST(&channel->notes);

	if (!note)
		return NULL;
	sr_cm_unlink(channel, note);
	note->id->events++;
	if (note->fresh)
		note->id->waiting--;
	return note;
}

/* ---- ids ---- */

bool sr_cm_is_datagram(const struct sr_cm_id *id)
{
	return id->qp_type == IBV_QPT_UD || id->ps == RDMA_PS_UDP || id->ps == RDMA_PS_IPOIB;
}

struct sr_cm_id *sr_cm_id_new(struct sr_cm_channel *channel, uint64_t uid, uint16_t ps,
			      uint8_t qp_type)
{
	struct sr_cm_id *id = calloc(1, sizeof(*id));
	uint32_t random[4];

	if (!id)
		return NULL;
	if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
		free(id);
		return NULL;
	}
	id->handle = ++last_handle;
	id->channel = channel;
	id->uid = uid;
	id->ps = ps;
	id->qp_type = qp_type;
	id->local_id = random[0];
	id->psn = random[1] & 0xffffff;
	id->tid = (uint64_t)random[2] << 32 | random[3];
	LIST_INSERT_HEAD(&sr_cm_ids, id, link);
	return id;
}

struct sr_cm_id *sr_cm_id_of(uint32_t handle)
{
	struct sr_cm_id *id;

	LIST_FOREACH(id, &sr_cm_ids, link)
		if (id->handle == handle)
			break;
	return id;
}

void sr_cm_id_migrate(struct sr_cm_id *id, struct sr_cm_channel *to)
{
	struct sr_cm_channel *from = id->channel;
	struct sr_cm_note *next;

	if (from == to)
		return;
	id->channel = to;
	for (struct sr_cm_note *note = TAILQ_FIRST(&from->notes); note; note = next) {
		next = TAILQ_NEXT(note, link);
		if (note->id != id)
			continue;
		if (note->fresh)
			note->fresh->channel = to;
		sr_cm_unlink(from, note);
		sr_cm_push(note);
	}
}

/* ---- addresses ---- */

void sr_cm_gid_of(const void *sockaddr, uint8_t gid[16])
{
	const struct sockaddr_in *in = sockaddr;
	const struct sockaddr_in6 *in6 = sockaddr;

	if (in->sin_family == AF_INET)
		sr_gid_from_ipv4(gid, ntohl(in->sin_addr.s_addr));
	else
		memcpy(gid, &in6->sin6_addr, 16);
}

uint16_t sr_cm_portnum(const void *sockaddr)
{
	/* at the same place in both */
	return ntohs(((const struct sockaddr_in *)sockaddr)->sin_port);
}

void sr_cm_sockaddr(struct sockaddr_in6 *to, const uint8_t gid[16], uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)to;

	memset(to, 0, sizeof(*to));
	to->sin6_family = AF_INET6;
	to->sin6_port = htons(port);
	if (!sr_gid_ipv4(gid)) {
		memcpy(&to->sin6_addr, gid, 16);
		return;
	}
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(sr_gid_ipv4(gid));
}

bool sr_cm_any(const void *sockaddr)
{
	static const uint8_t zero[16], mapped[16] = { [10] = 0xff, [11] = 0xff };
	uint8_t gid[16];

	sr_cm_gid_of(sockaddr, gid);
	return !memcmp(gid, zero, 16) || !memcmp(gid, mapped, 16);
}
