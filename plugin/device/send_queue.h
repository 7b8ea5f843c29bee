/* SPDX-License-Identifier: BSD-3-Clause */
/* send_queue.h - a rail's work requests: how they are numbered, and how many are in its send
 * queue */
#ifndef HA_DEVICE_SEND_QUEUE_H
#define HA_DEVICE_SEND_QUEUE_H

#include "plugin/device/rail.h"

/* What a work request's wr_id says: kind of work, ring entry (data: and stripe), and how far the
 * send queue had come when it was posted. Receives have 0. */
enum ha_wr_kind {
	HA_WR_DATA = 1,
	HA_WR_CTS,
	HA_WR_FLUSH,
	HA_WR_CONTROL,
	HA_WR_MARKER,
	HA_WR_TIMED,
	HA_WR_PROBE,
	HA_WR_PAYLOAD,
	HA_WR_PAYLOAD_TIMED
};
/* HA_WR_TIMED: as HA_WR_DATA, and adaptive.c or gate.c wants to know when it is complete.
 * HA_WR_PROBE: gate.c does. HA_WR_PAYLOAD: the last of a stripe's data, whose record follows as
 * HA_WR_DATA or HA_WR_TIMED when this is complete (terms.unordered). */

/* one CTS in so many asks for a completion, so that the send queue is known to drain; MPIB has
 * its own */
#define HA_CTS_SIGNAL 32

static inline uint64_t ha_wr_id(enum ha_wr_kind kind, unsigned entry, uint32_t sq_posted)
{
	return (uint64_t)sq_posted << 32 | (unsigned)kind << 16 | entry;
}
/* A receive of the shared queue, whatever came of it. */
static inline bool ha_wr_is_receive(uint64_t wr_id)
{
	return !wr_id;
}
static inline unsigned ha_wr_data_entry(unsigned entry, unsigned stripe)
{
	return stripe << 8 | entry;
}

/* One more work request; its number. Relaxed: who reads from outside wants to know whether the rail
 * moves, no more. */
static inline uint32_t ha_rail_count_post(struct ha_rail *r)
{
	uint32_t posted = r->sq_posted + 1;

	__atomic_store_n(&r->sq_posted, posted, __ATOMIC_RELAXED);
	return posted;
}
static inline void ha_rail_retire(struct ha_rail *r, uint64_t wr_id)
{
	__atomic_store_n(&r->sq_retired, (uint32_t)(wr_id >> 32), __ATOMIC_RELAXED);
}

/* Not known to be done. From outside too. */
static inline uint32_t ha_rail_outstanding(const struct ha_rail *r)
{
	return __atomic_load_n(&r->sq_posted, __ATOMIC_RELAXED) -
	       __atomic_load_n(&r->sq_retired, __ATOMIC_RELAXED);
}

static inline uint32_t ha_rail_room(const struct ha_rail *r)
{
	return r->sq_depth - (r->sq_posted - r->sq_retired);
}

#endif
