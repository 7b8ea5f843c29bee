/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.h - what client and backend say to each other over the Unix socket (SOCK_SEQPACKET: a
 * packet is a message)
 *
 *   client                       backend
 *   HELLO version                WELCOME version, the card's address     or REFUSED and the end
 *   ATTACH + the memory file     ATTACHED                                or REFUSED and the end
 *   CREATE members, name         TICKET                                  or REFUSED, errno, text
 *   JOIN ticket, rank            JOINED handle, rank, ranks              or REFUSED
 *   LEAVE handle, errno          LEFT: the handle means nothing any more
 *   BELL                         BELL: look at your ring (only to one who sleeps)
 *                                STATE handle, errno, sentence: the group has ended
 *                                REFUSED without a serial, and the end: what this client did wrong
 *
 * An answer has its question's serial. Several questions may wait; ha-backend refuses with -EAGAIN
 * beyond 64 of a client (HA_PEER_QUESTIONS).
 */
#ifndef INA_SHM_MESSAGE_H
#define INA_SHM_MESSAGE_H

#include "ina/host/shm/layout.h"

enum ina_shm_type {
	INA_SHM_HELLO = 1,
	INA_SHM_WELCOME,
	INA_SHM_ATTACH,
	INA_SHM_ATTACHED,
	INA_SHM_CREATE,
	INA_SHM_TICKET,
	INA_SHM_JOIN,
	INA_SHM_JOINED,
	INA_SHM_LEAVE,
	INA_SHM_LEFT,
	INA_SHM_STATE,
	INA_SHM_REFUSED,
	INA_SHM_BELL,
	INA_SHM_TYPES
};

#define INA_SHM_TEXT 256
#define INA_SHM_NAME 64

struct ina_shm_hello {
	uint64_t magic; /* INA_SHM_MAGIC */
	uint32_t version;
	uint32_t address; /* WELCOME: IPv4, host order */
};

struct ina_shm_create {
	uint32_t ranks, member[HA_INA_RANKS]; /* in the order of ranks, host order */
	char name[INA_SHM_NAME];              /* for people; ends with 0 */
};

struct ina_shm_join {
	uint8_t ticket[HA_INA_TICKET];
	uint32_t rank;
};

struct ina_shm_joined {
	uint32_t handle, rank, ranks;
};

struct ina_shm_leave {
	uint32_t handle;
	/*
	 * 0; a negative errno: it leaves operations behind that have not ended, also such as were
	 * not pushed yet, and they end so for all ranks
	 */
	int32_t result;
};

struct ina_shm_state {
	uint32_t handle;         /* STATE; 0 in REFUSED */
	int32_t result;          /* negative errno */
	char text[INA_SHM_TEXT]; /* one line, ends with 0 */
};

struct ina_shm_message {
	uint32_t type;   /* enum ina_shm_type */
	uint32_t serial; /* the question's; 0 = not an answer */
	union {
		struct ina_shm_hello hello; /* HELLO, WELCOME */
		uint64_t bytes;             /* ATTACH: of the file */
		struct ina_shm_create create;
		uint8_t ticket[HA_INA_TICKET];
		struct ina_shm_join join;
		struct ina_shm_joined joined;
		struct ina_shm_leave leave;
		uint32_t handle;            /* LEFT */
		struct ina_shm_state state; /* STATE, REFUSED */
	};
};

/* Bytes of a message of this type; 0: there is no such type. */
size_t ina_shm_message_bytes(uint32_t type);
/*
 * Of what came, in memory of one's own: length and type, and what of it can be checked alone. 0, or
 * -EPROTO and *why.
 */
int ina_shm_message_check(const struct ina_shm_message *message, size_t bytes, bool from_client,
			  const char **why);

/*
 * Never waits. file: one to pass along, or -1. 0; -EAGAIN: the other does not read; -ENOTCONN: it
 * has gone; or another errno.
 */
int ina_shm_message_send(int fd, const struct ina_shm_message *message, int file);
/*
 * Never waits. 1; 0: nothing there; -ENOTCONN: the other has gone; -EPROTO and *why. *file is a
 * file passed along (the caller's now), or -1.
 */
int ina_shm_message_receive(int fd, struct ina_shm_message *message, bool from_client, int *file,
			    const char **why);

#endif
