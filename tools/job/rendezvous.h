/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_RENDEZVOUS_H
#define HAWSER_JOB_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * rendezvous - how the ranks of a run find each other and notice when one is gone
 *
 * A star of TCP connections with rank 0 in the middle, used for handles, barriers and results,
 * never inside a measured time. A rank that fails says why before it leaves (abort); one that just
 * vanishes ends its connection. In both cases rank 0 notifies the others, and every later call here
 * returns an error.
 */

struct ha_cues;
struct ha_rendezvous;

#define HA_LAST_ERROR_SIZE 1200

/* Where a rank stands; filled by launch. */
struct ha_place {
	int rank;
	int ranks;
	int local_rank; /* among the ranks of this machine, for the choice of a device */
	char host[256]; /* rank 0's */
	int port;
	int listener; /* rank 0: a socket that already listens there, or -1 */
	uint64_t job; /* the same in all ranks of one run; unauthenticated peers are refused */
	bool forked;  /* a parent process watches the ranks and reports what ended them */
	/* forked: HA_LAST_ERROR_SIZE bytes shared with the parent, for the line to report */
	char *last_error;
	struct ha_cues *cues; /* of --at; NULL: none */
	const char *launcher; /* who started the ranks, for messages */
};

/*
 * Connects all ranks, waiting at most timeout_s for the last one. Returns 0 or a negative errno
 * (-ETIMEDOUT,
 * -EADDRINUSE, -EPROTO for an unauthenticated peer, ...) with the fault recorded.
 */
int ha_rendezvous_open(struct ha_rendezvous **rendezvous, const struct ha_place *place,
		       int timeout_s);

/*
 * Each rank gives `size` bytes and gets those of all ranks, in rank order. 0 or a negative errno.
 */
int ha_rendezvous_allgather(struct ha_rendezvous *r, const void *mine, size_t size, void *all);

/* The same for rank 0 alone; `all` is not touched in the other ranks, which do not wait. */
int ha_rendezvous_gather(struct ha_rendezvous *r, const void *mine, size_t size, void *all);

/* Returns in no rank before all ranks have called it. */
int ha_rendezvous_barrier(struct ha_rendezvous *r);

/*
 * Looks, without waiting, whether another rank failed or died: 0, or -ECONNABORTED with the fault
 * recorded.
 */
int ha_rendezvous_poll(struct ha_rendezvous *r);

/*
 * After a local failure: gives the news of another rank's end, its likely cause, a moment to
 * arrive. As poll.
 */
int ha_rendezvous_linger(struct ha_rendezvous *r, int milliseconds);

/*
 * After a local failure, in another rank than 0: notifies rank 0, which chooses one of the ranks
 * that failed, and waits for its choice. Nothing to do in rank 0, and when another rank's end is
 * known.
 */
void ha_rendezvous_offer(struct ha_rendezvous *r);

/*
 * In rank 0, when it has said why it fails: notifies the others. NULL, or another rank's end is
 * known: nothing to do.
 */
void ha_rendezvous_abort(struct ha_rendezvous *r);

/*
 * In a rank that leaves because of another one: waits, some seconds at most, until that one has
 * said why and is gone. A launcher such as mpirun ends all ranks as soon as one leaves with a
 * failure.
 */
void ha_rendezvous_follow(struct ha_rendezvous *r);

/*
 * Whether this rank is the one that should print the recorded fault: its own always; that of a rank
 * that vanished in one place only, and not at all where a parent process watches.
 */
bool ha_rendezvous_reports(const struct ha_rendezvous *r);

void ha_rendezvous_close(struct ha_rendezvous *r);

#endif
