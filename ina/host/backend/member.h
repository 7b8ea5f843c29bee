/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member.h - one rank of a group on this host
 *
 * A client joins:
 *   control --ADD--> balancer --ADD--> worker threads; balancer --ADDED--> control --> the client
 * A stream fails, or (from control) the controller says that the group has ended:
 *   worker thread --FAILED--> balancer --ENDED--> control --> the client
 *   control --END--> balancer --ENDED--> control --> the client
 * A client leaves or crashes, or its group has ended:
 *   control --REMOVE--> balancer --REMOVE--> worker threads
 *   worker threads --REMOVED--> balancer --REMOVED--> control, which frees it
 *
 * What is not said to be another thread's is set before ADD and only read afterwards.
 */
#ifndef INA_BACKEND_MEMBER_H
#define INA_BACKEND_MEMBER_H

#include "ina/host/backend/mailbox.h"
#include "ina/host/backend/stream.h"

#include <sys/queue.h>

#define HA_MEMBERS 256u /* of a backend, at once */

/* What a group is, as whoever gives groups says it (authority.h). */
struct ha_group_facts {
	uint8_t id, ranks, workers;
	bool extended;
	uint16_t base;
	uint32_t len, epoch, lease_ms;
	uint32_t switch_addr;
	uint8_t switch_mac[6];
	uint64_t key;
	char switch_name[32];
	uint32_t member[INA_RANKS_MAX];
};

struct ha_peer;
struct ha_job;

struct ha_member {
	struct ha_peer *peer;
	uint32_t handle; /* the client's name for it; never 0 */
	unsigned rank;
	uint64_t incarnation; /* of this rank's part in the group: never the same twice */
	struct ha_group_facts group;
	struct ha_message add, end, remove, ended, removed;
	int end_err; /* set with `end` */
	char end_why[320];
	/*
	 * set with `remove`: 0 = the client leaves; else how its operations end, and those of all
	 * ranks
	 */
	int remove_err;
	/* with it: the client is there, and is informed when all of it is over */
	bool remove_asked;
	char remove_why[320];

	/* The balancer's. */
	bool over, leaving;
	unsigned streams_left;
	STAILQ_HEAD(, ha_job) jobs; /* in the order of their requests */
	/* The balancer's until `ended` has been sent, control's from then on. */
	int err;
	char why[320];

	/* Control's. */
	bool joined, ending, going, renewed;
	uint32_t serial;            /* of the question to be answered */
	LIST_ENTRY(ha_member) link; /* in the backend's list */

	unsigned nstreams;
	struct ha_stream stream[]; /* each a worker thread's */
};

/* NULL: no memory. streams: the group's workers. */
struct ha_member *ha_member_create(const struct ha_group_facts *group, unsigned rank);
void ha_member_free(struct ha_member *m);

#endif
