/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection and what the rooms keep of it are one piece of memory, all zero. */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/schedule.h"
#include "plugin/connect/rooms.h"
#include "plugin/failover/control.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Other memory of that size is not zero. */
static void spoil_memory(void)
{
	void *spoiled[16];

	for (unsigned i = 0; i < 16; i++) {
		spoiled[i] = malloc(sizeof(struct ha_send) + sizeof(struct ha_failover) + 1024);
		CHECK(spoiled[i]);
		memset(spoiled[i], 0x55, malloc_usable_size(spoiled[i]));
	}
	for (unsigned i = 0; i < 16; i++)
		free(spoiled[i]);
}

static void check_room(const struct ha_bundle *b, size_t ends, const void *room, size_t size)
{
	size_t at = (size_t)((const char *)room - (const char *)b);

	CHECK(at >= ends && at + size <= malloc_usable_size((void *)b));
}

static bool is_zero(const void *memory, size_t size)
{
	const char *byte = memory;

	return !byte[0] && !memcmp(byte, byte + 1, size - 1);
}

static void one_piece_of_memory(bool is_send)
{
	struct ha_bundle *b = ha_rooms_new(is_send);
	size_t ends = is_send ? sizeof(struct ha_send) : sizeof(struct ha_recv);

	CHECK(b);
	CHECK_INT((uintptr_t)b % 64, 0);
	check_room(b, ends, b->failover, sizeof(*b->failover));
	check_room(b, ends, b->schedule, sizeof(*b->schedule));
	check_room(b, ends, b->link, sizeof(*b->link));
	CHECK(STAILQ_EMPTY(&b->link->inbox));
	CHECK(is_zero(b->failover, sizeof(*b->failover)));
	CHECK(is_zero(b->schedule, sizeof(*b->schedule)));
	CHECK(is_zero(&b->rail, sizeof(b->rail)));
	CHECK(!b->link->stream && !b->link->peer);
	if (is_send)
		CHECK(is_zero(((struct ha_send *)b)->slot, sizeof(((struct ha_send *)b)->slot)));
	else
		CHECK(is_zero(((struct ha_recv *)b)->slot, sizeof(((struct ha_recv *)b)->slot)));
	free(b);
}

int main(void)
{
	spoil_memory();
	one_piece_of_memory(true);
	one_piece_of_memory(false);
	return 0;
}
