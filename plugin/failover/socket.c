/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.c - what a connection's socket has brought, and what its end says about the peer
 */
#include "plugin/failover/failover.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/channel/inbox.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/report/journal.h"

#include <errno.h>
#include <string.h>

/* After BYE, how long messages that the peer says it has sent may still take. A NIC acknowledges
 * before the receiver's completion is visible, so BYE on the socket may overtake the last one, by
 * microseconds. */
#define BYE_GRACE_NS 1000000000ull

/*
 * What the end of the socket says about the peer.
 *
 * A process that ends, in whatever way, has its sockets closed by its kernel: the stream ends in
 * order (-EPIPE). Without BYE before, that process is dead, and asking the NIC would only cost
 * time: its kernel destroys its queue pairs as well. (Only if control messages lie unread there it
 * is a reset; then the rails show it, since they are gone too (ending.c).)
 * Everything else, a reset from a machine that has booted again or from a firewall, a keep-alive
 * that went unanswered, shows an error of the network between the sockets. It stops nothing as
 * long as a rail answers: the rails' heartbeats know (heartbeat.c), and the rails carry what the
 * drivers have to say.
 */
static void stream_ended(struct ha_bundle *b, int err)
{
	if (err == -EPROTO) {
		/* Left open, so that the peer does not take its end for the end of this process. */
		HA_WARN(b->name, "the peer sent what is no message on the out-of-band socket; "
				 "nothing more is read from it, the rails go on. Do all ranks run "
				 "one version of hawser?");
		ha_loop_remove(&b->ctx->loop, &b->link->stream->watch);
		b->link->stream->read_stopped = true;
		return;
	}
	if (!b->peer_closed && err == -EPIPE) {
		ha_bundle_abort(b, -ECONNRESET, HA_CAUSE_PEER_GONE,
				"the peer's process is gone; look at the log of that rank");
	} else if (!b->peer_closed) {
		HA_WARN(b->name,
			"the out-of-band socket is lost: %s; the rails go on as long as they "
			"answer",
			strerror(-err));
		b->link->reset = err == -ECONNRESET;
		for (unsigned i = 0; i < b->nrails; i++)
			b->failover->ctl[i].heartbeat.at = 0;
	}
	ha_stream_close(b->link->stream);
	b->link->stream = NULL;
}

static void on_bye(struct ha_bundle *b, uint64_t done)
{
	b->peer_closed = true;
	b->failover->peer_done = done;
	b->failover->peer_closed_until = ha_clock_now(b->ctx->clock) + BYE_GRACE_NS;
	ha_journal_event(b->ctx, &(struct ha_event) { .kind = HA_EVENT_PEER_CLOSED, .bundle = b });
}

void ha_socket_take(struct ha_bundle *b)
{
	int err = b->link->stream_error;

	ha_inbox_read(b, ha_failover_message);
	if (b->link->bye && !b->peer_closed)
		on_bye(b, b->link->bye_done);
	b->link->stream_error = 0;
	if (err)
		stream_ended(b, err);
}
