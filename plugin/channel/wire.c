/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.c - is what another machine sent us sound?
 *
 * One function per kind. They look at nothing beyond the length they are given, and nobody reads a
 * payload before them.
 */
#include "plugin/channel/wire.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

static bool text_ended(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

/* Do the versions a peer offers and ours have one in common? */
static bool versions_meet(uint16_t version, uint16_t version_min)
{
	return version_min <= version && version >= HA_WIRE_VERSION_MIN &&
	       version_min <= HA_WIRE_VERSION;
}

static bool addr_sound(const struct ha_wire_addr *addr)
{
	return (addr->family == 4 || addr->family == 6) && addr->port;
}

/* A queue pair number has 24 bits and is never 0 or 1 for RC; a packet sequence number has 24; MTU
 * codes are 1 to 5. */
static bool qp_sound(const struct ha_wire_qp *qp)
{
	return qp->qpn > 1 && qp->qpn < 1u << 24 && qp->psn < 1u << 24 && qp->mtu >= 1 &&
	       qp->mtu <= 5 && (qp->link_layer == 1 || qp->link_layer == 2);
}

int ha_wire_check_header(const struct ha_msg_header *header)
{
	static const uint32_t fixed[HA_MSG_TYPES] = {
		[HA_MSG_REFUSE] = sizeof(struct ha_msg_refuse),
		[HA_MSG_READY] = sizeof(struct ha_msg_ready),
		[HA_MSG_BYE] = sizeof(struct ha_msg_bye),
		[HA_MSG_RAIL_DOWN] = sizeof(struct ha_msg_cause),
		[HA_MSG_RAIL_FENCED] = sizeof(struct ha_msg_fenced),
		[HA_MSG_RAIL_ACK] = sizeof(struct ha_msg_rail),
		[HA_MSG_RAIL_OFFER] = sizeof(struct ha_msg_incarnation),
		[HA_MSG_RAIL_ANSWER] = sizeof(struct ha_msg_incarnation),
		[HA_MSG_RAIL_KEYS] = sizeof(struct ha_msg_keys),
		[HA_MSG_RAIL_KEYS_ACK] = sizeof(struct ha_msg_keys_ack),
		[HA_MSG_ABORT] = sizeof(struct ha_msg_cause),
		[HA_MSG_RAIL_BACK] = sizeof(struct ha_msg_rail),
		[HA_MSG_FOR] = sizeof(struct ha_msg_for),
		[HA_MSG_WINDOWS] = sizeof(struct ha_msg_windows),
		[HA_MSG_WINDOWS_ACK] = sizeof(struct ha_msg_windows_ack),
		[HA_MSG_RAIL_ASK] = sizeof(struct ha_msg_sign),
		[HA_MSG_RAIL_ALIVE] = sizeof(struct ha_msg_sign),
	};
	const uint32_t base = offsetof(struct ha_msg_hello, rail);

	if (header->magic != HA_MSG_MAGIC || header->version < HA_WIRE_VERSION_MIN ||
	    header->version > HA_WIRE_VERSION)
		return -EPROTO;
	if (header->type == HA_MSG_HELLO || header->type == HA_MSG_WELCOME)
		return header->length > base && header->length <= HA_MSG_MAX &&
				       (header->length - base) % sizeof(struct ha_wire_rail) == 0
			       ? 0
			       : -EPROTO;
	if (header->type == 0 || header->type >= HA_MSG_TYPES ||
	    header->length != fixed[header->type])
		return -EPROTO;
	return 0;
}

/* The counts agree with the length, the texts end, the addresses could be real. Versions are for
 * the negotiation. */
static int check_hello(const struct ha_msg_hello *hello)
{
	size_t rails = (hello->header.length - offsetof(struct ha_msg_hello, rail)) /
		       sizeof(hello->rail[0]);

	if (hello->nrails != rails || !hello->slots || !hello->ring_addr ||
	    hello->version_min > hello->version || !text_ended(hello->host, sizeof(hello->host)))
		return -EPROTO;
	for (size_t i = 0; i < rails; i++)
		if (!qp_sound(&hello->rail[i].qp) ||
		    !text_ended(hello->rail[i].name, sizeof(hello->rail[i].name)))
			return -EPROTO;
	return 0;
}

static int check_windows(const struct ha_msg_windows *m)
{
	if (m->n > HA_WINDOWS_SENT || m->next > HA_WINDOWS_MAX)
		return -EPROTO;
	for (unsigned i = 0; i < m->n; i++)
		if (m->window[i].window >= HA_WINDOWS_MAX ||
		    m->window[i].addr + m->window[i].size < m->window[i].addr)
			return -EPROTO;
	return 0;
}

/* A rail that can be, and what only this type has. */
static int check_rail(const struct ha_msg_rail *m)
{
	const struct ha_msg_incarnation *incarnation = (const struct ha_msg_incarnation *)m;
	const struct ha_fence_state *state = &((const struct ha_msg_fenced *)m)->state;

	if (m->rail >= HA_MAX_RAILS)
		return -EPROTO;
	switch (m->header.type) {
	case HA_MSG_RAIL_OFFER:
	case HA_MSG_RAIL_ANSWER:
		return qp_sound(&incarnation->end.qp) && text_ended(incarnation->end.name,
								    sizeof(incarnation->end.name))
			       ? 0
			       : -EPROTO;
	case HA_MSG_RAIL_FENCED:
		return state->base <= state->head && state->head - state->base <= HA_SLOTS
			       ? 0
			       : -EPROTO;
	case HA_MSG_RAIL_KEYS:
		return ((const struct ha_msg_keys *)m)->n <= HA_KEYS_MAX ? 0 : -EPROTO;
	case HA_MSG_WINDOWS:
		return check_windows((const struct ha_msg_windows *)m);
	}
	return 0;
}

uint64_t ha_wire_board_sum(const struct ha_board_message *message)
{
	/* Against halves of messages, not against enemies, who could write
	 * anywhere in our rings. */
	uint32_t length = message->length <= HA_BOARD_BODY ? message->length : 0;
	uint64_t sum = ha_hash_word(HA_HASH_START ^ message->number, message->length);

	return ha_hash_bytes(sum, message->body, length);
}

int ha_wire_check_message(const void *message, size_t length)
{
	const struct ha_msg_header *header = message;

	if (length < sizeof(*header) || ha_wire_check_header(header) || header->length != length)
		return -EPROTO;
	if (header->type >= HA_MSG_RAIL_DOWN && header->type != HA_MSG_FOR)
		return check_rail(message);
	switch (header->type) {
	case HA_MSG_HELLO:
	case HA_MSG_WELCOME:
		return check_hello(message);
	case HA_MSG_REFUSE:
		return text_ended(((const struct ha_msg_refuse *)message)->text,
				  sizeof(((const struct ha_msg_refuse *)message)->text))
			       ? 0
			       : -EPROTO;
	}
	return 0;
}

int ha_wire_check_handle(const void *bytes, const char **why)
{
	struct ha_wire_handle handle;

	memcpy(&handle, bytes, sizeof(handle)); /* NCCL promises no alignment */
	*why = NULL;
	if (handle.magic != HA_WIRE_MAGIC)
		*why = "it is another plugin's handle; both ends must load hawser";
	else if (!versions_meet(handle.version, handle.version_min))
		*why = "the peer's hawser has no protocol version of this one; install one "
		       "version everywhere";
	else if (!addr_sound(&handle.oob))
		*why = "its out-of-band address is damaged";
	else if (!qp_sound(&handle.qp))
		*why = "its queue pair is damaged";
	return *why ? -EPROTO : 0;
}
