/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/buffer.h"

void ina_shm_buffer_init(struct ina_shm_buffer *b, struct ina_shm_segment *segment,
			 uint32_t segments)
{
	*b = (struct ina_shm_buffer) { .segment = segment, .segments = segments };
	for (uint32_t i = 0; i < segments; i++)
		segment[i] = (struct ina_shm_segment) { 0 };
}

/* The owner's segment that still has room, else a free one; UINT32_MAX. */
static uint32_t find_segment(const struct ina_shm_buffer *b, uint32_t owner, uint32_t share,
			     uint32_t bytes)
{
	uint32_t held = 0, free = UINT32_MAX;

	for (uint32_t n = 0, i = b->next; n < b->segments;
	     n++, i = i + 1 == b->segments ? 0 : i + 1) {
		const struct ina_shm_segment *s = &b->segment[i];

		if (!s->out)
			free = free == UINT32_MAX ? i : free;
		else if (s->owner == owner) {
			held++;
			if (HA_INA_SEGMENT - s->used >= bytes)
				return i;
		}
	}
	return held < share ? free : UINT32_MAX;
}

bool ina_shm_buffer_take(struct ina_shm_buffer *b, uint32_t owner, uint32_t share, uint32_t bytes,
			 uint64_t *offset)
{
	uint32_t room = ina_shm_blocks(bytes), i = bytes && bytes <= HA_INA_SEGMENT
							   ? find_segment(b, owner, share, room)
							   : UINT32_MAX;
	struct ina_shm_segment *s;

	if (i == UINT32_MAX)
		return false;
	s = &b->segment[i];
	if (!s->out) {
		*s = (struct ina_shm_segment) { .owner = owner };
		b->next = i + 1 == b->segments ? 0 : i + 1;
	}
	*offset = (uint64_t)i * HA_INA_SEGMENT + s->used;
	s->used += room;
	s->out += room;
	return true;
}

void ina_shm_buffer_give(struct ina_shm_buffer *b, uint64_t offset, uint32_t bytes)
{
	struct ina_shm_segment *s = &b->segment[offset / HA_INA_SEGMENT];
	uint32_t room = ina_shm_blocks(bytes);

	assert(s->out >= room && offset % HA_INA_SEGMENT + room <= s->used);
	s->out -= room;
	if (!s->out)
		s->used = 0;
}
