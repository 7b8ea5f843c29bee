/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.h - how the processes of a job find each other and exchange what set-up needs: our own
 * TCP, MPI, or the caller's
 *
 * Calls are collective and block, with a time limit of the bootstrap's own. Once one has failed,
 * all later ones fail.
 */
#ifndef HA_GPU_HOST_BOOTSTRAP_H
#define HA_GPU_HOST_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ha_gpu_bootstrap {
	void *self;
	int rank, size;
	char address[64]; /* of this host, numeric, as peers reach it */
	/* `bytes` to and from each: send[size], receive[size]. 0, or a negative errno. */
	int (*alltoall)(void *self, const void *send, void *receive, size_t bytes);
	void (*close)(void *self);
	/*
	 * a rank whose process has gone, -1: none that is known of; does not wait. NULL: it is
	 * never known
	 */
	int (*ended_rank)(void *self);
};

/* Everybody's `bytes`, into receive[size]. */
int ha_gpu_bootstrap_allgather(struct ha_gpu_bootstrap *b, const void *mine, void *receive,
			       size_t bytes);
/* Everybody's status, and the worst of all as the result: nobody goes on where one has failed. */
int ha_gpu_bootstrap_agree(struct ha_gpu_bootstrap *b, int status);
/*
 * A rank whose process has gone: nobody need wait for what takes all of them. -1: none that is
 * known of.
 */
int ha_gpu_bootstrap_gone(const struct ha_gpu_bootstrap *b);
void ha_gpu_bootstrap_close(struct ha_gpu_bootstrap *b);

/*
 * Rank 0 listens at `root`, "10.0.0.1:4700" or "[fe80::1]:4700"; the others dial it. Numeric. 0;
 * negative errno, with a line.
 */
int ha_gpu_bootstrap_tcp(struct ha_gpu_bootstrap *b, const char *root, int rank, int size,
			 uint64_t job, unsigned limit_ms);
/* The MPI that the process has (Open MPI's ABI, found with dlopen; MPI_Init has been called, or is
 * called here). 0; -ENOENT: there is none; with a line. */
int ha_gpu_bootstrap_mpi(struct ha_gpu_bootstrap *b);

#ifdef __cplusplus
}
#endif

#endif
