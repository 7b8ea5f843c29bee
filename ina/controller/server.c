/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/server.h"

#include "base/clock.h"
#include "base/log.h"
#include "ina/controller/peer.h"
#include "ina/controller/requests.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define SLOW_NS (10 * HA_NS_PER_S)    /* for a request to be there whole, an answer to be taken */
#define BATCH 256                     /* calls that share a commit */
#define STILL_NS (100 * HA_NS_PER_MS) /* between two looks at the clock: it stood still */
#define MEMORY (64u << 20)            /* bytes for gRPC's buffers */

enum event { ASKED, RECEIVED, SENT, CLOSED };

enum phase {
	IDLE,      /* waits for a client */
	RECEIVING, /* its message is on the way */
	WAITING,   /* a switch's; see requests.h */
	READY,     /* has its reply, which is sent after the commit */
	SENDING,
	OVER,
};

struct call;

struct tag {
	struct call *call;
	enum event event;
};

struct call {
	struct ha_server *server;
	struct tag asked, received, sent, closed;
	enum phase phase;
	unsigned ops; /* events that are still to come */
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *request, *response;
	grpc_slice text;
	int cancelled;
	uint64_t since; /* when it began to be received, then to be sent, ns */
	char host[HA_TENANT_NAME];
	struct ha_caller caller;
	struct ha_reply reply;
	bool begun;            /* a client is there */
	LIST_ENTRY(call) link; /* in server->calls, once it has begun */
};

struct ha_server {
	struct ha_service *service;
	struct ha_server_options options;
	grpc_completion_queue *queue;
	grpc_server *server;
	LIST_HEAD(, call) calls;
	struct ha_server_counters count;
	int port[HA_SERVER_LISTENS];
	bool ending, ended;
	uint64_t next_look;
	uint64_t looked_at; /* the clock, when it ran last */
};

/* ---- how a call begins and ends ---- */

static void request_call(struct ha_server *s)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->server = s;
	c->asked = (struct tag) { c, ASKED };
	c->received = (struct tag) { c, RECEIVED };
	c->sent = (struct tag) { c, SENT };
	c->closed = (struct tag) { c, CLOSED };
	c->text = grpc_empty_slice();
	grpc_call_details_init(&c->details);
	grpc_metadata_array_init(&c->metadata);
	if (grpc_server_request_call(s->server, &c->call, &c->details, &c->metadata, s->queue,
				     s->queue, &c->asked) == GRPC_CALL_OK) {
		c->ops = 1;
		return;
	}
	grpc_call_details_destroy(&c->details);
	grpc_metadata_array_destroy(&c->metadata);
	free(c);
}

static void call_free(struct call *c)
{
	if (c->begun) {
		LIST_REMOVE(c, link);
		c->server->count.in_progress--;
	}
	ha_reply_free(&c->reply);
	grpc_slice_unref(c->text);
	if (c->request)
		grpc_byte_buffer_destroy(c->request);
	if (c->response)
		grpc_byte_buffer_destroy(c->response);
	grpc_call_details_destroy(&c->details);
	grpc_metadata_array_destroy(&c->metadata);
	if (c->call)
		grpc_call_unref(c->call);
	free(c);
}

static void start_batch(struct call *c, const grpc_op *ops, size_t n, struct tag *tag)
{
	if (grpc_call_start_batch(c->call, ops, n, tag, NULL) == GRPC_CALL_OK) {
		c->ops++;
		return;
	}
	/* Only a mistake of ours is refused here; the call must not hang for it. */
	HA_WARN("grpc",
		"gRPC refused a batch of operations, a defect of ha-controller: this call ends, "
		"the caller tries again; please report it");
	c->phase = OVER;
	grpc_call_cancel(c->call, NULL);
}

/* ---- who is it ---- */

static unsigned calls_of(const struct ha_server *s, const char *host)
{
	const struct call *c;
	unsigned n = 0;

	LIST_FOREACH(c, &s->calls, link)
		n += !strcmp(c->host, host);
	return n;
}

/* With mutual TLS the name of its certificate, "" if that has none; else NULL. */
static char *certificate_name(struct call *c)
{
	grpc_auth_context *context;
	grpc_auth_property_iterator it;
	const grpc_auth_property *property;
	char *name = NULL;

	if (!c->server->options.tls.ca)
		return NULL;
	context = grpc_call_auth_context(c->call);
	it = grpc_auth_context_find_properties_by_name(context, GRPC_X509_CN_PROPERTY_NAME);
	property = grpc_auth_property_iterator_next(&it);
	if (property && !memchr(property->value, 0, property->value_length))
		name = strndup(property->value, property->value_length);
	grpc_auth_context_release(context);
	return name ? name : strdup("");
}

static void identify_caller(struct call *c)
{
	char *peer = grpc_call_get_peer(c->call), *name = NULL;

	ha_peer_host(peer, c->host, sizeof(c->host));
	/* a Unix socket has no certificates: its mode says who may come */
	if (strcmp(c->host, "local"))
		name = certificate_name(c);
	if (!ha_peer_caller(peer, name, c->server->service->settings, &c->caller))
		ha_reply_fail(&c->reply, HA_CALL_DENIED,
			      "the certificate needs a common name of 1 to 63 printable bytes, "
			      "and not 'local'");
	gpr_free(peer);
	free(name);
}

/* ---- receiving ---- */

static void begin_call(struct call *c)
{
	struct ha_server *s = c->server;
	grpc_op close = { .op = GRPC_OP_RECV_CLOSE_ON_SERVER },
		receive = { .op = GRPC_OP_RECV_MESSAGE };

	c->since = ha_clock_now(&ha_clock_live);
	c->begun = true;
	LIST_INSERT_HEAD(&s->calls, c, link);
	s->count.in_progress++;
	s->count.calls++;
	close.data.recv_close_on_server.cancelled = &c->cancelled;
	start_batch(c, &close, 1, &c->closed);
	identify_caller(c);
	if (!c->reply.status && (s->count.in_progress > s->options.calls ||
				 calls_of(s, c->host) > s->options.calls_per_host)) {
		s->count.crowded++;
		ha_reply_fail(&c->reply, HA_CALL_EXHAUSTED,
			      "too many calls at once; try again later");
	}
	if (c->reply.status) {
		c->phase = READY;
		return;
	}
	c->phase = RECEIVING;
	receive.data.recv_message.recv_message = &c->request;
	start_batch(c, &receive, 1, &c->received);
}

static uint8_t *bytes_of(grpc_byte_buffer *buffer, size_t *len)
{
	grpc_byte_buffer_reader reader;
	uint8_t *bytes;
	grpc_slice all;

	if (!grpc_byte_buffer_reader_init(&reader, buffer))
		return NULL;
	all = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	*len = GRPC_SLICE_LENGTH(all);
	bytes = malloc(*len + 1);
	if (bytes)
		memcpy(bytes, GRPC_SLICE_START_PTR(all), *len);
	grpc_slice_unref(all);
	return bytes;
}

static void process_request(struct call *c)
{
	char method[128];
	uint8_t *bytes;
	size_t len, n = GRPC_SLICE_LENGTH(c->details.method);

	c->phase = READY;
	if (!c->request || grpc_byte_buffer_length(c->request) > HA_REQUEST_MAX) {
		ha_reply_fail(&c->reply, c->request ? HA_CALL_EXHAUSTED : HA_CALL_INVALID, "%s",
			      c->request ? "the request is too long"
					 : "the call brought no request");
		return;
	}
	bytes = bytes_of(c->request, &len);
	if (!bytes) {
		ha_reply_fail(&c->reply, HA_CALL_INTERNAL, "the controller has no memory left");
		return;
	}
	n = n < sizeof(method) ? n : sizeof(method) - 1;
	memcpy(method, GRPC_SLICE_START_PTR(c->details.method), n);
	method[n] = 0;
	ha_request_handle(c->server->service, method, &c->caller, bytes, len,
			  ha_clock_now(&ha_clock_live), &c->reply);
	free(bytes);
	if (c->reply.waits)
		c->phase = WAITING;
}

/* ---- answering ---- */

static void send_answer(struct call *c, uint64_t now)
{
	grpc_op ops[3] = { { .op = GRPC_OP_SEND_INITIAL_METADATA },
			   { .op = GRPC_OP_SEND_STATUS_FROM_SERVER },
			   { .op = GRPC_OP_SEND_MESSAGE } };
	size_t n = 2;

	c->phase = SENDING;
	c->since = now;
	ops[1].data.send_status_from_server.status = (grpc_status_code)c->reply.status;
	if (c->reply.status) {
		c->text = grpc_slice_from_copied_string(c->reply.message);
		ops[1].data.send_status_from_server.status_details = &c->text;
	} else {
		grpc_slice bytes =
			grpc_slice_from_copied_buffer((const char *)c->reply.bytes, c->reply.len);

		c->response = grpc_raw_byte_buffer_create(&bytes, 1);
		grpc_slice_unref(bytes);
		ops[2].data.send_message.send_message = c->response;
		n = 3;
	}
	start_batch(c, ops, n, &c->sent);
}

static void over_if_done(struct call *c)
{
	if (c->phase == OVER && !c->ops)
		call_free(c);
}

/* ---- events ---- */

static void handle_event(struct ha_server *s, struct tag *tag, bool success)
{
	struct call *c;

	if (!tag) {
		s->ended = true;
		return;
	}
	c = tag->call;
	c->ops--;
	switch (tag->event) {
	case ASKED:
		if (success) {
			begin_call(c);
			if (!s->ending)
				request_call(s);
		} else {
			c->phase = OVER;
		}
		break;
	case RECEIVED:
		if (c->phase == RECEIVING)
			process_request(c);
		break;
	case SENT:
		c->phase = OVER;
		break;
	case CLOSED:
		s->count.cancelled += c->cancelled != 0;
		if (c->phase == WAITING)
			c->phase = OVER;
		break;
	}
	over_if_done(c);
}

/* All replies of this round, once what they say is kept. */
static void answer_all(struct ha_server *s, const char *failure)
{
	uint64_t now = ha_clock_now(&ha_clock_live);
	struct call *next;

	s->count.waiting = 0;
	for (struct call *c = LIST_FIRST(&s->calls); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->phase == WAITING && failure)
			ha_reply_fail(&c->reply, HA_CALL_UNAVAILABLE, "%s", failure);
		if (c->phase == WAITING &&
		    (failure || ha_request_again(s->service, &c->reply, now)))
			c->phase = READY;
		else if (c->phase == READY && failure && !c->reply.status)
			ha_reply_fail(&c->reply, HA_CALL_UNAVAILABLE, "%s", failure);
		s->count.waiting += c->phase == WAITING;
		if (c->phase == READY)
			send_answer(c, now);
	}
}

static bool waits_for_client(const struct call *c)
{
	return c->phase == RECEIVING || c->phase == SENDING;
}

/*
 * Clients that begin and do not go on, or leave no room for their answer: others would be refused
 * for them.
 */
static void look_for_slow(struct ha_server *s, uint64_t now)
{
	struct call *c;

	if (now < s->next_look)
		return;
	s->next_look = now + HA_NS_PER_S;
	LIST_FOREACH(c, &s->calls, link)
		if (waits_for_client(c) && now > c->since + SLOW_NS) {
			s->count.slow++;
			grpc_call_cancel_with_status(
				c->call, GRPC_STATUS_DEADLINE_EXCEEDED,
				c->phase == RECEIVING ? "the request did not come within 10 s"
						      : "the answer was not taken within 10 s",
				NULL);
			c->since = now;
		}
}

static gpr_timespec until_time(uint64_t until)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
			    gpr_time_from_nanos((int64_t)(until > now ? until - now : 0),
						GPR_TIMESPAN));
}

/*
 * Before anything is done by the time: what was lost since the last look (or `until`, while it
 * waited) is nobody's silence.
 */
static void look_at_clock(struct ha_server *s, uint64_t until)
{
	uint64_t now = ha_clock_now(&ha_clock_live),
		 from = s->looked_at > until ? s->looked_at : until;

	s->looked_at = now;
	if (!from || now < from + STILL_NS)
		return;
	if (now - from >= HA_NS_PER_S)
		HA_WARN("controller",
			"it stood still for %.1f s (was it stopped? is its database on a slow "
			"disk?): leases are that much longer",
			(double)(now - from) / 1e9);
	ha_groups_stood_still(&s->service->groups, now - from, now);
}

/* The first event may be waited for, the others of a round are there already. */
static bool take_events(struct ha_server *s, uint64_t until)
{
	for (unsigned i = 0; i < BATCH; i++) {
		grpc_event e =
			grpc_completion_queue_next(s->queue, until_time(i ? 0 : until), NULL);

		look_at_clock(s, i ? 0 : until);
		if (e.type != GRPC_OP_COMPLETE)
			return e.type != GRPC_QUEUE_SHUTDOWN;
		handle_event(s, e.tag, e.success);
	}
	return true;
}

int ha_server_serve(struct ha_server *s, uint64_t until)
{
	char why[256];
	bool fatal, kept;
	uint64_t now;

	look_at_clock(s, 0);
	take_events(s, until);
	look_at_clock(s, 0);
	now = s->looked_at;
	ha_service_tick(s->service, now);
	kept = ha_service_commit(s->service, now, why, sizeof(why), &fatal);
	answer_all(s, kept ? NULL : why);
	look_for_slow(s, now);
	if (!fatal)
		return 0;
	HA_WARN("store", "the database cannot be read: %s", why);
	return -EIO;
}

/* ---- opening and closing ---- */

static grpc_server *server_make(void)
{
	grpc_resource_quota *quota = grpc_resource_quota_create("controller");
	grpc_arg args[] = {
		/* Two controllers must not share a port without knowing. */
		{ .type = GRPC_ARG_INTEGER, .key = GRPC_ARG_ALLOW_REUSEPORT, .value.integer = 0 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  .value.integer = HA_REQUEST_MAX },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MAX_METADATA_SIZE,
		  .value.integer = 8192 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MAX_CONCURRENT_STREAMS,
		  .value.integer = 128 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_KEEPALIVE_TIME_MS,
		  .value.integer = 30000 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
		  .value.integer = 10000 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_MAX_CONNECTION_IDLE_MS,
		  .value.integer = 600000 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
		  .value.integer = 5000 },
		{ .type = GRPC_ARG_POINTER,
		  .key = GRPC_ARG_RESOURCE_QUOTA,
		  .value.pointer = { quota, grpc_resource_quota_arg_vtable() } },
	};
	grpc_channel_args all = { sizeof(args) / sizeof(args[0]), args };
	grpc_server *server;

	grpc_resource_quota_resize(quota, MEMORY);
	server = grpc_server_create(&all, NULL);
	grpc_resource_quota_unref(quota);
	return server;
}

static bool listen_all(struct ha_server *s, char *why, size_t size)
{
	for (unsigned i = 0; i < s->options.nlisten; i++) {
		/* A Unix socket's mode says who may come. */
		static const struct ha_tls none;
		bool local = !strncmp(s->options.listen[i], "unix:", 5);
		grpc_server_credentials *creds =
			ha_tls_server(local ? &none : &s->options.tls, why, size);

		if (!creds)
			return false;
		s->port[i] = grpc_server_add_http2_port(s->server, s->options.listen[i], creds);
		grpc_server_credentials_release(creds);
		if (!s->port[i]) {
			snprintf(why, size,
				 "nobody can listen at %s; is it taken, or are the certificates "
				 "wrong?",
				 s->options.listen[i]);
			return false;
		}
	}
	return true;
}

struct ha_server *ha_server_open(struct ha_service *service,
				 const struct ha_server_options *options, char *why, size_t size)
{
	struct ha_server *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(why, size, "no memory");
		return NULL;
	}
	s->service = service;
	s->options = *options;
	if (s->options.tls.ca && !*s->options.tls.ca)
		s->options.tls.ca = NULL;
	s->queue = grpc_completion_queue_create_for_next(NULL);
	s->server = server_make();
	grpc_server_register_completion_queue(s->server, s->queue, NULL);
	if (!listen_all(s, why, size)) {
		ha_server_close(s);
		return NULL;
	}
	grpc_server_start(s->server);
	for (int i = 0; i < 16; i++)
		request_call(s);
	return s;
}

int ha_server_port(const struct ha_server *s, unsigned n)
{
	return n < s->options.nlisten ? s->port[n] : 0;
}

const struct ha_server_counters *ha_server_counters(const struct ha_server *s)
{
	return &s->count;
}

void ha_server_close(struct ha_server *s)
{
	struct call *c, *next;

	s->ending = true;
	grpc_server_shutdown_and_notify(s->server, s->queue, NULL);
	grpc_server_cancel_all_calls(s->server);
	while (!s->ended) {
		grpc_event e = grpc_completion_queue_next(s->queue,
							  gpr_inf_future(GPR_CLOCK_REALTIME), NULL);

		if (e.type == GRPC_OP_COMPLETE)
			handle_event(s, e.tag, e.success);
		LIST_FOREACH(c, &s->calls, link)
			if (c->phase == READY || c->phase == WAITING)
				c->phase = OVER;
		for (c = LIST_FIRST(&s->calls); c; c = next) {
			next = LIST_NEXT(c, link);
			over_if_done(c);
		}
	}
	grpc_completion_queue_shutdown(s->queue);
	while (take_events(s, UINT64_MAX / 4))
		;
	while (!LIST_EMPTY(&s->calls))
		call_free(LIST_FIRST(&s->calls));
	grpc_server_destroy(s->server);
	grpc_completion_queue_destroy(s->queue);
	free(s);
}
