/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/inbox.h"

#include "plugin/transfer/bundle.h"
#include "plugin/failover/failover.h"
#include "plugin/channel/stream.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS_MAX 64

struct ha_letter {
	struct ha_letter *next;
	uint64_t message[]; /* aligned as a union ha_message is */
};

void ha_inbox_put(struct ha_bundle *b, const union ha_message *m)
{
	struct ha_letter *letter = NULL, **end = &b->inbox;

	/* ABORT is said once. */
	if (b->letters < LETTERS_MAX || (m->header.type == HA_MSG_ABORT && b->letters == LETTERS_MAX))
		letter = malloc(sizeof(*letter) + m->header.length);
	if (!letter)
		return;
	letter->next = NULL;
	memcpy(letter->message, m, m->header.length);
	while (*end)
		end = &(*end)->next;
	*end = letter;
	b->letters++;
	ha_due_now(b);
}

static struct ha_letter *take(struct ha_bundle *b)
{
	struct ha_letter *letter = b->inbox;

	if (letter) {
		b->inbox = letter->next;
		b->letters--;
	}
	return letter;
}

void ha_inbox_read(struct ha_bundle *b)
{
	for (struct ha_letter *letter; (letter = take(b)) != NULL; free(letter)) {
		union ha_message m;

		memcpy(&m, letter->message, ((struct ha_msg_header *)letter->message)->length);
		ha_failover_message(b, &m);
	}
}

void ha_inbox_drop(struct ha_bundle *b)
{
	for (struct ha_letter *letter; (letter = take(b)) != NULL;)
		free(letter);
}
