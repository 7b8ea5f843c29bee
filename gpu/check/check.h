/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what only hardware can show, tried item by item: the list of docs/gpu.md, as `ha
 * gpu-check` runs it
 *
 * Two processes, rank 0 and 1, open the host library over a table of hardware and go through the
 * items together. Threads of the host stand for GPU threads. What an item cannot try where it runs
 * it says so, in one line, and is no failure.
 */
#ifndef HA_GPU_CHECK_CHECK_H
#define HA_GPU_CHECK_CHECK_H

#include "gpu/host/host.h"

#include <stdbool.h>
#include <stdio.h>

/* bytes, of each rank; as the table of hardware wants them */
#define HA_GPU_CHECK_HEAP (4u << 20)
#define HA_GPU_CHECK_TEXT 200

enum ha_gpu_verdict { HA_GPU_CHECK_OK, HA_GPU_CHECK_NOT_HERE, HA_GPU_CHECK_FAILED };

struct ha_gpu_check {
	struct ha_gpu_host_config config; /* complete; the heap is HA_GPU_CHECK_HEAP bytes */
	unsigned rounds;                  /* how much of everything; 100 is usual */
	/* Takes the NIC of our primary path away, and gives it back; NULL: a person has to. */
	void (*cut)(void *self, bool away);
	void *cut_self;
	unsigned cut_s;    /* so long a person has to pull a cable; 0: nobody will */
	const char *gpu;   /* why no GPU thread takes part */
	FILE *out;         /* rank 0's; NULL: nothing is printed */
	const char *only;  /* an item's name; NULL: all */
	unsigned count[3]; /* by verdict, of all items; after the run */

	/* while it runs */
	struct ha_gpu_host *host;
	struct ha_gpu_conn *conn; /* to the other rank */
	int rank;
	uint8_t *heap;
	char text[HA_GPU_CHECK_TEXT];
};

struct ha_gpu_check_item {
	const char *name, *what;
	enum ha_gpu_verdict (*run)(struct ha_gpu_check *k);
	bool unconnected; /* it makes the connection that the others need */
};

extern const struct ha_gpu_check_item ha_gpu_check_items[];
extern const unsigned ha_gpu_check_nitems;

/*
 * All items; collective. 0: none failed; 1: some did; a negative errno: the ranks have lost each
 * other.
 */
int ha_gpu_check_run(struct ha_gpu_check *k);

/* items.c: the verdict with its line. */
enum ha_gpu_verdict ha_gpu_check_report(struct ha_gpu_check *k, enum ha_gpu_verdict v,
					const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
