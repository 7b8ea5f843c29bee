/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - every byte that hawser puts where another machine reads it
 *
 * Four kinds: the handle that NCCL carries, the messages (bootstrap, on the out-of-band socket;
 * control, there and on the board), the memory that the peer writes by RDMA (clear-to-send ring,
 * sizes ring, board), and the 32-bit immediate. All integers are little-endian, as on every machine
 * with a GPU; a big-endian build is refused. What an end says of its ports and rails is in
 * plugin/device/wire_end.h. docs/protocol.md is the prose.
 */
#ifndef HA_PLUGIN_WIRE_H
#define HA_PLUGIN_WIRE_H

#include "plugin/core.h"
#include "plugin/device/wire_end.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_WIRE_MAGIC 0x48410001u /* "HA", version 1: first word of the handle */
#define HA_WIRE_VERSION 1         /* protocol used; the lower of the two ends' is used */
#define HA_WIRE_VERSION_MIN 1

#define HA_FLAG_DUAL_PATH 1u /* bit 0: this end can keep a standby path */
#define HA_FLAG_FAILOVER 2u  /* its rails can end and begin again: the epoch protocol */
/* it wants sends to complete on the receiver's count; one end's flag is enough */
#define HA_FLAG_ACK_MEMORY 4u
/* its standby may leave a device and come back to it: it counts, and heeds, how often keys are
 * forgotten */
#define HA_FLAG_MOVES 16u
/* the sender names what is written; both ends must want it, or the listener refuses */
#define HA_FLAG_ONE_SIDED 32u
/* a socket of this end takes control messages for its other connections too */
#define HA_FLAG_BATCHES 8u
/* all rails behind the data rails are there, and each may be on any pair of devices */
#define HA_FLAG_PAIRS 64u
/* it answers RAIL_ASK */
#define HA_FLAG_SIGNS 128u
/* a place may be a switch (rdma/topo/leaf.h), not only a rail */
#define HA_FLAG_SWITCHES 256u
/* its queue pairs take messages in any order; of the sender only where the handle says it too */
#define HA_FLAG_UNORDERED 512u

struct ha_wire_handle {
	uint32_t magic;
	uint32_t flags;
	uint16_t version, version_min;
	uint32_t reserved;
	uint64_t nonce; /* the connector shows it; an unauthenticated peer cannot guess it */
	struct ha_wire_addr oob;
	struct ha_wire_qp qp; /* the primary */
	/* of the listener's second RoCE device; 0: there is none, or an older hawser */
	uint8_t second_gid[16];
};
static_assert(sizeof(struct ha_wire_handle) == 96, "wire layout");
static_assert(sizeof(struct ha_wire_handle) <= HA_HANDLE_MAX, "NCCL carries 128 bytes");

/* ---- bootstrap messages, on the out-of-band socket; control messages, there and over the rails
 * ---- */
#define HA_MSG_MAGIC 0x534d4148u /* "HAMS" */
enum ha_msg_type {
	HA_MSG_HELLO = 1, /* connector: who I am, my rails */
	HA_MSG_WELCOME,   /* listener: accepted, my rails */
	HA_MSG_REFUSE,    /* listener: no, and why */
	HA_MSG_READY,     /* connector: my queue pair can receive */
	HA_MSG_BYE,       /* either: I close; this much had arrived */
	/* About one rail, in any order, over any carrier, as often as it takes. */
	HA_MSG_RAIL_DOWN,   /* either: I am fencing this incarnation of the rail, do so too */
	HA_MSG_RAIL_FENCED, /* either: fenced; this is what I have */
	HA_MSG_RAIL_ACK,    /* either: I have acted on your RAIL_FENCED */
	HA_MSG_RAIL_OFFER,  /* sender: a new incarnation, my queue pair */
	HA_MSG_RAIL_ANSWER, /* receiver: mine is ready */
	/* receiver: keys of this rail's device for receives that are announced already */
	HA_MSG_RAIL_KEYS,
	HA_MSG_RAIL_KEYS_ACK, /* sender: I have them */
	HA_MSG_ABORT,         /* either: this connection has ended with an error */
	/* receiver: my port is back, so offer the next incarnation now; a hint, never repeated */
	HA_MSG_RAIL_BACK,
	HA_MSG_FOR, /* either: the next message on this socket is for another of your connections */
	HA_MSG_WINDOWS,     /* receiver: what may be written here, with keys for one rail
			       (HA_FLAG_ONE_SIDED) */
	HA_MSG_WINDOWS_ACK, /* sender: I have them */
	/* either: nothing of mine comes back on this rail; does what you write there?
	 * (HA_FLAG_SIGNS)
	 */
	HA_MSG_RAIL_ASK,
	HA_MSG_RAIL_ALIVE, /* either: it does: what I wrote after you asked was acknowledged */
	HA_MSG_TYPES
};

struct ha_msg_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t length; /* of the whole message, this header included */
	/* HELLO, WELCOME: of this end, on which a rail may be (HA_FLAG_PAIRS); else 0 */
	uint32_t ports;
};
static_assert(sizeof(struct ha_msg_header) == 16, "wire layout");

/* HELLO and WELCOME: an end and its rails. nonce: the handle's in HELLO, the same again in
 * WELCOME. */
struct ha_msg_hello {
	struct ha_msg_header header;
	uint64_t nonce;
	uint64_t ring_addr; /* the sender's clear-to-send ring, or the receiver's sizes ring */
	uint32_t flags;
	uint16_t version, version_min;
	uint16_t nrails;
	uint16_t slots; /* entries in the rings; both ends must agree */
	uint32_t pid;
	char host[32];
	uint64_t context; /* random; connections of one process have the same */
	struct ha_wire_rail rail[HA_MAX_RAILS]; /* only nrails of them are sent */
};
static_assert(offsetof(struct ha_msg_hello, rail) == 88, "wire layout");

struct ha_msg_refuse {
	struct ha_msg_header header;
	int32_t error; /* positive errno */
	char text[76];
};
static_assert(sizeof(struct ha_msg_refuse) == 96, "wire layout");

struct ha_msg_ready {
	struct ha_msg_header header;
	uint64_t nonce;
};
static_assert(sizeof(struct ha_msg_ready) == 24, "wire layout");

struct ha_msg_bye {
	struct ha_msg_header header;
	/* messages below this absolute index had arrived whole (receiver), or were sent (sender) */
	uint64_t done;
};
static_assert(sizeof(struct ha_msg_bye) == 24, "wire layout");

/* How every message about a rail begins; RAIL_ACK and RAIL_BACK are nothing more. ABORT: rail and
 * epoch are 0. */
struct ha_msg_rail {
	struct ha_msg_header header;
	uint64_t nonce;
	uint32_t rail;
	uint32_t epoch;
};
static_assert(sizeof(struct ha_msg_rail) == 32, "wire layout");

/* RAIL_DOWN, ABORT. */
struct ha_msg_cause {
	struct ha_msg_rail rail;
	uint32_t cause; /* enum ha_event_cause */
	int32_t error;  /* ABORT: positive errno */
};
static_assert(sizeof(struct ha_msg_cause) == 40, "wire layout");

/*
 * Receives in flight on one connection. NCCL has 32 of up to eight buffers each at most; the rest
 * is room to run ahead of a message that is on a slow rail: with 64 slots the other rails waited
 * for it (sim_adaptive, "the slow rail at a tenth").
 */
#define HA_SLOTS 128

/*
 * What an end has when its fence is over. Receiver: every receive below `base` is complete, `head`
 * is the next that will be announced, and mask[] says for base, base + 1, ... which stripes were
 * seen (0xff: all, whatever they were). Sender: every clear-to-send below `head` (= base) was used,
 * and bit i of mask[] says that the one of receive head + i is held whole.
 */
struct ha_fence_state {
	uint64_t base, head;
	uint8_t mask[HA_SLOTS];
};
static_assert(sizeof(struct ha_fence_state) == 16 + HA_SLOTS, "wire layout");

struct ha_msg_fenced {
	struct ha_msg_rail rail;
	struct ha_fence_state state;
};

/* RAIL_OFFER and RAIL_ANSWER. */
struct ha_msg_incarnation {
	struct ha_msg_rail rail;
	struct ha_wire_rail end;
};

/* Keys of one receive's buffers; 0 = that buffer has none. */
struct ha_wire_keys {
	uint64_t idx;
	uint32_t key[HA_MAX_RECVS];
};
static_assert(sizeof(struct ha_wire_keys) == 40, "wire layout");

#define HA_KEYS_MAX 10 /* receives in one RAIL_KEYS */
struct ha_msg_keys {
	struct ha_msg_rail rail;
	uint32_t n;
	uint32_t reserved;
	uint64_t next; /* every open receive below is listed here or was before */
	struct ha_wire_keys keys[HA_KEYS_MAX];
};

struct ha_msg_keys_ack {
	struct ha_msg_rail rail;
	uint64_t next; /* the keys of every receive below are known */
};

/* The next message on this socket is for that connection of the recipient whose ring memory lies at
 * `ring`: the ring_addr that it sent in its HELLO or WELCOME. */
struct ha_msg_for {
	struct ha_msg_header header;
	uint64_t ring;
};
static_assert(sizeof(struct ha_msg_for) == 24, "wire layout");

/* A window of the receiver's memory. key 0: the rail's device does not have it. */
struct ha_wire_window {
	uint32_t window; /* its number, the same at every rank */
	uint32_t key;
	uint64_t addr, size;
};
static_assert(sizeof(struct ha_wire_window) == 24, "wire layout");

#define HA_WINDOWS_MAX (1u << 16) /* windows of one connection */
#define HA_WINDOWS_SENT 18        /* in one WINDOWS */
struct ha_msg_windows {
	struct ha_msg_rail rail;
	uint32_t n;
	uint32_t next; /* so many have been offered by now, in the order in which they were
			  registered */
	struct ha_wire_window window[HA_WINDOWS_SENT];
};

struct ha_msg_windows_ack {
	struct ha_msg_rail rail;
	uint64_t next; /* the keys of so many are known, for this rail */
};

/* RAIL_ASK and RAIL_ALIVE. */
struct ha_msg_sign {
	struct ha_msg_rail rail;
	uint32_t number; /* of the question */
	uint32_t lossy;  /* RAIL_ASK: this end's work waits although the path was proved sound */
};
static_assert(sizeof(struct ha_msg_sign) == 40, "wire layout");

#define HA_MSG_MAX (sizeof(struct ha_msg_hello))

/* Is this the start of a message that we can take? 0, or -EPROTO. Looks at sizeof(struct
 * ha_msg_header) bytes only. */
int ha_wire_check_header(const struct ha_msg_header *header);
/* Is the whole message sound (length against type and counts, versions, strings ended)? 0, or
 * -EPROTO. */
int ha_wire_check_message(const void *message, size_t length);
/* Is it a handle that we can connect to? 0, or -EPROTO with *why a sentence. */
int ha_wire_check_handle(const void *handle, const char **why);

/* ---- memory that the peer writes ---- */

/*
 * Clear to send: one buffer of one receive, exactly one cache line, so that `idx`, its last word,
 * arrives with the rest. A slot has HA_MAX_RECVS of them; a receive of n buffers writes the first
 * n.
 */
struct ha_cts {
	uint64_t addr;
	uint64_t size;
	/* by rail; 0 = the buffer is not registered on that rail's device */
	uint32_t rkey[HA_MAX_RAILS];
	uint32_t tag;
	uint8_t n; /* buffers of this receive */
	uint8_t reserved[3];
	uint64_t idx; /* absolute number of the receive, plus one; 0 = never written */
};
static_assert(sizeof(struct ha_cts) == 64, "one cache line");
#define HA_CTS_SLOT_SIZE (HA_MAX_RECVS * sizeof(struct ha_cts))
#define HA_CTS_RING_SIZE (HA_SLOTS * HA_CTS_SLOT_SIZE)

/* How many bytes each buffer of a receive got; written before (or with) the immediate when byte_len
 * does not show it. */
struct ha_sizes {
	uint64_t size[HA_MAX_RECVS];
};
static_assert(sizeof(struct ha_sizes) == 64, "one cache line");
#define HA_SIZES_RING_SIZE (HA_SLOTS * sizeof(struct ha_sizes))
static_assert(sizeof(struct ha_sizes) == HA_RECORD_SIZE,
	      "a one-sided connection has its records there");

/*
 * The board: where the peer's driver writes to ours over the rails themselves. It lies behind the
 * ring that the peer writes. Words of the heartbeat carry the epoch in their upper half, so that
 * none of an older incarnation counts.
 */
struct ha_heartbeat {
	uint64_t ping; /* epoch << 32 | number: the sender's proof that the path works */
	uint64_t pong; /* the same, as the receiver's answer */
	/*
	 * the heartbeat, either end's: work requests posted; the NIC's acknowledgement is the
	 * answer. From the sender, above these 32 bits: 1 = keys are wanted on this rail though it
	 * carries nothing, 2 = it carries because another one is slow (balance/lag.c)
	 */
	uint64_t still;
	/*
	 * Each rail's word only grows. HA_FLAG_ACK_MEMORY: receives that are complete, from the
	 * first. HA_FLAG_ONE_SIDED: messages that were taken, so that HA_SLOTS more may come.
	 */
	uint64_t count;
};
#define HA_BOARD_BODY 496
/* slots per rail, used in turn; a message that overwrites another is no loss, because all are
 * repeated */
#define HA_BOARD_SLOTS 2
struct ha_board_message {
	uint32_t number; /* of the message on this rail, from 1 */
	uint32_t length;
	/* ha_wire_board_sum() of number, length and body: half a message does not count */
	uint64_t check;
	uint8_t body[HA_BOARD_BODY];
};
static_assert(sizeof(struct ha_board_message) == 512, "wire layout");
static_assert(sizeof(struct ha_msg_fenced) <= HA_BOARD_BODY &&
		      sizeof(struct ha_msg_keys) <= HA_BOARD_BODY &&
		      sizeof(struct ha_msg_windows) <= HA_BOARD_BODY &&
		      sizeof(struct ha_msg_incarnation) <= HA_BOARD_BODY,
	      "control messages fit a slot");
struct ha_board {
	struct ha_heartbeat heartbeat[HA_MAX_RAILS];
	struct ha_board_message message[HA_MAX_RAILS][HA_BOARD_SLOTS];
};
static_assert(sizeof(struct ha_board) % 64 == 0, "whole cache lines");
/* Where the peer's board lies, from the start of its ring memory. */
#define HA_SENDER_BOARD HA_CTS_RING_SIZE
#define HA_RECEIVER_BOARD HA_SIZES_RING_SIZE
uint64_t ha_wire_board_sum(const struct ha_board_message *message);

/*
 * The immediate identifies, it does not count:
 *   bits  0-7   the absolute index's bits 0-7; the slot is that modulo HA_SLOTS
 *   bits  8-15  mask of the stripes (= rails) that make up this message
 *   bits 16-18  which of them this one is
 *   bit  19     the sizes record holds the lengths
 *   bits 20-31  generation: the absolute index's bits 8-19
 */
#define HA_IMM_SIZED (1u << 19)

/* What identifies an absolute index: all but stripe, mask and the sized bit. */
static inline uint32_t ha_imm_identity(uint64_t idx)
{
	return (uint32_t)(idx & 0xff) | (uint32_t)(idx >> 8) << 20;
}
/* Stripe and mask of a message that one rail carries alone. */
static inline uint32_t ha_imm_alone(unsigned rail)
{
	return 1u << rail << 8 | rail << 16;
}
static inline uint32_t ha_imm_make(uint64_t idx, unsigned stripe, unsigned mask, bool sized)
{
	return ha_imm_identity(idx) | mask << 8 | stripe << 16 | (sized ? HA_IMM_SIZED : 0);
}
/* What all stripes of a message have in common: its identity, and which they are. */
static inline uint32_t ha_imm_common(uint32_t imm)
{
	return imm & 0xfff0ffff;
}
/* The identity within an immediate. */
static inline uint32_t ha_imm_identity_of(uint32_t imm)
{
	return imm & 0xfff000ff;
}
static inline unsigned ha_imm_slot(uint32_t imm)
{
	return imm & (HA_SLOTS - 1);
}
static inline unsigned ha_imm_mask(uint32_t imm)
{
	return imm >> 8 & 0xff;
}
static inline unsigned ha_imm_stripe(uint32_t imm)
{
	return imm >> 16 & 7;
}
/* Names another slot than `slot`: what is stored where no further immediate may match. */
static inline uint32_t ha_imm_spoiled(unsigned slot)
{
	return (uint8_t)~slot;
}
static_assert(HA_SLOTS <= 256 && !(HA_SLOTS & (HA_SLOTS - 1)),
	      "the immediate has eight bits for the slot");

#endif
