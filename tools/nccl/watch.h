/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_WATCH_H
#define HAWSER_TOOL_NCCL_WATCH_H

#include "tools/nccl/abi.h"

struct ha_progress;
struct ha_rendezvous;
struct nccl_gpus;

/*
 * watch - a thread that looks at what the calling thread cannot while it waits inside NCCL or CUDA
 *
 * NCCL's calls return when they have succeeded or failed, and those that wait for a dead rank may
 * never do. The thread asks every communicator for its asynchronous error, looks whether another
 * rank has failed or died, and whether anything has moved. What it finds becomes the fault of this
 * rank; it aborts the communicators so that the calling thread comes back, and where that does not,
 * ends the process.
 *
 *   idle -> inside (enter) -> idle (leave)
 *                          -> failed (the thread has found something; leave returns it)
 */
struct ha_watch;

/* Starts the thread. NULL with the fault recorded. */
struct ha_watch *ha_watch_open(struct ha_rendezvous *rendezvous, struct ha_progress *progress,
			       int rank, int timeout_s);

/*
 * The communicators to look after from now on; NULL: none. `leave`: ends the process, reporting the
 * fault.
 */
void ha_watch_gpus(struct ha_watch *watch, const struct nccl_gpus *gpus);
void ha_watch_leaver(struct ha_watch *watch, void (*leave)(void *context), void *context);

/*
 * The calling thread goes into calls that may wait, and comes back. Rendezvous and progress are the
 * thread's in between.
 */
void ha_watch_enter(struct ha_watch *watch, const char *what);
/* 0, or -ECONNABORTED, -EIO, -ETIMEDOUT with the fault recorded. */
int ha_watch_leave(struct ha_watch *watch);

/*
 * Events, in the order in which they will be reached, that the thread looks at from now on, between
 * enter and leave: each one that is reached is movement. count 0: none.
 */
void ha_watch_follow(struct ha_watch *watch, const cuda_event *events, int count);

/* Something was completed: cheap, from the calling thread, between enter and leave. */
void ha_watch_moved(struct ha_watch *watch);

void ha_watch_close(struct ha_watch *watch);

#endif
