/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requests.h - one call: its method and bytes in, its status and bytes out; netccl.proto says what
 * they mean
 *
 * Knows no network. Statuses are gRPC's numbers (grpc/status.h).
 */
#ifndef HA_INA_REQUESTS_H
#define HA_INA_REQUESTS_H

#include "ina/controller/service.h"

enum ha_call_status {
	HA_CALL_OK = 0,
	HA_CALL_INVALID = 3,
	HA_CALL_DENIED = 7,
	HA_CALL_EXHAUSTED = 8,
	HA_CALL_PRECONDITION = 9,
	HA_CALL_UNIMPLEMENTED = 12,
	HA_CALL_INTERNAL = 13,
	HA_CALL_UNAVAILABLE = 14,
};

#define HA_REQUEST_MAX 65536u /* bytes */

struct ha_reply {
	enum ha_call_status status;
	char message[256]; /* unless OK */
	uint8_t *bytes;    /* OK; malloced */
	size_t len;
	/* A switch waits for another table than this: no answer yet. */
	bool waits;
	char switch_name[HA_SWITCH_NAME];
	uint64_t version, until;
};

/* method: the call's path; its last part counts. The reply counts after ha_service_commit only. */
void ha_request_handle(struct ha_service *s, const char *method, const struct ha_caller *caller,
		       const uint8_t *bytes, size_t len, uint64_t now, struct ha_reply *reply);
/* Of a reply that waits: true when it has become an answer. */
bool ha_request_again(struct ha_service *s, struct ha_reply *reply, uint64_t now);
void ha_reply_fail(struct ha_reply *reply, enum ha_call_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ha_reply_free(struct ha_reply *reply);

#endif
