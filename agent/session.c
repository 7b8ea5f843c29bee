/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/session.h"

#include <errno.h>
#include <string.h>

#define ANSWER_MAX sizeof(struct mpib_register_response)

static void append_answer(struct ha_session *x, uint32_t status, uint32_t slot, size_t size)
{
	struct mpib_register_response r = {
		.header = { MPIB_REG_MAGIC, (uint16_t)size, MPIB_MSG_RESPONSE, 0 },
		.status = status,
		.hint_slot = slot,
	};

	memcpy(x->out + x->out_len, &r, size);
	x->out_len += size;
}

static void count_outcome(struct ha_session_counts *counts, uint32_t status, uint64_t *well)
{
	if (status == MPIB_STATUS_OK)
		(*well)++;
	else if (status == MPIB_STATUS_NO_SLOT)
		counts->no_slot++;
	else
		counts->invalid++;
}

static void handle_message(struct ha_session *x, struct ha_slots *s, struct ha_owner *owner,
			   struct ha_session_counts *counts, const struct mpib_msg_header *h)
{
	uint32_t status = MPIB_STATUS_INVALID, slot = MPIB_NO_SLOT;
	struct mpib_deregister bye;
	struct mpib_register m;

	if (h->type == MPIB_MSG_REGISTER) {
		if (h->length == sizeof(m)) {
			memcpy(&m, x->in, sizeof(m));
			status = ha_slots_register(s, owner, &m, &slot);
		}
		count_outcome(counts, status, &counts->registered);
		append_answer(x, status, slot, sizeof(struct mpib_register_response));
		return;
	}
	if (h->type == MPIB_MSG_DEREGISTER && h->length == sizeof(bye)) {
		memcpy(&bye, x->in, sizeof(bye));
		status = ha_slots_deregister(s, owner, bye.conn_id);
	}
	count_outcome(counts, status, &counts->deregistered);
	append_answer(x, status, slot, sizeof(struct mpib_deregister_response));
}

/* Bytes that are missing until the message in x->in is whole; -EPROTO. */
static int count_missing(const struct ha_session *x, struct mpib_msg_header *h)
{
	if (x->in_len < sizeof(*h))
		return (int)(sizeof(*h) - x->in_len);
	memcpy(h, x->in, sizeof(*h));
	if (h->magic != MPIB_REG_MAGIC || h->length < sizeof(*h) || h->length > HA_SESSION_MESSAGE)
		return -EPROTO;
	return (int)(h->length - x->in_len);
}

ssize_t ha_session_feed(struct ha_session *x, struct ha_slots *s, struct ha_owner *owner,
			struct ha_session_counts *counts, const uint8_t *data, size_t len)
{
	struct mpib_msg_header h = { 0 };
	size_t used = 0;

	for (;;) {
		int more = count_missing(x, &h);

		if (more < 0)
			return more;
		if (!more) {
			if (sizeof(x->out) - x->out_len < ANSWER_MAX)
				return (ssize_t)used;
			handle_message(x, s, owner, counts, &h);
			x->in_len = 0;
			continue;
		}
		if (used == len)
			return (ssize_t)used;
		if ((size_t)more > len - used)
			more = (int)(len - used);
		memcpy(x->in + x->in_len, data + used, (size_t)more);
		x->in_len += (size_t)more;
		used += (size_t)more;
	}
}
