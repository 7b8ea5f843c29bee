/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failover.h - the incarnations of rails: how they end at both ends, what is posted again, how they
 * begin anew
 *
 * The protocol is in docs/protocol.md. One driver runs it: whoever holds
 * ctx->drive, with the bundle taken (guard.h). The owner only says what it saw.
 */
#ifndef HA_PLUGIN_FAILOVER_H
#define HA_PLUGIN_FAILOVER_H

#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/schedule.h"
#include "plugin/failover/control.h"
#include "plugin/transfer/suspect.h"

union ha_message;

/* ---- driver, under ctx->drive ---- */

/* Ready for its owner: say whether it is protected, bring the standby up. */
void ha_failover_launch(struct ha_bundle *b);
/* Part of a round: everything that is due. Returns when the next is, ns on the context's clock. */
uint64_t ha_failover_round(struct ha_ctx *ctx);
/* Take the next message from the stream or a rail; the bundle is taken. */
void ha_failover_message(struct ha_bundle *b, const union ha_message *m);
/* Events of devices: whoever has a rail on it. */
void ha_failover_device(struct ha_device *dev, enum ha_event_cause cause);
/* The port is back, or its address is another: rails that wait for it need wait no longer. */
void ha_failover_device_back(struct ha_device *dev);
/* Asks the port again: rails that were made for another address are made anew, shares follow
 * another speed; whoever has asked it first. */
void ha_failover_port(struct ha_device *dev);
/* Its port runs at another speed than before. */
void ha_failover_speed(struct ha_device *dev);
/* This shared receive queue has failed: every rail with a queue pair on it. */
void ha_failover_srq(struct ha_ctx *ctx, const struct ibv_srq *srq);

/* ---- parts ---- */

/* failover.c: what devices and other connections have said of this one's rails since the last
 * step. */
void ha_device_news_take(struct ha_bundle *b);
/* ending.c: the peer has closed in order. What it had sent may still be on its way into our
 * queues. */
void ha_peer_closed_step(struct ha_bundle *b, uint64_t now);
/* ending.c: an error that waits for the peer's BYE, which would take its place, has waited long
 * enough. */
void ha_held_abort_step(struct ha_bundle *b, uint64_t now);
/* ending.c: every rail is fenced before the first error reaches the application: nothing may write
 * into what it then reuses. */
void ha_abort_step(struct ha_bundle *b);
/* ending.c: no rail is up: how long may that go on? */
void ha_no_path_step(struct ha_bundle *b, uint64_t now);

/* fence.c: one step of the end of an incarnation. */
void ha_fence_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* reconcile.c: the only function that changes a rail's compare.stage. */
void ha_compare_enter(struct ha_bundle *b, const struct ha_rail *r, enum ha_compare_stage stage);
/* reconcile.c: the peer has acted on what this end had, or goes on as who has. */
void ha_compare_settle(struct ha_bundle *b, const struct ha_rail *r);
/* reconcile.c: what this end has, once it is fenced. */
void ha_reconcile_state(const struct ha_bundle *b, struct ha_fence_state *state);
/* reconcile.c: both ends are fenced: what is missing is parked. */
void ha_reconcile(struct ha_bundle *b, struct ha_rail *r);
/* reconcile.c: post what is parked, in order, as far as it goes. */
void ha_replay(struct ha_bundle *b);
/* incarnation.c: nothing of the epoch before counts any more. */
void ha_incarnation_reset(struct ha_bundle *b, struct ha_rail *r);
/* incarnation.c: it carries data from here on. */
void ha_incarnation_begun(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* incarnation.c: receiver: pings that came get their pongs. */
void ha_incarnation_pings(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* incarnation.c: whatever it waits for may be over: it is tried now, or offered once more. */
void ha_incarnation_hurry(struct ha_bundle *b, struct ha_rail *r);
/* incarnation.c: one step of a rail that is down or coming up. */
void ha_incarnation_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* incarnation.c: slow verbs, while the bundle is not taken. True: a step of the bundle is due for
 * it. */
bool ha_incarnation_slow(struct ha_bundle *b, struct ha_rail *r);
/* incarnation.c: destroy what is left of a incarnation that is over, if anything; slow too. False:
 * not now, as above. */
bool ha_incarnation_tidy(struct ha_bundle *b, struct ha_rail *r);
void ha_incarnation_offered(struct ha_bundle *b, struct ha_rail *r, const struct ha_wire_rail *end,
			    uint32_t epoch);
void ha_incarnation_answered(struct ha_bundle *b, struct ha_rail *r,
			     const struct ha_wire_rail *end);
/* incarnation.c: the epoch is closed at this end: when may the next begin? */
void ha_incarnation_over(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* roles.c: the mask of up rails has changed: who carries what, is anybody left? */
void ha_roles_update(struct ha_bundle *b);
/* roles.c: a rail is back: does it carry its share again, or does it become the standby? Of a fused
 * device all NICs are wanted. */
void ha_roles_take(struct ha_bundle *b, struct ha_rail *r);
/* incarnation.c: ns for which a connection without any rail goes on trying: HA_NCCL_MAX_RETRIES. */
uint64_t ha_retry_limit_ns(const struct ha_ctx *ctx);
/* heartbeat.c: one look at a rail that is up: does it move, does it answer? */
void ha_heartbeat_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* heartbeat.c: a look at the rails of a calm bundle that is not taken: its owner may be inside.
 * False: a step must be made. */
bool ha_heartbeat_moves(struct ha_bundle *b, uint64_t now);
/* path.c: this rail's time-out, or the peer's, has proved its path silent: whoever else is on
 * it looks at itself. */
void ha_heartbeat_silence(struct ha_bundle *b, struct ha_rail *r);
/* path.c: an answer is asked for now. */
void ha_heartbeat_send(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* heartbeat.c: the peer sees nothing move: each rail that is up gets a heartbeat now, and is
 * watched as closely as one that was busy a moment ago. */
void ha_heartbeat_look(struct ha_bundle *b, uint64_t now);
/* path.c: between the same two ports. */
bool ha_heartbeat_same_path(const struct ha_rail *a, const struct ha_rail *b);
/* path.c: work of any connection has got over this rail's path since then. */
bool ha_heartbeat_path_moves(const struct ha_rail *r, const struct ha_ctx *ctx, uint64_t since);
/* sign.c: the only function that changes a rail's sign.stage. */
void ha_sign_enter(struct ha_bundle *b, const struct ha_rail *r, enum ha_sign_stage stage);
/* sign.c: does it carry data, and is there another path that could show whether the peer answers?
 */
bool ha_sign_wanted(const struct ha_bundle *b, const struct ha_rail *r);
/* sign.c: after a look at a rail that is wanted: are signs to be asked for, have they come? False:
 * it is given up. */
bool ha_sign_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* sign.c: it moves, or nothing is outstanding; the look before was the last that saw it still,
 * since then. */
void ha_sign_given(struct ha_bundle *b, struct ha_rail *r, uint64_t stood_since, uint64_t now);
/* sign.c: the peer has given it up for its silence. This end tries it again soon: was it a false
 * alarm? */
void ha_sign_peer_alarm(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* sign.c: the peer was asked, and what it wrote on this rail after that has been acknowledged. */
void ha_sign_alive(struct ha_bundle *b, const struct ha_rail *r, uint32_t number);
/* answer.c: the peer asks whether what this end writes on the rail is acknowledged. */
void ha_answer_asked(struct ha_bundle *b, struct ha_rail *r, uint32_t number, uint64_t now);
/* answer.c: it was: the peer is notified. */
void ha_answer_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* sign.c: the rail is up again: was it ever down? */
void ha_sign_recovered(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* heartbeat.c: a rail that carries data has been silent for a good part of its time-out: it may be
 * about to be given up. */
bool ha_heartbeat_missing(const struct ha_bundle *b);
/* keys.c: does the rail need keys that it has not, are there new ones to send? */
void ha_keys_step(struct ha_bundle *b, struct ha_rail *r);
/* keys.c: register every buffer on the rail's device; slow, the bundle is not taken. False: not
 * now, a registration is under way. */
bool ha_keys_register(struct ha_bundle *b, struct ha_rail *r);
/* keys.c: sender: the peer's end of the rail is on another device than in the incarnation before:
 * keys of the old one mean nothing. */
void ha_keys_void(struct ha_bundle *b, const struct ha_rail *r);
/* keys.c: the rail moves to another device: what was registered on the old one goes. Under
 * registered.lock. */
void ha_keys_forget(struct ha_bundle *b, struct ha_rail *r);
/* keys.c: receiver, of a rail that is down: have clear-to-sends with keys that it gave up arrived?
 * keys.behind says on which rails they may not have. Driver with the bundle taken. */
void ha_keys_follow(struct ha_bundle *b, struct ha_rail *r, uint64_t now);
/* keys.c: this rail counts its work requests anew; nothing of before is on its way. */
void ha_keys_incarnation(struct ha_bundle *b, const struct ha_rail *r);
void ha_keys_fill(struct ha_bundle *b, const struct ha_rail *r, struct ha_msg_keys *m);
/* keys.c: what the peer says; returns up to which receive its keys are known. */
uint64_t ha_keys_take(struct ha_bundle *b, const struct ha_rail *r, const struct ha_msg_keys *m);

/* windows.c: is there a window that the peer does not know on this rail? */
void ha_windows_step(struct ha_bundle *b, struct ha_rail *r);
void ha_windows_fill(struct ha_bundle *b, const struct ha_rail *r, struct ha_msg_windows *m);
/* windows.c: what the peer offers, and what it has learned. */
void ha_windows_take(struct ha_bundle *b, const struct ha_rail *r, const struct ha_msg_windows *m);
void ha_windows_known(struct ha_bundle *b, const struct ha_rail *r, uint64_t next);
/* windows.c: sender: as ha_keys_void, which calls it. */
void ha_windows_void(struct ha_bundle *b, const struct ha_rail *r);

/* messages.c: messages that are due go out, over the socket and over a rail; answers that did not
 * come are asked for again. */
void ha_messages_send(struct ha_bundle *b, uint64_t now);

/* socket.c: what the socket has brought since the last time: messages, BYE, its end. The bundle is
 * taken. */
void ha_socket_take(struct ha_bundle *b);

#endif
