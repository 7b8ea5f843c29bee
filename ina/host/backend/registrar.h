/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registrar.h - a thread that asks the authority, so that nobody else has to wait: create, join,
 * leave, and every rank's lease
 */
#ifndef INA_BACKEND_REGISTRAR_H
#define INA_BACKEND_REGISTRAR_H

#include "ina/host/backend/authority.h"

#include <sys/queue.h>

enum ha_question_kind {
	HA_QUESTION_CREATE = 100,
	HA_QUESTION_JOIN,
	HA_QUESTION_LEAVE, /* has no answer: the registrar frees it */
	/* from the registrar unasked: the group of `incarnation` is over, err and why */
	HA_QUESTION_LOST,
};

/* From control and back, in memory of malloc's. */
struct ha_question {
	struct ha_message message;
	enum ha_question_kind kind;
	STAILQ_ENTRY(ha_question) link; /* control's: it waits for the peer's former ones */
	struct ha_peer *peer;
	uint32_t serial;
	unsigned rank;
	uint64_t incarnation;
	struct ina_shm_create spec;
	struct ha_group_facts group; /* JOIN: the ticket's, then the true ones */
	int err;
	char why[320];
};

/* A switch that did not answer. */
struct ha_registrar_hidden {
	uint32_t addr;
	uint64_t until; /* ns: not looked for again before then; 0: nothing is known */
	int err;
	char why[320];
};

#define HA_REGISTRAR_HIDDEN 8u

struct ha_registrar {
	struct ha_authority *authority;
	struct ha_net *net;
	const uint8_t *switch_mac; /* NULL: to be found */
	struct ha_mailbox mailbox, *control;
	struct ha_sleeper sleeper;
	_Atomic bool stop;
	pthread_t thread;
	bool running;
	/* The thread's own. */
	LIST_HEAD(, ha_registrar_lease) leases; /* ranks that are being renewed */
	struct ha_registrar_hidden hidden[HA_REGISTRAR_HIDDEN];
};

/* 0 or a negative errno. r: zeroed but for authority, net, switch_mac, control. */
int ha_registrar_start(struct ha_registrar *r);
/* Questions that wait are freed; leases are given back as long as the authority answers. */
void ha_registrar_stop(struct ha_registrar *r);

#endif
