/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.h - one end of one connection: keeps messages in flight and looks at each of them */
#ifndef HA_TESTS_FAILOVER_LANE_H
#define HA_TESTS_FAILOVER_LANE_H

#include "tests/plugin/failover/duel.h"
#include "tests/plugin/nccl/rig.h"

#define LANE_DEPTH 8 /* messages in flight */
/* a received buffer is left alone for a while, and looked at again */
#define LANE_SLOTS (2 * LANE_DEPTH)

struct lane_slot {
	struct message message;
	uint8_t *data;
	void *mr;                       /* of message.fresh */
	void *request[MESSAGE_BUFFERS]; /* one of a receive */
	unsigned posted;                /* sends: how many of message.n */
	unsigned done;                  /* mask */
	bool over;                      /* complete; and it has been used before */
};

struct lane {
	struct rig *rig;
	struct duel_shared *shared;
	unsigned number;
	size_t largest;
	enum duel_end end;
	bool flush;
	void *listen, *comm, *mr;
	uint8_t *memory;
	struct lane_slot slot[LANE_SLOTS];
	uint64_t begun, complete; /* messages */
	bool failed;
};

/* Memory and its registration, on a connected comm. */
void lane_prepare(struct lane *l);
void lane_close(struct lane *l);
/* Whatever can be done now. False: nothing could. */
bool lane_step(struct lane *l);
/* All messages are through, or there will be none. */
bool lane_over(const struct lane *l);

#endif
