/* SPDX-License-Identifier: BSD-3-Clause */
/* answers.h - what requests.c says, as bytes */
#ifndef HA_INA_ANSWERS_H
#define HA_INA_ANSWERS_H

#include "ina/controller/requests.h"

#include "netccl.pb-c.h"

#include <protobuf-c/protobuf-c.h>

#define HA_LIST_PAGE 256u /* groups */

/* Each: false = no memory. */
bool ha_answer_pack(struct ha_reply *reply, const ProtobufCMessage *message);
/* group NULL: refused. text: addresses as text. */
bool ha_answer_create(struct ha_reply *reply, const struct ha_group *group,
		      const struct ha_refusal *why, bool text);
/* Group: all about it. */
bool ha_answer_joined(struct ha_reply *reply, Inc__HeartbeatResponse *r,
		      const struct ha_group *group, uint64_t now);
bool ha_answer_list(struct ha_reply *reply, const struct ha_groups *groups, uint64_t after,
		    uint64_t now);
bool ha_answer_table(struct ha_reply *reply, const struct ha_groups *groups,
		     const struct ha_switch *s, uint64_t version, uint64_t now);

#endif
