/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - one registration socket's bytes: from questions to answers, without the socket
 *
 * The rules for what is not as it should be:
 *
 * - another magic number, a length below 8 or above HA_SESSION_MESSAGE: nobody knows where the next
 *   message begins, so the socket is closed
 * - an unknown type, or a length that is not the type's: skipped by its length, answered with
 *   status 2
 * - a register with a zero SOUT address, or a conn_id that stands for another flow: status 2
 * - a deregister of what is not registered: status 2
 * - the reserved byte: ignored
 */
#ifndef HA_AGENT_SESSION_H
#define HA_AGENT_SESSION_H

#include "agent/slots.h"

/* bytes; none of ours is that long, later ones may be longer than today's */
#define HA_SESSION_MESSAGE 256
#define HA_SESSION_OUT 4096

struct ha_session_counts {
	uint64_t registered, deregistered, no_slot, invalid;
};

struct ha_session {
	uint8_t in[HA_SESSION_MESSAGE];
	uint8_t out[HA_SESSION_OUT]; /* answers that the socket has not taken yet */
	size_t in_len, out_len;
};

/*
 * Take bytes from the socket. Returns how many of `len` were used: all, unless there is no room for
 * more answers; or -EPROTO: hang up.
 */
ssize_t ha_session_feed(struct ha_session *x, struct ha_slots *s, struct ha_owner *owner,
			struct ha_session_counts *counts, const uint8_t *data, size_t len);

#endif
