/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rooms.h - the memory of a connection: the bundle, which the data path works on, and behind it
 * what each room keeps of it for set-up, driver and close
 */
#ifndef HA_CONNECT_ROOMS_H
#define HA_CONNECT_ROOMS_H

#include <stdbool.h>

struct ha_bundle;

/* A struct ha_send or ha_recv, zero but for its pointers to the rooms, and for `more`, which nobody
 * touches before a receive is grouped (bundle.h). One piece of memory, for free(); NULL: there is
 * none. */
struct ha_bundle *ha_rooms_new(bool is_send);

#endif
