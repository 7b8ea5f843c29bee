/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/rooms.h"

#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/schedule.h"
#include "plugin/failover/control.h"

#include <stdlib.h>
#include <string.h>

struct rooms {
	struct ha_failover failover;
	struct ha_schedule schedule;
	struct ha_link link;
};

struct sender {
	struct ha_send s;
	struct rooms rooms;
};

struct receiver {
	struct ha_recv c;
	struct rooms rooms;
};

static void attach_rooms(struct ha_bundle *b, struct rooms *rooms)
{
	memset(rooms, 0, sizeof(*rooms));
	STAILQ_INIT(&rooms->link.inbox);
	b->failover = &rooms->failover;
	b->schedule = &rooms->schedule;
	b->link = &rooms->link;
}

/* Whole cache lines; `more` stays untouched. */
static void *allocate_zeroed(size_t size, size_t zeroed)
{
	void *memory = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (memory)
		memset(memory, 0, zeroed);
	return memory;
}

static struct ha_bundle *new_sender(void)
{
	struct sender *own = allocate_zeroed(sizeof(*own), offsetof(struct ha_send, more));

	if (!own)
		return NULL;
	attach_rooms(&own->s.b, &own->rooms);
	return &own->s.b;
}

static struct ha_bundle *new_receiver(void)
{
	struct receiver *own = allocate_zeroed(sizeof(*own), offsetof(struct ha_recv, more));

	if (!own)
		return NULL;
	attach_rooms(&own->c.b, &own->rooms);
	return &own->c.b;
}

struct ha_bundle *ha_rooms_new(bool is_send)
{
	return is_send ? new_sender() : new_receiver();
}
