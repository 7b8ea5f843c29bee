/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/collnet/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
#define TAG 0

static struct ha_lane_slot *slot_of(struct ha_lane_slot *slots, uint32_t n)
{
	return &slots[n % HA_LANE_SLOTS];
}

static uint8_t *memory_of(uint8_t *memory, size_t slot_bytes, uint32_t n)
{
	return memory + (n % HA_LANE_SLOTS) * slot_bytes;
}

static int ring_open(void *bundle, size_t slot_bytes, uint8_t **memory, struct ha_mr **mr)
{
	size_t bytes = (slot_bytes * HA_LANE_SLOTS + PAGE - 1) / PAGE * PAGE;
	int err;

	*memory = aligned_alloc(PAGE, bytes);
	if (!*memory)
		return -ENOMEM;
	memset(*memory, 0, bytes);
	err = ha_reg_mr(bundle, *memory, bytes, HA_MEM_HOST, 0, -1, 0, mr);
	if (err) {
		free(*memory);
		*memory = NULL;
	}
	return err;
}

/* ---- sending ---- */

int ha_lane_out_open(struct ha_lane_out *lane, struct ha_send *comm, size_t slot_bytes)
{
	*lane = (struct ha_lane_out) { .comm = comm, .slot_bytes = slot_bytes };
	return ring_open(comm, slot_bytes, &lane->memory, &lane->mr);
}

unsigned ha_lane_room(const struct ha_lane_out *lane)
{
	return HA_LANE_SLOTS - (lane->head - lane->tail);
}

struct ha_collnet_msg *ha_lane_next(struct ha_lane_out *lane, uint16_t type, uint64_t id)
{
	struct ha_collnet_msg *m;

	if (!ha_lane_room(lane))
		return NULL;
	m = (struct ha_collnet_msg *)memory_of(lane->memory, lane->slot_bytes, lane->head);
	*m = (struct ha_collnet_msg) { .magic = HA_COLLNET_MAGIC, .type = type, .id = id };
	return m;
}

void ha_lane_send(struct ha_lane_out *lane, size_t length)
{
	struct ha_collnet_msg *m =
		(struct ha_collnet_msg *)memory_of(lane->memory, lane->slot_bytes, lane->head);

	m->length = (uint32_t)length;
	slot_of(lane->slot, lane->head)->bytes = (uint32_t)(sizeof(*m) + length);
	lane->head++;
	ha_lane_out_step(lane);
}

/* Whoever needs the dead peer learns of it from its own receiving lane; what was to go there is
 * dropped. */
static void fail_lane(struct ha_lane_out *lane, int err)
{
	lane->error = err;
	lane->posted = lane->tail = lane->head;
}

void ha_lane_out_step(struct ha_lane_out *lane)
{
	int err = 0, done;

	if (lane->error)
		lane->posted = lane->tail = lane->head;
	while (!err && lane->tail != lane->posted) {
		done = 0;
		err = ha_test(slot_of(lane->slot, lane->tail)->req, &done, NULL);
		if (!done)
			break;
		lane->tail++;
	}
	while (!err && lane->posted != lane->head) {
		struct ha_lane_slot *s = slot_of(lane->slot, lane->posted);

		s->req = NULL;
		err = ha_isend(lane->comm, memory_of(lane->memory, lane->slot_bytes, lane->posted),
			       s->bytes, TAG, lane->mr, &s->req);
		if (!s->req)
			break;
		lane->posted++;
	}
	if (err)
		fail_lane(lane, err);
}

bool ha_lane_out_idle(const struct ha_lane_out *lane)
{
	return lane->tail == lane->head;
}

void ha_lane_out_close(struct ha_lane_out *lane)
{
	if (lane->mr)
		ha_dereg_mr((struct ha_bundle *)lane->comm, lane->mr);
	if (lane->comm)
		ha_close_send(lane->comm);
	free(lane->memory);
	*lane = (struct ha_lane_out) { .error = -ENOTCONN };
}

/* ---- receiving ---- */

static void post_receives(struct ha_lane_in *lane)
{
	while (!lane->error && lane->head - lane->tail < HA_LANE_SLOTS) {
		struct ha_lane_slot *s = slot_of(lane->slot, lane->head);
		void *data = memory_of(lane->memory, lane->slot_bytes, lane->head);
		int tag = TAG;

		s->req = NULL;
		s->bytes = 0;
		lane->error = ha_irecv(lane->comm, 1, &data, &lane->slot_bytes, &tag, &lane->mr,
				       false, &s->req);
		if (!s->req)
			break;
		lane->head++;
	}
}

int ha_lane_in_open(struct ha_lane_in *lane, struct ha_recv *comm, size_t slot_bytes)
{
	int err;

	*lane = (struct ha_lane_in) { .comm = comm, .slot_bytes = slot_bytes };
	err = ring_open(comm, slot_bytes, &lane->memory, &lane->mr);
	if (!err)
		post_receives(lane);
	return err ? err : lane->error;
}

static bool is_valid_message(const struct ha_collnet_msg *m, uint32_t bytes)
{
	return bytes >= sizeof(*m) && m->magic == HA_COLLNET_MAGIC && m->type &&
	       m->type < HA_COLLNET_TYPES && m->length == bytes - sizeof(*m);
}

const struct ha_collnet_msg *ha_lane_peek(struct ha_lane_in *lane)
{
	const struct ha_collnet_msg *m;
	struct ha_lane_slot *s;
	int done = 0, bytes = 0;

	post_receives(lane);
	if (lane->tail == lane->head)
		return NULL;
	s = slot_of(lane->slot, lane->tail);
	m = (const struct ha_collnet_msg *)memory_of(lane->memory, lane->slot_bytes, lane->tail);
	if (!s->bytes) {
		int err = ha_test(s->req, &done, &bytes);

		if (err)
			lane->error = err;
		if (err || !done)
			return NULL;
		s->bytes = (uint32_t)bytes;
		if (!is_valid_message(m, s->bytes)) {
			lane->error = -EPROTO;
			return NULL;
		}
	}
	return lane->error == -EPROTO ? NULL : m;
}

void ha_lane_drop(struct ha_lane_in *lane)
{
	lane->tail++;
	post_receives(lane);
}

void ha_lane_in_close(struct ha_lane_in *lane)
{
	if (lane->mr)
		ha_dereg_mr((struct ha_bundle *)lane->comm, lane->mr);
	if (lane->comm)
		ha_close_recv(lane->comm);
	free(lane->memory);
	*lane = (struct ha_lane_in) { .error = -ENOTCONN };
}
