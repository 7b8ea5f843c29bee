/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients may send: the input is cut into requests, a byte for the method, one for the client,
 * one for the time that passes, one for the length. The books must be right after each, and every
 * answer one that can be read. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "ina/controller/requests.h"
#include "netccl.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const methods[] = { "/inc.INC/CreateGroup",
				       "/inc.INC/DestroyGroup",
				       "/inc.INC/Heartbeat",
				       "/inc.INC/List",
				       "/inc.INC/SwitchHeartbeat",
				       "/inc.INC/Init",
				       "" };

static const struct ha_caller callers[] = {
	{ .tenant = "alice", .address = 0x0a000001, .registrar = true },
	{ .tenant = "10.0.0.2", .address = 0x0a000002 },
	{ .tenant = "local", .admin = true },
};

static void no_group_has_a_reason(uint32_t id, Inc__Reason reason, const char *message)
{
	if (!id)
		CHECK(reason != INC__REASON__GRANTED && *message);
	else
		CHECK(reason == INC__REASON__GRANTED);
}

static void answer_is_sound(unsigned method, const struct ha_reply *reply)
{
	const ProtobufCMessageDescriptor *kinds[] = { &inc__create_group_response__descriptor,
						      &inc__destroy_group_response__descriptor,
						      &inc__heartbeat_response__descriptor,
						      &inc__list_response__descriptor,
						      &inc__switch_heartbeat_response__descriptor };
	ProtobufCMessage *m;

	if (reply->status) {
		CHECK(*reply->message && !reply->bytes);
		return;
	}
	CHECK(method < sizeof(kinds) / sizeof(kinds[0]));
	m = protobuf_c_message_unpack(kinds[method], NULL, reply->len, reply->bytes);
	if (!m && !method)
		m = protobuf_c_message_unpack(&inc__create_group_text_response__descriptor, NULL,
					      reply->len, reply->bytes);
	CHECK(m);
	if (m->descriptor == &inc__create_group_response__descriptor)
		no_group_has_a_reason(((Inc__CreateGroupResponse *)m)->groupid,
				      ((Inc__CreateGroupResponse *)m)->reason,
				      ((Inc__CreateGroupResponse *)m)->message);
	if (m->descriptor == &inc__create_group_text_response__descriptor)
		no_group_has_a_reason(((Inc__CreateGroupTextResponse *)m)->groupid,
				      ((Inc__CreateGroupTextResponse *)m)->reason,
				      ((Inc__CreateGroupTextResponse *)m)->message);
	protobuf_c_message_free_unpacked(m, NULL);
}

static void no_line(int level, unsigned long flags, const char *file, int line, const char *fmt,
		    ...)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ha_settings settings;
	struct ha_service service;
	uint64_t now = HA_NS_PER_S;
	char why[128];
	bool fatal;

	ha_log_set_sink(no_line);
	ha_settings_default(&settings);
	settings.nsw = 1;
	settings.sw[0] = (struct ha_switch_info) {
		.name = "s", .address = 0x0a0000fe, .slots = 4096, .nserves = 1, .configured = true
	};
	CHECK(!ha_service_open(&service, &settings, NULL, now, why, sizeof(why)));
	while (size >= 4) {
		unsigned method = data[0] % (sizeof(methods) / sizeof(methods[0]));
		size_t len = data[3] < size - 4 ? data[3] : size - 4;
		struct ha_reply reply;

		now += data[2] * data[2] * 100 * HA_NS_PER_MS;
		ha_service_tick(&service, now);
		ha_request_handle(&service, methods[method], &callers[data[1] % 3], data + 4, len,
				  now, &reply);
		CHECK(ha_service_commit(&service, now, why, sizeof(why), &fatal));
		if (reply.waits && !ha_request_again(&service, &reply, now))
			CHECK(ha_request_again(&service, &reply, now + 11 * HA_NS_PER_S));
		answer_is_sound(method, &reply);
		ha_reply_free(&reply);
		CHECK(!ha_groups_check(&service.groups));
		data += 4 + len;
		size -= 4 + len;
	}
	ha_service_close(&service);
	return 0;
}
