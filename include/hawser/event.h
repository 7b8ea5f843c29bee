/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - what can happen to a connection or one of its rails, and why
 *
 * The numbers are part of the status page (status.h), the texts of the JSON lines
 * (docs/operations.md): they never change.
 */
#ifndef HAWSER_EVENT_H
#define HAWSER_EVENT_H

/* X(NAME, "text"). New ones are added at the end; a reader may meet numbers and texts that it does
 * not know. */
#define HA_EVENT_KINDS(X)                                                                          \
	X(CONNECTED, "connected")         /* ready for NCCL */                                     \
	X(PROTECTED, "protected")         /* a standby is proven */                                \
	X(NOT_PROTECTED, "not_protected") /* there is none, or no longer; the cause says why */    \
	X(SUSPECTED, "suspected") /* a rail does not do its work; the cause says how it showed */  \
	X(FENCED, "fenced") /* nothing of that rail's old incarnation can reach memory any more */ \
	X(FAILED_OVER, "failed_over") /* what was lost has been posted again on other rails */     \
	X(RECOVERED, "recovered")     /* a rail is back, in a new incarnation */                   \
	X(FAILED_BACK, "failed_back") /* it carries its old share again */                         \
	X(LOST, "lost")               /* the connection ends with an error */                      \
	X(DEVICE, "device")           /* an event of the device, port or queue */                  \
	X(PEER_CLOSED, "peer_closed") /* the peer has closed its end in order */                   \
	X(ADVICE,                                                                                  \
	  "advice") /* an agent's hints are followed, or not any more; the cause says which */     \
	X(FALSE_ALARM, "false_alarm") /* a rail was given up, and its path had been sound */       \
	X(SLOW, "slow")   /* a rail works and is far too slow; another one carries instead */      \
	X(ADDED, "added") /* a further pair of NICs is connected, beside those that are up */

#define HA_EVENT_CAUSES(X)                                                                        \
	X(NONE, "none")                                                                           \
	X(WORK_FAILED, "work_failed")   /* a work request completed in error */                   \
	X(WORK_REFUSED, "work_refused") /* the device took no work */                             \
	X(QUEUE_ERROR, "queue_error")   /* one of its queues is in error */                       \
	X(PORT_DOWN, "port_down")                                                                 \
	X(PORT_UP, "port_up")                                                                     \
	X(PORT_CHANGED, "port_changed")   /* address, partition table, subnet manager ... */      \
	X(DEVICE_FAILED, "device_failed") /* what was opened on it, for good */                   \
	X(TIMEOUT, "timeout")             /* no progress for HA_NCCL_RTO_MS */                    \
	X(HEARTBEAT, "heartbeat")         /* probes of an idle rail went unanswered */            \
	X(PEER_NOTICE, "peer_notice")     /* the peer has said so */                              \
	X(SIBLING, "sibling")     /* another connection has just lost the same device, or path */ \
	X(NO_RAIL, "no_rail")     /* none is left */                                              \
	X(PEER_GONE, "peer_gone") /* its process has ended without a BYE message */               \
	X(DATA_LOST,                                                                              \
	  "data_lost")          /* acknowledged by the NIC, never placed, and already released */ \
	X(DISABLED, "disabled") /* by the settings of this end */                                 \
	X(NO_STANDBY, "no_standby")         /* no second device */                                \
	X(PEER_WITHOUT, "peer_without")     /* the peer has none, or does not want one */         \
	X(STANDBY_FAILED, "standby_failed") /* it could not be brought up */                      \
	X(RAIL_LOST, "rail_lost")           /* one of the rails is down */                        \
	X(RETRIES, "retries")               /* HA_NCCL_MAX_RETRIES used up */                     \
	X(PROTOCOL, "protocol")             /* the peer broke it */                               \
	X(FOLLOWED, "followed")             /* the agent's hints */                               \
	X(NO_AGENT, "no_agent") /* there is no file of hints, or one that is not to be trusted */ \
	X(AGENT_STALE, "agent_stale") /* the agent's heartbeat stands still */                    \
	X(BAD_HINT, "bad_hint")       /* none, torn, out of range, or of another flow */          \
	X(NO_SLOT, "no_slot") /* the agent has no room for some connections: they get no hints */ \
	X(SURPLUS,                                                                                \
	  "surplus") /* a standby is closed that others make superfluous; nothing is wrong */     \
	X(SILENCE, "silence")         /* asked for a sign, its standby gave one and it did not */ \
	X(DEVICE_BACK, "device_back") /* one that had failed is there again, and is used again */

enum ha_event_kind {
#define X(name, text) HA_EVENT_##name,
	HA_EVENT_KINDS(X)
#undef X
		HA_EVENT_KIND_COUNT
};

enum ha_event_cause {
#define X(name, text) HA_CAUSE_##name,
	HA_EVENT_CAUSES(X)
#undef X
		HA_EVENT_CAUSE_COUNT
};

/* The texts; "unknown" for numbers of a newer version. */
static inline const char *ha_event_kind_text(unsigned kind)
{
#define X(name, text) text,
	static const char *const texts[] = { HA_EVENT_KINDS(X) };
#undef X
	return kind < HA_EVENT_KIND_COUNT ? texts[kind] : "unknown";
}

static inline const char *ha_event_cause_text(unsigned cause)
{
#define X(name, text) text,
	static const char *const texts[] = { HA_EVENT_CAUSES(X) };
#undef X
	return cause < HA_EVENT_CAUSE_COUNT ? texts[cause] : "unknown";
}

#endif
