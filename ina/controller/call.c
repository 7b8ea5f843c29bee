/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/call.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (4 << 20) /* bytes */

struct ha_call_channel {
	grpc_channel *channel;
	grpc_completion_queue *queue;
};

/* Flags of a call. */
#define UNTIL_CONNECTED \
	(GRPC_INITIAL_METADATA_WAIT_FOR_READY | GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET)

/* gRPC's own lines would come between ours; what is wrong is in the call's status. */
static void no_line(gpr_log_func_args *args)
{
}

static grpc_channel *channel_make(const char *address, grpc_channel_credentials *creds)
{
	grpc_arg args[] = {
		/* Controllers are near; what the environment says about proxies is for the web. */
		{ .type = GRPC_ARG_INTEGER, .key = GRPC_ARG_ENABLE_HTTP_PROXY, .value.integer = 0 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  .value.integer = ANSWER_MAX },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
		  .value.integer = 100 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
		  .value.integer = 1000 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
		  .value.integer = 1000 },
		/* Each client has its connection, and ends it. */
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
		  .value.integer = 1 },
	};
	grpc_channel_args all = { sizeof(args) / sizeof(args[0]), args };

	return grpc_channel_create(address, creds, &all);
}

struct ha_call_channel *ha_call_open(const char *address, const struct ha_tls *tls, char *why,
				     size_t size)
{
	struct ha_call_channel *c = calloc(1, sizeof(*c));
	grpc_channel_credentials *creds;

	if (!c) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	gpr_set_log_function(no_line);
	grpc_init();
	creds = ha_tls_client(tls, why, size);
	if (creds) {
		c->channel = channel_make(address, creds);
		grpc_channel_credentials_release(creds);
		c->queue = grpc_completion_queue_create_for_pluck(NULL);
		return c;
	}
	grpc_shutdown_blocking();
	free(c);
	return NULL;
}

void ha_call_close(struct ha_call_channel *c)
{
	grpc_channel_destroy(c->channel);
	grpc_completion_queue_shutdown(c->queue);
	grpc_completion_queue_destroy(c->queue);
	grpc_shutdown_blocking();
	free(c);
}

static void text_take(struct ha_call_answer *a, grpc_slice text)
{
	size_t n = GRPC_SLICE_LENGTH(text) < sizeof(a->text) - 1 ? GRPC_SLICE_LENGTH(text)
								 : sizeof(a->text) - 1;

	memcpy(a->text, GRPC_SLICE_START_PTR(text), n);
	a->text[n] = 0;
	/* It is one line, whatever the other end says. */
	for (char *p = a->text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
}

static bool bytes_take(struct ha_call_answer *a, grpc_byte_buffer *buffer)
{
	grpc_byte_buffer_reader reader;
	grpc_slice all;

	if (!buffer || !grpc_byte_buffer_reader_init(&reader, buffer))
		return false;
	all = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	a->len = GRPC_SLICE_LENGTH(all);
	a->bytes = malloc(a->len + 1);
	if (a->bytes)
		memcpy(a->bytes, GRPC_SLICE_START_PTR(all), a->len);
	grpc_slice_unref(all);
	return a->bytes;
}

static void set_internal_error(struct ha_call_answer *a, const char *text)
{
	a->status = GRPC_STATUS_INTERNAL;
	snprintf(a->text, sizeof(a->text), "%s", text);
}

void ha_call(struct ha_call_channel *c, const char *method, const uint8_t *bytes, size_t len,
	     unsigned deadline_ms, bool waits, struct ha_call_answer *a)
{
	gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_REALTIME),
					     gpr_time_from_millis(deadline_ms, GPR_TIMESPAN));
	grpc_slice path = grpc_slice_from_copied_string(method), text = grpc_empty_slice();
	grpc_slice body = grpc_slice_from_copied_buffer((const char *)bytes, len);
	grpc_byte_buffer *request = grpc_raw_byte_buffer_create(&body, 1), *response = NULL;
	grpc_call *call = grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
						   c->queue, path, NULL, deadline, NULL);
	grpc_metadata_array first, last;
	grpc_status_code status = GRPC_STATUS_UNKNOWN;
	grpc_op ops[] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA },  { .op = GRPC_OP_SEND_MESSAGE },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT }, { .op = GRPC_OP_RECV_INITIAL_METADATA },
		{ .op = GRPC_OP_RECV_MESSAGE },           { .op = GRPC_OP_RECV_STATUS_ON_CLIENT },
	};

	memset(a, 0, sizeof(*a));
	ops[0].flags = waits ? UNTIL_CONNECTED : 0;
	grpc_metadata_array_init(&first);
	grpc_metadata_array_init(&last);
	ops[1].data.send_message.send_message = request;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &first;
	ops[4].data.recv_message.recv_message = &response;
	ops[5].data.recv_status_on_client.trailing_metadata = &last;
	ops[5].data.recv_status_on_client.status = &status;
	ops[5].data.recv_status_on_client.status_details = &text;
	if (grpc_call_start_batch(call, ops, sizeof(ops) / sizeof(ops[0]), c, NULL) !=
	    GRPC_CALL_OK) {
		set_internal_error(a, "the call was refused by the library");
	} else {
		/* It ends by its deadline. */
		grpc_completion_queue_pluck(c->queue, c, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
		a->status = (int)status;
		text_take(a, text);
		if (!a->status && !bytes_take(a, response))
			set_internal_error(a, "an answer without bytes");
	}
	grpc_slice_unref(text);
	grpc_slice_unref(path);
	grpc_slice_unref(body);
	grpc_byte_buffer_destroy(request);
	if (response)
		grpc_byte_buffer_destroy(response);
	grpc_metadata_array_destroy(&first);
	grpc_metadata_array_destroy(&last);
	grpc_call_unref(call);
}
