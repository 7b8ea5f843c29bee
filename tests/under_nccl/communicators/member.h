/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_MEMBER_H
#define HA_TESTS_COMMUNICATORS_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/under_nccl/communicators/ranks.h"

/*
 * member - one rank's part in one communicator: its stream, its buffers, and all-reduces whose
 * every element is compared
 *
 * Contributions are drawn from (process, communicator, round, element), so that an element of
 * another round, rank or communicator is a wrong one. Several rounds may be started before the
 * first is waited for.
 */
#define MEMBER_SLOTS 4 /* rounds under way at once */

struct member {
	struct rank *me;
	nccl_comm comm;
	cuda_stream stream;
	int rank, count;    /* in the communicator */
	uint32_t processes; /* bit per process that takes part */
	uint32_t number;    /* of the communicator, the same in all its ranks */
	size_t elements;
	unsigned started, finished;                     /* rounds */
	uint32_t *in[MEMBER_SLOTS], *out[MEMBER_SLOTS]; /* GPU memory */
	cuda_event done[MEMBER_SLOTS];
	uint32_t *host;
};

/* A configuration that asks for the plugin; NCCL fails rather than take another network. */
struct nccl_config member_config(void);

/* A communicator of all processes that are alive, in order. */
void member_open(struct member *m, struct rank *me, size_t elements);
/* The same with a configuration; 0 or NCCL's error, with a communicator that is to be aborted. */
int member_try_open(struct member *m, struct rank *me, size_t elements, struct nccl_config *config);
/* A communicator that NCCL has made of another one. */
void member_adopt(struct member *m, struct rank *me, nccl_comm comm, uint32_t processes,
		  uint32_t number, size_t elements);

/* Fills the contribution and starts an all-reduce. */
void member_start(struct member *m);
/* Waits for the oldest: 0, or the asynchronous error of the communicator. Nothing is compared. */
int member_wait(struct member *m);
/* Waits for the oldest, without an error, and compares its elements. */
void member_finish(struct member *m);
/* Rounds, as many as fit under way at once. */
void member_rounds(struct member *m, unsigned rounds);

/* Orderly end. */
void member_close(struct member *m);
/* Ends it whatever is under way. */
void member_abort(struct member *m);
/* What is left when the communicator has ended otherwise. */
void member_release(struct member *m);

/* Until a communicator that does not block has done what it was asked for; the test ends where NCCL
 * has an error. */
void member_await(struct rank *me, nccl_comm comm, int result, const char *call);
/* The test ends where NCCL has an error, with its words. */
void member_check(const struct rank *me, int result, const char *call);

#endif
