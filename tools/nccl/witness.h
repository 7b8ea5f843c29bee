/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_WITNESS_H
#define HAWSER_TOOL_NCCL_WITNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/job/figures.h"

struct nccl_options;

/*
 * witness - which network NCCL has taken, over which NICs, and whether it is protected
 *
 * NCCL's interface does not say. What does: the name that the communicator was asked for, which
 * NCCL takes or fails;
 * its log, where that goes to a file; and the status page of hawser's plugin. What none of them
 * shows is unknown.
 */
#define NCCL_LINES 6
#define NCCL_LINES_SIZE 176

struct nccl_witness {
	char networks[HA_SIDES][24];             /* by side; "": unknown */
	bool asked;                              /* the names are what was asked for */
	bool log;                                /* there is a log of NCCL's */
	char lines[NCCL_LINES][NCCL_LINES_SIZE]; /* lines of it that name the network */
	bool loaded;                             /* hawser's plugin is in this process */
	bool page;                               /* and shows its status: what follows is known */
	char plugin[208], hawser[32];            /* its file and version */
	char nics[160]; /* those that carry connections: "soft0 (standby soft1)" */
	int connections, protected, unprotected; /* and those of which it is not known yet */
	char why_not[64];
};

/* Looks, and waits a little until protection is known. */
void nccl_witness_take(struct nccl_witness *witness, const struct nccl_options *options);

/* One line about all processes' words: "HA on every rank, 12 of 12 connections protected, ..." */
void nccl_witness_text(const struct nccl_witness *all, int count, int side, char *text,
		       size_t size);

#endif
