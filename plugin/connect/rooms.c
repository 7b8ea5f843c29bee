/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/rooms.h"

#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/schedule.h"
#include "plugin/failover/control.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct rooms {
	struct ha_failover failover;
	struct ha_schedule schedule;
	struct ha_link link;
	struct ha_abort abort;
	struct ha_refused refused;
};

static_assert(sizeof(struct ha_send) % alignof(struct rooms) == 0, "rooms lie behind it");
static_assert(sizeof(struct ha_recv) % alignof(struct rooms) == 0, "rooms lie behind it");

static void attach_rooms(struct ha_bundle *b, struct rooms *rooms)
{
	memset(rooms, 0, sizeof(*rooms));
	STAILQ_INIT(&rooms->link.inbox);
	b->failover = &rooms->failover;
	b->schedule = &rooms->schedule;
	b->link = &rooms->link;
	b->abort = &rooms->abort;
	b->refused = &rooms->refused;
}

struct ha_bundle *ha_rooms_new(bool is_send)
{
	size_t end = is_send ? sizeof(struct ha_send) : sizeof(struct ha_recv);
	size_t more = is_send ? offsetof(struct ha_send, more) : offsetof(struct ha_recv, more);
	size_t size = end + sizeof(struct rooms);
	char *memory = aligned_alloc(64, (size + 63) & ~(size_t)63); /* whole cache lines */

	if (!memory)
		return NULL;
	memset(memory, 0, more);
	attach_rooms((struct ha_bundle *)memory, (struct rooms *)(memory + end));
	return (struct ha_bundle *)memory;
}
