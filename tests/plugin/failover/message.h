/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.h - what travels: message m of a connection has the same shape and bytes at both ends,
 * without their talking
 */
#ifndef HA_TESTS_FAILOVER_MESSAGE_H
#define HA_TESTS_FAILOVER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_BUFFERS 8
#define MESSAGE_OPTIONAL 1024 /* bytes of the largest with an optional receive */

struct message {
	unsigned n;                    /* buffers of a grouped receive; mostly 1 */
	unsigned turn;                 /* which of them is sent first */
	bool optional;                 /* its receive is */
	bool fresh;                    /* its buffer is registered for it alone */
	size_t at[MESSAGE_BUFFERS];    /* its place in the slot's memory */
	size_t size[MESSAGE_BUFFERS];  /* sent */
	size_t slack[MESSAGE_BUFFERS]; /* the receive is larger by so much */
	const uint8_t *bytes[MESSAGE_BUFFERS];
};

/* Once per process, before the first message. */
void message_prepare(size_t largest);
/* largest: bytes of a slot's memory without the slack. */
void message_make(struct message *m, unsigned lane, uint64_t number, size_t largest);
/* Bytes of memory that a slot needs. */
size_t message_room(size_t largest);

#define MESSAGE_POISON 0xd5
/* The first wrong byte of buffer i at p; size + slack when all is right. Behind the data there must
 * be poison. */
size_t message_differ(const struct message *m, unsigned i, const uint8_t *p);
/* The same of the data alone, which may be on its way at this very moment. */
bool message_is_there(const struct message *m, unsigned i, const uint8_t *p);

#endif
