/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpib_agent_iface.h - what the plugin and the agent say to each other on one host
 *
 * Two parts. The registration: messages over a Unix stream socket, answered one by one in order.
 * The hints: a file of 4112 bytes that the agent maps for writing and everybody else for reading,
 * one entry per flow. All numbers are in the host's byte order, IPv4 addresses in the network's.
 * The layout is fixed for all time: whatever implements it, plugin or agent, works with ours.
 *
 * Hints are seqlocks: a writer makes `seq` odd, writes, makes it even again. One writer; readers
 * never make it wait and try a bounded number of times, because a writer may die in the middle and
 * leave the number odd for ever.
 */
#ifndef MPIB_AGENT_IFACE_H
#define MPIB_AGENT_IFACE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* Where MPIB's document puts them. */
#define MPIB_AGENT_SOCK_PATH "/tmp/mpib/agent.sock"
#define MPIB_HINT_SHM_PATH "/tmp/mpib/hints"

/* ---- registration ---- */

#define MPIB_REG_MAGIC UINT32_C(0x4D504952)

enum mpib_msg_type { MPIB_MSG_REGISTER = 1, MPIB_MSG_DEREGISTER = 2, MPIB_MSG_RESPONSE = 128 };
enum mpib_status { MPIB_STATUS_OK = 0, MPIB_STATUS_NO_SLOT = 1, MPIB_STATUS_INVALID = 2 };

struct mpib_msg_header {
	uint32_t magic;
	uint16_t length; /* of the whole message, bytes */
	uint8_t type;    /* enum mpib_msg_type */
	uint8_t reserved;
};

struct mpib_register {
	struct mpib_msg_header header;
	uint32_t conn_id; /* (process number << 16 | counter): unique within its process */
	/* the pair names the flow; connections of one flow share a slot */
	uint32_t sout_src_ip, sout_dst_ip;
	uint32_t sup_src_ip, sup_dst_ip; /* 0: no such rail */
};

struct mpib_register_response {
	struct mpib_msg_header header;
	uint32_t status;    /* enum mpib_status */
	uint32_t hint_slot; /* MPIB_NO_SLOT unless status is 0 */
};

struct mpib_deregister {
	struct mpib_msg_header header;
	uint32_t conn_id;
};

/* To a deregistration, and to a message that is none of the above. */
struct mpib_deregister_response {
	struct mpib_msg_header header;
	uint32_t status;
};

#define MPIB_NO_SLOT UINT32_MAX

static_assert(sizeof(struct mpib_msg_header) == 8, "ABI");
static_assert(sizeof(struct mpib_register) == 28, "ABI");
static_assert(sizeof(struct mpib_register_response) == 16, "ABI");
static_assert(sizeof(struct mpib_deregister) == 12, "ABI");
static_assert(sizeof(struct mpib_deregister_response) == 12, "ABI");

/* ---- hints ---- */

#define MPIB_HINT_MAGIC UINT32_C(0x4D504948)
#define MPIB_HINT_MAX_ENTRIES 256
#define MPIB_HINT_MAX_BW 1024 /* parts: everything on SUP */
/* a reader's attempts; a writer that is not interrupted is through in some nanoseconds */
#define MPIB_HINT_TRIES 8
#define MPIB_HINT_BEAT_MS 100 /* ha-agent's heartbeat */

struct mpib_hint_header {
	uint32_t magic;
	uint32_t max_entries;
	/*
	 * changes at least every MPIB_HINT_BEAT_MS while the agent runs; 0 = this agent has no
	 * heartbeat
	 */
	uint32_t beat;
	uint32_t reserved;
};

struct mpib_hint_entry {
	uint32_t sup_bw; /* SUP's share, parts per 1024; above MPIB_HINT_MAX_BW: the same as that */
	uint32_t seq;    /* odd: is being written */
	uint32_t src_ip; /* SOUT's pair; 0 and 0: the slot is free */
	uint32_t dst_ip;
};

struct mpib_hint_shm {
	struct mpib_hint_header header;
	struct mpib_hint_entry entries[MPIB_HINT_MAX_ENTRIES];
};

static_assert(sizeof(struct mpib_hint_header) == 16, "ABI");
static_assert(sizeof(struct mpib_hint_entry) == 16, "ABI");
static_assert(sizeof(struct mpib_hint_shm) == 4112, "ABI");

/* Replace a whole entry. The agent only. An entry that a dead writer left odd is mended by it. */
static inline void mpib_hint_put(struct mpib_hint_entry *e, uint32_t sup_bw, uint32_t src_ip,
				 uint32_t dst_ip)
{
	uint32_t odd = __atomic_load_n(&e->seq, __ATOMIC_RELAXED) | 1;

	__atomic_store_n(&e->seq, odd, __ATOMIC_RELAXED);
	/* Release, each: nobody sees a new word before the odd number. */
	__atomic_store_n(&e->sup_bw, sup_bw, __ATOMIC_RELEASE);
	__atomic_store_n(&e->src_ip, src_ip, __ATOMIC_RELEASE);
	__atomic_store_n(&e->dst_ip, dst_ip, __ATOMIC_RELEASE);
	/* Release: who sees the even number sees all of it. */
	__atomic_store_n(&e->seq, odd + 1, __ATOMIC_RELEASE);
}

/* Change the share alone. */
static inline void mpib_hint_write(struct mpib_hint_entry *e, uint32_t sup_bw)
{
	mpib_hint_put(e, sup_bw, e->src_ip, e->dst_ip);
}

/* A consistent copy. false: MPIB_HINT_TRIES times the writer was in the middle of it, or died
 * there. */
static inline bool mpib_hint_get(const struct mpib_hint_entry *e, struct mpib_hint_entry *copy)
{
	for (int i = 0; i < MPIB_HINT_TRIES; i++) {
		/* Acquire, each: the words are read after the first number and before the
		 * second. */
		copy->seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
		copy->sup_bw = __atomic_load_n(&e->sup_bw, __ATOMIC_ACQUIRE);
		copy->src_ip = __atomic_load_n(&e->src_ip, __ATOMIC_ACQUIRE);
		copy->dst_ip = __atomic_load_n(&e->dst_ip, __ATOMIC_ACQUIRE);
		if (!(copy->seq & 1) && copy->seq == __atomic_load_n(&e->seq, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

#endif
