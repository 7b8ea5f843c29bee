/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - an end of a connection, all zero, for tests that fill in what they need; for free() */
#ifndef TESTS_PLUGIN_ENDS_H
#define TESTS_PLUGIN_ENDS_H

#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/schedule.h"
#include "plugin/connect/rooms.h"
#include "plugin/failover/control.h"

#include <string.h>

static inline struct ha_send *new_send(void)
{
	struct ha_send *s = (struct ha_send *)ha_rooms_new(true);

	CHECK(s);
	memset(s->more, 0, sizeof(s->more));
	return s;
}

static inline struct ha_recv *new_recv(void)
{
	struct ha_recv *c = (struct ha_recv *)ha_rooms_new(false);

	CHECK(c);
	memset(c->more, 0, sizeof(c->more));
	return c;
}

static inline struct ha_bundle *new_end(bool is_send)
{
	return is_send ? &new_send()->b : &new_recv()->b;
}

#endif
