/* SPDX-License-Identifier: BSD-3-Clause */
/* call.h - one unary gRPC call that waits for its answer; what client.c is made of */
#ifndef HA_INA_CALL_H
#define HA_INA_CALL_H

#include "ina/controller/tls.h"

#include <stdbool.h>
#include <stdint.h>

struct ha_call_channel;

/* NULL and why. */
struct ha_call_channel *ha_call_open(const char *address, const struct ha_tls *tls, char *why,
				     size_t size);
void ha_call_close(struct ha_call_channel *channel);

struct ha_call_answer {
	int status;     /* gRPC's number */
	char text[300]; /* of a status that is not 0 */
	uint8_t *bytes; /* malloced; NULL unless status is 0 */
	size_t len;
};

/*
 * `waits`: where there is no connection the call waits until the deadline for one; else it fails at
 * once. A connection comes about only while a call waits, since nobody else polls its socket (gRPC
 * itself does so every 5 s): calls that fail at once, one after the other, may never see one.
 */
void ha_call(struct ha_call_channel *channel, const char *method, const uint8_t *bytes, size_t len,
	     unsigned deadline_ms, bool waits, struct ha_call_answer *answer);

#endif
