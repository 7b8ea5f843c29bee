/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/inbox.h"

#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/schedule.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INBOX_MAX 64

struct ha_inbox_message {
	STAILQ_ENTRY(ha_inbox_message) entry;
	uint64_t body[]; /* aligned as a union ha_message is */
};

void ha_inbox_put(struct ha_bundle *b, const union ha_message *m)
{
	struct ha_inbox_message *message = NULL;

	/* ABORT is said once. */
	if (b->link->inbox_count < INBOX_MAX ||
	    (m->header.type == HA_MSG_ABORT && b->link->inbox_count == INBOX_MAX))
		message = malloc(sizeof(*message) + m->header.length);
	if (!message)
		return;
	memcpy(message->body, m, m->header.length);
	STAILQ_INSERT_TAIL(&b->link->inbox, message, entry);
	b->link->inbox_count++;
	ha_due_now(b);
}

static struct ha_inbox_message *take_first(struct ha_bundle *b)
{
	struct ha_inbox_message *message = STAILQ_FIRST(&b->link->inbox);

	if (message) {
		STAILQ_REMOVE_HEAD(&b->link->inbox, entry);
		b->link->inbox_count--;
	}
	return message;
}

void ha_inbox_read(struct ha_bundle *b, ha_message_taker take_message)
{
	for (struct ha_inbox_message *message; (message = take_first(b)) != NULL; free(message)) {
		union ha_message m;

		memcpy(&m, message->body, ((struct ha_msg_header *)message->body)->length);
		take_message(b, &m);
	}
}

void ha_inbox_drop(struct ha_bundle *b)
{
	for (struct ha_inbox_message *message; (message = take_first(b)) != NULL;)
		free(message);
}

/* Only notes what there is: the bundle is not taken. */
static void receive_message(void *arg, const union ha_message *m)
{
	struct ha_bundle *b = arg, *whose = b;

	if (b->link->for_another)
		whose = b->terms.flags & HA_FLAG_BATCHES
				? ha_peer_find(b->ctx, b->link->for_another)
				: NULL;
	b->link->for_another = 0;
	if (m->header.type == HA_MSG_FOR) {
		b->link->for_another = m->about.ring;
	} else if (m->header.type == HA_MSG_BYE && !b->link->bye && whose == b) {
		b->link->bye = true;
		b->link->bye_done = m->bye.done;
		ha_due_now(b);
	} else if (m->header.type >= HA_MSG_RAIL_DOWN && whose) {
		ha_inbox_put(whose, m);
	} /* else it is late, for a connection that is closed, or from a newer version */
}

void ha_inbox_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_bundle *b = ((struct ha_stream *)watch)->owner;
	int err;

	if (b->link->stream->read_stopped || b->link->stream_error)
		return;
	err = ha_stream_flush(b->link->stream);
	if (!err || err == -EAGAIN)
		err = ha_stream_receive_all(b->link->stream, receive_message, b);
	if (err && err != -EAGAIN) {
		b->link->stream_error = err;
		ha_due_now(b);
	}
	(void)events;
}

void ha_inboxes_poll(struct ha_ctx *ctx)
{
	struct ha_bundle *b;

	LIST_FOREACH(b, &ctx->bundles, entry)
		if (b->link->stream)
			ha_inbox_ready(&b->link->stream->watch, 0);
}
