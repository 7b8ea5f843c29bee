/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_RANKS_H
#define HA_TESTS_COMMUNICATORS_RANKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/nccl/library.h"

/*
 * ranks - the processes of a test: each is a host and a rank of its own, and opens NCCL after the
 * fork
 *
 * The process that forks them looks on: it never opens NCCL, it cuts NICs and kills ranks, and it
 * ends the test when a rank fails or when no rank does anything that is noted for RANKS_HANG_S.
 * Each rank notes where it is, so that a hang says who waits for what.
 */
#define RANKS_MAX 4
#define RANKS_IDS 512
#define RANKS_HANG_S 480

struct ranks_shared {
	struct nccl_unique_id ids[RANKS_IDS];
	atomic_uint ids_made;
	atomic_uint arrived[RANKS_MAX]; /* barriers that the rank has come to */
	atomic_uint rounds[RANKS_MAX];  /* collectives of the rank whose elements were compared */
	atomic_uint stage;              /* for the test's own use */
	atomic_uint notes;              /* of all ranks */
	char where[RANKS_MAX][96];
};

/* NCCL's calls beyond those of `ha nccl`. NULL where NCCL is older. */
struct more_calls {
	int (*finalize)(nccl_comm comm);
	int (*split)(nccl_comm comm, int color, int key, nccl_comm *child,
		     struct nccl_config *config);
	int (*shrink)(nccl_comm comm, int *excluded, int count, nccl_comm *child,
		      struct nccl_config *config, int flags);
	int (*count)(nccl_comm comm, int *count);
	int (*user_rank)(nccl_comm comm, int *rank);
};

/* What a rank's process has. */
struct rank {
	int rank, count;
	uint32_t alive;         /* bit per rank that barriers wait for */
	unsigned barriers, ids; /* passed and taken so far */
	struct ranks_shared *shared;
	struct ha_library library;
	struct more_calls calls;
};

struct ranks {
	int count;
	pid_t pid[RANKS_MAX];
	uint32_t ended;   /* bit per rank that was waited for */
	uint32_t may_die; /* bit per rank that the test kills */
	struct ranks_shared *shared;
	uint64_t signs;  /* of all ranks, when they were looked at last */
	int64_t sign_at; /* seconds: when there were more than before */
};

/* The test's folder, NCCL's path; set once. Events of the plugins lie in FOLDER/events, NCCL's log
 * in FOLDER/log.PID. */
void ranks_prepare(const char *libnccl, const char *plugin);
const char *ranks_folder(void);
const char *ranks_libnccl(void);

/*
 * Runs body in `count` ranks and look, which may be NULL, in this process meanwhile. Ends the
 * program with status 1 where a rank does not return.
 */
void ranks_run(int count, void (*body)(struct rank *me), void (*look)(struct ranks *ranks));

/* In a rank: opens NCCL and the CUDA runtime, which ranks_run() has not done. */
void rank_open_library(struct rank *me);
/* In a rank: what it does now, for the report of a hang. */
void rank_note(struct rank *me, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In a rank: until all ranks that are alive are here. */
void rank_barrier(struct rank *me);
/* In a rank: the id of the next communicator, the same in all ranks that are alive. */
struct nccl_unique_id rank_next_id(struct rank *me);

/* Some milliseconds of sleep between two looks. */
void ranks_sleep(void);
/* Where the test looks on: until a rank has compared so many more collectives; ends the test when a
 * rank fails. */
void ranks_await_rounds(struct ranks *ranks, int rank, unsigned more);
/* Until the stage is at least that. */
void ranks_await_stage(struct ranks *ranks, unsigned stage);
/* Kills a rank with SIGKILL; it is not expected to return. */
void ranks_kill(struct ranks *ranks, int rank);
/* Until it is gone. */
void ranks_await_end(struct ranks *ranks, int rank);
/* Lines of all plugins' events that contain the text. */
int ranks_events(const char *text);
/* Whether a line of NCCL's log contains the text. */
bool ranks_log_has(const char *text);
/* A call of the library by its name, into the pointer at `call`; ends the test when there is none.
 */
void ranks_find_call(void *library, void *call, const char *name);

#endif
