/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/member.h"

#include <stdlib.h>

static uint32_t power_of_two(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

struct ha_member *ha_member_create(const struct ha_group_facts *group, unsigned rank)
{
	struct ha_member *m = calloc(1, sizeof(*m) + group->workers * sizeof(m->stream[0]));

	if (!m)
		return NULL;
	STAILQ_INIT(&m->jobs);
	m->group = *group;
	m->rank = rank;
	m->nstreams = group->workers;
	for (unsigned i = 0; i < m->nstreams; i++) {
		struct ha_stream *s = &m->stream[i];

		s->member = m;
		s->quant = ina_quant_best();
		s->headroom = (uint8_t)ina_quant_headroom(group->ranks);
		s->capacity = power_of_two(group->len / group->workers / 2);
		s->entry = calloc(s->capacity, sizeof(*s->entry));
		if (!s->entry) {
			ha_member_free(m);
			return NULL;
		}
	}
	return m;
}

void ha_member_free(struct ha_member *m)
{
	for (unsigned i = 0; i < m->nstreams; i++)
		free(m->stream[i].entry);
	free(m);
}
